"""Beside the worker's exchanges, a few times a second: complete-bys that have passed, stop orders, progress, and what
waits in hand behind a job that turned out slow."""

from datetime import timedelta

from lateshift.clock import Clock
from lateshift.errors import StoreError
from lateshift.model.draining import DRAINS
from lateshift.model.figures import ALL
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.sealing.jobs import sealed_log
from lateshift.store.contract import Store
from lateshift.telemetry.liveness import ages, has_failed
from lateshift.telemetry.measures import RUNS_TOLD, STARTS_TOLD
from lateshift.worker.attempt import Attempt
from lateshift.worker.counting import TOLD_EVERY
from lateshift.worker.ends import Ends
from lateshift.worker.introduction import Introduction
from lateshift.worker.worker import Worker

EVERY = timedelta(milliseconds=250)
IN_HAND_AT_MOST = 0.25  # seconds that a leased job waits for a slot before it is handed back
LIVE_LOG_EVERY = 2.0  # seconds after which what an attempt has logged is kept, while it runs on
LIVE_LOGS_AT_ONCE = 50  # logs of attempts that run on, kept in one look
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
        self._store_away = False
        self._reported: dict[str, object] = {}
        self._looked_at = clock.monotonic()  # whether there is something to tell
        self._told_at = self._looked_at - TOLD_EVERY
        self._ends = Ends(clock.monotonic)

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
                self._store_away = False
            except StoreError as error:
                log.warning("the store is away: %s", error)
                self._store_away = True
                has_failed()
        elif self._store_away:  # no turn is well until the store has answered one
            has_failed()
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
        await self._keep_logs(held)
        stats = self._stats()
        if stats != self._reported:
            await aside(self._store.members.report, self._worker.member, stats)
            self._reported = stats
        if self._has_to_tell(self._clock.monotonic()):
            await self.tell()

    def _has_to_tell(self, now: float) -> bool:
        """Every so often; and what ends after a time in which nothing was told, at once: few jobs are not looked for in vain."""
        first = now - self._told_at >= TOLD_EVERY and self._worker.counting.has_ended
        return first or now - self._looked_at >= TOLD_EVERY

    async def tell(self) -> None:
        """What was counted, to the store; what it may not have heard stays to be told again."""
        told = self._worker.counting.telling(self._worker.held)
        if told is not None:
            member = self._worker.member
            await aside(self._store.figures.add, member, told.number, told.queues, busy=told.busy)
            self._worker.counting.told()
            self._told_at = self._clock.monotonic()
        self._looked_at = self._clock.monotonic()

    async def _keep_progress(self, held: list[Attempt]) -> None:
        fresh = [(attempt, words) for attempt in held if (words := attempt.words()) is not None]
        if fresh:
            saved = await aside(self._store.jobs.save, [words for _, words in fresh])
            lost = {(lease.id, lease.fence) for lease in saved}
            for attempt, words in fresh:
                if (attempt.lease.id, attempt.lease.fence) not in lost:
                    attempt.kept = words.number
                elif not attempt.ended:
                    attempt.lost = True
                    self._worker.cancel(attempt)

    async def _keep_logs(self, held: list[Attempt]) -> None:
        """So that they can be read while it runs, and after its worker was killed."""
        since = self._clock.monotonic()
        due = [
            (attempt, log)
            for attempt in held
            if (log := attempt.log) is not None
            and log.logged > log.written
            and since - log.written_at >= LIVE_LOG_EVERY
        ]
        if due:
            kept = [(attempt, log.so_far(attempt.lease, since)) for attempt, log in due[:LIVE_LOGS_AT_ONCE]]
            logs = [sealed_log(log, attempt.seal) if attempt.seal else log for attempt, log in kept]
            await aside(self._store.logs.keep, logs)

    def _stats(self) -> dict[str, object]:
        return {
            **self._worker.numbers,
            "running": len(self._worker.held),
            "held": self._worker.filled,
            "pace": self._worker.starts.per_second(),
            DRAINS: self._drains(),
            "attempts": self._worker.measures.by_queue(),
            STARTS_TOLD: self._worker.counting.starts(),
            RUNS_TOLD: self._worker.counting.runs(),
            "lease": self._worker.measures.lease.told(),
            "settle": self._worker.measures.settle.told(),
            "late_loops": {it.loop: round(it.age) for it in ages() if it.is_late},
        }

    def _drains(self) -> dict[str, float]:
        busy = {attempt.lease.queue for attempt in self._worker.held}
        return self._ends.per_second(self._worker.measures.ended(), {*busy, ALL} if busy else busy)
