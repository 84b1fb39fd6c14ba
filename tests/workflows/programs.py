"""Workflows that chance makes up: of functions, jobs, sleeps, signals, failures, branches and children. Each is known by its seed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

LEAST, MOST = 6, 30  # steps
KINDS = (
    ["function"] * 4 + ["coroutine"] * 3 + ["job"] * 4
    + ["flaky", "refused", "sleep", "sleep", "signal", "timeout", "emit", "gather", "gather", "child", "failing child"]
)  # fmt: skip
EFFECTS = ("function", "coroutine", "job", "flaky")  # what leaves a trace in the world
ENDS = ("well", "fails", "cancelled")


@dataclass
class Node:
    """One step; of a gather the branches, of a child its steps. `undo`: what undoes it, a function or a job."""

    number: int
    kind: str
    undo: str | None = None
    hours: int = 0
    owner: int | None = None  # the child in which it is
    branches: list[list["Node"]] = field(default_factory=list)

    @property
    def has_effect(self) -> bool:
        return self.kind in EFFECTS


class Program:
    """`nodes`, by their numbers; `steps` of the run itself."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._chance = Random(f"{seed} program")
        self.nodes: dict[int, Node] = {}
        self._left = self._chance.randint(LEAST, MOST)
        self.end = self._chance.choice(ENDS)
        self.steps: list[Node] = []
        while self._left > 0:
            self.steps.append(self._node(0, None))

    def _node(self, depth: int, owner: int | None) -> Node:
        self._left -= 1
        kind = self._chance.choice(KINDS)
        if depth > 1 and kind in ("gather", "child", "failing child"):
            kind = "function"
        node = Node(len(self.nodes), kind, hours=self._chance.randint(1, 48), owner=owner)
        self.nodes[node.number] = node
        if node.has_effect or kind == "child":
            node.undo = self._chance.choice([None, "function", "job"])
        if kind == "gather":
            node.branches = [self._line(depth + 1, owner) for _ in range(self._chance.randint(2, 3))]
        elif kind in ("child", "failing child"):
            node.branches = [self._line(depth + 1, node.number)]
        return node

    def _line(self, depth: int, owner: int | None) -> list[Node]:
        return [self._node(depth, owner) for _ in range(self._chance.randint(1, 3))]

    def within(self, steps: list[Node], *, children: bool) -> Iterator[Node]:
        """These and what is in them; of children if wanted."""
        for node in steps:
            yield node
            if node.kind == "gather" or children:
                for branch in node.branches:
                    yield from self.within(branch, children=children)

    def failing(self, node: Node) -> set[int]:
        """The children in which it is, and which undo it when they fail."""
        if node.owner is None:
            return set()
        child = self.nodes[node.owner]
        return self.failing(child) | ({child.number} if child.kind == "failing child" else set())

    def orders(self, steps: list[Node] | None = None) -> Iterator[tuple[Node, Node]]:
        """What comes before what, whenever the code is run."""
        steps = self.steps if steps is None else steps
        for place, node in enumerate(steps):
            before = list(self.within([node], children=True))
            for after in self.within(steps[place + 1 :], children=True):
                yield from ((each, after) for each in before)
            for branch in node.branches:
                yield from self.orders(branch)
