"""Every record of the standard library's logging that is made while an attempt runs is kept in the attempt's log, whatever
handlers there are, and carries whose it is. A factory of records does so: a program's handlers, levels and filters stay as they
are. See docs/decisions/attempt-logs.md."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from lateshift.clock import SYSTEM
from lateshift.config import NO_JOB_LOG
from lateshift.model.attempt_log import LOG_LINE_LIMIT, LOGGER_LIMIT, LogLine
from lateshift.model.job import Lease
from lateshift.model.outcome import clip, clip_middle
from lateshift.telemetry.attempt_log import Log
from lateshift.telemetry.context import Running, running
from lateshift.telemetry.tracing import ids, ids_of

MADE_BY = "lateshift_made_by"  # the attribute of a record that says which attempt made it
ABOUT = "lateshift_about"  # and of one that is about an attempt, made outside of it
SEALED = "lateshift_sealed"  # and of one that a sealed job made: Lateshift's own handlers do not write what it says
MASKED = "lateshift_masked"  # but of one that is Lateshift's own, and has nothing of what the job holds
NEVER = logging.CRITICAL + 1

_level = NEVER
_making = threading.Lock()
_exceptions = logging.Formatter()


def keep_from(level: str) -> None:
    """From this level up, in this process; `off` keeps nothing. What a program has set up itself is left alone."""
    global _level
    _level = NEVER if level == NO_JOB_LOG else logging.getLevelNamesMapping()[level]
    before = logging.getLogRecordFactory()
    if not getattr(before, "of_lateshift", False):
        logging.setLogRecordFactory(_factory(before))


def about(lease: Lease) -> dict[str, dict[str, str | int]]:
    """The `extra` of a record that is about a job and made outside of its attempt."""
    return {ABOUT: facts(lease) | ids_of(lease.trace)}


def masked(lease: Lease) -> dict[str, Any]:
    """The same of one that is written also if the job is sealed: whoever says so vouches for its message. Its traceback is not."""
    return about(lease) | {MASKED: True}


def is_hidden(record: logging.LogRecord) -> bool:
    """Whether Lateshift's own handlers may not write what it says."""
    return SEALED in record.__dict__ and MASKED not in record.__dict__


def facts(lease: Lease) -> dict[str, str | int]:
    return {"job": str(lease.id), "task": lease.task, "queue": lease.queue, "attempt": lease.attempt}


def log_of(attempt: Running) -> Log:
    """Made with the first line."""
    if attempt.log is None:
        with _making:
            if attempt.log is None:
                attempt.log = Log(since=SYSTEM.monotonic())
    return attempt.log


def _factory(before: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        attempt = running.get(None)
        # Without a name it is an empty one, to be filled by logging.makeLogRecord; with MADE_BY, another of us was here.
        if attempt is not None and record.name and MADE_BY not in record.__dict__:
            setattr(record, MADE_BY, facts(attempt.lease) | ids())
            if getattr(attempt, "sealed", False):
                setattr(record, SEALED, True)
            if record.levelno >= _level:
                log_of(attempt).add(_line(record))
        return record

    make.of_lateshift = True  # type: ignore[attr-defined]
    return make


def _line(record: logging.LogRecord) -> LogLine:
    return LogLine(
        datetime.fromtimestamp(record.created, UTC),
        clip(record.levelname, LOGGER_LIMIT),
        clip(record.name, LOGGER_LIMIT),
        clip_middle(_message(record), LOG_LINE_LIMIT),
    )


def _message(record: logging.LogRecord) -> str:
    """With its traceback. Formatting runs user code: whatever that raises is no reason to fail a job."""
    try:
        message = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            message = f"{message}\n{_exceptions.formatException(record.exc_info)}"
    except Exception as error:
        return f"[a message that cannot be formatted: {type(error).__name__}]"
    return message
