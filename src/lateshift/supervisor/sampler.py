"""What waits, told once in each minute: by the supervisor that leads, and where none does by a server. A backlog grows when no worker is
there, and then nobody else looks."""

from contextlib import suppress
from datetime import datetime, timedelta

from lateshift.errors import StoreError
from lateshift.model.figures import BACKLOG_COUNTED, Grain
from lateshift.model.ids import MemberId
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store

EVERY = timedelta(seconds=5)
PATIENCE = timedelta(seconds=20)  # of each minute, in which it is the supervisor's to tell
SPREAD = 30  # seconds after that, over which servers are spread, so that few look at once


def sample(store: Store, term: int | None) -> bool:
    """What waits, and who is there to take it. False if it was told for this minute."""
    backlog = {queue.name: queue.ready + queue.blocked for queue in store.queues.list(BACKLOG_COUNTED)}
    workers = sum(not member.dead and member.kind == "worker" for member in store.reports.members())
    return store.figures.sample(term=term, backlog=backlog, workers=workers)


class Sampler:
    """Of a server: turned by a loop beside it. It looks once in each minute whether somebody has told, which is one cheap read."""

    def __init__(self, store: Store, me: MemberId) -> None:
        self._store = store
        self._patience = PATIENCE + timedelta(seconds=me.int % SPREAD)
        self._looked: datetime | None = None  # the minute for which it did

    async def turn(self) -> timedelta:
        with suppress(StoreError):  # others tell of that
            await aside(self.round)
        return EVERY

    def round(self) -> None:
        """Blocking."""
        now = self._store.clock.now()
        minute = Grain.MINUTE.begins(now)
        if minute == self._looked or now - minute < self._patience:
            return
        if minute not in self._store.figures.sampled(Grain.MINUTE, minute):
            sample(self._store, None)
        self._looked = minute
