"""Puts a graph together, one after another, in branches and all at once. Knows nothing of code, tasks or runs: whoever reads those tells it."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lateshift.errors import WorkflowInvalid
from lateshift.model.workflow.graph import LABEL_MOST, NODES_MOST, Edge, Node, NodeKind
from lateshift.workflow.graph.graph import Graph
from lateshift.workflow.graph.tidying import PASSED, tidied

Part: TypeAlias = Callable[[], object]  # adds what it has to the builder


class End(Struct, frozen=True):
    """A node after which something may follow."""

    source: str
    label: str | None = None
    failure: bool = False


class Builder:
    """What is added follows after `ends`, the nodes that have nothing behind them yet; without any, nothing leads to it, and it is left out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._finish: Node | None = None
        self._joins: dict[str, str] = {}
        self._answers: dict[str, list[str | None]] = {}
        self.ends: list[End] = []
        self.add(NodeKind.START, name)

    def add(
        self, kind: NodeKind, label: str, *, calls: str | None = None, queue: str | None = None, undo: str | None = None,
        note: str | None = None, state: str | None = None, step: str | None = None,
    ) -> str:  # fmt: skip
        """One thing more, in sequence. Gives its id."""
        node = self._made(kind, label, calls=calls, queue=queue, undo=undo, note=note, state=state, step=step)
        self._lead_to(node.id)
        self.ends = [End(node.id)]
        return node.id

    def parallel(self, branches: Sequence[tuple[str | None, Part]]) -> str | None:
        """All at once: what stands at each branch ("each", if it is there many times), and what adds it. Gives the id of where all have ended."""
        if len(branches) < 2 and not any(label for label, _ in branches):
            for _, part in branches:
                part()
            return None
        gather = self.add(NodeKind.GATHER, "together")
        after: list[End] = []
        for label, part in branches:
            self.ends = [End(gather, label)]
            part()
            after += self.ends
        self.ends = after
        self._joins[gather] = self.add(NodeKind.JOIN, "all have ended")
        return self._joins[gather]

    def branch(self, question: str, answers: Sequence[tuple[str | None, Part | None]]) -> None:
        """One of these, or nothing where an answer has no part."""
        fork = self.fork(NodeKind.BRANCH, question, [label for label, _ in answers])
        after: list[End] = []
        for label, part in answers:
            self.ends = [End(fork, label)]
            if part is not None:
                part()
            after += self.ends
        self.ends = after

    def fork(self, kind: NodeKind, question: str, answers: Sequence[str | None]) -> str:
        """A branch or a loop, whose ways the caller adds; they are told in this order."""
        fork = self.add(kind, question)
        self._answers[fork] = list(answers)
        return fork

    def loop(self, head: str, again: str, part: Part, done: str | None) -> None:
        """So often: `again` and `done` stand at the ways in and out. Without `done` it has no end of its own."""
        turn = self.fork(NodeKind.LOOP, head, [again, done])
        self.ends = [End(turn, again)]
        part()
        self.back_to(turn)
        self.ends = [] if done is None else [End(turn, done)]

    def back_to(self, node: str) -> None:
        """What was added last leads there."""
        self._lead_to(node)
        self.ends = []

    def finish(self) -> None:
        """What was added last is the end."""
        if self._finish is None:
            self._finish = self._made(NodeKind.END, "end")
        self.back_to(self._finish.id)

    def made(self) -> Graph:
        """The graph, without what nothing leads to, and without branches in which nothing happens."""
        last = [] if self._finish is None else [self._finish]
        nodes = [node for node in self._nodes if node is not self._finish] + last
        nodes, edges = tidied(nodes, self._edges, self._joins)
        places = {node.id: number for number, node in enumerate(nodes, 1)}
        edges.sort(key=lambda edge: (places[edge.source], edge.failure, self._answer(edge)))
        return Graph(
            self._name,
            [replace(node, id=f"n{places[node.id]}") for node in nodes],
            [
                replace(edge, source=f"n{places[edge.source]}", target=f"n{places[edge.target]}")
                for edge in edges
            ],
        )

    def _answer(self, edge: Edge) -> int:
        answers = self._answers.get(edge.source, [])
        return answers.index(edge.label) if edge.label in answers else 0

    def since(self, number: int) -> list[End]:
        """What was added after so many nodes, and does something."""
        return [End(node.id) for node in self._nodes[number:] if node.kind not in PASSED | {NodeKind.GATHER}]

    def __len__(self) -> int:
        return len(self._nodes)

    def _made(self, kind: NodeKind, label: str, **more: str | None) -> Node:
        if len(self._nodes) >= NODES_MOST:
            raise too_large(self._name)
        said = {name: None if text is None else _clipped(text) for name, text in more.items()}
        node = Node(id=f"n{len(self._nodes) + 1}", kind=kind, label=_clipped(label), **said)
        self._nodes.append(node)
        return node

    def _lead_to(self, target: str) -> None:
        for end in self.ends:
            label = None if end.label is None else _clipped(end.label)
            self._edges.append(Edge(source=end.source, target=target, label=label, failure=end.failure))


def too_large(name: str) -> WorkflowInvalid:
    return WorkflowInvalid(
        f"The graph of {name} has more than {NODES_MOST:,} nodes, which nobody could read. Let children do parts of it: "
        "flow.child(…) is one node."
    )


def _clipped(text: str) -> str:
    return text if len(text) <= LABEL_MOST else f"{text[: LABEL_MOST - 1]}…"
