"""What the small workflows of the tests of graphs are made of, and their graphs as text."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift import Flow, Graph, Lateshift, StepFailed
from lateshift.model.workflow.graph import LABEL_MOST, Node, NodeKind

app = Lateshift("graphs")
MONTH = timedelta(days=30)
EPOCH = datetime.fromtimestamp(0, UTC)
ERRORS = (StepFailed, KeyError)
CHOSEN = "(a function chosen at run time)"  # a note
LONG = "x" * (LABEL_MOST + 1)


def a(*given: Any) -> Any: ...
def b(*given: Any) -> Any: ...
async def c(*given: Any) -> Any: ...


@app.task(queue="payments")
def charge(order: int) -> int:
    return order


@app.task(name="refunds.pay", queue="payments")
def refund(order: int) -> None: ...


@app.workflow
async def packing(flow: Flow, order: int) -> None: ...


class Shop:
    def pack(self, order: int) -> None: ...

    async def part(self, flow: Flow, order: int) -> None:
        await flow.step(self.pack, order)

    @staticmethod
    async def alone(flow: Flow) -> None:
        await flow.step(a)

    @property
    def chosen(self) -> Callable[..., None]:
        raise AssertionError("a property was run to read a graph")


shop = Shop()
HANDLERS: dict[str, Callable[..., Any]] = {}


def name_of(node: Node) -> str:
    match node.kind:
        case NodeKind.END | NodeKind.JOIN | NodeKind.GATHER:
            return {"end": "END", "join": "JOIN", "gather": "ALL"}[node.kind.value]
        case NodeKind.START:
            return "START"
        case NodeKind.BRANCH | NodeKind.LOOP:
            return f"<{node.label}>"
        case NodeKind.TASK:
            name = f"task {node.label} on {node.queue}" if node.queue else f"task {node.label}"
        case NodeKind.CHILD:
            name = f"child {node.label}"
        case _:
            name = node.label
    undo = f" undone by {node.undo}" if node.undo else ""
    return f"{name}{undo}{f' ({node.note})' if node.note else ''}"


def drawn(graph: Graph) -> list[str]:
    """a -> b; <x> -yes-> b; a ~on failure~> b"""
    names = {node.id: name_of(node) for node in graph.nodes}
    assert len(names) == len(graph.nodes)

    def arrow(label: str | None, failure: bool) -> str:
        line = "~" if failure else "-"
        return f"{line}{label}{line}>" if label else f"{line}>"

    return [
        f"{names[edge.source]} {arrow(edge.label, edge.failure)} {names[edge.target]}" for edge in graph.edges
    ]


class Cases(list[Any]):
    """Workflows, each with what its graph is."""

    def leads(self, *expected: str) -> Callable[[Callable[..., Awaitable[Any]]], None]:
        """Adds a workflow."""

        def add(function: Callable[..., Awaitable[Any]]) -> None:
            self.append(pytest.param(function, list(expected), id=function.__name__))

        return add
