"""The supervisor's round: one leads, the others stand by."""

import asyncio
from contextlib import suppress
from datetime import timedelta

from lateshift.clock import Clock
from lateshift.errors import StoreError
from lateshift.model.ids import MemberId
from lateshift.runtime.aside import aside
from lateshift.runtime.leadership import TTL, Leadership
from lateshift.runtime.log import log
from lateshift.store.contract import Store

EVERY = timedelta(seconds=1)
STAND_BY = timedelta(seconds=2)
BATCH = 500
PURGE_EVERY = 60.0
PURGE_BATCH = 1000


class Sweep:
    """Turned by a loop; `wake()` when somebody knows that a member has died."""

    def __init__(
        self, store: Store, member: MemberId, clock: Clock, *, heartbeat: timedelta = 2 * TTL
    ) -> None:
        self._store = store
        self._clock = clock
        # A leader that died is followed before the members that died with it have fallen silent.
        self._leadership = Leadership(store.locks, "supervisor", member, clock, min(TTL, heartbeat / 2))
        self._wake = asyncio.Event()
        self._purge_at = clock.monotonic()
        self._quiet_until = 0.0

    def wake(self) -> None:
        self._wake.set()

    async def wait(self, pause: timedelta) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self._wake.wait()

    async def turn(self) -> timedelta:
        self._wake.clear()
        try:
            return await aside(self._round)
        except StoreError as error:
            # Members could not beat either: give them one beat's time before anybody is declared dead.
            self._quiet_until = self._clock.monotonic() + 10.0
            log.warning("the supervisor cannot reach the store: %s", error)
            return STAND_BY

    def _round(self) -> timedelta:
        term = self._leadership.term()
        if term is None:
            return STAND_BY
        if self._clock.monotonic() < self._quiet_until:
            return EVERY
        taken = self._store.jobs.take_back(term=term, limit=BATCH)
        for job in taken:
            log.warning(
                "job %s taken back: %s%s", job.id, job.reason, ", now a dead letter" if job.dead else ""
            )
        self._store.jobs.unblock(term=term, limit=BATCH)
        if self._clock.monotonic() >= self._purge_at:
            purged = self._store.upkeep.purge(term=term, limit=PURGE_BATCH)
            # More than a batch was due: go on soon, in bounded steps, rather than in one long delete.
            self._purge_at = self._clock.monotonic() + (1.0 if purged >= PURGE_BATCH else PURGE_EVERY)
        return timedelta(0) if len(taken) >= BATCH else EVERY

    def resign(self) -> None:
        with suppress(StoreError):
            self._leadership.resign()
