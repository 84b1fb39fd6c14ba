"""Workflows as drawings: what one may do, by the server's code, and what a run of it did."""

from typing import Literal

from msgspec import Struct

from lateshift.api.route import Answer, Asked, Reach, Route
from lateshift.model.access import Scope
from lateshift.operating import runs
from lateshift.operating.graphs import graph_of_code, graph_of_run
from lateshift.workflow.graph.graph import Graph

JSON, SVG, MERMAID = "application/json", "image/svg+xml", "text/vnd.mermaid"


class GraphQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: Literal["json", "svg", "mermaid"] = "json"


def draw_workflow(asked: Asked) -> Answer:
    """What a workflow may do, as the server's code has it: as data, as a picture or as Mermaid text."""
    asked.allow(asked.task.limits.queue)
    return _drawn(graph_of_code(asked.app, asked.name), asked.query.format)


def draw_run(asked: Asked) -> Answer:
    """What a run did, step by step, drawn likewise."""
    asked.run_job()
    view, _ = runs.found(asked.store, asked.id)
    return _drawn(graph_of_run(asked.store, view, asked.store.clock.now()), asked.query.format)


def _drawn(graph: Graph, form: str) -> Answer:
    match form:
        case "svg":  # styled within itself, and nothing else
            policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
            return Answer(graph.svg(), text=SVG, headers={"Content-Security-Policy": policy})
        case "mermaid":
            return Answer(graph.mermaid(), text=MERMAID)
    return Answer(graph)


ROUTES = (
    Route(method="GET", path="/v1/tasks/{name}/graph", handler=draw_workflow, asks=GraphQuery, gives=Graph,
          media=(JSON, SVG, MERMAID), dear=True, scope=Scope.READ, reach=Reach.ONE),
    Route(method="GET", path="/v1/workflows/{id}/graph", handler=draw_run, asks=GraphQuery, gives=Graph, media=(JSON, SVG, MERMAID),
          dear=True, scope=Scope.READ, reach=Reach.ONE),
)  # fmt: skip
