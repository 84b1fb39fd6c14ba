"""Runs that are held, on both stores: for each reason it is said what helps, wherever it is asked."""

from datetime import timedelta
from typing import Any

import pytest

from lateshift import Flow, Lateshift, Permanent
from lateshift.cli.workflow_tree import StepTree
from lateshift.cli.workflow_view import remedies
from lateshift.handle import Job
from lateshift.model.explaining.explain import explain
from lateshift.model.workflow.holding import INVALID, NO_FIT, Cause, held
from lateshift.model.workflow.run import Phase, RunView
from lateshift.testing import Kit
from lateshift.workflow.graph.recorded import recorded
from tests.api.asking import Web
from tests.api.conftest import web
from tests.dashboard.browsing import Browser

__all__ = ["web"]

WHAT_HELPS = "Send another signal picked, with data of that type, and resume the run; or undo it."


@pytest.fixture
def shop(app: Lateshift) -> Any:
    """Its kit is opened when this is declared."""

    @app.workflow(queue="orders")
    async def picking(flow: Flow, number: int) -> str:
        await flow.step(stock, undo=back)
        who: str = await flow.wait_for("picked", type=str)
        return who

    def stock() -> str:
        return "on the shelf"

    def back() -> None: ...

    @app.workflow(queue="orders", on_failure="hold")
    async def paying(flow: Flow, number: int) -> None:
        await flow.step(charge)

    def charge() -> None:
        raise Permanent("no such card")

    return {"picking": picking, "paying": paying}


@pytest.fixture
def told_wrong(kit: Kit, shop: Any) -> Job[str]:
    run: Job[str] = shop["picking"].enqueue(1)
    kit.drain()
    kit.app.signal(run.id, "picked", 5)
    kit.drain()
    return run


def view_of(kit: Kit, run: Job[Any]) -> RunView:
    view = kit.app.store.workflows.view(run.id)
    assert view is not None
    return view


def test_a_run_that_was_told_something_of_the_wrong_type_says_that_another_signal_helps_and_no_step(
    kit: Kit, browser: Browser, told_wrong: Job[str]
) -> None:
    page = browser.look("/")
    assert "the signal picked came with 5" in page
    assert WHAT_HELPS in page
    assert "Resubmit the step" not in page
    page = browser.look(f"/workflows/{told_wrong.id}")
    assert "It waits for you" in page
    assert WHAT_HELPS in page
    facts = kit.app.store.reports.facts(told_wrong.id)
    assert facts is not None
    [reason] = [reason for reason in explain(facts).reasons if reason.code == "workflow_held"]
    assert (
        reason.clears_when
        == "when somebody sends another signal picked, with data of that type, and resumes it; or has it undone"
    )
    said = list(remedies(view_of(kit, told_wrong)))
    assert "picked --data JSON" in said[0]
    assert "resume" in said[1]


def test_the_step_that_waits_for_another_signal_is_drawn_as_held(
    kit: Kit, browser: Browser, told_wrong: Job[str]
) -> None:
    graph = recorded(view_of(kit, told_wrong), "held")
    assert [node.state for node in graph.nodes if node.label == "wait for picked"] == ["held"]
    browser.look(f"/workflows/{told_wrong.id}")
    assert browser.page is not None
    assert browser.page.text.count("wait for picked") >= 2
    assert '<span class="state waiting">' not in browser.page.text
    tree = StepTree(view_of(kit, told_wrong), tracebacks=False).drawn()
    assert [str(child.label).split("  ")[0] for child in tree.children][1] == "! 2 wait for picked held"


def test_a_signal_to_a_run_that_is_held_says_that_it_is_taken_when_the_run_is_resumed(
    kit: Kit, web: Web, browser: Browser, told_wrong: Job[str]
) -> None:
    done = web("POST", f"/v1/workflows/{told_wrong.id}/signal", {"name": "picked", "data": "ann"}).json()
    assert (done["changed"], done["state"]) == (True, "held")
    browser.look(f"/workflows/{told_wrong.id}")
    browser.send(f"/workflows/{told_wrong.id}/signal", {"name": "other"})
    assert "The run is told other." in browser.text
    assert "It is held, and takes it when you resume it." in browser.text
    kit.drain()
    browser.send(f"/workflows/{told_wrong.id}/resume")
    kit.drain()
    assert kit.result(told_wrong) == "ann"


def test_a_run_that_is_held_by_a_step_says_to_resubmit_the_step(
    kit: Kit, browser: Browser, shop: Any
) -> None:
    run = shop["paying"].enqueue(1)
    kit.drain()
    assert "Resubmit the step, or undo the run." in browser.look("/")
    assert "no such card" in browser.look(f"/workflows/{run.id}")


@pytest.mark.parametrize(
    ("phase", "why", "cause", "says"),
    [
        (Phase.HELD, f"{NO_FIT}at step 2 it has recorded charge", Cause.CODE, "Deploy code that fits, and resume the run."),
        (Phase.HELD, f"{INVALID}a step was never awaited", Cause.CODE, "Deploy code that fits, and resume the run."),
        (Phase.UNDO_HELD, "no; at step 2", Cause.CODE, "Deploy code that fits, and resume the run: what it did is undone then."),
        (Phase.HELD, "step 2 charge failed: Permanent: no", Cause.STEP, "Resubmit the step, or undo the run."),
        (Phase.HELD, "the signal a b came with 5, and the code wants str", Cause.SIGNAL,
         "Send another signal a b, with data of that type, and resume the run; or undo it."),
        (Phase.HELD, "we look at it first", Cause.SOMEBODY, "Resume the run, or undo it."),
    ],
)  # fmt: skip
def test_each_reason_why_a_run_is_held_has_its_own_advice(
    phase: Phase, why: str, cause: Cause, says: str
) -> None:
    found = held(phase, why)
    assert found is not None
    assert (found.cause, found.advice) == (cause, says)
    assert held(Phase.FORWARD, why) is None


def test_a_step_that_held_its_run_is_given_up_when_the_run_has_ended(
    kit: Kit, browser: Browser, shop: Any
) -> None:
    run = shop["paying"].enqueue(1)
    kit.drain()
    kit.app.store.jobs.cancel([run.id], by="ann")
    kit.drain()
    view = view_of(kit, run)
    assert view.state.settled
    assert [node.state for node in recorded(view, "cancelled").nodes if node.label == "charge"] == [
        "given up"
    ]
    tree = StepTree(view, tracebacks=False).drawn()
    assert str(tree.children[0].label).startswith("– 1 charge() given up")
    browser.look(f"/workflows/{run.id}")
    assert "given up" in browser.text
    assert browser.page is not None
    assert 'class="state held"' not in browser.page.text


def test_a_run_is_told_as_held_since_its_step_failed_not_since_it_began(
    kit: Kit, web: Web, shop: Any, told_wrong: Job[str]
) -> None:
    began = view_of(kit, told_wrong).run.started_at
    kit.travel(hours=3)
    run = shop["paying"].enqueue(1)
    kit.drain()
    held_at = view_of(kit, run).steps[0].ended_at
    kit.travel(hours=2)
    told = {it["subject"]: it["since"] for it in web("GET", "/v1/overview").json()["attention"]}
    assert held_at is not None
    assert told["paying"] == held_at.isoformat().replace("+00:00", "Z")
    assert told["picking"] >= began.isoformat()
    assert held_at - began > timedelta(hours=2)
