"""Lateshift's logger: the standard library's, under the name `lateshift`; a program sets it up as it likes. For its own
commands Lateshift writes one line a record, whatever a message holds."""

import logging
import sys

log = logging.getLogger("lateshift")

FORMAT = "%(levelname)s %(asctime)s %(name)s: %(message)s"
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10} | {10: "\\n"}


class OneLine(logging.Formatter):
    """Control characters are escaped: what a job puts into an error forges no second line and colours no terminal.
    Only a traceback that Lateshift itself logs stands below its record."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage().translate(_CONTROLS)
        plain = logging.makeLogRecord({**record.__dict__, "msg": message, "args": None})
        return super().format(plain)


def set_up(level: str) -> None:
    """To standard error, for Lateshift's own commands."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(FORMAT, datefmt="%Y-%m-%dT%H:%M:%S%z"))
    logging.basicConfig(level=level, handlers=[handler])
