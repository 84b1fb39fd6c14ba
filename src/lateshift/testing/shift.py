"""One short life of a real worker and a real supervisor, turned by hand until nothing is ready."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lateshift.config import Settings
from lateshift.errors import NotDrained
from lateshift.model.ids import new_member_id
from lateshift.model.job import Lane, Line
from lateshift.model.outcome import Ended, Failed, Stopped
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store
from lateshift.supervisor.losses import Losses
from lateshift.supervisor.sweep import Sweep
from lateshift.task import Task
from lateshift.testing.ledger import Ledger
from lateshift.worker.attempt import Attempt
from lateshift.worker.executors.coroutines import Coroutines
from lateshift.worker.executors.threads import Start, Threads
from lateshift.worker.service import introduce
from lateshift.worker.worker import PROMOTED, Worker

LIMIT = 1000  # attempts in a drain after which jobs are held to go on for ever
PATIENCE = timedelta(seconds=60)  # how long a drain waits while no job begins or ends
LOOK_AGAIN = 0.001  # seconds, for bodies that end without a word, when their process was killed
LAST_WORDS = 100  # turns in which what has ended is told to the store


class ProcessDeath(BaseException):
    """The process is killed at this point of a test. No `except Exception` catches it; who catches it all the same gets
    it again at the next thing they do."""


FAILURES = (Exception, SystemExit, asyncio.CancelledError, ProcessDeath)  # of an attempt


class Ear:
    """See executors.contract.Report. Lets the worker hear all but what is meant for the test and only happened to meet a
    body: Ctrl-C, a test's time limit, pytest.fail()."""

    def __init__(self, worker: Worker) -> None:
        self.meant_for_the_test: BaseException | None = None
        self.returned = worker.returned
        self.returned_encoded = worker.returned_encoded
        self.decided = worker.decided
        self._worker = worker

    def ended(self, attempt: Attempt, how: Ended) -> None:
        if isinstance(how, Failed) and not isinstance(how.error, FAILURES):
            self.meant_for_the_test = how.error
            how = Stopped()
        self._worker.ended(attempt, how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """When a drain is given up."""

    limit: int = LIMIT
    patience: timedelta = PATIENCE


class Shift:
    """Made on the loop that it works on. Sync bodies run where `start` says, else on threads."""

    def __init__(
        self, store: Store, tasks: Mapping[str, Task[..., Any]], settings: Settings, ledger: Ledger, bounds: Bounds,
        start: Start | None = None, dead: Callable[[], bool] = lambda: False, losses: Losses | None = None,
    ) -> None:  # fmt: skip
        clock = store.clock
        self._store = store
        self._settings = settings
        self._ledger = ledger
        self._bounds = bounds
        self._dead = dead
        self._sweep = Sweep(store, new_member_id(), clock, heartbeat=settings.heartbeat, losses=losses)
        self._worker = Worker(store, tasks, new_member_id(), settings, clock)
        self._ear = Ear(self._worker)
        now = clock.monotonic
        threads = Threads(1 if start else settings.threads, self._ear, now, start)
        self._worker.use(Lane.COROUTINE, Coroutines(settings.concurrency, self._ear, now))
        self._worker.use(Lane.THREAD, threads)
        self._worker.use(Lane.PROCESS, threads)

    async def run(self) -> None:
        """Until nothing is ready and nothing runs. Raises ProcessDeath if it was killed, and is gone without a word."""
        try:
            me = introduce(self._worker.member, "worker", "test", self._store.clock)
            await aside(self._store.members.join, me, self._settings.heartbeat)
            await self._sweep.turn()
            await self._work()
        except ProcessDeath:
            await self._die()
            raise
        except BaseException:
            await self._leave()
            raise
        await self._leave()

    async def _work(self) -> None:
        worker, loop = self._worker, asyncio.get_running_loop()
        before = len(self._ledger.leased)
        seen, since = self._progress(), loop.time()
        while True:
            quiet = worker.quiet  # asked first: a workflow may make jobs, and be gone, while we look
            lines = await aside(self._look)
            if quiet and not lines:
                return
            for line in lines:
                worker.heard(line)
            pause = await worker.turn()
            if self._dead():
                raise ProcessDeath
            if self._ear.meant_for_the_test is not None:
                raise self._ear.meant_for_the_test
            if worker.held:
                await (worker.wait(pause) if pause else asyncio.sleep(0))
            if self._progress() != seen:
                seen, since = self._progress(), loop.time()
            elif not worker.held and not await aside(self._beat):
                return  # declared dead, as when a job moved the clock: it gets no more leases
            elif loop.time() - since > self._bounds.patience.total_seconds():
                raise self._stuck()
            if lines and len(self._ledger.leased) - before >= self._bounds.limit:
                raise self._endless(before)

    def _progress(self) -> tuple[int, int]:
        return len(self._ledger.leased), len(self._ledger.ran)

    def _look(self) -> list[Line]:
        """What has become due is ready; which lines have something."""
        self._store.jobs.promote(PROMOTED)
        return self._store.jobs.lines(self._settings.queues or None)

    def _beat(self) -> bool:
        return bool(self._store.members.beat([self._worker.member], self._settings.heartbeat))

    async def _leave(self) -> None:
        """In good order: what runs in vain is stopped and goes back."""
        worker = self._worker
        worker.stopping = True
        worker.hand_back_waiting()
        for attempt in list(worker.held):
            attempt.stopping = True
            worker.cancel(attempt)
        if worker.held:
            await asyncio.sleep(0)
        for attempt in list(worker.held):
            worker.ended(attempt, Stopped())
        for _ in range(LAST_WORDS):
            if worker.quiet:
                break
            await worker.turn()
        await worker.close()
        await aside(self._sweep.resign)
        await aside(self._store.members.leave, [worker.member])

    async def _die(self) -> None:
        """Nothing more is said to the store. What still runs, unwinds."""
        worker, loop = self._worker, asyncio.get_running_loop()
        end = loop.time() + self._bounds.patience.total_seconds()
        worker.stopping = True
        worker.hand_back_waiting()
        for attempt in list(worker.held):
            attempt.lost = True
            worker.cancel(attempt)
        while worker.held and loop.time() < end:  # noqa: ASYNC110 - a thread that unwinds tells nobody
            await asyncio.sleep(LOOK_AGAIN)
        held = sorted({attempt.task.name for attempt in worker.held})
        await worker.close()
        if held:
            raise NotDrained(
                f"{', '.join(held)} runs on though its process was killed. Let it end when it meets a BaseException."
            )

    def _stuck(self) -> NotDrained:
        held = Counter(attempt.task.name for attempt in self._worker.held)
        what = f"still running: {_list(held)}" if held else "the store does not take what has ended"
        return NotDrained(
            f"Nothing has begun or ended for {self._bounds.patience}; {what}. Let it end, or give drain(patience=…)."
        )

    def _endless(self, before: int) -> NotDrained:
        ran = Counter(self._ledger.leased[before:])
        return NotDrained(
            f"{ran.total()} attempts ran and more jobs are ready: {_list(ran)}. Does a job make another one each time, or "
            "fail and try again at once? If so many are meant, give drain(limit=…)."
        )


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{task} ({count})" for task, count in counts.most_common(5))
