"""What went on, in figures: how many jobs of a queue started and ended in each minute, how long they had waited, how long they
ran; and over all queues how long workers were busy. Plain data."""

from collections.abc import Container, Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum

from msgspec import Struct

WAITS = (
    0.01,
    0.1,
    1.0,
    10.0,
    60.0,
    600.0,
)  # seconds up to which a wait is counted in one place; the last place has the rest
BACKLOG_COUNTED = (
    100_000  # jobs of a queue that wait, up to which the supervisor counts them once in a minute
)
ALL = ""  # the queue under which the figures of all queues together stand
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Grain(Enum):
    """How finely figures are kept, and for how long."""

    MINUTE = (timedelta(minutes=1), timedelta(hours=2))
    FIVE_MINUTES = (timedelta(minutes=5), timedelta(days=2))
    HOUR = (timedelta(hours=1), timedelta(weeks=5))

    @property
    def step(self) -> timedelta:
        return self.value[0]

    @property
    def kept(self) -> timedelta:
        return self.value[1]

    @property
    def seconds(self) -> int:
        return round(self.step.total_seconds())

    def begins(self, at: datetime) -> datetime:
        """The beginning of the period that an instant is in."""
        return at - (at - _EPOCH) % self.step


class Over(Enum):
    """What charts show: how long, and how finely."""

    HOUR = (timedelta(hours=1), Grain.MINUTE)
    DAY = (timedelta(days=1), Grain.FIVE_MINUTES)
    WEEK = (timedelta(days=7), Grain.HOUR)

    @property
    def length(self) -> timedelta:
        return self.value[0]

    @property
    def grain(self) -> Grain:
        return self.value[1]

    def begins(self, now: datetime) -> datetime:
        """So that the last period is the one that is under way."""
        return self.grain.begins(now) - self.length + self.grain.step

    def periods(self, now: datetime) -> list[datetime]:
        first = self.begins(now)
        return [first + self.grain.step * number for number in range(self.length // self.grain.step)]


class Figures(Struct, kw_only=True):
    """Of one queue, or of all of them, in one period. Seconds that jobs had `waited` from when they were due until they were leased,
    all together and the `longest`; `waits`: how many of them up to each of WAITS. `ran`: seconds of all attempts. `backlog`: the most
    that waited at the end of a minute. Of all queues alone: seconds that workers were there, and that they had a job to run."""

    started: int = 0
    completed: int = 0
    retried: int = 0
    dead: int = 0
    cancelled: int = 0
    waited: float = 0.0
    longest: float = 0.0
    ran: float = 0.0
    waits: list[int] = []
    backlog: int = 0
    busy: float = 0.0
    present: float = 0.0

    def __post_init__(self) -> None:
        self.waits = list(self.waits) or [0] * (len(WAITS) + 1)

    def add(self, other: "Figures") -> None:
        """What happened besides, or after; the backlog is the larger one."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.waits = [mine + theirs for mine, theirs in zip(self.waits, other.waits, strict=True)]
        self.longest = max(self.longest, other.longest)
        self.backlog = max(self.backlog, other.backlog)

    @property
    def failed(self) -> int:
        """Attempts that failed, whether another followed or not."""
        return self.retried + self.dead

    @property
    def mean_wait(self) -> float | None:
        return self.waited / self.started if self.started else None

    @property
    def there(self) -> float:
        """Seconds that workers were there: as they were counted, once in a minute, and while they had something to run in any case."""
        return max(self.present, self.busy)

    @property
    def idle_share(self) -> float | None:
        """Of the time that workers were there, in which they had nothing to run."""
        return 1 - self.busy / self.there if self.present else None

    def wait_within(self, share: float) -> float | None:
        """Seconds within which this share of the jobs started; between two of WAITS, as if they were spread evenly, but no less than
        all of them together must have waited."""
        counted = sum(self.waits)
        if not counted:
            return None
        wanted, seen, low, most = share * counted, 0, 0.0, 0.0
        for place, count in enumerate(self.waits):
            high = min(WAITS[place], self.longest) if place < len(WAITS) else self.longest
            if count and seen + count >= wanted:
                evenly = low + max(0.0, high - low) * (wanted - seen) / count
                after = (seen + count - wanted) * high + sum(self.waits[place + 1 :]) * self.longest
                least = (self.waited - most - after) / (
                    wanted - seen
                )  # if all others waited as long as they may have
                return min(max(evenly, least), max(high, low))
            seen += count
            most += count * high
            low = high
        return self.longest


SUMS = ("started", "completed", "retried", "dead", "cancelled", "waited", "ran", "busy", "present")
WAIT_COLUMNS = tuple(f"waits_{number}" for number in range(len(WAITS) + 1))
COLUMNS = (*SUMS, *WAIT_COLUMNS, "longest", "backlog")
"""As both stores keep them: all but the last two are added up, of those the largest is kept."""


def to_row(figures: Figures) -> tuple[float, ...]:
    sums = tuple(getattr(figures, name) for name in SUMS)
    return (*sums, *figures.waits, figures.longest, figures.backlog)


def from_row(row: Iterable[float]) -> Figures:
    values = dict(zip(COLUMNS, row, strict=True))
    waits = [int(values.pop(name)) for name in WAIT_COLUMNS]
    whole = ("started", "completed", "retried", "dead", "cancelled", "backlog")
    return Figures(waits=waits, **{name: int(it) if name in whole else it for name, it in values.items()})  # type: ignore[arg-type]


def together(all: Iterable[Figures]) -> Figures:
    total = Figures()
    for each in all:
        total.add(each)
    return total


class Sample(Struct, frozen=True):
    """The figures of one period that began at an instant. `sampled`: whether somebody has told in it what waits."""

    at: datetime
    figures: Figures
    sampled: bool = True


def filled(samples: Iterable[Sample], periods: list[datetime], sampled: Container[datetime]) -> list[Sample]:
    """One for each period; where nothing was kept, nothing happened. What waited is known of those that were `sampled`."""
    found = {sample.at: sample.figures for sample in samples}
    return [Sample(at, found.get(at) or Figures(), at in sampled) for at in periods]
