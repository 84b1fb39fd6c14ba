"""What a drawing of a workflow is made of. Plain data: how it is read from code is elsewhere, and how it is drawn, too."""

from enum import StrEnum

from msgspec import Struct

NODES_MOST = 400  # in one graph; Mermaid draws no more than 500 edges
LABEL_MOST = 200  # characters of what stands in a node, or at an edge


class NodeKind(StrEnum):
    """What stands at one place of a graph."""

    START = "start"
    END = "end"
    FAIL = "fail"  # the code raises, and nobody catches it
    STEP = "step"  # a function, run by the workflow's own worker
    TASK = "task"  # a job of its own
    CHILD = "child"  # another workflow
    SLEEP = "sleep"
    WAIT = "wait"  # for a signal
    EMIT = "emit"
    GATHER = "gather"  # from here on several at once
    JOIN = "join"  # all of them have ended
    BRANCH = "branch"
    LOOP = "loop"
    UNKNOWN = "unknown"  # something that is decided at run time


class Node(Struct, frozen=True, kw_only=True):
    """`calls`: the name of the function, task or workflow that runs, where that is known. `queue`: of a task. `undo`: the name of what undoes
    it. `state` and `step`: in the graph of a run, what became of it, and its number there."""

    id: str
    kind: NodeKind
    label: str
    calls: str | None = None
    queue: str | None = None
    undo: str | None = None
    note: str | None = None
    state: str | None = None
    step: str | None = None

    @property
    def lines(self) -> list[str]:
        """What is written in it."""
        queue = None if self.queue is None else f"queue {self.queue}"
        undo = None if self.undo is None else f"undo: {self.undo}"
        return [line for line in (self.label, self.note, queue, undo, self.state) if line]


class Edge(Struct, frozen=True, kw_only=True):
    """What follows. `failure`: only if the source has failed, and somebody catches that."""

    source: str
    target: str
    label: str | None = None
    failure: bool = False
