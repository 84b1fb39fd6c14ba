"""Beside the worker's exchanges, a few times a second: complete-bys that have passed, stop orders, progress, and what
waits in hand behind a job that turned out slow."""

from datetime import timedelta

from lateshift.clock import Clock
from lateshift.errors import StoreError
from lateshift.model.job import Note, Progress
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import Store
from lateshift.worker.attempt import Attempt
from lateshift.worker.introduction import Introduction
from lateshift.worker.worker import Worker

EVERY = timedelta(milliseconds=250)
IN_HAND_AT_MOST = 0.25  # seconds that a leased job waits for a slot before it is handed back
STORE_EVERY = 2  # turns between looks into the store: half a second
STRAYS_EVERY = 20  # turns between looks for leases that this worker does not know of: five seconds


class Control:
    """Turned by a loop of its own, so that a slow store does not delay a complete-by."""

    def __init__(
        self, worker: Worker, store: Store, clock: Clock, introduction: Introduction | None = None
    ) -> None:
        self._worker = worker
        self._store = store
        self._clock = clock
        self._introduction = introduction
        self._turns = 0
        self._kept: dict[Attempt, Progress] = {}
        self._reported: dict[str, object] = {}

    async def turn(self) -> timedelta:
        self._turns += 1
        now = self._clock.monotonic()
        for attempt in list(self._worker.held):
            if attempt.deadline is not None and now >= attempt.deadline and attempt.started is not None:
                self._worker.overdue(attempt)
        self._worker.hand_back_waiting(now - IN_HAND_AT_MOST)
        if self._turns % STORE_EVERY == 0:
            try:
                await self._speak()
                if self._turns % STRAYS_EVERY == 0:
                    await self._worker.return_strays()
            except StoreError as error:
                log.warning("the store is away: %s", error)
        return EVERY

    async def _speak(self) -> None:
        if self._introduction is not None and self._introduction.due:
            await aside(self._introduction.give, self._worker.member, self._worker.slots)
        held = list(self._worker.held)
        if held:
            orders = await aside(self._store.jobs.stop_orders, self._worker.member)
            by = {(order.id, order.fence): order.by for order in orders}
            for attempt in held if by else ():
                told = by.get((attempt.lease.id, attempt.lease.fence))
                if told is not None and attempt.cancelled_by is None:
                    attempt.cancelled_by = told
                    self._worker.cancel(attempt)
        await self._keep_progress(held)
        stats = self._stats()
        if stats != self._reported:
            await aside(self._store.members.report, self._worker.member, stats)
            self._reported = stats

    async def _keep_progress(self, held: list[Attempt]) -> None:
        said = {attempt: attempt.progress for attempt in held if attempt.progress is not None}
        fresh = {
            attempt: progress for attempt, progress in said.items() if self._kept.get(attempt) != progress
        }
        if fresh:
            notes = [Note(attempt.lease, progress=progress) for attempt, progress in fresh.items()]
            lost = {(lease.id, lease.fence) for lease in await aside(self._store.jobs.save, notes)}
            for attempt in fresh:
                if (attempt.lease.id, attempt.lease.fence) in lost and not attempt.ended:
                    attempt.lost = True
                    self._worker.cancel(attempt)
        self._kept = said

    def _stats(self) -> dict[str, object]:
        return {
            **self._worker.tally.numbers(),
            "running": len(self._worker.held),
            "held": self._worker.filled,
            "pace": self._worker.starts.per_second(),
        }
