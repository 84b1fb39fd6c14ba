"""The supervisor's round: one leads, the others stand by."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta

from lateshift.clock import Clock
from lateshift.errors import StoreError
from lateshift.model.figures import Grain
from lateshift.model.ids import MemberId
from lateshift.model.outcome import LATE
from lateshift.runtime.aside import aside
from lateshift.runtime.heartbeat import BEATS
from lateshift.runtime.leadership import TTL, Leadership
from lateshift.runtime.log import log
from lateshift.store.contract import Gap, Store, TakenBack
from lateshift.supervisor.losses import Losses
from lateshift.supervisor.sampler import sample
from lateshift.telemetry.liveness import has_failed

EVERY = timedelta(seconds=1)
STAND_BY = timedelta(seconds=2)
BATCH = 500
PURGE_EVERY = 60.0
PURGE_BATCH = 1000
PURGE_TIME = timedelta(seconds=0.5)  # of each turn, while more than a batch is due
DRIFT = 3.0  # seconds that the wall clock may part from the monotonic one between two turns


class Sweep:
    """Turned by a loop; `wake()` when somebody knows that a member has died."""

    def __init__(
        self, store: Store, member: MemberId, clock: Clock, *, heartbeat: timedelta = timedelta(seconds=30),
        losses: Losses | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._losses = losses
        self._clock = clock
        # A leader that died is followed before the members that died with it have fallen silent.
        self._leadership = Leadership(store.locks, "supervisor", member, clock, min(TTL, heartbeat / 2))
        self._wake = asyncio.Event()
        self._purge_at = clock.monotonic()
        self._sampled: datetime | None = None  # the minute for which it was looked last what waits
        self._purge_time = min(PURGE_TIME, heartbeat / 20).total_seconds()  # the term must outlast it
        self._beat = (heartbeat / BEATS).total_seconds()
        self._quiet_until = 0.0
        self._apart = self._clocks_apart()

    def wake(self) -> None:
        self._wake.set()

    async def wait(self, pause: timedelta) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self._wake.wait()

    async def turn(self) -> timedelta:
        self._wake.clear()
        apart, before = self._clocks_apart(), self._apart
        self._apart = apart
        if abs(apart - before) > DRIFT:
            log.warning(
                "the machine slept, or its clock was set: nobody is declared dead for %.0f s", self._beat
            )
            self._stay_quiet()
        try:
            return await aside(self._round)
        except StoreError as error:
            self._stay_quiet()
            log.warning("the supervisor cannot reach the store: %s", error)
            has_failed()
            return STAND_BY

    def _clocks_apart(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()

    def _stay_quiet(self) -> None:
        """Members could not beat either: give them one beat's time before anybody is declared dead."""
        self._quiet_until = self._clock.monotonic() + self._beat

    def _round(self) -> timedelta:
        asked = self._clock.monotonic()
        term = self._leadership.term()
        if (
            self._clock.monotonic() - asked > self._beat
        ):  # it kept us waiting, and those who would beat as well
            self._stay_quiet()
        if term is None:
            return STAND_BY
        if self._clock.monotonic() < self._quiet_until:
            return EVERY
        taken = self._take_back(term)
        for job in taken:
            log.warning(
                "job %s taken back: %s%s", job.id, job.reason, ", now a dead letter" if job.dead else ""
            )
        self._store.jobs.unblock(term=term, limit=BATCH)
        self._release_waiting(term)
        self._look_for_late_steps(term)
        finished = self._store.batches.finish(limit=BATCH)
        self._sample(term)
        if self._clock.monotonic() >= self._purge_at:
            self._purge(term)
        return timedelta(0) if max(len(taken), finished) >= BATCH else EVERY

    def _take_back(self, term: int) -> list[TakenBack]:
        alerts = {} if self._losses is None else self._losses.alerts()
        taken = self._store.jobs.take_back(term=term, limit=BATCH, alerts=alerts)
        if self._losses is not None:
            self._losses.tell(taken)
        return taken

    def _look_for_late_steps(self, term: int) -> None:
        """What becomes of such a step is for its workflow's policy to say; its job, if it still waits or runs, is told to stop."""
        late = self._store.workflows.overdue(term=term, limit=BATCH)
        for step in late:
            log.warning("step %s of workflow %s was not done by its complete-by", step.name, step.run)
        if late:
            self._store.jobs.cancel([step.job for step in late], by=LATE)

    def _release_waiting(self, term: int) -> None:
        for gap in self._store.jobs.release_waiting(term=term, limit=BATCH):
            what = "it is held" if gap.held else f"it goes on with {gap.next}"
            log.warning(
                "session %s of queue %s: %s did not come, %s", gap.session, gap.queue, _missing(gap), what
            )

    def _purge(self, term: int) -> None:
        """In bounded steps rather than in one long delete; if time runs out before the rows do, on at the next turn."""
        end = self._clock.monotonic() + self._purge_time
        full = True
        while full and self._clock.monotonic() < end:
            full = self._store.upkeep.purge(term=term, limit=PURGE_BATCH) >= PURGE_BATCH
        self._purge_at = self._clock.monotonic() + (0.0 if full else PURGE_EVERY)

    def _sample(self, term: int) -> None:
        """What waits, and who is there to take it, once in each minute; a leader that comes meanwhile finds that it is told."""
        minute = Grain.MINUTE.begins(self._clock.now())
        if minute == self._sampled:
            return
        sample(self._store, term)
        self._sampled = minute

    def resign(self) -> None:
        with suppress(StoreError):
            self._leadership.resign()


def _missing(gap: Gap) -> str:
    """All the numbers up to the next one there is."""
    last = gap.next - 1
    return f"number {gap.missing}" if last <= gap.missing else f"numbers {gap.missing} to {last}"
