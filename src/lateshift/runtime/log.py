"""Lateshift's logger: the standard library's, under the name `lateshift`; a program sets it up as it likes. For its own
commands Lateshift writes one line a record, whatever a message holds."""

import logging
import sys

from lateshift.config import NO_JOB_LOG, Settings
from lateshift.model.sealed import MASK
from lateshift.telemetry.keeping import SEALED
from lateshift.telemetry.structured import JsonLines

log = logging.getLogger("lateshift")

FORMAT = "%(levelname)s %(asctime)s %(name)s: %(message)s"
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10} | {10: "\\n"}


def escaped(text: str) -> str:
    """On one line, and nothing that a terminal obeys."""
    return text.translate(_CONTROLS)


class OneLine(logging.Formatter):
    """Control characters are escaped: what a job puts into an error forges no second line and colours no terminal.
    Only a traceback that Lateshift itself logs stands below its record."""

    def format(self, record: logging.LogRecord) -> str:
        shown = {"msg": escaped(record.getMessage()), "args": None}
        if SEALED in record.__dict__:
            shown = {"msg": MASK, "args": None, "exc_info": None, "exc_text": None, "stack_info": None}
        plain = logging.makeLogRecord({**record.__dict__, **shown})
        return super().format(plain)


def set_up(level: str, settings: Settings | None = None, *, bodies: bool = False) -> None:
    """To standard error, for Lateshift's own commands. Where `bodies` of tasks run, the loggers let through what is kept with
    jobs too; what is written stays as `level` says."""
    settings = settings or Settings()
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)
    if settings.log_format == "json":
        handler.setFormatter(JsonLines())
    else:
        handler.setFormatter(OneLine(FORMAT, datefmt="%Y-%m-%dT%H:%M:%S%z"))
    names = logging.getLevelNamesMapping()
    kept = names[settings.job_log] if bodies and settings.job_log != NO_JOB_LOG else names[level]
    logging.basicConfig(level=min(names[level], kept), handlers=[handler])
