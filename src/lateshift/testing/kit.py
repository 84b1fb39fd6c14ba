"""The kit: an app on a store in memory, with a clock that the test moves and a worker that the test turns."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from lateshift.app.app import Lateshift
from lateshift.clock import StillClock
from lateshift.config import Settings
from lateshift.errors import UsageError
from lateshift.handle import Job
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, JobView, State
from lateshift.replies.courier import Courier
from lateshift.runtime.aside import aside
from lateshift.scheduler.ticker import Ticker
from lateshift.store.open import open_store
from lateshift.task import Task
from lateshift.testing.asserting import Wanted
from lateshift.testing.caller import with_this_thread
from lateshift.testing.inline import InlineClient, sending_by
from lateshift.testing.interposed import Around, Interposed
from lateshift.testing.ledger import Ledger, Ran, Sent
from lateshift.testing.shift import LIMIT, PATIENCE, Bounds, Shift
from lateshift.worker.executors.threads import Start

R = TypeVar("R")

NOTED = 500  # jobs looked at in one page
STEPS = 10_000  # instants at which something is due, in one journey
SHOWN_DEAD = 1000

_open: list["Kit"] = []


class Kit:
    """`with testing(app) as kit:` or `async with`. The app is as it was when the block ends."""

    def __init__(self, app: Lateshift, *, store: str = "memory://", around: Around | None = None) -> None:
        self.app = app
        self.clock = StillClock()
        self._url = store
        self._around = around
        self._ledger = Ledger(app.tasks)
        self._stack = ExitStack()
        self._opened = False
        self._ticker: Ticker | None = None
        self._courier: Courier | None = None

    def __enter__(self) -> "Kit":
        if self._opened:
            raise UsageError("This kit is open, or was. Make another: `with testing(app) as kit:`.")
        store = open_store(self._url, self.clock)
        store.ready()
        seen = Interposed(store, self._ledger)
        with ExitStack() as stack:
            stack.enter_context(
                self.app.using(seen if self._around is None else Interposed(seen, self._around))
            )
            stack.callback(_open.remove, self)
            _open.append(self)
            self._opened = True
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def __aenter__(self) -> "Kit":
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    # -- running ----------------------------------------------------------------------------------------------

    def drain(self, *, limit: int = LIMIT, patience: timedelta = PATIENCE) -> list[Ran]:
        """Run all that is ready, and what becomes ready by that. Sync bodies run on this thread. Gives what ran."""
        self._refuse_loop("drain", "adrain")
        return self.drain_here(Bounds(limit=limit, patience=patience))

    async def adrain(self, *, limit: int = LIMIT, patience: timedelta = PATIENCE) -> list[Ran]:
        """The same in async code: coroutines run on this loop, sync bodies on threads."""
        before = len(self._ledger.ran)
        more = True
        while more:
            await self._shift(Bounds(limit=limit, patience=patience), self.app.settings, self.app.tasks).run()
            more = await aside(self._tell)
        return self._ledger.ran[before:]

    def travel(self, **parts: float) -> list[Ran]:
        """`kit.travel(hours=3)`: move the clock from one instant at which something is due to the next, and run it then. What
        the app schedules fires on the way."""
        self._refuse_loop("travel", "atravel")
        before = len(self._ledger.ran)
        self._fire()
        self.drain_here()
        for _ in self._journey(parts):
            self._fire()
            self.drain_here()
        return self._ledger.ran[before:]

    async def atravel(self, **parts: float) -> list[Ran]:
        before = len(self._ledger.ran)
        self._fire()
        await self.adrain()
        for _ in self._journey(parts):
            self._fire()
            await self.adrain()
        return self._ledger.ran[before:]

    @contextmanager
    def inline(self) -> Iterator["Kit"]:
        """`with kit.inline():` every enqueue runs what is ready before it returns."""
        with sending_by(self.app, InlineClient(self.app, self.drain_here, self.adrain)):
            yield self

    def drain_here(
        self, bounds: Bounds | None = None, *, settings: Settings | None = None,
        tasks: Mapping[str, Task[..., Any]] | None = None, dead: Callable[[], bool] = lambda: False,
    ) -> list[Ran]:  # fmt: skip
        """`drain` for those who know that a loop may be running on this thread."""
        self._refuse_closed()
        before = len(self._ledger.ran)

        def shift(start: Start) -> Coroutine[Any, Any, None]:
            async def run() -> None:
                chosen = settings or self.app.settings, tasks or self.app.tasks
                await self._shift(bounds or Bounds(), *chosen, start, dead).run()

            return run()

        with_this_thread(shift)
        while self._tell():
            with_this_thread(shift)
        return self._ledger.ran[before:]

    def _tell(self) -> bool:
        """Whether jobs were made that tell of breakers which have opened, or of what became of other jobs."""
        if self._courier is None:
            self._courier = self.app.courier()
        told = sum(alarm.round() for alarm in self.app.alarms())
        return (self._courier.round() or 0) + told > 0

    def _shift(
        self, bounds: Bounds, settings: Settings, tasks: Mapping[str, Task[..., Any]], start: Start | None = None,
        dead: Callable[[], bool] = lambda: False,
    ) -> Shift:  # fmt: skip
        self._refuse_closed()
        return Shift(self.app.store, tasks, settings, self._ledger, bounds, start, dead, self.app.losses())

    def _journey(self, parts: Mapping[str, float]) -> Iterator[datetime]:
        """Moves the clock, and gives each instant at which there is something to do."""
        end = self.clock.now() + timedelta(**parts)
        for _ in range(STEPS):
            pause = self.next_due()
            if pause is None or self.clock.now() + pause > end:
                break
            self.clock.offset += pause
            yield self.clock.now()
        else:
            raise UsageError(
                f"More than {STEPS:,} instants had something due on the way. Travel a shorter way."
            )
        if self.clock.now() < end:
            self.clock.move_to(end)
            yield end  # what waited for something else than its time: a number in a session, say

    def next_due(self) -> timedelta | None:
        """How long until the next scheduled job is due, or a schedule fires."""
        store = self.app.store
        pauses = (store.jobs.promote(0).next_in, store.schedules.fire(0).next_in)
        return min((pause for pause in pauses if pause is not None), default=None)

    def _fire(self) -> None:
        """Schedules whose time has come, as a scheduler does; at first it learns of those of the app."""
        if self._ticker is None:
            self._ticker = self.app.ticker()
        while self._ticker.round() <= timedelta(0):
            pass

    def note_callbacks(self) -> None:
        """Jobs that a batch enqueued by itself are noted when they are leased; now those are that nobody has leased."""
        before: JobId | None = None
        while page := self.app.store.reports.unsettled(before, NOTED):
            self._ledger.note_found(page)
            before = page[-1].id

    # -- looking ----------------------------------------------------------------------------------------------

    def enqueued(self, task: Task[..., Any] | None = None) -> list[Sent]:
        """Every job that was enqueued since the kit was opened, in that order, run or not."""
        return [sent for sent in self._ledger.sent if task is None or sent.task == task.name]

    def ran(self, task: Task[..., Any] | None = None) -> list[Ran]:
        """Every attempt that was settled since the kit was opened."""
        return [ran for ran in self._ledger.ran if task is None or ran.task == task.name]

    def assert_enqueued(self, task: Task[..., Any], *args: Any, **kwargs: Any) -> None:
        """`queue=` and `times=` narrow; else it was enqueued once at least. Arguments left out may be anything."""
        wanted = Wanted(task, args, kwargs)
        found = sum(wanted.matches(sent) for sent in self._ledger.sent)
        if found != wanted.times if wanted.times is not None else found == 0:
            raise AssertionError(wanted.refuse(self._ledger.sent, found))

    def assert_not_enqueued(self, task: Task[..., Any], *args: Any, **kwargs: Any) -> None:
        wanted = Wanted(task, args, kwargs)
        wanted.times = 0
        found = sum(wanted.matches(sent) for sent in self._ledger.sent)
        if found:
            raise AssertionError(wanted.refuse(self._ledger.sent, found))

    def result(self, job: Job[R]) -> R:
        """What a job that has run returned; raises at once if it has none."""
        return job.result(timedelta(0))

    def dead_letters(self, task: Task[..., Any] | None = None) -> list[JobView]:
        """Oldest first."""
        wanted = JobFilter(state=State.DEAD, task=None if task is None else task.name)
        return self.app.store.reports.jobs(wanted, SHOWN_DEAD)[::-1]

    # -- misuse -----------------------------------------------------------------------------------------------

    def _refuse_closed(self) -> None:
        if self not in _open:
            raise UsageError("This kit is not open. Use it inside its block: `with testing(app) as kit:`.")

    @staticmethod
    def _refuse_loop(name: str, instead: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise UsageError(
            f"kit.{name}() would hold up the event loop that runs here. Use `await kit.{instead}()`."
        )


def testing(app: Lateshift, *, store: str = "memory://") -> Kit:  # noqa: PT028
    """`with testing(app) as kit:` points the app at a fresh store in memory, with a clock that stands still until it is
    moved. `store` names another store to test on, such as a file."""
    return Kit(app, store=store)


testing.__test__ = False  # type: ignore[attr-defined] # pytest takes what begins with "test" for a test


def assert_enqueued(task: Task[..., Any], *args: Any, **kwargs: Any) -> None:
    """Of the open kit whose app has this task; see Kit.assert_enqueued."""
    _kit_of(task).assert_enqueued(task, *args, **kwargs)


def assert_not_enqueued(task: Task[..., Any], *args: Any, **kwargs: Any) -> None:
    _kit_of(task).assert_not_enqueued(task, *args, **kwargs)


def enqueued(task: Task[..., Any]) -> list[Sent]:
    return _kit_of(task).enqueued(task)


def _kit_of(task: Task[..., Any]) -> Kit:
    for kit in reversed(_open):
        if kit.app.tasks.get(task.name) is task:
            return kit
    raise UsageError(
        f"No kit is open on the app of {task.name}. Open one before the code under test: `with testing(app) as kit:`."
    )
