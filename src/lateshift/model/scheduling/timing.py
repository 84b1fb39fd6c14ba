"""The ticks of a schedule, computed from what it says alone: never from when somebody looks."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from msgspec import Struct

from lateshift.errors import ScheduleInvalid
from lateshift.model import checks
from lateshift.model.scheduling.cron import cron
from lateshift.model.scheduling.zones import instant, next_instant, zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST_INTERVAL = timedelta(seconds=1)
_FIRST_WINDOW = timedelta(minutes=1)
# Between these every zone can show a time, and there is one after it.
EARLIEST = datetime(2, 1, 1, tzinfo=UTC)
LATEST = datetime(9990, 1, 1, tzinfo=UTC)


class Timing(Struct, frozen=True, kw_only=True, array_like=True):
    """One of: a cron expression in a time zone, an interval, an instant. Instants are in UTC.

    The ticks of an interval are counted from `start`, else from 1970: a restart does not move them."""

    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None

    @property
    def words(self) -> str:
        """For people."""
        if self.cron is not None:
            return f"{cron(self.cron).words}, {self.timezone}"
        if self.every is not None:
            return f"Every {_long(self.every)}"
        return f"Once, at {self.at:%Y-%m-%d %H:%M:%S} UTC" if self.at else "Never"


def timing_of(
    *, cron: str | None, every: timedelta | None, at: datetime | None, timezone: str, start: datetime | None,
    end: datetime | None,
) -> Timing:  # fmt: skip
    """As a user says it, looked at. A time without a zone is one of `timezone`."""
    said = [name for name, value in (("cron", cron), ("every", every), ("at", at)) if value is not None]
    if len(said) != 1:
        both = f"It fires by one of cron, every and at, not by {' and '.join(said)}: leave out the others."
        raise ScheduleInvalid(both if said else "Say when it fires: by one of cron, every and at.")
    zone(timezone)
    if at is not None and (start is not None or end is not None):
        raise ScheduleInvalid("at= fires once: leave start= and end= out.")
    if every is not None and checks.duration("every", every) < LEAST_INTERVAL:
        raise ScheduleInvalid(f"every= is at least {LEAST_INTERVAL.total_seconds():g} s, not {every}.")
    timing = Timing(
        cron=cron, every=every, at=_instant("at", at, timezone), timezone=timezone,
        start=_instant("start", start, timezone), end=_instant("end", end, timezone),
    )  # fmt: skip
    if timing.start is not None and timing.end is not None and timing.start >= timing.end:
        raise ScheduleInvalid("start= is not before end=.")
    if next_tick(timing, (timing.start or EPOCH) - LEAST_INTERVAL) is None:
        raise ScheduleInvalid("It never fires: no time between start= and end= fits.")
    return timing


def next_tick(timing: Timing, after: datetime) -> datetime | None:
    """The first tick later than an instant; None if there is none any more."""
    if timing.start is not None and after < timing.start:
        after = timing.start - timedelta(microseconds=1)
    if timing.at is not None:
        found = timing.at if timing.at > after else None
    elif timing.every is not None:
        first = timing.start or EPOCH
        found = first + ((after - first) // timing.every + 1) * timing.every
    else:
        found = next_instant(cron(timing.cron or ""), zone(timing.timezone), after)
    return None if found is None or (timing.end is not None and found > timing.end) else found


def ticks(timing: Timing, after: datetime, until: datetime) -> Iterator[datetime]:
    """Those later than `after`, up to `until`."""
    while (found := next_tick(timing, after)) is not None and found <= until:
        yield found
        after = found


def upcoming(timing: Timing, after: datetime, count: int) -> list[datetime]:
    """So many later than `after`, or as many as there are."""
    return list(islice(ticks(timing, after, LATEST), count))


def last_ticks(timing: Timing, after: datetime, until: datetime, most: int) -> list[datetime]:
    """The last of those, in order. Looks back further and further, so that what nobody asks for is not counted."""
    window = max(_FIRST_WINDOW, (timing.every or timedelta(0)) * most)
    while True:
        begin = max(after, until - window)
        found = deque(ticks(timing, begin, until), maxlen=most)
        if len(found) == most or begin <= after:
            return list(found)
        window *= 4


def count_ticks(timing: Timing, after: datetime, until: datetime, most: int) -> int:
    """How many those are, counted up to `most`."""
    if timing.every is not None:
        first = next_tick(timing, after)
        last = min(until, timing.end or until)
        return 0 if first is None or first > last else min(most, (last - first) // timing.every + 1)
    counted = 0
    for _ in ticks(timing, after, until):
        counted += 1
        if counted >= most:
            break
    return counted


def _instant(what: str, given: datetime | None, timezone: str) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise ScheduleInvalid(f"{what}= is a datetime, not {given!r}.")
    return in_zone(what, given, timezone)


def in_zone(what: str, given: datetime, timezone: str = "UTC") -> datetime:
    """The instant of a time that may say its own zone. Raises ScheduleInvalid, which names `what`, outside of EARLIEST to LATEST."""
    place = zone(timezone)
    try:
        found = instant(given, place) if given.tzinfo is None else given.astimezone(UTC)
    except OverflowError:
        found = None
    if found is None or not EARLIEST <= found <= LATEST:
        raise ScheduleInvalid(
            f"{what}= is a time from {EARLIEST.date()} to {LATEST.date()}, not {given}.", field=what
        )
    return found


def _long(every: timedelta) -> str:
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if every.total_seconds() % unit == 0:
            return f"{every.total_seconds() / unit:g} {name}"
    return f"{every.total_seconds():g} s"
