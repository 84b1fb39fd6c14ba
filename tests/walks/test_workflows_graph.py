"""`lateshift workflows graph`: of a program's code, and of a run that stands in the store, on both stores."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lateshift import Flow
from lateshift.cli import exits
from lateshift.model.workflow.graph import NODES_MOST
from lateshift.testing import Kit
from tests.walks.commands import Cli
from tests.walks.workflow_shop import Shop, shop_on, short

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fulfilment.py"
PAGE = ROOT / "docs" / "workflows.md"


@pytest.fixture
def shop(cli: Cli, store_url: str) -> Iterator[Shop]:
    with shop_on(store_url) as shop:
        yield shop


@pytest.fixture
def kit(shop: Shop) -> Kit:
    return shop.kit


def steps_of(document: Any) -> list[tuple[str, str, str | None]]:
    return [
        (node["kind"], node["label"], node["state"])
        for node in document["nodes"]
        if node["kind"] not in ("start", "gather", "join")
    ]


# -- of code -----------------------------------------------------------------------------------------------------------


def test_what_the_guide_shows_is_what_the_command_prints(cli: Cli) -> None:
    said = cli("workflows", "graph", "fulfil", str(EXAMPLE))
    assert (said.code, said.err) == (0, "")
    assert f"```mermaid\n{said.out}```" in PAGE.read_text()


def test_a_workflow_is_drawn_as_a_picture_and_as_data(cli: Cli, tmp_path: Path) -> None:
    picture = cli("workflows", "graph", "fulfil", str(EXAMPLE), "--format", "svg")
    assert ElementTree.fromstring(picture.out).tag.endswith("svg")
    document = cli("workflows", "graph", "fulfil", str(EXAMPLE), "--json").document
    assert cli("workflows", "graph", "fulfil", str(EXAMPLE), "--format", "json").document == document
    assert document["name"] == "fulfil"
    assert document["nodes"][2] == {
        "id": "n3", "kind": "task", "label": "charge_card", "calls": "charge_card", "queue": "payments", "undo": "refund", "note": None,
        "state": None, "step": None,
    }  # fmt: skip
    assert document["edges"][2] == {"source": "n3", "target": "n4", "label": None, "failure": False}


@pytest.mark.parametrize("form", ["mermaid", "svg", "json"])
def test_it_is_written_to_a_file(cli: Cli, tmp_path: Path, form: str) -> None:
    printed = cli("workflows", "graph", "fulfil", str(EXAMPLE), "--format", form)
    said = cli("workflows", "graph", "fulfil", str(EXAMPLE), "--format", form, "--output", "graph.out")
    assert (said.code, said.out) == (0, "")
    assert said.err == "graph.out has 6 nodes and 5 edges.\n"
    assert (tmp_path / "graph.out").read_text() == printed.out


@pytest.mark.parametrize(
    ("name", "form"),
    [("g.svg", "svg"), ("g.SVG", "svg"), ("g.json", "json"), ("g.mmd", "mermaid"), ("g.md", "mermaid"), ("g.txt", "mermaid")],
)  # fmt: skip
def test_the_ending_of_the_file_says_what_is_written_unless_the_format_is_given(
    cli: Cli, tmp_path: Path, name: str, form: str
) -> None:
    printed = cli("workflows", "graph", "fulfil", str(EXAMPLE), "--format", form).out
    assert cli("workflows", "graph", "fulfil", str(EXAMPLE), "--output", name).code == 0
    assert (tmp_path / name).read_text() == printed
    cli("workflows", "graph", "fulfil", str(EXAMPLE), "--output", name, "--format", "mermaid")
    assert (tmp_path / name).read_text().startswith("flowchart")


def test_a_graph_of_code_needs_no_store(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LATESHIFT_STORE", f"sqlite:///{tmp_path / 'none.db'}")
    assert cli("workflows", "graph", "fulfil", str(EXAMPLE)).code == 0
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Give the name of a workflow and the program that has it"),
        (["fulfil"], "Give the name of a workflow and the program that has it"),
        (["fulfil", str(EXAMPLE), "--run", "abcd"], "or a run: --run ID"),
        (["fulfi", str(EXAMPLE)], "fulfilment has no workflow fulfi. Did you mean fulfil?"),
        (["charge_card", str(EXAMPLE)], "charge_card is a task, not a workflow"),
        ([str(EXAMPLE), "fulfil"], f"The name of the workflow comes first: lateshift workflows graph fulfil {EXAMPLE}."),
        (["fulfil", "none.py"], "There is no file none.py"),
        (["fulfil", str(EXAMPLE), "--json", "--format", "svg"], "--json and --format svg exclude one another"),
        (["fulfil", str(EXAMPLE), "--format", "png"], "png"),
        (["fulfil", str(EXAMPLE), "--output", "none/graph.mmd"], "--output none/graph.mmd cannot be written: No such file or directory."),
    ],
    ids=["nothing", "no program", "both", "misspelt", "task", "swapped", "no file", "two forms", "no form", "no folder"],
)  # fmt: skip
def test_what_is_wrong_is_said(cli: Cli, arguments: list[str], told: str) -> None:
    said = cli("workflows", "graph", *arguments)
    assert said.code == exits.USAGE
    assert told in said.err
    assert said.out == ""


def test_a_program_whose_source_has_gone_says_so(cli: Cli, tmp_path: Path) -> None:
    program = tmp_path / f"vanishing_shop_{tmp_path.name}.py"
    shutil.copy(EXAMPLE, program)
    assert cli("workflows", "graph", "fulfil", str(program)).code == 0
    program.write_text("# nothing is left\n")
    said = cli("workflows", "graph", "fulfil", str(program))
    assert said.code == exits.USAGE
    assert "The graph of fulfil cannot be read from its code." in said.err
    assert "has changed since it was imported" in said.err


# -- of a run ----------------------------------------------------------------------------------------------------------


def ways_of(document: Any) -> list[tuple[str, str]]:
    names = {node["id"]: node["label"] for node in document["nodes"]}
    return [(names[edge["source"]], names[edge["target"]]) for edge in document["edges"]]


def test_a_run_is_drawn_as_it_went_with_its_branches_side_by_side(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.parted.enqueue(7)
    kit.drain()
    document = cli("workflows", "graph", "--run", short(job), "--json").document
    assert document["name"] == "parted"
    assert steps_of(document) == [
        ("step", "do", "completed"), ("sleep", "sleep", "waiting"), ("step", "do", "completed"), ("task", "pack", "running"),
        ("step", "do", "completed"), ("task", "pack", "running"),
    ]  # fmt: skip
    assert ways_of(document) == [
        ("parted", "do"), ("do", "together"), ("together", "sleep"), ("together", "do"), ("together", "do"), ("sleep", "all have ended"),
        ("do", "pack"), ("pack", "all have ended"), ("do", "pack"), ("pack", "all have ended"),
    ]  # fmt: skip


def test_steps_that_were_asked_for_before_a_gather_are_its_branches_and_those_that_were_done_are_not(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    async def nothing() -> None: ...

    @kit.app.workflow
    async def mixed(flow: Flow) -> None:
        await flow.step(shop.do, "first", name="first")
        await flow.gather(flow.step(shop.do, "a", name="a"), nothing(), flow.step(shop.do, "b", name="b"))
        await flow.step(shop.do, "last", name="last")
        await flow.gather(nothing(), nothing())

    job = mixed.enqueue()
    kit.drain()
    assert ways_of(cli("workflows", "graph", "--run", str(job.id), "--json").document) == [
        ("mixed", "first"), ("first", "together"), ("together", "a"), ("together", "b"), ("a", "all have ended"), ("b", "all have ended"),
        ("all have ended", "last"), ("last", "completed"),
    ]  # fmt: skip


def test_steps_that_run_at_the_same_time_stand_side_by_side(cli: Cli, kit: Kit, shop: Shop) -> None:
    @kit.app.workflow
    async def both(flow: Flow) -> None:
        await asyncio.gather(flow.step(shop.pack, 1), flow.step(shop.pack, 2))
        await flow.step(shop.do, "last", name="last")

    job = both.enqueue()
    kit.drain()  # nobody packs
    assert ways_of(cli("workflows", "graph", "--run", str(job.id), "--json").document) == [
        ("both", "together"), ("together", "pack"), ("together", "pack"), ("pack", "all have ended"), ("pack", "all have ended"),
    ]  # fmt: skip


def test_each_step_has_its_state_and_what_undoes_it(cli: Cli, kit: Kit, shop: Shop) -> None:
    failed, held, waiting = shop.failing.enqueue(), shop.paying.enqueue("old"), shop.approval.enqueue(7)
    kit.drain()
    document = cli("workflows", "graph", "--run", str(failed.id), "--json").document
    assert steps_of(document) == [
        ("step", "do", "undone"), ("step", "do", "undo failed"), ("step", "fail", "failed"), ("fail", "compensation failed", None),
    ]  # fmt: skip
    assert [node["undo"] for node in document["nodes"]] == [None, "undo", "refund", None, None]
    assert steps_of(cli("workflows", "graph", "--run", str(held.id), "--json").document)[1:] == [
        ("step", "charge", "held")
    ]
    assert steps_of(cli("workflows", "graph", "--run", str(waiting.id), "--json").document)[1:] == [
        ("wait", "wait for approve", "waiting")
    ]
    text = cli("workflows", "graph", "--run", str(failed.id)).out
    assert 'n2["do<br/>undo: undo<br/>undone"]:::undone' in text
    assert 'n4["fail<br/>failed"]:::failed' in text
    assert "classDef undone" in text
    picture = cli("workflows", "graph", "--run", str(failed.id), "--format", "svg").out
    assert 'class="node failed"' in picture
    assert "undo failed" in picture


def test_a_run_that_has_ended_says_how_and_what_it_had_begun_was_given_up(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    done, cancelled = shop.paying.enqueue("good"), shop.approval.enqueue(7)
    kit.drain()
    cancelled.cancel()
    kit.drain()
    assert steps_of(cli("workflows", "graph", "--run", str(done.id), "--json").document)[-1] == (
        "end",
        "completed",
        None,
    )
    assert steps_of(cli("workflows", "graph", "--run", str(cancelled.id), "--json").document) == [
        ("step", "do", "undone"), ("wait", "wait for approve", "given up"), ("fail", "cancelled", None),
    ]  # fmt: skip


def test_a_run_of_a_child_says_so_and_patches_and_times_are_no_steps(cli: Cli, kit: Kit, shop: Shop) -> None:
    @kit.app.workflow
    async def mixed(flow: Flow) -> None:
        flow.now()
        if flow.patched("new"):
            await flow.emit("shop.opened")
        await flow.child(shop.parted, 7)

    job = mixed.enqueue()
    kit.drain()
    assert steps_of(cli("workflows", "graph", "--run", str(job.id), "--json").document) == [
        ("emit", "emit shop.opened", "completed"), ("child", "parted", "running"),
    ]  # fmt: skip


def test_of_a_long_run_the_first_steps_are_drawn_and_the_others_counted(cli: Cli, kit: Kit) -> None:
    many = NODES_MOST // 2 + 7

    @kit.app.workflow
    async def long(flow: Flow) -> None:
        for number in range(many):
            await flow.step(str, number)

    job = long.enqueue()
    kit.drain()
    document = cli("workflows", "graph", "--run", str(job.id), "--json").document
    assert len(document["nodes"]) == NODES_MOST // 2 + 3
    assert steps_of(document)[-2:] == [("unknown", "and 7 steps more", None), ("end", "completed", None)]


def test_a_job_that_is_no_run_is_not_drawn(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.plain.enqueue(1)
    kit.drain()
    said = cli("workflows", "graph", "--run", str(job.id))
    assert said.code == exits.NOT_FOUND
    assert "is no workflow" in said.err
    assert said.out == ""
