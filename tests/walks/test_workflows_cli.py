"""`lateshift workflows list` and `show`, and what is said of a job that is no run, on both stores."""

import re
from collections.abc import Iterator
from uuid import UUID

import pytest

from lateshift.cli import exits
from lateshift.model.ids import new_job_id
from lateshift.operating import runs
from lateshift.testing import Kit
from tests.walks.commands import Cli
from tests.walks.workflow_shop import Shop, shop_on, short


@pytest.fixture
def shop(cli: Cli, store_url: str) -> Iterator[Shop]:
    with shop_on(store_url) as shop:
        yield shop


@pytest.fixture
def kit(shop: Shop) -> Kit:
    return shop.kit


def line_of(out: str, start: str) -> str:
    [found] = [line for line in out.splitlines() if line.startswith(start)]
    return found


def test_the_list_says_what_each_is_at_and_what_it_waits_for_the_newest_first(
    cli: Cli, kit: Kit, shop: Shop
) -> None:
    jobs = [shop.approval.enqueue(7), shop.paying.enqueue("old"), shop.paying.enqueue("good")]
    kit.drain()
    said = cli("workflows", "list")
    assert said.code == 0
    lines = [line.split() for line in said.out.splitlines()[2:]]
    assert [line[:3] for line in lines] == [
        [short(jobs[2]), "paying", "completed"], [short(jobs[1]), "paying", "held"], [short(jobs[0]), "approval", "waiting"],
    ]  # fmt: skip
    assert "waits for the boss; waits for the signal approve" in said.out
    assert "step 2 charge failed: Permanent: the card is old" in said.out
    document = cli("workflows", "list", "--json").document
    assert [run["id"] for run in document["runs"]] == [str(job.id) for job in reversed(jobs)]
    last = document["runs"][-1]
    assert (last["workflow"], last["version"], last["state"], last["phase"]) == (
        "approval",
        "2.3.1",
        "waiting",
        "forward",
    )
    assert (last["status"], last["waits_for"], last["next_look_at"]) == (
        "waits for the boss",
        "the signal approve",
        None,
    )


def test_the_list_is_narrowed_by_workflow_and_state_and_paged(cli: Cli, kit: Kit, shop: Shop) -> None:
    paid = [shop.paying.enqueue(card) for card in ("old", "good", "old", "good")]
    shop.approval.enqueue(7)
    failed = shop.failing.enqueue()
    kit.drain()

    def ids(*arguments: str) -> list[str]:
        return [run["id"] for run in cli("workflows", "list", *arguments, "--json").document["runs"]]

    assert ids("--state", "held") == [str(paid[2].id), str(paid[0].id)]
    assert ids("--state", "completed", "--name", "paying") == [str(paid[3].id), str(paid[1].id)]
    assert ids("--state", "compensation_failed") == [str(failed.id)]
    assert ids("--name", "paying", "--limit", "3", "--before", short(paid[3])) == [
        str(job.id) for job in (paid[2], paid[1], paid[0])
    ]
    first = cli("workflows", "list", "--state", "held", "--limit", "1", "--json").document
    assert first["next_before"] == str(paid[2].id)
    assert ids("--state", "held", "--before", first["next_before"]) == [str(paid[0].id)]
    assert (
        f"More: add --before {paid[2].id}" in cli("workflows", "list", "--state", "held", "--limit", "1").out
    )


def test_a_state_is_looked_for_in_pages_and_where_that_ends_is_said(
    cli: Cli, kit: Kit, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PAGE", 2)
    waiting = shop.approval.enqueue(1)
    [shop.paying.enqueue("good") for _ in range(5)]
    kit.drain()
    assert short(waiting) in cli("workflows", "list", "--state", "waiting").out
    monkeypatch.setattr(runs, "LOOKED_AT", 4)
    said = cli("workflows", "list", "--state", "waiting").out
    assert short(waiting) not in said
    assert "More: add --before" in said


def test_a_list_of_nothing_says_what_there_is(cli: Cli, kit: Kit, shop: Shop) -> None:
    assert "@app.workflow" in cli("workflows", "list").out
    shop.paying.enqueue("good")
    kit.drain()
    assert cli("workflows", "list", "--name", "payng").out == "No runs of payng. Did you mean paying?\n"
    assert cli("workflows", "list", "--state", "worker_lost").out == "No run in the state worker lost.\n"
    assert cli("workflows", "list", "--state", "flying").code == exits.USAGE


def test_one_is_shown_with_its_steps_as_a_tree(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.parted.enqueue(7)
    kit.drain()
    said = cli("workflows", "show", short(job))
    assert said.code == 0
    assert said.out.startswith("parted is waiting\n")
    assert line_of(said.out, "arguments").split() == ["arguments", '{"order":', "7}"]
    tree = said.out[said.out.index("steps\n") :].splitlines()
    shape = [
        re.split(r"  (?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d", line)[0] for line in tree
    ]  # before the time it began
    assert '├── ✓ 1 do("stock")' in shape[1]
    assert "├── ▸ 2 sleep waiting" in shape[2]
    assert shape[3] == "└── together 3.1"
    assert shape[4] == "    ├── branch 3.1.1"
    assert shape[5] == '    │   ├── ✓ 3.1.1.1 do("left")'
    assert shape[6].startswith("    │   └── ▸ 3.1.1.2 pack(order=7) ready")
    assert "was paused by" in shape[7]  # what keeps it
    assert shape[10].startswith("        └── ▸ 3.1.2.2 pack(order=7) ready")
    view = kit.app.store.workflows.view(job.id)
    assert view is not None
    steps = {step.path: step.job for step in view.steps}
    packed = steps["00003.00001.00001.00002"]
    assert packed is not None
    assert f"job …{str(packed)[-6:]}" in tree[6]


def test_a_failed_step_says_why_in_a_line_and_whole_if_asked(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.failing.enqueue()
    kit.drain()
    said = cli("workflows", "show", str(job.id)).out
    assert said.startswith("failing is compensation failed\n")
    assert "✗ 3 fail() failed" in said
    assert "ValueError: no van will come" in said
    assert "↶ undone by undo at" in said
    assert "↶ undo failed by refund, 1 failure" in said
    assert "Permanent: the bank says no" in said
    assert "Traceback" not in said
    assert f"Try again: lateshift workflows resume {short(job)}" in said
    whole = cli("workflows", "show", str(job.id), "--traceback").out
    assert whole.count("Traceback (most recent call last)") == 2
    assert 'raise ValueError("no van will come")' in whole


def test_everything_of_one_as_json(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.failing.enqueue()
    kit.drain()
    document = cli("workflows", "show", str(job.id), "--json").document
    assert (document["id"], document["state"], document["phase"]) == (
        str(job.id),
        "compensation_failed",
        "undoing",
    )
    assert document["why"] == "StepFailed: fail: ValueError: no van will come"
    assert (document["arguments"], document["result"], document["signals"]) == ({}, None, [])
    stock, card, fail = document["steps"]
    assert (stock["step"], stock["kind"], stock["name"], stock["state"]) == ("1", "call", "do", "completed")
    assert (stock["arguments"], stock["result"], stock["mended"]) == ({"args": ["stock"]}, "did stock", False)
    assert (stock["undo"], stock["undo_state"], stock["undo_error"]) == ("undo", "undone", None)
    assert (card["undo_state"], card["undo_failures"], card["undone_at"]) == ("undo failed", 1, None)
    assert (card["undo_error"]["error"], card["undo_error"]["message"]) == ("Permanent", "the bank says no")
    assert (fail["state"], fail["failures"], fail["undo_state"]) == ("failed", 1, None)
    assert (fail["error"]["error"], fail["error"]["message"]) == ("ValueError", "no van will come")
    assert "Traceback" in fail["error"]["traceback"]


def test_a_child_names_its_parent_and_the_job_of_a_step_its_run(cli: Cli, kit: Kit, shop: Shop) -> None:
    job = shop.parent.enqueue(7)
    kit.drain()
    [step] = cli("workflows", "show", str(job.id), "--json").document["steps"]
    assert (step["kind"], step["name"]) == ("child", "parted")
    assert "child parted(order=7) running" in cli("workflows", "show", str(job.id)).out
    child = cli("workflows", "show", step["job"], "--json").document
    assert child["parent"] == str(job.id)
    assert f"parent     {job.id}" in cli("workflows", "show", step["job"]).out
    packed = child["steps"][-1]["job"]
    said = cli("jobs", "show", packed)
    assert f"workflow   {child['id']}" in said.out
    assert "batch" not in said.out
    document = cli("jobs", "show", packed, "--json").document
    assert (document["workflow"], document["batch"]) == (child["id"], None)


def test_a_run_of_a_batch_says_so(cli: Cli, kit: Kit, shop: Shop) -> None:
    batch = kit.app.batch([shop.paying.call("good")])
    kit.drain()
    [run] = cli("workflows", "list", "--json").document["runs"]
    assert run["parent"] == str(batch.id)
    assert f"batch      {batch.id}" in cli("workflows", "show", run["id"]).out


# -- what is no run ----------------------------------------------------------------------------------------------------

WITH_AN_ID = (["show"], ["resume"], ["undo", "--why", "no"], ["resubmit-step", "1"])


def ask(cli: Cli, command: list[str], id: UUID) -> tuple[int, str]:
    said = cli("workflows", command[0], str(id), *command[1:])
    return said.code, said.err


@pytest.mark.parametrize("command", WITH_AN_ID, ids=lambda command: command[0])
def test_a_job_that_is_no_workflow_says_so(cli: Cli, kit: Kit, shop: Shop, command: list[str]) -> None:
    job = shop.plain.enqueue(1)
    kit.drain()
    code, err = ask(cli, command, job.id)
    assert code == exits.NOT_FOUND
    assert f"The job {job.id} is no workflow: it is a job of the task plain." in err


@pytest.mark.parametrize("command", WITH_AN_ID, ids=lambda command: command[0])
def test_a_run_that_has_not_begun_says_so(cli: Cli, kit: Kit, shop: Shop, command: list[str]) -> None:
    job = shop.approval.enqueue(7)
    code, err = ask(cli, command, job.id)
    assert code == exits.NOT_FOUND
    assert f"The job {job.id} of approval has not begun." in err
    said = cli("workflows", "cancel", str(job.id))
    assert (said.code, f"To cancel it: lateshift jobs cancel {job.id}" in said.err) == (exits.NOT_FOUND, True)


@pytest.mark.parametrize("command", WITH_AN_ID, ids=lambda command: command[0])
def test_an_id_that_is_nowhere_is_unknown(cli: Cli, kit: Kit, shop: Shop, command: list[str]) -> None:
    code, err = ask(cli, command, new_job_id())
    assert (code, "There is no run" in err) == (exits.NOT_FOUND, True)
    assert cli("workflows", "show", "abcdef12").code == exits.NOT_FOUND
    said = cli("workflows", "show", "12")
    assert (said.code, "'12' is no run id. `lateshift workflows list` shows them" in said.err) == (
        exits.USAGE,
        True,
    )


# -- why it does not run -----------------------------------------------------------------------------------------------


def test_a_run_that_sleeps_explains_what_it_waits_for(cli: Cli, kit: Kit, shop: Shop) -> None:
    waiting, held = shop.approval.enqueue(7), shop.paying.enqueue("old")
    kit.drain()
    said = cli("jobs", "explain", str(waiting.id))
    assert "workflow_waits" in said.out
    assert "Its workflow waits for the signal approve." in said.out
    why = {reason.code: reason for reason in held.explain().reasons}
    assert why["workflow_held"].says.startswith("Its workflow is held: step 2 charge failed: Permanent")
    assert why["workflow_held"].do == f"lateshift workflows show {held.id}"
