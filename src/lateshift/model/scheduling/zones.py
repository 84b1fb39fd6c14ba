"""From the times of a calendar to instants, in a time zone whose clocks change.

The rule. A schedule that names hours (`30 2 * * *`) fires once for each of its times: one that the clocks skip in spring
fires when they have been set forward, several of them together once; one that they show twice in autumn fires the first
time. A schedule for every hour (`*/15 * * * *`) goes by the clock on the wall: what is skipped does not fire, what is shown
twice fires twice, so that the pauses between are what they always are.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import tzdata

from lateshift.errors import ScheduleInvalid
from lateshift.model.scheduling.cron import Cron

_SECOND = timedelta(seconds=1)


ZONES = tzdata.IANA_VERSION
"""Which rules these are. From the package, not from the machine: all schedulers of one release see the same ticks."""


@lru_cache(maxsize=1_000)
def zone(name: Any) -> ZoneInfo:
    if not isinstance(name, str) or name not in zone_names():
        raise ScheduleInvalid(f"There is no time zone {name!r}.{_close_to(str(name))}")
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as told:
        return ZoneInfo.from_file(told, key=name)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def next_instant(cron: Cron, place: ZoneInfo, after: datetime) -> datetime | None:
    """The first tick later than an instant."""
    local = after.astimezone(place)
    return _by_the_wall(cron, place, local) if cron.hourly else _once_each(cron, place, local)


def instant(local: datetime, place: ZoneInfo) -> datetime:
    """The instant of a local time: when it is shown first, or the end of the gap that skips it."""
    shown = local.replace(tzinfo=place, fold=0)
    return _gap_end(shown) if _skipped(shown) else shown.astimezone(UTC)


def _once_each(cron: Cron, place: ZoneInfo, after: datetime) -> datetime | None:
    begin = after.astimezone(UTC)
    for local in cron.after(after.replace(tzinfo=None, fold=0)):
        found = instant(local, place)
        if found > begin:
            return found
    return None


def _by_the_wall(cron: Cron, place: ZoneInfo, after: datetime) -> datetime | None:
    begin = after.astimezone(UTC)
    found = _first_shown(cron.after(after.replace(tzinfo=None, fold=0)), place, begin)
    again = _shown_again_from(after)
    if again is None or (found is not None and found < again):
        return found
    second = again.astimezone(place).replace(tzinfo=None, fold=0)
    repeated = _first_shown(cron.from_(second), place, again - _SECOND)
    return repeated if found is None or (repeated is not None and repeated < found) else found


def _first_shown(times: Iterator[datetime], place: ZoneInfo, after: datetime) -> datetime | None:
    """The first of these times that the clocks show later than an instant."""
    for local in times:
        for fold in (0, 1):
            shown = local.replace(tzinfo=place, fold=fold)
            if not _skipped(shown) and (found := shown.astimezone(UTC)) > after:
                return found
    return None


def _skipped(shown: datetime) -> bool:
    """Whether the clocks never show it."""
    return shown.astimezone(UTC).astimezone(shown.tzinfo).replace(tzinfo=None) != shown.replace(tzinfo=None)


def _gap_end(shown: datetime) -> datetime:
    """The instant at which the clocks skip this time. Read with the offset before the gap it lies after that instant, read
    with the one after the gap, before it."""
    early, late = sorted(shown.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return _change(early, late, shown)


def _shown_again_from(local: datetime) -> datetime | None:
    """If the clocks will show this time a second time: the instant at which they are set back."""
    if local.fold or _skipped(local):
        return None
    first, second = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    return _change(first, second, local) if first < second else None


def _change(early: datetime, late: datetime, local: datetime) -> datetime:
    """The first instant in between, to the second, at which the offset is that of `late`."""
    place = local.tzinfo
    offset = late.astimezone(place).utcoffset()
    low, high = 0, int((late - early) / _SECOND)
    while low < high:
        middle = (low + high) // 2
        if (early + middle * _SECOND).astimezone(place).utcoffset() == offset:
            high = middle
        else:
            low = middle + 1
    return early + low * _SECOND


def _close_to(name: str) -> str:
    from difflib import get_close_matches

    known = sorted(zone_names())
    by_city = [each for each in known if each.rpartition("/")[2].lower() == name.rpartition("/")[2].lower()]
    close = by_city or get_close_matches(name, known, n=3)
    return f" Did you mean {', '.join(close[:3])}?" if close else " Names are such as Europe/Madrid or UTC."
