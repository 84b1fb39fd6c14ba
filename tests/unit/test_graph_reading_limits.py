"""What is kept of the graph of a workflow, its limits, and what cannot be read."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest

from lateshift import Flow
from lateshift.errors import WorkflowInvalid
from lateshift.model.workflow.graph import LABEL_MOST, NODES_MOST, NodeKind
from lateshift.workflow.graph.reading import read
from lateshift.workflow.graph.source import NESTED_MOST
from lateshift.workflow.graph.steps import HELPERS_DEEP, HELPERS_MOST
from tests.unit.graph_shop import CHOSEN, LONG, a, app, charge, drawn, packing, shop


def test_the_workflow_itself_gives_its_graph_with_what_each_step_calls() -> None:
    @app.workflow(name="orders.fulfil")
    async def fulfil(flow: Flow, order: int) -> None:
        await flow.step(charge, order, name="pay")
        await flow.child(packing, order)
        await flow.step(shop.pack, order)

    graph = fulfil.graph()
    assert graph.name == "orders.fulfil"
    assert [(node.kind.value, node.label, node.calls, node.queue) for node in graph.nodes] == [
        ("start", "orders.fulfil", None, None),
        ("task", "pay", "charge", "payments"),
        ("child", "packing", "packing", None),
        ("step", "pack", "pack", None),
        ("end", "end", None, None),
    ]


def test_names_from_around_the_workflow_are_known_and_a_name_of_its_own_hides_them() -> None:
    later: Callable[..., Any]

    async def part(flow: Flow) -> None:
        await flow.step(charge, 7)

    @app.workflow(name="inner")
    async def inner(flow: Flow, charge: Callable[..., Any]) -> None:
        await part(flow)
        await flow.step(charge)
        await flow.step(later)

    assert drawn(inner.graph()) == [
        "START -> task charge on payments",
        f"task charge on payments -> charge {CHOSEN}",
        f"charge {CHOSEN} -> later {CHOSEN}",
        f"later {CHOSEN} -> END",
    ]
    later = a
    assert "a -> END" in drawn(inner.graph())


def test_a_decorated_workflow_is_read_as_it_was_written() -> None:
    def timed(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return wrapper

    @timed
    async def workflow(flow: Flow) -> None:
        await flow.step(a)

    assert drawn(read("workflow", workflow)) == ["START -> a", "a -> END"]


def test_code_without_a_file_has_no_graph_and_the_error_says_what_to_do() -> None:
    names: dict[str, Any] = {"Flow": Flow, "a": a}
    exec("async def typed(flow: Flow) -> None:\n    await flow.step(a)", names)
    workflow = app.workflow(name="typed")(names["typed"])
    with pytest.raises(
        WorkflowInvalid, match=r"graph of typed cannot be read.*<string> is not there.*--run ID"
    ):
        workflow.graph()


def test_a_file_that_has_changed_since_is_told(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "changing_shop.py"
    file.write_text("async def fulfil(flow):\n    await flow.step(print)\n")
    monkeypatch.syspath_prepend(tmp_path)
    import changing_shop  # type: ignore[import-not-found]

    assert drawn(read("fulfil", changing_shop.fulfil)) == ["START -> print", "print -> END"]
    file.write_text("# a line more, and another size\nasync def fulfil(flow):\n    await flow.step(print)\n")
    with pytest.raises(WorkflowInvalid, match="has changed since it was imported"):
        read("fulfil", changing_shop.fulfil)


def test_helpers_are_followed_so_deep_and_no_deeper(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    last = HELPERS_DEEP + 2
    lines = [f"async def f{number}(flow):\n    await f{number + 1}(flow)\n" for number in range(last)]
    (tmp_path / "deep_shop.py").write_text(
        "".join(lines) + f"async def f{last}(flow):\n    await flow.step(print)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import deep_shop  # type: ignore[import-not-found]

    told = f"f{HELPERS_DEEP + 1}(…) (not followed so deep)"
    assert drawn(read("f0", deep_shop.f0)) == [f"START -> {told}", f"{told} -> END"]
    assert drawn(read("f2", deep_shop.f2)) == ["START -> print", "print -> END"]


def test_a_graph_has_at_most_so_many_nodes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, steps in (("large_shop", NODES_MOST - 2), ("huge_shop", NODES_MOST)):
        text = "async def fulfil(flow):\n" + "    await flow.step(print)\n" * steps
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import huge_shop  # type: ignore[import-not-found]
    import large_shop  # type: ignore[import-not-found]

    assert len(read("large", large_shop.fulfil).nodes) == NODES_MOST
    with pytest.raises(WorkflowInvalid, match=f"huge has more than {NODES_MOST} nodes.*flow.child"):
        read("huge", huge_shop.fulfil)


def test_what_grows_with_each_line_is_refused_before_it_takes_long(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passing = "".join(
        f"async def f{level}(flow):\n" + f"    await f{level + 1}(flow)\n" * 4 for level in range(9)
    )
    doubling = "".join(f"    x{level} = [x{level - 1}, x{level - 1}]\n" for level in range(1, 30))
    awaited = "".join(f"    await flow.gather(*x{level})\n" for level in range(30))
    (tmp_path / "growing_shop.py").write_text(
        f"{passing}async def f9(flow): ...\n"
        f"async def lists(flow):\n    x0 = [flow.step(print)]\n{doubling}{awaited}"
        f"async def terms(flow):\n    await flow.step(print, {' + '.join(['1'] * NESTED_MOST)})\n"
        f"async def names(flow):\n    await flow.step(print{'.x' * NESTED_MOST})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import growing_shop  # type: ignore[import-not-found]

    told = {
        "f0": f"more than {HELPERS_MOST:,} times",
        "lists": f"more than {NODES_MOST} nodes",
        "terms": f"nested more than {NESTED_MOST} deep",
        "names": f"nested more than {NESTED_MOST} deep",
    }
    for name, message in told.items():
        with pytest.raises(WorkflowInvalid, match=f"The graph of {name} .*{message}"):
            read(name, getattr(growing_shop, name))
    assert len(read("f5", growing_shop.f5).nodes) == 2


def test_a_label_has_at_most_so_many_characters() -> None:
    async def workflow(flow: Flow) -> None:
        await flow.step(a, name=LONG)

    [label] = [node.label for node in read("workflow", workflow).nodes if node.kind is NodeKind.STEP]
    assert (len(label), label[-1]) == (LABEL_MOST, "…")


def test_reading_a_graph_runs_nothing() -> None:
    done: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            done.append(name)
            raise AttributeError(name)

    watched = Watched()

    async def workflow(flow: Flow) -> None:
        done.append("the workflow")
        await flow.step(watched.step)
        await flow.step(shop.chosen)

    read("workflow", workflow)
    assert done == []
