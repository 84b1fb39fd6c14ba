"""Pipelines: how far the items of each are, and what stands at each filter and in its queue."""

from markupsafe import Markup
from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.route import Reach
from lateshift.dashboard.page import Context, Page
from lateshift.documents.pipelines import drawn, pipeline_document
from lateshift.model.access import Scope
from lateshift.model.pipeline.progress import FilterProgress, PipelineProgress
from lateshift.model.pipeline.shape import Place
from lateshift.operating.attention import COUNTED_NOW
from lateshift.operating.pipelines import find, looked_at
from lateshift.store.contract import QueueView
from lateshift.workflow.graph.chains import of_shape

PIPELINES_SHOWN = 50  # in the list, each counted


class FilterLine(Struct, frozen=True, kw_only=True):
    """A filter with its queue. `room`: how many jobs may wait there, where this program bounds it. `full`: none more may, as far as is counted."""

    at: FilterProgress
    queue: QueueView | None
    room: int | None
    full: bool


def list_page(asked: Asked) -> Context:
    """Pipelines by name, by `workflows.pipelines`, which goes from name to name by an index; and the `workflows.tally` of each,
    which looks at the newest COUNTED_NOW items."""
    kept = asked.store.workflows.pipelines(limit=PIPELINES_SHOWN + 1)
    found = [pipeline_document(*looked_at(asked.store, each, COUNTED_NOW)) for each in kept[:PIPELINES_SHOWN]]
    return {
        "found": found,
        "more": len(kept) > PIPELINES_SHOWN,
        "most": PIPELINES_SHOWN,
        "counted": COUNTED_NOW,
    }


def pipeline_page(asked: Asked) -> Context:
    """One pipeline: its graph, its filters, and their queues. By `workflows.pipelines` and `workflows.tally`, as in the list, and
    `queues.list`, whose counts stop at COUNTED_NOW too."""
    store = asked.store
    found = find(store, asked.name)
    shape, progress = looked_at(store, found, COUNTED_NOW)
    queues = {view.name: view for view in store.queues.list(COUNTED_NOW)}
    lines = [_line(asked, at, queues) for at in progress.filters]
    return {
        "progress": progress, "chain": drawn(shape), "lines": lines, "queue": found.queue,
        "graph": _drawn(progress, shape), "counted": COUNTED_NOW,
    }  # fmt: skip


def _line(asked: Asked, at: FilterProgress, queues: dict[str, QueueView]) -> FilterLine:
    settings, view = asked.app.queues.get(at.queue), queues.get(at.queue)
    room = None if settings is None else settings.max_ready
    full = room is not None and view is not None and view.ready + view.blocked >= room
    return FilterLine(at=at, queue=view, room=room, full=full)


def _drawn(progress: PipelineProgress, shape: tuple[Place, ...]) -> Markup:
    """Escaped where it is drawn."""
    rows = {at.name: number for number, at in enumerate(progress.filters, 1)}
    graph = of_shape(progress.name, shape, {at.name: _note(at) for at in progress.filters})
    links = {node.id: f"#at-{rows[node.calls]}" for node in graph.nodes if node.calls in rows}
    return Markup(graph.svg(links))


def _note(at: FilterProgress) -> str:
    told = [("waiting", at.waiting), ("running", at.running), ("held", at.held), ("failed", at.failed)]
    return ", ".join(f"{count:,} {name}" for name, count in told if count) or "nothing here"


PAGES = (
    Page(path="/pipelines", title="Pipelines", section="Pipelines", template="pipelines.html", handler=list_page,
         dear=True, scope=Scope.READ, reach=Reach.ALL),
    Page(path="/pipelines/{name:path}", title="Pipeline", section="Pipelines", template="pipeline.html", handler=pipeline_page,
         scope=Scope.READ, reach=Reach.ALL),
)  # fmt: skip
