"""The scheduler's round. Any number of them run beside each other: what one decides, the others pass over. None leads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from lateshift.errors import StoreError
from lateshift.model.scheduling.schedule import NewSchedule
from lateshift.model.scheduling.timing import next_tick
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import Store
from lateshift.store.schedule_contract import Fired
from lateshift.telemetry.liveness import has_failed

AT_ONCE = 2000  # schedules decided in one commit
HANDS = 2  # that decide beside each other while more are due than that
LOOK_EVERY = timedelta(seconds=1)  # for schedules that somebody adds or changes meanwhile
PASSED_OVER = timedelta(milliseconds=20)  # what is due is in the hands of another scheduler: it may be slow
STAND_BY = timedelta(seconds=2)


class Ticker:
    """Turned by a loop. First it tells the store what the code of its app has scheduled."""

    def __init__(self, store: Store, app: str, schedules: Callable[[], Sequence[NewSchedule]]) -> None:
        self._store = store
        self._app = app
        self._schedules = schedules
        self._ready = False
        self._many = False
        self._store_away = False

    async def turn(self) -> timedelta:
        try:
            pause = await aside(self.round)
        except StoreError as error:
            if not self._store_away:  # once, until it is there again
                log.warning("the scheduler cannot reach the store: %s", error)
            self._store_away = True
            has_failed()
            return STAND_BY
        self._store_away = False
        return pause

    def round(self) -> timedelta:
        """Decide and enqueue what is due; gives how long to pause. Blocking."""
        schedules = self._store.schedules
        if not self._ready:
            self._declare()
            while schedules.refresh(AT_ONCE):
                pass
            self._ready = True
        fired = self.fire()
        if fired.next_in is None:
            return LOOK_EVERY
        least = timedelta(0) if fired.count else PASSED_OVER
        return min(LOOK_EVERY, max(least, fired.next_in))

    def fire(self) -> Fired:
        """Some of what is due. A database server is idle while one hand decides: where many are due there are two, and what one
        decides the other passes over. A SQLite file has one writer, and gains nothing."""
        if self._many:
            with ThreadPoolExecutor(HANDS) as pool:
                each = list(pool.map(self._store.schedules.fire, [AT_ONCE] * HANDS))
        else:
            each = [self._store.schedules.fire(AT_ONCE)]
        self._many = not self._store.one_machine and any(fired.count >= AT_ONCE for fired in each)
        count = sum(fired.count for fired in each)
        return Fired(count, timedelta(0)) if count else each[0]

    def _declare(self) -> None:
        schedules = self._schedules()
        changes = self._store.schedules.declare(schedules, app=self._app)
        for what, names in (("new", changes.added), ("changed", changes.changed), ("gone", changes.removed)):
            for name in names:
                log.info("schedule %s: %s", name, what)
        now, new = self._store.clock.now(), {*changes.added, *changes.changed}
        for schedule in schedules:
            if schedule.name in new and next_tick(schedule.plan.timing, now) is None:
                log.error(
                    "schedule %s never fires: its time has passed. Name a time to come, or take it out of the code; enqueue its task for a "
                    "job now", schedule.name,
                )  # fmt: skip
