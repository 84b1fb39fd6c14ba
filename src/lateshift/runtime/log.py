"""Lateshift's logger: the standard library's, under the name `lateshift`; a program sets it up as it likes. For its own
commands Lateshift writes one line a record, whatever a message holds."""

import logging
import os
import sys
import threading
import traceback
from typing import Any

from lateshift.config import NO_JOB_LOG, Settings
from lateshift.errors import OptionInvalid
from lateshift.model.escaping import escaped
from lateshift.model.sealed import MASK
from lateshift.telemetry.keeping import SEALED, is_hidden
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
            shown |= {"exc_info": None, "exc_text": None, "stack_info": None}
        if is_hidden(record):
            shown["msg"] = MASK
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
        _tell_the_log()
    else:
        handler.setFormatter(OneLine(FORMAT, datefmt="%Y-%m-%dT%H:%M:%S%z"))
    names = logging.getLevelNamesMapping()
    kept = names[settings.job_log] if bodies and settings.job_log != NO_JOB_LOG else names[level]
    logging.basicConfig(level=min(names[level], kept), handlers=[handler])


def _tell_the_log() -> None:
    """What Python itself would write beside the log, as it likes: what nobody caught, and warnings."""
    logging.captureWarnings(True)
    sys.excepthook = lambda kind, error, frames: log.critical(
        "nobody caught %s", kind.__name__, exc_info=(kind, error, frames)
    )
    sys.unraisablehook = lambda found: log.error(
        "%s in %r", found.err_msg or "an exception was ignored", found.object, exc_info=found.exc_value
    )
    threading.excepthook = lambda found: log.error(
        "a thread has ended with %s", found.exc_type.__name__, exc_info=found.exc_value
    )


_said_as_json = False


def say_as(log_format: str) -> None:
    """How `say` says it, from now on."""
    global _said_as_json
    _said_as_json = log_format == "json"


def say(text: str, level: int = logging.WARNING, *, error: BaseException | None = None) -> None:
    """A line of a command itself on standard error, whatever its log leaves out. Whoever reads that as JSON gets JSON."""
    if _said_as_json:
        raised = None if error is None else (type(error), error, error.__traceback__)
        record = logging.LogRecord("lateshift", level, "", 0, text, None, raised)
        print(JsonLines().format(record), file=sys.stderr, flush=True)
        return
    if error is not None:
        traceback.print_exception(error)
    print(f"lateshift: {escaped(text)}", file=sys.stderr, flush=True)
