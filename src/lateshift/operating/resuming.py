"""All runs of a workflow that are held go on: each is looked at once; one that is held again by then is not tried a second time."""

from collections.abc import Iterator

from msgspec import Struct

from lateshift.documents.hiding import shown_runs
from lateshift.model.ids import JobId
from lateshift.model.workflow.run import Phase, RunView
from lateshift.operating import runs
from lateshift.store.contract import Store

RESUMED_AT_ONCE = 1_000  # runs, unless somebody says otherwise


class Resumed(Struct, frozen=True, kw_only=True):
    """Which go on, how many were looked at, and the one after which there may be more."""

    done: list[JobId]
    seen: int
    last: JobId | None


def resume_all(
    store: Store, name: str, *, why: str | None, limit: int, before: JobId | None, preview: bool, by: str
) -> Resumed:
    seen = 0
    done: list[JobId] = []
    last: JobId | None = None
    for view in _held(store, name, why, before):
        if seen == limit:
            return Resumed(done=done, seen=seen, last=last)
        seen, last = seen + 1, view.run.id
        if preview or store.workflows.direct(last, Phase.FORWARD, why="", by=by):
            done.append(last)
    return Resumed(done=done, seen=seen, last=None)


def _held(store: Store, name: str, why: str | None, before: JobId | None) -> Iterator[RunView]:
    """The newest first, a page at a time."""
    last: JobId | None = before
    while True:
        page, last = runs.newest(store, last, runs.PAGE, name, "held")
        for view in page if why is None else shown_runs(store, page):  # a search tells no more than is shown
            if why is None or why in (view.run.why or ""):
                yield view
        if last is None:
            return
