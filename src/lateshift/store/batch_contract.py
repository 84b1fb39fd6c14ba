"""What every store does about batches. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from lateshift.model.batch import BatchId, BatchView, NewBatch
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, NewJob


class Deed(Struct, frozen=True):
    """What an operator does, for the audit."""

    action: str
    subject: str
    by: str


class Batches(Protocol):
    def open(self, batch: NewBatch, *, deed: Deed | None = None) -> BatchView:
        """Make a batch known before its first job. Repeating its id is harmless; its key, with the same calls, gives the
        batch that there is, and with others raises KeyConflict. `deed`: what the audit has of it, written in the commit
        that makes it."""

    def add(self, id: BatchId, place: int, jobs: Sequence[NewJob]) -> int:
        """Enqueue the jobs that stand from this place on, in one commit; those that are in already are left out. Gives how
        many are in now. The last one seals the batch. Raises BatchClosed if it was cancelled, or sealed before."""

    def seal(self, id: BatchId, *, by: str = "the caller") -> bool:
        """Of a batch whose producer is gone: no more will come, its total is what is in. False if it was sealed."""

    def discard(self, id: BatchId) -> bool:
        """Forget a batch that no job has come into. False if one has."""

    def finish(self, *, limit: int) -> int:
        """A net for what a dead process left: count what has ended, enqueue the callbacks that are due, for up to `limit`
        batches. Gives how many it looked at. Anybody may, at any time: each callback is enqueued once."""

    def view(self, id: BatchId) -> BatchView | None: ...

    def newest(self, before: BatchId | None, limit: int) -> list[BatchView]:
        """The newest first."""

    def find(self, digits: str, limit: int) -> list[BatchId]:
        """Ids that begin with these hexadecimal digits, or end with them; endings among the newest ENDINGS_LOOKED_AT."""

    def settled(self, id: BatchId, after: JobId | None, limit: int) -> list[JobView]:
        """Jobs that have ended, in the order of their ids."""

    def failed(self, id: BatchId, after: JobId | None, limit: int) -> list[JobId]:
        """Dead letters, in the order of their ids."""

    def cancel(self, id: BatchId, *, by: str) -> bool:
        """Call it off: it takes no more jobs, and no callback follows. Its jobs are for `cancel_jobs`. False if it had
        finished."""

    def cancel_jobs(self, id: BatchId, after: JobId | None, limit: int, *, by: str) -> JobId | None:
        """Cancel up to `limit` jobs that have not ended, in the order of their ids: waiting ones at once, running ones get
        a stop order. Gives the last of them, or None when there are no more."""
