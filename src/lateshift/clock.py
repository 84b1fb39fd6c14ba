"""The only module that reads the system clock. Times that decide anything are the store's: on PostgreSQL the
database's own clock, on SQLite this one. `ManualClock` moves both, by an offset that every statement adds."""

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """The system's clock, wall and monotonic."""

    offset: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def microseconds(self) -> int:
        """Wall time as whole microseconds since 1970, the form SQLite keeps."""
        return time.time_ns() // 1000 + self.offset // timedelta(microseconds=1)

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        return time.monotonic() + self.offset.total_seconds()


class ManualClock(Clock):
    """A clock that tests move: `clock.move(hours=1)`. Between moves it runs as time does."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def move(self, **parts: float) -> None:
        self.offset += timedelta(**parts)


SYSTEM = Clock()
