"""Where attempts in this process save their checkpoints, and workflows their steps."""

from lateshift.clock import Clock
from lateshift.model.job import Lease, Note
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store
from lateshift.workflow.journal import Journal


class StoreDesk:
    """See current.Desk."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._jobs = store.jobs
        self._clock = clock
        self.journal = Journal(store)

    def save_checkpoint(self, lease: Lease, state: bytes) -> bool:
        """False if the lease is lost."""
        return not self._jobs.save([Note(lease, checkpoint=state)])

    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool:
        return await aside(self.save_checkpoint, lease, state)

    def now(self) -> float:
        return self._clock.monotonic()
