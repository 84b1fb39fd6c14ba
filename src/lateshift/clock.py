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

    monotonic = staticmethod(time.monotonic)  # seconds that never go back, for durations


class ManualClock(Clock):
    """A clock that tests move: `clock.move(hours=1)`. Between moves it runs as time does."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def monotonic(self) -> float:
        return time.monotonic() + self.offset.total_seconds()

    def move(self, **parts: float) -> None:
        self.offset += timedelta(**parts)


class StillClock(ManualClock):
    """A clock whose wall time stands still between moves, so that a test decides what is due. Durations run on. On
    PostgreSQL, which has a clock of its own, it is a ManualClock."""

    def __init__(self) -> None:
        super().__init__()
        self._start = datetime.now(UTC)

    def now(self) -> datetime:
        return self._start + self.offset

    def microseconds(self) -> int:
        return (self.now() - _EPOCH) // timedelta(microseconds=1)

    def move_to(self, instant: datetime) -> None:
        """To an instant of which the time zone is known."""
        self.offset += instant - self.now()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SYSTEM = Clock()
