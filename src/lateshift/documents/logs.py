"""What an attempt has logged, as everybody may see it: see documents/hiding."""

from datetime import datetime

from msgspec import Struct

from lateshift.model.attempt_log import AttemptLog


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


def log_document(log: AttemptLog) -> LogDocument:
    lines = [
        LineDocument(at=line.at, level=line.level, logger=line.logger, message=line.message)
        for line in log.lines
    ]
    return LogDocument(attempt=log.attempt, fence=log.fence, dropped=log.dropped, lines=lines)
