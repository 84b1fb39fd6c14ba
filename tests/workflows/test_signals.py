"""Who takes no signals, and what becomes of those that are not what the code wants; how a run that has not begun is told from other jobs."""

from datetime import timedelta

import pytest

from lateshift import Flow, Lateshift, Retry, State
from lateshift.errors import OptionInvalid, RunUnknown
from lateshift.model.job import STRETCHES
from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit


@pytest.mark.parametrize("ended", [False, True])
def test_a_signal_to_a_job_that_is_no_workflow_is_refused(app: Lateshift, kit: Kit, ended: bool) -> None:
    @app.task
    def charge() -> None: ...

    job = charge.enqueue()
    if ended:
        kit.drain()
    with pytest.raises(RunUnknown, match="is no run of a workflow"):
        app.signal(job.id, "approved")


def test_no_task_has_as_many_attempts_as_a_run(app: Lateshift) -> None:
    @app.task(retry=Retry(attempts=STRETCHES - 1))
    def patient() -> None: ...

    with pytest.raises(OptionInvalid, match="fewer than 1,000,000 attempts"):

        @app.task(retry=Retry(attempts=STRETCHES))
        def endless() -> None: ...


def test_a_signal_of_another_type_than_the_code_wants_is_set_aside_and_the_run_held_until_another_came(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.on("alert.*")
    @app.task
    def page(data: dict[str, str]) -> None:
        done.append(data["what"])

    @app.workflow
    async def order(flow: Flow) -> str:
        who: str = await flow.wait_for("picked", type=str, timeout=timedelta(days=1))
        return who

    job = order.enqueue()
    app.signal(job.id, "picked", 5)
    app.signal(job.id, "picked")
    why = "the signal picked came with {}, and the code wants str: Expected `str`, got `{}`"
    for came, kind in (("5", "int"), ("null", "null")):
        kit.drain()
        view = app.store.workflows.view(job.id)
        assert view is not None
        assert (view.run.phase, view.run.why) == (Phase.HELD, why.format(came, kind))
        kit.travel(days=2)  # held for longer than the code would wait
        if came == "null":
            app.signal(job.id, "picked", "ann")
            kit.drain()
            assert job.state is State.SCHEDULED
        assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    assert kit.result(job) == "ann"
    assert done == ["workflow_held", "workflow_held"]


def test_a_run_that_took_a_signal_is_held_if_new_code_wants_another_type(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    wanted: list[type] = [int]

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.wait_for("picked", type=wanted[0])
        await flow.sleep(timedelta(days=1))

    job = order.enqueue()
    app.signal(job.id, "picked", 5)
    kit.drain()
    wanted[0] = str
    kit.travel(days=1)
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.run.why == (
        "the code does not fit what is recorded: at step 1 the signal picked came with 5, and the code wants str: "
        "Expected `str`, got `int`"
    )
