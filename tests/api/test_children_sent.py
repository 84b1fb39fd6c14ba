"""A run that is ended takes its children with it, and theirs, which undo what they have done: a token that is for some queues ends none of
which that would make a job in another queue."""

from typing import Any
from uuid import UUID

import pytest

from lateshift import Flow, Workflow
from lateshift.api import steps
from lateshift.model.access import Scope
from lateshift.model.workflow.step import Kind, StepState
from lateshift.testing import Kit
from tests.api.asking import SENDS, Web, token_of
from tests.api.test_runs_sent import ENDS, in_mail, refused, whole
from tests.dashboard.browsing import Browser


class Runs:
    """Of `child`, in the queue ship, the first step is undone by a task of the queue mail, and then it waits; `parent`, in the queue orders, has it
    for a step, and `grand`, in the same, has that for one. `branches` has it in one of three. Of `own` the first step is undone by a function."""

    def __init__(self, kit: Kit) -> None:
        app = kit.app

        @app.task(queue="mail")
        def recall(result: str) -> None: ...

        @app.workflow(queue="ship")
        async def child(flow: Flow) -> None:
            await flow.step(write, undo=recall)
            await flow.wait_for("sent")

        @app.workflow(queue="ship")
        async def own(flow: Flow) -> None:
            await flow.step(write, undo=burn)
            await flow.wait_for("sent")

        @app.workflow(queue="orders")
        async def parent(flow: Flow) -> None:
            await flow.step(child)
            await flow.wait_for("sent")

        @app.workflow(queue="orders")
        async def grand(flow: Flow) -> None:
            await flow.step(write)
            await flow.step(parent)

        @app.workflow(queue="orders")
        async def branches(flow: Flow) -> None:
            await flow.gather(flow.step(own), flow.step(child), flow.step(own))

        @app.workflow(queue="orders")
        async def mild(flow: Flow) -> None:
            await flow.step(own)

        def write() -> str:
            return "written"

        def burn(result: str) -> None: ...

        self.child, self.parent, self.grand, self.branches, self.mild = child, parent, grand, branches, mild


@pytest.fixture
def runs(kit: Kit) -> Runs:
    return Runs(kit)


def begun(kit: Kit, workflow: Workflow[..., Any]) -> str:
    run = workflow.enqueue()
    kit.drain()
    return str(run.id)


def child_of(web: Web, run: str) -> str:
    return str(web("GET", f"/v1/workflows/{run}").json()["steps"][0]["job"])


@pytest.mark.parametrize("name", ["parent", "grand", "branches"])
@pytest.mark.parametrize(("_", "path", "body"), ENDS, ids=[name for name, *_ in ENDS])
def test_a_run_whose_child_is_undone_by_a_task_of_another_queue_is_not_ended(
    kit: Kit, web: Web, runs: Runs, some: str, _: str, path: str, body: Any, name: str
) -> None:
    run = begun(kit, getattr(runs, name))
    assert refused(web("POST", path.format(id=run), body, token=some))
    kit.travel(seconds=5)
    kit.travel(seconds=5)
    assert (in_mail(kit), web("GET", f"/v1/workflows/{run}").json()["state"]) == (0, "waiting")
    every = token_of(kit.app, "every", SENDS, ("orders", "mail"))
    assert web("POST", path.format(id=run), body, token=every).status_code == 200
    for _turn in range(4):
        kit.travel(seconds=5)
    assert in_mail(kit) == 1


@pytest.mark.parametrize(("_", "path", "body"), ENDS, ids=[name for name, *_ in ENDS])
def test_a_run_whose_child_is_undone_by_a_function_is_ended(
    kit: Kit, web: Web, runs: Runs, some: str, _: str, path: str, body: Any
) -> None:
    run = begun(kit, runs.mild)
    assert web("POST", path.format(id=run), body, token=some).status_code == 200


def test_a_refusal_names_the_step_of_the_run_that_was_asked_for_and_nothing_below_it(
    kit: Kit, web: Web, runs: Runs, some: str
) -> None:
    run = begun(kit, runs.grand)
    said = web("POST", f"/v1/workflows/{run}/cancel", {}, token=some).json()["detail"]
    assert said.startswith(f"Step 2 parent of the run {run} would have a job made")


def test_a_child_that_has_completed_stays_as_it_is_and_its_run_is_ended(
    kit: Kit, web: Web, runs: Runs, some: str
) -> None:
    run = begun(kit, runs.parent)
    assert web("POST", f"/v1/workflows/{child_of(web, run)}/signal", {"name": "sent"}).status_code == 200
    kit.drain()
    assert web("GET", f"/v1/workflows/{run}").json()["steps"][0]["state"] == "completed"
    assert web("POST", f"/v1/workflows/{run}/cancel", {}, token=some).status_code == 200
    for _ in range(4):
        kit.travel(seconds=5)
    assert (in_mail(kit), web("GET", f"/v1/workflows/{run}").json()["state"]) == (0, "cancelled")


def test_a_bulk_leaves_out_the_runs_whose_children_it_would_not_end(
    kit: Kit, web: Web, runs: Runs, some: str
) -> None:
    left, done = begun(kit, runs.parent), begun(kit, runs.mild)
    for chosen in ({"ids": [left, done]}, {"queue": "orders"}):
        preview = web("POST", "/v1/bulk/preview", {"action": "cancel", **chosen}, token=some).json()
        assert (preview["ids"], preview["others"]) == ([done], 1)
    assert web("POST", "/v1/bulk", {"action": "cancel", "queue": "orders"}, token=some).json()["done"] == [
        done
    ]


def test_a_run_that_was_cancelled_is_not_resumed_as_it_is_undone_then_in_another_queue(
    kit: Kit, web: Web, runs: Runs, some: str
) -> None:
    run = begun(kit, runs.parent)
    kit.app.store.jobs.cancel([UUID(run)], by="ana")
    assert refused(web("POST", f"/v1/workflows/{run}/resume", {}, token=some))


def test_more_steps_than_one_request_looks_at_are_not_ended_unless_by_a_token_for_all_queues(
    kit: Kit, web: Web, runs: Runs, some: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "STEPS_JUDGED", 1)
    one, two = begun(kit, runs.mild), begun(kit, runs.mild)
    said = web("POST", f"/v1/workflows/{one}/cancel", {}, token=some)
    assert (said.status_code, "token for all queues" in said.json()["detail"]) == (403, True)
    monkeypatch.setattr(steps, "STEPS_JUDGED", 3)
    bulk = {"action": "cancel", "ids": [one, two]}
    assert web("POST", "/v1/bulk/preview", bulk, token=some).json()["others"] == 1
    assert web("POST", f"/v1/workflows/{one}/cancel", {}, token=some).status_code == 200
    monkeypatch.setattr(steps, "STEPS_JUDGED", 0)
    assert web("POST", f"/v1/workflows/{two}/cancel", {}).status_code == 200


@pytest.fixture
def bounded(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the steps of runs those that are held, and lists, are all that is read one by one."""
    workflows = kit.app.store.workflows
    outline = workflows.outline

    def bounded(id: UUID, **narrowed: Any) -> Any:
        assert narrowed.get("state") is StepState.HELD or narrowed.get("kind") is Kind.GATHER
        return outline(id, **narrowed)

    monkeypatch.setattr(workflows, "outline", bounded)


@pytest.mark.usefixtures("bounded")
def test_nobody_reads_the_steps_of_a_run_one_by_one_to_say_whether_it_may_be_sent(
    kit: Kit, web: Web, runs: Runs, some: str, held: str
) -> None:
    for name, status in (("branches", 403), ("mild", 200)):
        run = begun(kit, getattr(runs, name))
        for _, path, body in ENDS:
            assert web("POST", path.format(id=run), body, token=some).status_code == status
    assert refused(web("POST", f"/v1/workflows/{held}/resume", {}, token=some))
    both = token_of(kit.app, "both", SENDS, ("orders", "mail"))
    assert web("POST", f"/v1/workflows/{held}/resume", {}, token=both).status_code == 200


def test_the_page_of_a_run_with_many_steps_has_its_buttons_and_what_they_send_is_refused(
    kit: Kit, browser: Browser, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begun(kit, runs.parent)
    browser.sign_in_as(*SENDS, queues=("orders",))
    for most, there in ((2, False), (0, True)):  # it has one of its own, and one below it is undone
        monkeypatch.setattr(steps, "JUDGED_ON_PAGE", most)
        assert (f'/workflows/{run}/cancel"' in whole(browser, f"/workflows/{run}")) is there
        assert browser.send(f"/workflows/{run}/cancel").status_code == 403


def test_pages_have_no_button_for_it_and_refuse_it(kit: Kit, browser: Browser, runs: Runs) -> None:
    run = begun(kit, runs.parent)
    browser.sign_in_as(*SENDS, queues=("orders",))
    shown = whole(browser, f"/workflows/{run}")
    for deed, form in (("undo", {"why": "a test"}), ("cancel", {})):
        assert f'/workflows/{run}/{deed}"' not in shown
        assert browser.send(f"/workflows/{run}/{deed}", form).status_code == 403
        browser.look(f"/workflows/{run}")
    browser.sign_in_as(Scope.OPERATE)
    assert f'/workflows/{run}/undo"' in whole(browser, f"/workflows/{run}")
