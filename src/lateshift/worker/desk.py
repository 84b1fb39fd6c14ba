"""Where attempts in this process save their checkpoints, and workflows their steps."""

from lateshift.clock import Clock
from lateshift.model.job import Lease, Note
from lateshift.runtime.aside import aside
from lateshift.sealing.ring import Seal
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


class SealedDesk:
    """The same for an attempt of a sealed job."""

    def __init__(self, desk: StoreDesk, seal: Seal) -> None:
        self._desk = desk
        self._seal = seal
        self.journal = desk.journal
        self.now = desk.now

    def save_checkpoint(self, lease: Lease, state: bytes) -> bool:
        return self._desk.save_checkpoint(lease, self._seal.close("checkpoint", state))

    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool:
        return await self._desk.asave_checkpoint(lease, self._seal.close("checkpoint", state))
