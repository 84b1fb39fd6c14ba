"""Any workflow, made up by chance and really run: each way that it takes is there in its graph."""

import linecache
import random
from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lateshift import Graph, StepFailed
from lateshift.model.workflow.graph import NodeKind
from lateshift.workflow.graph.reading import read

RUNS = 30  # of each workflow
STEPS = 60  # after which a run is stopped: it may have no end
_files = count()


class Enough(BaseException):
    """The run has gone on for long enough."""


class Refused(Exception):
    """What the made-up code raises itself."""


class FakeFlow:
    """Notes the steps that it is asked for, and lets some of them fail."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.taken: list[str] = []

    async def step(self, function: Callable[..., Any], name: str) -> bool:
        self.taken.append(name)
        if len(self.taken) > STEPS:
            raise Enough
        if self._chance.random() < 0.25:
            raise StepFailed(name, "ValueError")
        return self._chance.random() < 0.5


# -- code --------------------------------------------------------------------------------------------------------------


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0, *, loops: bool = False) -> list[str]:
    """Lines of code. Names of steps are put in afterwards, so that each has its own."""
    found: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        found += draw(statements(depth, loops=loops))
    return found


@st.composite
def statements(draw: st.DrawFn, depth: int, *, loops: bool) -> list[str]:
    plain = [
        "STEP",
        "flag = STEP",
        "if STEP: pass",
        "STEP and STEP",
        "(STEP) if choose() else (STEP)",
        "choose()",
    ]
    leaving = ["return", "return STEP", "raise Refused", *(["break", "continue"] if loops else [])]
    kinds = (
        ["plain"] * 4
        + ["leave"]
        + (["if", "else", "for", "while", "ever", "try", "finally", "match"] if depth < 3 else [])
    )

    def inner(*, in_loop: bool = loops) -> list[str]:
        return [f"    {line}" for line in draw(blocks(depth + 1, loops=in_loop))]

    match draw(st.sampled_from(kinds)):
        case "plain":
            return [draw(st.sampled_from(plain))]
        case "leave":
            return ["if choose():", f"    {draw(st.sampled_from(leaving))}"]
        case "if":
            return ["if choose():", *inner()]
        case "else":
            return [
                f"if {draw(st.sampled_from(['choose()', 'not choose()', 'STEP']))}:",
                *inner(),
                "else:",
                *inner(),
            ]
        case "for":
            return [
                "for _ in some():",
                *inner(in_loop=True),
                *(["else:", *inner()] if draw(st.booleans()) else []),
            ]
        case "while":
            return [
                f"while {draw(st.sampled_from(['choose()', 'STEP', 'choose() and STEP']))}:",
                *inner(in_loop=True),
            ]
        case "ever":
            return ["while True:", *inner(in_loop=True), "    if choose():", "        break"]
        case "try":
            caught = draw(st.sampled_from(["StepFailed", "Refused", "(Refused, StepFailed)", "Exception"]))
            again = ["    raise"] if draw(st.integers(0, 3)) == 0 else []
            rest = ["else:", *inner()] if draw(st.booleans()) else []
            return ["try:", *inner(), f"except {caught}:", *inner(), *again, *rest]
        case "finally":
            return ["try:", *inner(), "finally:", *inner(in_loop=False)]
        case _:
            return ["match choose():", "    case True:", *(f"    {line}" for line in inner())]


def made(lines: list[str], chance: Callable[[], random.Random]) -> Callable[..., Any]:
    """The function, with a file that exists for those who read it."""
    text, numbers = "async def workflow(flow):\n" + "".join(f"    {line}\n" for line in lines), count(1)
    while "STEP" in text:
        text = text.replace("STEP", f'await flow.step(print, name="s{next(numbers)}")', 1)
    file = f"<made up {next(_files)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {
        "StepFailed": StepFailed, "Refused": Refused, "choose": lambda: chance().random() < 0.5, "some": lambda: range(chance().randint(0, 2)),
    }  # fmt: skip
    exec(compile(text, file, "exec"), names)
    workflow: Callable[..., Any] = names["workflow"]
    return workflow


# -- what is looked at -------------------------------------------------------------------------------------------------


class Ways:
    """Where one comes from a place without another step in between."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = {node.id: node for node in graph.nodes}
        self._after: dict[str, list[str]] = {}
        for edge in graph.edges:
            self._after.setdefault(edge.source, []).append(edge.target)
        self.start = graph.nodes[0].id

    def follow(self, here: str) -> dict[str, str]:
        """The next steps by their names, with the ids of their nodes; `end` and `fail` among them."""
        found: dict[str, str] = {}
        passed: set[str] = set()
        waiting = list(self._after.get(here, []))
        while waiting:
            id = waiting.pop()
            node = self._nodes[id]
            if node.kind not in (NodeKind.BRANCH, NodeKind.LOOP):
                found[node.label if node.kind is NodeKind.STEP else node.kind.value] = id
            elif id not in passed:
                passed.add(id)
                waiting += self._after.get(id, [])
        return found


@given(blocks(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=200)
def test_every_way_that_a_run_takes_is_in_the_graph(lines: list[str], seed: int) -> None:
    chance = random.Random(seed)
    workflow = made(lines, lambda: chance)
    graph = read("workflow", workflow)
    ways = Ways(graph)
    for _ in range(RUNS):
        flow, ended = FakeFlow(chance), "end"
        try:
            _run(workflow(flow))
        except Enough:
            ended = "enough"
        except StepFailed:
            ended = "a step failed"  # which is not drawn
        except Refused:
            ended = "fail"
        here = ways.start
        for name in flow.taken:
            there = ways.follow(here)
            assert name in there, f"{name} after {here} of\n" + "\n".join(lines) + f"\n{graph.mermaid()}"
            here = there[name]
        if ended in ("end", "fail"):
            assert ended in ways.follow(here), (
                f"{ended} after {here} of\n" + "\n".join(lines) + f"\n{graph.mermaid()}"
            )


def _run(code: Any) -> None:
    """Without a loop: nothing in it waits."""
    try:
        code.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")
