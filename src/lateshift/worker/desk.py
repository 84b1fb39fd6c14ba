"""Where attempts in this process save their checkpoints."""

from lateshift.clock import Clock
from lateshift.model.job import Lease, Note
from lateshift.runtime.aside import aside
from lateshift.store.contract import Jobs


class StoreDesk:
    """See current.Desk."""

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def save_checkpoint(self, lease: Lease, state: bytes) -> bool:
        """False if the lease is lost."""
        return not self._jobs.save([Note(lease, checkpoint=state)])

    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool:
        return await aside(self.save_checkpoint, lease, state)

    def now(self) -> float:
        return self._clock.monotonic()
