"""What every store does about schedules. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.scheduling.schedule import NewSchedule, ScheduleView, TickView


class Declared(Struct, frozen=True):
    """What a declaration changed, by name. Of triggers: which names other apps have, whose workers live, and which were those of
    an app that has none any more."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    taken: dict[str, str] = {}
    inherited: dict[str, str] = {}


class ScheduleTally(Struct, frozen=True):
    """How many there are, how many of them are paused, how many have a tick that is due for too long; and how long the one that is most
    overdue is due."""

    count: int
    paused: int
    late: int
    latest: timedelta


class Fired(Struct, frozen=True):
    """How many schedules were due and are decided, and how long until the next one is due."""

    count: int
    next_in: timedelta | None


class Schedules(Protocol):
    """Names, plans, and the job that each tick makes. A tick and its job are written in one commit, once."""

    def declare(self, schedules: Sequence[NewSchedule], *, app: str) -> Declared:
        """As the code of an app has them now. One that the code has not changed stays as operators have made it; one that
        it does not have any more goes. Ticks that nobody was there for are not lost by it, unless the timing changed."""

    def add(self, schedule: NewSchedule, *, by: str) -> bool:
        """False if the name is taken."""

    def edit(self, schedule: NewSchedule, *, by: str) -> bool:
        """Another plan or another job from now on; a pause stays. False if there is none of that name."""

    def pause(self, name: str, *, by: str) -> bool: ...

    def resume(self, name: str, *, by: str) -> bool:
        """Its next tick is one to come. Those of the pause are recorded as skipped."""

    def remove(self, name: str, *, by: str) -> bool:
        """Its jobs stay. One that code declares stays away until the code changes it."""

    def fire_now(self, name: str, *, by: str) -> JobId | None:
        """One job now, besides its ticks, whatever its overlap rule says. None if there is none of that name."""

    def fire(self, limit: int) -> Fired:
        """Decide what is due, for up to `limit` schedules: jobs and ticks are made, old jobs cancelled where the plan says so,
        cursors move, in one commit. Anybody may, at any time, beside others: no tick is decided twice."""

    def refresh(self, limit: int) -> int:
        """Compute the next tick anew, for up to `limit` schedules that were computed with other rules of time zones. Gives
        how many it found."""

    def get(self, name: str) -> ScheduleView | None: ...

    def ticks(self, since: datetime, limit: int) -> list[TickView]:
        """What became of ticks, of all schedules, the oldest first."""

    def late(self, by: timedelta, limit: int) -> list[ScheduleView]:
        """Those with a tick that is due for so long and that nobody has decided, the latest first."""

    def tally(self, late: timedelta, most: int) -> ScheduleTally:
        """Counted in the store, each up to `most`. `late`: for how long a tick is due that counts as late."""

    def missed(self, since: datetime, limit: int) -> list[ScheduleView]:
        """Those whose last ticks, the last of them not before `since`, were found too late, and that have not fired since, neither by
        a tick nor by hand; the newest first. Of a paused one an operator has had his word."""

    def list(self, after: str | None, limit: int) -> list[ScheduleView]:
        """By name."""
