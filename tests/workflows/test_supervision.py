"""A step that is a job has a complete-by; what follows when it is missed is for the policy to say."""

from datetime import timedelta

import pytest

from lateshift import NO_RETRY, Flow, Lateshift, Permanent, Policy, State
from lateshift.errors import OptionInvalid, StepFailed
from lateshift.model.ids import new_member_id
from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def test_a_step_past_its_complete_by_has_failed_and_its_job_is_told_to_stop(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task(queue="payments")
    def charge() -> None:
        done.append("charged")

    @app.workflow
    async def order(flow: Flow) -> str:
        try:
            await flow.step(charge, time_limit=HOUR)
        except StepFailed as failure:
            return failure.error
        return "well"

    app.store.queues.pause("payments", by="the test")
    job = order.enqueue()
    kit.drain()
    kit.clock.move(hours=1, seconds=1)
    kit.drain()  # the supervisor looks
    kit.drain()
    assert kit.result(job) == "complete_by"
    app.store.queues.resume("payments", by="the test")
    kit.drain()
    assert done == []  # the agent is silent after its complete-by


def test_what_a_job_says_after_its_complete_by_is_not_heard(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task(queue="payments")
    def charge() -> str:
        done.append("charged")
        if len(done) == 1:
            kit.clock.move(hours=2)  # it took too long
            app.store.workflows.overdue(term=term(app), limit=10)
        return f"charge {len(done)}"

    @app.workflow
    async def order(flow: Flow) -> str:
        return await flow.step(charge, time_limit=HOUR, on_failure=Policy(repeats=1))

    job = order.enqueue()
    for _ in range(4):
        kit.drain()
        kit.clock.move(minutes=1)
    assert kit.result(job) == "charge 2"


def term(app: Lateshift) -> int:
    """The present term of whoever supervises."""
    for _ in range(2):
        grip = app.store.locks.acquire("supervisor", new_member_id(), timedelta(minutes=1))
        if grip is not None:
            return grip.fence
    raise AssertionError("somebody else supervises")


def test_a_policy_asks_again_with_a_new_complete_by_then_waits_longer_then_holds(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task(queue="payments")
    def charge() -> None:
        raise AssertionError("nobody works here")

    @app.workflow(on_failure=Policy(repeats=3, patient_after=2, patience=DAY, then="hold"))
    async def order(flow: Flow) -> None:
        await flow.step(charge, time_limit=HOUR)

    app.store.queues.pause("payments", by="the test")
    job = order.enqueue()

    def failures_after(wait: timedelta) -> int:
        kit.clock.move(seconds=wait.total_seconds() + 1)
        for _ in range(2):
            kit.drain()
        view = app.store.workflows.view(job.id)
        assert view is not None
        return view.steps[0].failures

    kit.drain()
    assert failures_after(HOUR) == 1
    assert failures_after(HOUR) == 2
    assert failures_after(HOUR) == 2  # it waits a day first
    assert failures_after(DAY) == 3
    assert failures_after(2 * DAY + HOUR) == 4
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.run.phase is Phase.HELD
    assert "charge failed: complete_by" in (view.run.why or "")


def test_a_failed_job_is_asked_for_again_and_a_permanent_fault_answers_at_once(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task(retry=NO_RETRY)
    def flaky() -> str:
        done.append("flaky")
        if len(done) < 3:
            raise ConnectionError("away")
        return "well"

    @app.task
    def never() -> None:
        done.append("never")
        raise Permanent("no")

    @app.workflow(on_failure=Policy(repeats=5))
    async def order(flow: Flow) -> str:
        said = await flow.step(flaky)
        try:
            await flow.step(never)
        except StepFailed:
            return said
        return "what?"

    job = order.enqueue()
    kit.drain()
    assert kit.result(job) == "well"
    assert done == ["flaky", "flaky", "flaky", "never"]


def test_a_step_that_failed_for_good_stays_so_whatever_policy_a_later_release_has(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    policies = [Policy()]

    @app.task
    def never() -> None:
        done.append("never")
        raise Permanent("no")

    @app.workflow
    async def order(flow: Flow) -> str:
        try:
            await flow.step(never, on_failure=policies[-1])
        except StepFailed:
            await flow.sleep(DAY)
        return "handled"

    job = order.enqueue()
    kit.drain()
    policies.append(Policy(repeats=5, then="hold"))
    kit.travel(days=1)
    assert kit.result(job) == "handled"
    assert done == ["never"]


def test_alerts_are_events_that_a_task_subscribes_to(app: Lateshift, kit: Kit, done: list[str]) -> None:
    @app.on("alert.*")
    @app.task
    def page(data: dict[str, str]) -> None:
        done.append(f"{data['what']} of {data['workflow']}: {data['why']}")

    def fail() -> None:
        raise Permanent("no card")

    @app.workflow(on_failure="hold")
    async def held(flow: Flow) -> None:
        await flow.step(fail)

    @app.workflow
    async def stuck(flow: Flow) -> None:
        await flow.step(lambda: 1, name="reserve", undo=fail)
        raise ValueError("no stock")

    held.enqueue()
    job = stuck.enqueue()
    kit.drain()
    assert sorted(done) == [
        "compensation_failed of stuck: ValueError: no stock; not undone: reserve",
        "workflow_held of held: step 1 fail failed: Permanent: no card",
    ]
    assert job.state is State.DEAD


def test_a_policy_with_a_typo_is_refused_where_it_is_given(app: Lateshift) -> None:
    with pytest.raises(OptionInvalid, match="raise"):
        app.workflow(on_failure="undo")  # type: ignore[call-overload]


@pytest.mark.parametrize("how", ["mended", "resumed", "repeated"])
def test_a_late_step_whose_time_limit_new_code_has_dropped_has_none_any_more(
    app: Lateshift, kit: Kit, how: str
) -> None:
    @app.task(queue="payments")
    def charge() -> str:
        return "charged"

    then = Policy(repeats=1) if how == "repeated" else Policy(then="hold")

    async def old(flow: Flow) -> str:
        return await flow.step(charge, time_limit=HOUR, on_failure=then)

    async def new(flow: Flow) -> str:
        return await flow.step(charge, on_failure=then)

    app.store.queues.pause("payments", by="the test")
    job = app.workflow(name="order")(old).enqueue()
    kit.drain()
    kit.clock.move(hours=2)
    if how == "repeated":
        app.store.workflows.overdue(term=term(app), limit=10)
        kit.clock.move(minutes=2)
    else:
        kit.drain()  # the supervisor looks
        kit.drain()  # and the run is held
    del app._tasks["order"]
    app.workflow(name="order")(new)
    if how == "mended":
        assert app.store.workflows.mend(job.id, "00001", None, by="ann")
    elif how == "resumed":
        assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.steps[0].complete_by is None
    kit.clock.move(hours=2)
    kit.drain()
    app.store.queues.resume("payments", by="the test")
    kit.drain()
    assert kit.result(job) == "charged"
