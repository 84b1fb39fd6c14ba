"""A batch: how far it is as a whole."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from lateshift.model.batch import BatchView


class BatchDocument(Struct, frozen=True, kw_only=True):
    """How far a batch is, and what follows it."""

    id: UUID
    name: str | None
    key: str | None
    state: str
    total: int
    added: int
    waiting: int
    running: int
    completed: int
    failed: int
    cancelled: int
    sealed: bool
    finished: bool
    created_at: datetime
    finished_at: datetime | None
    cancelled_by: str | None
    then: UUID | None
    then_enqueued: bool
    on_failure: UUID | None
    on_failure_enqueued: bool

    @property
    def done(self) -> int:
        """As BatchView has it."""
        return self.completed + self.failed + self.cancelled


def state_of(view: BatchView) -> str:
    """In a word."""
    if view.cancelled_by is not None:
        return "cancelled" if view.finished else "cancelling"
    if view.finished:
        return "failed" if view.failed else "completed"
    return "running" if view.sealed else "enqueueing"


def batch_document(view: BatchView) -> BatchDocument:
    names = [name for name in BatchDocument.__struct_fields__ if name != "state"]
    return BatchDocument(state=state_of(view), **{name: getattr(view, name) for name in names})
