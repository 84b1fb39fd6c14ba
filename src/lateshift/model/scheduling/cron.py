"""Cron expressions: five fields, or six with the seconds first; names, `L`, `#`, `@daily`. What they mean is computed on
the plain calendar, without a time zone; zones.py says which instants that are."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from cronsim import CronSim, CronSimError
from cronsim.explain import Expression

from lateshift.errors import ScheduleInvalid
from lateshift.model.words import counted

NICKNAMES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
CRON_LIMIT = 200  # characters
_ANY_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - on a calendar without zones
_FIELDS = ("second", "minute", "hour", "day of the month", "month", "day of the week")
_SECOND = timedelta(seconds=1)


class Cron:
    """One expression, looked at once. `hourly`: it fires in every hour of the day."""

    def __init__(self, expression: str) -> None:
        self._fields = _fields(expression)
        simulated = _simulated(expression, self._fields, _ANY_DAY)
        self.hourly = len(simulated.hours) == 24
        if next(simulated, None) is None:
            raise ScheduleInvalid(
                f"cron={expression!r} never fires: no day fits it. Change the day or the month."
            )

    def after(self, local: datetime) -> Iterator[datetime]:
        """Times on a calendar without zones, later than this one. Ends fifty years on, or when the calendar does."""
        simulated = CronSim(self._fields, local)
        try:
            yield from simulated
        except OverflowError:
            return

    def from_(self, local: datetime) -> Iterator[datetime]:
        """The same, this one included."""
        return self.after(local.replace(microsecond=0) - _SECOND)

    @property
    def words(self) -> str:
        """What it means, such as `At 02:00 every day`. Days of the month and days of the week that are both named, it fires on either."""
        read = Expression(self._fields.upper().split())
        said = read.explain()
        return (
            said if read.day_and else said.replace(f"{read.day} and {read.dow}", f"{read.day} or {read.dow}")
        )


@lru_cache(maxsize=10_000)
def cron(expression: str) -> Cron:
    """Looked at once for all schedules that share it."""
    return Cron(expression)


def _fields(expression: Any) -> str:
    if not isinstance(expression, str) or not expression.strip():
        raise ScheduleInvalid(f"cron is an expression such as '0 2 * * *', not {expression!r}.")
    if len(expression) > CRON_LIMIT:
        raise ScheduleInvalid(
            f"A cron expression has at most {CRON_LIMIT} characters, this one {len(expression)}."
        )
    text = expression.strip()
    if not text.startswith("@"):
        return text
    if text.lower() not in NICKNAMES:
        raise ScheduleInvalid(f"cron={expression!r} is not known. There are: {', '.join(NICKNAMES)}.")
    return NICKNAMES[text.lower()]


def _simulated(expression: str, fields: str, local: datetime) -> CronSim:
    parts = fields.split()
    if len(parts) not in (5, 6):
        raise ScheduleInvalid(
            f"cron={expression!r} has {counted(len(parts), 'field')}: give 5 (minute, hour, day of the month, month, day of the week), or "
            "6 with the second before them."
        )
    try:
        return CronSim(fields, local)
    except (CronSimError, AssertionError, ValueError) as error:
        raise ScheduleInvalid(f"cron={expression!r} {_wrong(parts, str(error))}") from None


def _wrong(parts: list[str], said: str) -> str:
    """Which field is wrong, and what it is."""
    names = {"second": 0, "minute": 1, "hour": 2, "day-of-month": 3, "month": 4, "day-of-week": 5}
    place = names.get(said.removeprefix("Bad "))
    if place is None:
        return f"cannot be read: {said}."
    number = place - (6 - len(parts))
    if place == 3 and _readable_day(parts[number]):
        return "never fires: no month of it has that day. Change the day or the month."
    what = _FIELDS[place]
    return f"has {'an' if what == 'hour' else 'a'} {what} that cannot be: {parts[number]!r}."


def _readable_day(field: str) -> bool:
    try:
        CronSim(f"0 0 {field} * *", _ANY_DAY)
    except (CronSimError, AssertionError, ValueError):
        return False
    return True
