"""When schedules fire, computed another way than Lateshift does: cron fields by hand, and time zones as tables of periods
in which the offset stays. Nothing here is Lateshift's but the zones' own rules."""

import calendar
import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}


class Period(NamedTuple):
    """From an instant on, the clocks are so far from UTC."""

    begin: datetime  # in UTC, without a zone
    offset: timedelta


def ticks(expression: str, zone: ZoneInfo, after: datetime, until: datetime) -> list[datetime]:
    """Instants later than `after`, up to `until`, in order."""
    fields = Fields(expression)
    begin, end = (each.astimezone(UTC).replace(tzinfo=None) for each in (after, until))
    table = periods(zone, begin - 2 * DAY, end + 2 * DAY)
    found = by_the_wall(fields, table, end) if len(fields.hours) == 24 else once_each(fields, table, end)
    return [each.replace(tzinfo=UTC) for each in sorted(set(found)) if begin < each <= end]


def once_each(fields: "Fields", table: list[Period], end: datetime) -> Iterator[datetime]:
    """The first period that shows a time has it; one that none shows is where the next period begins."""
    local_ends = [period.begin + before.offset for before, period in itertools.pairwise(table)]
    for local in fields.times(table[0].begin + table[0].offset, end + table[-1].offset):
        place = next((n for n in range(len(local_ends)) if local < local_ends[n]), len(local_ends))
        yield max(local - table[place].offset, table[place].begin)


def by_the_wall(fields: "Fields", table: list[Period], end: datetime) -> Iterator[datetime]:
    for period, following in zip(table, [*table[1:], Period(end + DAY, timedelta(0))], strict=True):
        first = period.begin + period.offset
        for local in fields.times(first, following.begin + period.offset):
            if first <= local < following.begin + period.offset:
                yield local - period.offset


@lru_cache(maxsize=2_000)
def changes(zone: ZoneInfo, first_year: int, last_year: int) -> tuple[Period, ...]:
    """All periods of some years, found by looking every six hours, then closer."""
    at, end = datetime(first_year, 1, 1), datetime(last_year, 1, 1)
    found = [Period(at, _offset(zone, at))]
    while at < end:
        later = at + timedelta(hours=6)
        if _offset(zone, later) != found[-1].offset:
            low, high = at, later
            while high - low > timedelta(seconds=1):
                middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
                low, high = (low, middle) if _offset(zone, middle) != found[-1].offset else (middle, high)
            found.append(Period(high, _offset(zone, high)))
        at = later
    return tuple(found)


def periods(zone: ZoneInfo, begin: datetime, end: datetime) -> list[Period]:
    table = changes(zone, begin.year, end.year + 1)
    inside = [period for period in table if begin < period.begin < end]
    before = [period for period in table if period.begin <= begin]
    return [Period(begin, before[-1].offset if before else table[0].offset), *inside]


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    offset = at.replace(tzinfo=UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return offset


class Fields:
    """The five fields of an expression, each as what it lets through."""

    def __init__(self, expression: str) -> None:
        minute, hour, day, month, weekday = expression.lower().split()
        self.minutes = sorted(_numbers(minute, 0, 59))
        self.hours = sorted(_numbers(hour, 0, 23))
        self.months = _numbers(month, 1, 12, MONTHS)
        self._last_day = day == "l"
        self._days = set() if self._last_day else _numbers(day, 1, 31)
        self._nth = {_nth(part) for part in weekday.split(",") if "#" in part}
        self._last = {_weekday(part[:-1]) for part in weekday.split(",") if part.endswith("l")}
        plain = [part for part in weekday.split(",") if "#" not in part and not part.endswith("l")]
        self._weekdays = {each % 7 for part in plain for each in _numbers(part, 0, 7, DAYS)}
        self._both = day.startswith("*") or weekday.startswith("*")

    def times(self, begin: datetime, end: datetime) -> Iterator[datetime]:
        """Local times from the day of `begin` to that of `end`."""
        day = begin.date()
        while day <= end.date():
            if self._fits(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        yield datetime(day.year, day.month, day.day, hour, minute)
            day += DAY

    def _fits(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        length = calendar.monthrange(day.year, day.month)[1]
        by_day = day.day == length if self._last_day else day.day in self._days
        weekday = (day.weekday() + 1) % 7
        by_weekday = (
            weekday in self._weekdays
            or (weekday, (day.day - 1) // 7 + 1) in self._nth
            or (weekday in self._last and day.day + 7 > length)
        )
        return (by_day and by_weekday) if self._both else (by_day or by_weekday)


def _numbers(field: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        else:
            begin, _, end = span.partition("-")
            first = (names or {}).get(begin) if begin in (names or {}) else int(begin)  # type: ignore[assignment]
            last = (
                ((names or {})[end] if end in (names or {}) else int(end)) if end else high if step else first
            )
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def _weekday(name: str) -> int:
    return DAYS[name] if name in DAYS else int(name) % 7


def _nth(part: str) -> tuple[int, int]:
    name, _, number = part.partition("#")
    return _weekday(name), int(number)
