"""Batches: how far each is as a whole, and what failed in it."""

from lateshift.api.paging import Paging
from lateshift.api.route import Asked, Done, Reach
from lateshift.api.routes import batches
from lateshift.dashboard.page import Action, Context, Page, says_done
from lateshift.dashboard.telling import Row
from lateshift.model.access import Scope
from lateshift.model.job import JobFilter, State

FAILURES_SHOWN = 20  # dead letters on the page of a batch


def batches_page(asked: Asked) -> Context:
    """The newest batches, a page of them by their ids, each with its own counts."""
    return {"found": batches.list_batches(asked), "query": asked.query}


def batch_page(asked: Asked) -> Context:
    """One batch with its counts, and its newest dead letters by the index of those."""
    failed = asked.store.reports.search(
        JobFilter(batch=asked.id, state=State.DEAD), FAILURES_SHOWN, whole=False
    )
    return {"batch": batches.show_batch(asked), "rows": [Row.of(view) for view in failed.jobs]}


def _cancelled(done: Done) -> str:
    """Its jobs that run go on until their workers stop them."""
    if done.state == "cancelling" and done.changed:
        return f"{done.subject}: what waited is cancelled, what runs is told to stop."
    return says_done(done)


PAGES = (
    Page(path="/batches", title="Batches", section="Batches", template="batches.html", handler=batches_page, scope=Scope.READ,
         reach=Reach.ALL, asks=Paging),
    Page(path="/batches/{id}", title="Batch", section="Batches", template="batch.html", handler=batch_page, scope=Scope.READ,
         reach=Reach.ALL, actions={"cancel": Action(batches.cancel_batch, says=_cancelled)}),
)  # fmt: skip
