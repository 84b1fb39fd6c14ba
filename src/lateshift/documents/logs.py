"""What an attempt has logged; masked, if its job is sealed."""

from datetime import datetime

from msgspec import Struct

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.sealed import masked_log


class LineDocument(Struct, frozen=True, kw_only=True):
    at: datetime
    level: str
    logger: str
    message: str


class LogDocument(Struct, frozen=True, kw_only=True):
    """The newest lines of one attempt. `dropped`: how many older ones were left out."""

    attempt: int
    fence: int
    dropped: int
    lines: list[LineDocument]


def log_document(log: AttemptLog, *, hide: bool) -> LogDocument:
    """`hide`: its job is of a sensitive queue."""
    log = masked_log(log, hide=hide)
    lines = [
        LineDocument(at=line.at, level=line.level, logger=line.logger, message=line.message)
        for line in log.lines
    ]
    return LogDocument(attempt=log.attempt, fence=log.fence, dropped=log.dropped, lines=lines)
