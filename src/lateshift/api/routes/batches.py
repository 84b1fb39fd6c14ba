"""Batches, whose jobs may be of any queue."""

from uuid import UUID

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.paging import Paging, paged
from lateshift.api.route import Done, Reach, Route
from lateshift.batches.handle import Batch
from lateshift.documents.batches import BatchDocument, batch_document, state_of
from lateshift.model.access import Scope


class BatchesPage(Struct, frozen=True, kw_only=True):
    """The newest first. `next`: the cursor of the next page, if there may be one."""

    batches: list[BatchDocument]
    next: str | None


class BatchResubmitted(Struct, frozen=True, kw_only=True):
    """How many of its jobs are ready again."""

    batch: UUID
    resubmitted: int


def list_batches(asked: Asked) -> BatchesPage:
    """Batches, the newest first, page by page."""
    views, more = paged(asked, UUID, asked.store.batches.newest, lambda view: view.id)
    return BatchesPage(batches=[batch_document(view) for view in views], next=more)


def show_batch(asked: Asked) -> BatchDocument:
    """How far one batch is, and what follows it."""
    return batch_document(_batch(asked).progress())


def cancel_batch(asked: Asked) -> Done:
    """Cancel all jobs of a batch: waiting ones at once, running ones are told within a second. No callback follows."""
    batch = _batch(asked)
    before = batch.progress().cancelled_by
    changed = batch.cancel(by=asked.by) and before is None
    return Done(
        subject=f"batch {asked.id}", action="cancelled", changed=changed, state=state_of(batch.progress())
    )


def _batch(asked: Asked) -> Batch:
    return Batch(asked.id, lambda: asked.store, asked.app.tasks)


def resubmit_batch(asked: Asked) -> BatchResubmitted:
    """Make the dead letters of a batch ready again, with fresh attempts."""
    batch = _batch(asked)
    batch.progress()
    return BatchResubmitted(batch=asked.id, resubmitted=batch.resubmit_failed(asked.by))


def seal_batch(asked: Asked) -> Done:
    """Say that no more jobs will come to a batch whose producer died: those that are in are all."""
    batch = _batch(asked)
    batch.progress()
    changed = batch.seal(by=asked.by)
    return Done(
        subject=f"batch {asked.id}", action="sealed", changed=changed, state=state_of(batch.progress())
    )


ROUTES = (
    Route(method="GET", path="/v1/batches", handler=list_batches, asks=Paging, gives=BatchesPage, scope=Scope.READ,
          reach=Reach.ALL),
    Route(method="GET", path="/v1/batches/{id}", handler=show_batch, gives=BatchDocument, scope=Scope.READ, reach=Reach.ALL),
    Route(method="POST", path="/v1/batches/{id}/cancel", handler=cancel_batch, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/batches/{id}/resubmit", handler=resubmit_batch, gives=BatchResubmitted, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/batches/{id}/seal", handler=seal_batch, gives=Done, scope=Scope.OPERATE, reach=Reach.ALL),
)  # fmt: skip
