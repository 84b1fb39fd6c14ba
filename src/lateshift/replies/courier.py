"""Sends on what jobs have told: one courier leads, others stand by. What it makes of events, jobs and messages, others deliver."""

from contextlib import suppress
from datetime import timedelta

from lateshift.clock import Clock
from lateshift.errors import StoreError
from lateshift.model.ids import MemberId
from lateshift.runtime.aside import aside
from lateshift.runtime.leadership import TTL, Leadership
from lateshift.runtime.log import log
from lateshift.store.contract import Store
from lateshift.telemetry.liveness import has_failed

COURIER_BATCH = 500  # events in one transaction
FIRST_PAUSE = timedelta(seconds=0.05)
LAST_PAUSE = timedelta(seconds=1)  # when nothing has been told for a while
STAND_BY = timedelta(seconds=2)


class Courier:
    """Turned by a loop."""

    def __init__(
        self, store: Store, member: MemberId, clock: Clock, *, heartbeat: timedelta = timedelta(seconds=30)
    ) -> None:
        self._store = store
        self._leadership = Leadership(store.locks, "courier", member, clock, min(TTL, heartbeat / 2))
        self._pause = FIRST_PAUSE

    async def turn(self) -> timedelta:
        try:
            sent = await aside(self.round)
        except StoreError as error:
            log.warning("replies wait, for the store does not answer: %s", error)
            has_failed()
            return STAND_BY
        if sent is None:
            return STAND_BY
        self._pause = FIRST_PAUSE if sent else min(self._pause * 2, LAST_PAUSE)
        return timedelta(0) if sent >= COURIER_BATCH else self._pause

    def round(self) -> int | None:
        """How many events it sent on; None while another leads. Blocking."""
        term = self._leadership.term()
        return None if term is None else self._store.replies.forward(term=term, limit=COURIER_BATCH)

    def resign(self) -> None:
        with suppress(StoreError):
            self._leadership.resign()
