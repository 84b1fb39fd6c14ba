"""What the body of a task logged in one attempt, as it is kept with the job, and how much of it."""

from datetime import datetime

import msgspec
from msgspec import Struct

from lateshift.model.ids import JobId

LOG_LINES = 1000  # of an attempt, the newest
LOG_BYTES = 64 * 1024  # of an attempt's messages, the newest
LOG_LINE_LIMIT = 4 * 1024  # characters of a message; its middle is left out
LOGGER_LIMIT = 100  # characters of a logger's name
LEASES_LOGGED = 20  # the newest leases of a job whose logs stay


class LogLine(Struct, frozen=True, array_like=True, gc=False):
    """One record of the standard library's logging. A traceback stands below the message."""

    at: datetime
    level: str
    logger: str
    message: str


class AttemptLog(Struct, frozen=True, kw_only=True):
    """The newest lines of one attempt, in their order. `logged`: how many there were. A snooze, a lost worker and a resubmission
    give the number of an attempt out again: the fence tells them apart."""

    job: JobId
    attempt: int
    fence: int
    lines: list[LogLine]
    logged: int

    @property
    def dropped(self) -> int:
        """Lines that were too many, the oldest."""
        return self.logged - len(self.lines)


write = msgspec.json.Encoder().encode
_reader = msgspec.json.Decoder(list[LogLine])


def read(kept: bytes) -> list[LogLine]:
    return _reader.decode(kept)
