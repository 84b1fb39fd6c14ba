"""A step that was done, and whose result cannot be kept, has failed; but what it did is undone, as far as that can be."""

from typing import Any

import pytest

from lateshift import Flow, Lateshift, State, StepFailed
from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit


@pytest.fixture(params=[False, True], ids=["function", "task"])
def charge(request: pytest.FixtureRequest, app: Lateshift, done: list[str]) -> Any:
    def charge(card: str) -> object:
        done.append(f"charge {card}")
        return object()

    return app.task(charge) if request.param else charge


def test_it_is_undone_in_its_turn_if_its_undo_needs_no_result(
    app: Lateshift, kit: Kit, done: list[str], charge: Any
) -> None:
    def refund(card: str) -> None:
        done.append(f"refund {card}")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(
            done.append, "reserve", undo=lambda what: done.append(f"release, after {what}"), name="reserve"
        )
        await flow.step(charge, "blue", undo=refund)

    job = order.enqueue()
    kit.drain()
    assert done == ["reserve", "charge blue", "refund blue", "release, after reserve"]
    view = app.store.reports.job(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    assert "cannot be kept" in (view.history[-1].message or "")


def test_a_result_with_a_default_is_left_out(app: Lateshift, kit: Kit, done: list[str], charge: Any) -> None:
    def refund(card: str, result: str = "whatever was taken") -> None:
        done.append(f"refund {card}, {result}")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(charge, "blue", undo=refund)

    order.enqueue()
    kit.drain()
    assert done == ["charge blue", "refund blue, whatever was taken"]


def test_one_whose_undo_needs_the_result_is_told_to_an_operator(
    app: Lateshift, kit: Kit, done: list[str], charge: Any
) -> None:
    def refund(card: str, result: str) -> None:
        done.append(f"refund {card}")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(charge, "blue", undo=refund)

    job = order.enqueue()
    kit.drain()
    assert done == ["charge blue"]
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "compensation_failed")
    assert b"its undo refund needs it" in (view.steps[0].undo_error or b"")


def test_code_that_catches_the_failure_goes_on_and_so_it_does_at_every_replay(
    app: Lateshift, kit: Kit, done: list[str], charge: Any
) -> None:
    @app.workflow
    async def order(flow: Flow) -> str:
        try:
            await flow.step(charge, "blue", undo=lambda card: None)
        except StepFailed as failure:
            await flow.wait_for("go")
            return failure.error
        return "well"

    job = order.enqueue()
    kit.drain()
    app.signal(job.id, "go")
    kit.drain()
    assert kit.result(job) == "ResultNotKept"
    assert done == ["charge blue"]


def test_it_holds_its_run_where_the_policy_says_so_and_is_undone_from_there(
    app: Lateshift, kit: Kit, done: list[str], charge: Any
) -> None:
    @app.workflow(on_failure="hold")
    async def order(flow: Flow) -> None:
        await flow.step(charge, "blue", undo=lambda card: done.append(f"refund {card}"))

    job = order.enqueue()
    kit.drain()
    assert app.store.workflows.direct(job.id, Phase.UNDOING, why="enough", by="ann")
    kit.drain()
    assert job.state is State.DEAD
    assert done == ["charge blue", "refund blue"]
