"""A workflow goes on from its last stored step, and waits without a worker."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from lateshift import Flow, Lateshift, Limit, Retry, State, StepFailed
from lateshift.errors import (
    KeyConflict,
    OptionInvalid,
    Permanent,
    RunEnded,
    RunUnknown,
    TaskInvalid,
    WorkflowInvalid,
)
from lateshift.model.ids import new_job_id
from lateshift.testing import Kit, testing

DAY = timedelta(days=1)


def test_steps_run_in_order_and_their_results_come_back(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def add(flow: Flow, number: int) -> int:
        more = await flow.step(lambda: number + 1, name="one more")
        return await flow.step(double, more)

    async def double(number: int) -> int:
        return number * 2

    job = add.enqueue(4)
    kit.drain()
    assert kit.result(job) == 10
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert [(step.name, step.state.label, step.result) for step in view.steps] == [
        ("one more", "completed", b"5"),
        ("double", "completed", b"10"),
    ]


def test_a_task_as_a_step_runs_on_its_own_queue_while_the_run_holds_no_worker(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task(queue="payments")
    def charge(order: int) -> str:
        done.append(str(order))
        return f"paid {order}"

    @app.workflow
    async def fulfil(flow: Flow, order: int) -> str:
        return await flow.step(charge, order)

    app.store.queues.pause("payments", by="the test")
    job = fulfil.enqueue(7)
    kit.drain()
    view = app.store.reports.job(job.id)
    assert view is not None
    assert view.state is State.SCHEDULED
    assert view.holder is None
    run = app.store.workflows.view(job.id)
    assert run is not None
    assert (run.run.waits_for or "").startswith("charge (job ")
    app.store.queues.resume("payments", by="the test")
    kit.drain()
    assert kit.result(job) == "paid 7"
    assert done == ["7"]


def test_a_sleep_of_thirty_days_ends_when_it_is_due_and_not_before(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def remind(flow: Flow) -> str:
        await flow.sleep(timedelta(days=30))
        return "it is time"

    job = remind.enqueue()
    kit.drain()
    kit.travel(days=29, hours=23)
    assert job.state is State.SCHEDULED
    kit.travel(hours=1)
    assert kit.result(job) == "it is time"


def test_a_signal_gives_its_data_to_the_wait(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def approve(flow: Flow) -> str:
        return str(await flow.wait_for("approved"))

    job = approve.enqueue()
    kit.drain()
    assert app.signal(job.id, "approved", "by ann")
    kit.drain()
    assert kit.result(job) == "by ann"


def test_signals_before_the_wait_are_kept_and_taken_in_their_order(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def read(flow: Flow) -> list[int]:
        await flow.sleep(DAY)
        return [await flow.wait_for("number") for _ in range(3)]

    job = read.enqueue()
    app.signal(job.id, "number", 1)  # before it has begun
    kit.drain()
    app.signal(job.id, "number", 2)
    app.signal(job.id, "other", 0)
    app.signal(job.id, "number", 3)
    kit.travel(days=1)
    assert kit.result(job) == [1, 2, 3]


def test_a_signal_told_twice_with_one_key_is_one(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def read(flow: Flow) -> list[int]:
        return [await flow.wait_for("number"), await flow.wait_for("number")]

    job = read.enqueue()
    assert app.signal(job.id, "number", 1, key="a")
    assert not app.signal(job.id, "number", 1, key="a")
    kit.drain()
    assert job.state is State.SCHEDULED
    assert app.signal(job.id, "number", 2, key="b")
    kit.drain()
    assert kit.result(job) == [1, 2]


def test_who_tells_a_run_again_after_it_ended_what_it_was_told_hears_that_it_was(
    app: Lateshift, kit: Kit
) -> None:
    @app.workflow
    async def read(flow: Flow) -> int:
        return int(await flow.wait_for("number"))

    job = read.enqueue()
    assert app.signal(job.id, "number", 1, key="a")
    kit.drain()
    assert kit.result(job) == 1
    assert app.signal(job.id, "number", 1, key="a") is False
    with pytest.raises(RunEnded, match="has ended"):
        app.signal(job.id, "number", 1, key="b")


def test_one_key_is_not_two_signals(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def read(flow: Flow) -> list[int]:
        return [await flow.wait_for("first", type=int), await flow.wait_for("picked", type=int)]

    job = read.enqueue()
    assert app.signal(job.id, "first", 1, key="a")
    for name, data in (("picked", 2), ("first", 2), ("first", None)):
        with pytest.raises(KeyConflict, match="another name or other data"):
            app.signal(job.id, name, data, key="a")
    kit.drain()
    assert not app.signal(job.id, "first", 1, key="a")
    assert app.signal(job.id, "picked", 2, key="b")
    kit.drain()
    assert kit.result(job) == [1, 2]
    with pytest.raises(KeyConflict):
        app.signal(job.id, "picked", 1, key="b")


def test_a_wait_that_is_too_long_raises_and_stays_so(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def approve(flow: Flow) -> str:
        try:
            await flow.wait_for("approved", timeout=DAY)
        except TimeoutError:
            await flow.sleep(DAY)
            return "nobody did"
        return "approved"

    job = approve.enqueue()
    kit.drain()
    kit.travel(days=1)
    app.signal(job.id, "approved")
    kit.travel(days=1)
    assert kit.result(job) == "nobody did"


def test_a_signal_to_a_run_that_ended_or_never_was_is_refused(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def nothing(flow: Flow) -> None: ...

    job = nothing.enqueue()
    kit.drain()
    with pytest.raises(RunEnded, match="has ended"):
        app.signal(job.id, "approved")
    with pytest.raises(RunUnknown):
        app.signal(new_job_id(), "approved")


def test_gather_runs_its_branches_at_once_and_waits_for_all(app: Lateshift, kit: Kit) -> None:
    async def pack(part: str) -> str:
        return f"{part} packed"

    async def ship(flow: Flow, part: str) -> str:
        packed = await flow.step(pack, part)
        await flow.sleep(DAY)
        return await flow.step(pack, packed)

    @app.workflow
    async def fulfil(flow: Flow) -> list[str]:
        await flow.step(pack, "all")
        return await flow.gather(ship(flow, "a"), ship(flow, "b"), flow.step(pack, "c"))

    job = fulfil.enqueue()
    kit.drain()
    kit.travel(days=1)
    assert kit.result(job) == ["a packed packed", "b packed packed", "c packed"]


def test_a_child_is_a_run_of_its_own_whose_result_comes_back(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def child(flow: Flow, number: int) -> int:
        await flow.sleep(DAY)
        return number + 1

    @app.workflow
    async def parent(flow: Flow) -> int:
        return await flow.child(child, 1) + await flow.child(child, 2)

    job = parent.enqueue()
    kit.travel(days=2)
    assert kit.result(job) == 5


def test_time_and_chance_are_the_same_at_every_replay(app: Lateshift, kit: Kit) -> None:
    seen = []

    @app.workflow
    async def look(flow: Flow) -> None:
        seen.append((flow.now(), flow.random().random(), flow.random().random()))
        await flow.sleep(DAY)

    look.enqueue()
    kit.travel(days=1)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0][1] != seen[0][2]


def test_an_event_is_emitted_once_whatever_is_replayed(app: Lateshift, kit: Kit, done: list[str]) -> None:
    @app.on("order.placed")
    @app.task
    def heard(data: int) -> None:
        done.append(f"heard {data}")

    @app.workflow
    async def place(flow: Flow) -> None:
        await flow.emit("order.placed", 7)
        await flow.sleep(DAY)

    place.enqueue()
    kit.travel(days=1)
    assert done == ["heard 7"]


def test_what_a_run_says_of_itself_is_shown(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def pack(flow: Flow) -> None:
        flow.status("packing")
        await flow.sleep(DAY)

    job = pack.enqueue()
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.run.status == "packing"


def test_a_step_is_tried_again_as_its_retry_says_and_the_failures_are_counted(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    def flaky() -> str:
        done.append("tried")
        if len(done) < 3:
            raise ConnectionError("away")
        return "well"

    @app.workflow
    async def call(flow: Flow) -> str:
        return await flow.step(flaky, retry=Retry(attempts=5, base=timedelta(hours=1)))

    job = call.enqueue()
    kit.travel(days=1)
    assert kit.result(job) == "well"
    assert done == ["tried"] * 3
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.steps[0].failures == 2


def test_a_step_that_fails_for_good_raises_in_the_code_at_first_and_at_every_replay(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    def refuse() -> None:
        done.append("refused")
        raise ValueError("no such card")

    @app.workflow
    async def pay(flow: Flow) -> str:
        try:
            await flow.step(refuse)
        except StepFailed as failure:
            await flow.sleep(DAY)
            return f"{failure.step} {failure.error} {failure.message}"
        return "paid"

    job = pay.enqueue()
    kit.travel(days=1)
    assert kit.result(job) == "refuse ValueError no such card"
    assert done == ["refused"]


def test_a_permanent_error_is_not_tried_again(app: Lateshift, kit: Kit, done: list[str]) -> None:
    def refuse() -> None:
        done.append("refused")
        raise Permanent("never")

    @app.workflow
    async def pay(flow: Flow) -> None:
        await flow.step(refuse, retry=Retry(attempts=5))

    job = pay.enqueue()
    kit.travel(days=1)
    assert job.state is State.DEAD
    assert done == ["refused"]


def test_a_result_that_cannot_be_kept_is_a_clear_error(app: Lateshift, kit: Kit) -> None:
    def secret() -> object:
        return object()

    @app.workflow
    async def look(flow: Flow) -> None:
        await flow.step(secret)

    job = look.enqueue()
    kit.drain()
    view = app.store.reports.job(job.id)
    assert view is not None
    assert view.state is State.DEAD
    assert "the result of secret cannot be kept" in (view.history[-1].message or "")


def test_a_step_past_its_time_limit_has_failed(app: Lateshift, kit: Kit) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    @app.workflow
    async def call(flow: Flow) -> str:
        try:
            await flow.step(hang, time_limit=timedelta(milliseconds=20))
        except StepFailed as failure:
            return failure.error
        return "well"

    job = call.enqueue()
    kit.drain()
    assert kit.result(job) == "TimeoutError"


def test_what_cannot_be_a_workflow_is_refused_where_it_is_declared(app: Lateshift) -> None:
    with pytest.raises(WorkflowInvalid, match="must be an async function"):

        @app.workflow  # type: ignore[arg-type]
        def plain(flow: Flow) -> None: ...

    with pytest.raises(TaskInvalid, match="takes the flow as its first parameter"):

        @app.workflow  # type: ignore[arg-type]
        async def bare() -> None: ...


@pytest.mark.anyio
async def test_calling_a_workflow_says_how_to_start_it(app: Lateshift) -> None:
    @app.workflow
    async def fulfil(flow: Flow, order: int) -> None: ...

    with pytest.raises(WorkflowInvalid, match=r"fulfil\.enqueue"):
        await fulfil(7)  # type: ignore[misc]


@pytest.mark.parametrize(
    "guard", [{"session": "user:7"}, {"tenant": "acme"}, {"session": "a", "sequence": 1}]
)
def test_a_workflow_has_no_guards_of_its_own(app: Lateshift, guard: dict[str, Any]) -> None:
    @app.workflow
    async def fulfil(flow: Flow) -> None: ...

    with pytest.raises(OptionInvalid, match="has no session, tenant or limit"):
        fulfil.options(**guard)


def test_nor_may_its_queue_have_a_limit(app: Lateshift) -> None:
    app.queue("narrow", limit=Limit(concurrency=1))

    @app.workflow(queue="narrow")
    async def fulfil(flow: Flow) -> None: ...

    with pytest.raises(OptionInvalid, match="nor may its queue narrow"):
        fulfil.enqueue()


def test_a_run_that_is_to_begin_later_begins_then(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def fulfil(flow: Flow) -> str:
        return "begun"

    job = fulfil.options(delay=DAY).enqueue()
    app.signal(job.id, "hurry")  # which does not wake what has not begun
    kit.drain()
    assert job.state is State.SCHEDULED
    kit.travel(days=1)
    assert kit.result(job) == "begun"


def test_the_time_is_that_of_the_clock_that_the_test_moves(app: Lateshift, store_url: str) -> None:
    @app.workflow
    async def look(flow: Flow) -> list[datetime]:
        before = flow.now()
        await flow.sleep(DAY)
        return [before, flow.now()]

    with testing(app, store=store_url) as kit:  # opened after the workflow was declared, as in a user's tests
        job = look.enqueue()
        kit.travel(days=1)
        before, after = kit.result(job)
    assert abs(after - before - DAY) < timedelta(minutes=1)  # PostgreSQL has a clock of its own, which runs


def test_a_step_whose_job_is_cancelled_says_so_whatever_it_failed_of_before(app: Lateshift, kit: Kit) -> None:
    @app.task(retry=Retry(attempts=5))
    def charge() -> None:
        raise ValueError("no line to the bank")

    @app.workflow
    async def order(flow: Flow) -> str:
        try:
            await flow.step(charge)
        except StepFailed as failed:
            return f"{failed.error} {failed.message}".strip()
        return "charged"

    job = order.enqueue()
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.steps[0].job is not None
    assert app.store.jobs.cancel([view.steps[0].job], by="ann")
    kit.drain()
    assert kit.result(job) == "cancelled by ann"
