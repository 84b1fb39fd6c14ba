"""Lateshift's logger: the standard library's, under the name `lateshift`; a program sets it up as it likes. For its own
commands Lateshift writes one line a record, whatever a message holds."""

import logging
import os
import sys
from typing import Any

from lateshift.config import NO_JOB_LOG, Settings
from lateshift.errors import OptionInvalid
from lateshift.model.escaping import escaped
from lateshift.model.sealed import MASK
from lateshift.telemetry.keeping import SEALED
from lateshift.telemetry.structured import JsonLines, message_of

log = logging.getLogger("lateshift")

FORMAT = "%(levelname)s %(asctime)s %(name)s: %(message)s"
BELOW = "  | "  # before each line that belongs to the record above it: no record begins so


class OneLine(logging.Formatter):
    """Control characters are escaped: what a job puts into an error forges no second line and colours no terminal. What must stand
    on several lines, a traceback or a stack, says on each that it belongs to the record above."""

    def format(self, record: logging.LogRecord) -> str:
        shown = {
            "msg": escaped(message_of(record)), "args": None, "name": escaped(record.name), "levelname": escaped(record.levelname),
            "exc_text": _below(record.exc_text) if record.exc_text and not record.exc_info else None,
        }  # fmt: skip
        if SEALED in record.__dict__:
            shown |= {"msg": MASK, "exc_info": None, "exc_text": None, "stack_info": None}
        return super().format(logging.makeLogRecord({**record.__dict__, **shown}))

    def formatException(self, ei: Any) -> str:  # noqa: N802  as logging calls it
        return _below(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802
        return _below(super().formatStack(stack_info))


def _below(text: str) -> str:
    return "\n".join(f"{BELOW}{escaped(line)}" for line in text.split("\n"))


def log_level(usual: str) -> str:
    """What LATESHIFT_LOG says, in any letters. Raises OptionInvalid."""
    level = os.environ.get("LATESHIFT_LOG", usual)
    if level.upper() not in logging.getLevelNamesMapping():
        raise OptionInvalid(f"LATESHIFT_LOG cannot be {level!r}: DEBUG, INFO, WARNING or ERROR.")
    return level.upper()


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
