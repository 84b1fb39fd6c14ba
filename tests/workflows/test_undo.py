"""What was done is undone: exactly that, the last first, until it is, or until an operator is told."""

import asyncio
from datetime import timedelta

import pytest

from lateshift import Flow, Lateshift, Permanent, State
from lateshift.errors import StepFailed
from lateshift.model.ids import JobId
from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit
from lateshift.workflow import undoing

DAY = timedelta(days=1)


class Shop:
    """Steps that note what they do, and what undoes them."""

    def __init__(self, done: list[str]) -> None:
        self.done = done

    def do(self, what: str) -> str:
        self.done.append(f"do {what}")
        return f"did {what}"

    def undo(self, what: str, result: str) -> None:
        self.done.append(f"undo {what}, {result}")

    def fail(self, what: str) -> None:
        self.done.append(f"fail {what}")
        raise ValueError(f"no {what}")


@pytest.fixture
def shop(done: list[str]) -> Shop:
    return Shop(done)


def test_completed_steps_are_undone_in_reverse_with_their_arguments_and_results(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(shop.do, "mail")
        await flow.step(shop.do, "card", undo=shop.undo)
        await flow.step(shop.fail, "van", undo=shop.undo)

    job = order.enqueue()
    kit.drain()
    assert shop.done == [
        "do stock", "do mail", "do card", "fail van", "undo card, did card", "undo stock, did stock",
    ]  # fmt: skip
    view = app.store.reports.job(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    assert "no van" in (view.history[-1].message or "")


def test_a_run_that_fails_with_nothing_to_undo_has_simply_failed(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "mail")
        raise RuntimeError("a bug")

    job = order.enqueue()
    kit.drain()
    view = app.store.reports.job(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "failed")


def test_a_failure_that_the_code_handles_undoes_nothing(app: Lateshift, kit: Kit, shop: Shop) -> None:
    @app.workflow
    async def order(flow: Flow) -> str:
        await flow.step(shop.do, "stock", undo=shop.undo)
        try:
            await flow.step(shop.fail, "van")
        except StepFailed:
            return "by bicycle"
        return "by van"

    job = order.enqueue()
    kit.drain()
    assert kit.result(job) == "by bicycle"
    assert shop.done == ["do stock", "fail van"]


def test_a_task_undoes_a_task_on_its_own_queue(app: Lateshift, kit: Kit, done: list[str]) -> None:
    @app.task(queue="payments")
    def charge(order: int) -> int:
        done.append(f"charge {order}")
        return order * 100

    @app.task(queue="payments")
    def refund(order: int, result: int) -> None:
        done.append(f"refund {order} {result}")

    @app.workflow
    async def fulfil(flow: Flow, order: int) -> None:
        await flow.step(charge, order, undo=refund)
        raise ValueError("no stock")

    job = fulfil.enqueue(7)
    kit.drain()
    assert done == ["charge 7", "refund 7 700"]
    assert job.state is State.DEAD


def test_branches_are_undone_in_reverse_of_their_completion(app: Lateshift, kit: Kit, shop: Shop) -> None:
    async def branch(flow: Flow, name: str, wait: timedelta) -> None:
        await flow.sleep(wait)
        await flow.step(shop.do, name, undo=shop.undo)

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.gather(branch(flow, "late", 2 * DAY), branch(flow, "early", DAY))
        raise ValueError("no")

    order.enqueue()
    kit.travel(days=3)
    assert shop.done == ["do early", "do late", "undo late, did late", "undo early, did early"]


def test_a_branch_in_flight_is_ended_before_anything_is_undone(
    app: Lateshift, kit: Kit, shop: Shop, done: list[str]
) -> None:
    @app.task(queue="slow")
    def charge() -> int:
        done.append("charge")
        return 1

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        charging = flow.step(charge, undo=lambda result: done.append(f"refund {result}"), name="charge")
        await asyncio.gather(charging, flow.step(shop.fail, "van"))

    app.store.queues.pause("slow", by="the test")
    job = order.enqueue()
    kit.drain()
    # The job that nobody had begun is called off: it was never charged, and nothing is refunded.
    assert done == ["do stock", "fail van", "undo stock, did stock"]
    assert job.state is State.DEAD


def test_an_undo_that_fails_is_tried_again_and_the_others_wait(app: Lateshift, kit: Kit, shop: Shop) -> None:
    def shaky(what: str) -> None:
        shop.done.append(f"try {what}")
        if shop.done.count(f"try {what}") < 3:
            raise ConnectionError("away")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(shop.do, "card", undo=shaky)
        raise ValueError("no")

    job = order.enqueue()
    kit.travel(days=1)
    assert shop.done[2:] == ["try card", "try card", "try card", "undo stock, did stock"]
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    assert [step.undo_state.label for step in view.steps] == ["undone", "undone"]
    assert view.steps[1].undo_failures == 2


def test_an_undo_that_fails_for_good_is_told_and_the_rest_is_undone_and_it_can_be_resumed(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    broken = [True]

    def refund(what: str) -> None:
        shop.done.append("refund")
        if broken:
            raise Permanent("the bank says no")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(shop.do, "card", undo=refund)
        raise ValueError("no")

    job = order.enqueue()
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "compensation_failed")
    assert [step.undo_state.label for step in view.steps] == ["undone", "undo failed"]
    broken.clear()
    app.store.jobs.resubmit([job.id], by="ann")
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    assert shop.done == ["do stock", "do card", "refund", "undo stock, did stock", "refund"]


def test_an_undone_run_that_is_resubmitted_begins_from_nothing(app: Lateshift, kit: Kit, shop: Shop) -> None:
    broken = [True]

    @app.workflow
    async def order(flow: Flow) -> str:
        await flow.step(shop.do, "stock", undo=shop.undo)
        if broken:
            raise ValueError("no")
        return "well"

    job = order.enqueue()
    kit.drain()
    broken.clear()
    app.store.jobs.resubmit([job.id], by="ann")
    kit.drain()
    assert kit.result(job) == "well"
    assert shop.done == ["do stock", "undo stock, did stock", "do stock"]


def test_a_cancelled_run_that_waits_undoes_what_it_did(app: Lateshift, kit: Kit, shop: Shop) -> None:
    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.sleep(DAY)
        await flow.step(shop.do, "card", undo=shop.undo)

    job = order.enqueue()
    kit.drain()
    assert app.store.jobs.cancel([job.id], by="ann") == [job.id]
    assert job.state is State.READY
    kit.drain()
    view = app.store.reports.job(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.CANCELLED, "cancelled by ann")
    assert shop.done == ["do stock", "undo stock, did stock"]


def test_a_step_in_flight_when_the_run_is_cancelled_is_ended_and_undone(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    ids: list[JobId] = []

    def cancelling(what: str) -> str:
        app.store.jobs.cancel(ids, by="ann")  # while this step is in flight
        return shop.do(what)

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(cancelling, "card", undo=shop.undo)
        await flow.step(shop.do, "van", undo=shop.undo)

    job = order.enqueue()
    ids.append(job.id)
    kit.drain()
    assert shop.done == ["do stock", "do card", "undo card, did card", "undo stock, did stock"]
    assert job.state is State.CANCELLED


def test_a_run_that_has_not_begun_is_cancelled_like_any_job(app: Lateshift, kit: Kit, shop: Shop) -> None:
    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)

    job = order.enqueue()
    app.store.jobs.cancel([job.id], by="ann")
    assert job.state is State.CANCELLED
    kit.drain()
    assert shop.done == []


def test_cancelling_a_parent_cancels_its_child_which_undoes_itself_first(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    @app.workflow
    async def child(flow: Flow) -> None:
        await flow.step(shop.do, "of the child", undo=shop.undo)
        await flow.sleep(DAY)

    @app.workflow
    async def parent(flow: Flow) -> None:
        await flow.step(shop.do, "of the parent", undo=shop.undo)
        await flow.child(child)

    job = parent.enqueue()
    kit.drain()
    app.store.jobs.cancel([job.id], by="ann")
    kit.drain()
    assert shop.done[2:] == ["undo of the child, did of the child", "undo of the parent, did of the parent"]
    assert job.state is State.CANCELLED


def test_a_step_that_holds_waits_for_an_operator_who_mends_it(app: Lateshift, kit: Kit, shop: Shop) -> None:
    def charge(card: str) -> str:
        if card == "old":
            raise Permanent("the card has expired")
        return shop.do(card)

    @app.workflow
    async def order(flow: Flow) -> str:
        await flow.step(shop.do, "stock", undo=shop.undo)
        return await flow.step(charge, "old", on_failure="hold")

    job = order.enqueue()
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.run.phase is Phase.HELD
    assert view.run.why == "step 2 charge failed: Permanent: the card has expired"
    assert app.store.workflows.mend(job.id, "00002", b'{"card": "new"}', by="ann")
    kit.drain()
    assert kit.result(job) == "did new"
    assert shop.done == ["do stock", "do new"]


def test_a_job_that_holds_its_run_is_made_anew_with_the_arguments_that_it_is_given(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task
    def charge(card: str) -> str:
        done.append(card)
        if card == "old":
            raise Permanent("the card has expired")
        return card

    @app.workflow(on_failure="hold")
    async def order(flow: Flow) -> str:
        return await flow.step(charge, "old")

    job = order.enqueue()
    kit.drain()
    assert job.state is State.SCHEDULED
    assert not app.store.workflows.mend(job.id, "00002", None, by="ann")  # there is no such step
    assert app.store.workflows.mend(job.id, "00001", b'{"card": "new"}', by="ann")
    kit.drain()
    assert kit.result(job) == "new"
    assert done == ["old", "new"]


def test_a_held_run_can_be_undone_instead(app: Lateshift, kit: Kit, shop: Shop) -> None:
    @app.workflow(on_failure="hold")
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(shop.fail, "van")

    job = order.enqueue()
    kit.drain()
    assert app.store.workflows.direct(job.id, Phase.UNDOING, why="no van will come", by="ann")
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    assert shop.done == ["do stock", "fail van", "undo stock, did stock"]


def test_a_held_run_can_be_cancelled(app: Lateshift, kit: Kit, shop: Shop) -> None:
    @app.workflow(on_failure="hold")
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(shop.fail, "van")

    job = order.enqueue()
    kit.drain()
    app.store.jobs.cancel([job.id], by="ann")
    kit.drain()
    assert job.state is State.CANCELLED
    assert shop.done == ["do stock", "fail van", "undo stock, did stock"]


def test_an_undo_that_lacks_what_it_needs_is_refused_before_the_step_runs(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    def release(what: str, warehouse: str) -> None: ...

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=release)

    job = order.enqueue()
    kit.drain()
    view = app.store.reports.job(job.id)
    assert view is not None
    assert view.state is State.DEAD
    assert "cannot be undone by release: missing a required argument: 'warehouse'" in (
        view.history[-1].message or ""
    )
    assert shop.done == []


@pytest.mark.parametrize("how", ["exit", "cancelled"])
def test_a_step_that_leaves_as_no_exception_does_has_failed_and_the_worker_lives(
    app: Lateshift, kit: Kit, shop: Shop, how: str
) -> None:
    def leave() -> None:
        if how == "exit":
            raise SystemExit(3)
        raise asyncio.CancelledError

    async def leave_async() -> None:
        leave()

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        try:
            await flow.step(leave)
        except StepFailed:
            await flow.step(leave_async)

    job = order.enqueue()
    kit.drain()
    assert shop.done == ["do stock", "undo stock, did stock"]
    assert job.state is State.DEAD


def test_code_that_exits_ends_its_run_alone(app: Lateshift, kit: Kit, shop: Shop) -> None:
    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        raise SystemExit

    job = order.enqueue()
    kit.drain()
    assert job.state is State.DEAD
    assert shop.done == ["do stock", "undo stock, did stock"]


def test_an_undo_that_no_job_can_be_made_of_is_told_and_the_others_are_done(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    @app.task
    def refund(card: int) -> None: ...

    def charge(card: object) -> None: ...

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "stock", undo=shop.undo)
        await flow.step(charge, object(), undo=refund)
        raise ValueError("no")

    job = order.enqueue()
    kit.drain()
    view = app.store.reports.job(job.id)
    assert view is not None
    assert view.reason == "compensation_failed"
    assert shop.done == ["do stock", "undo stock, did stock"]


def test_a_job_that_the_store_refuses_fails_its_step_and_nothing_else_is_lost(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    @app.task
    def numbered() -> None: ...

    @app.workflow
    async def order(flow: Flow) -> str:
        await flow.step(shop.do, "stock")
        try:
            await flow.step(numbered.options(session="s", sequence=1))
        except StepFailed as failure:
            return failure.error
        return "well"

    numbered.options(session="s", sequence=1).enqueue()
    kit.drain()
    job = order.enqueue()
    kit.drain()
    assert kit.result(job) == "SequenceUsed"
    assert shop.done == ["do stock"]


def test_what_the_code_began_and_did_not_wait_for_is_called_off_before_it_ends(
    app: Lateshift, kit: Kit, shop: Shop
) -> None:
    @app.workflow
    async def child(flow: Flow) -> None:
        await flow.step(shop.do, "of the child", undo=shop.undo)
        await flow.sleep(DAY)

    @app.workflow
    async def parent(flow: Flow) -> str:
        try:
            await asyncio.gather(flow.child(child), _later(flow, shop))
        except StepFailed:
            return "handled"
        return "well"

    job = parent.enqueue()
    kit.drain()
    kit.travel(hours=1)
    assert kit.result(job) == "handled"
    assert shop.done == ["do of the child", "fail van", "undo of the child, did of the child"]


async def _later(flow: Flow, shop: Shop) -> None:
    await flow.sleep(timedelta(hours=1))
    await flow.step(shop.fail, "van")


@pytest.mark.parametrize("by", ["cancel", "undo"])
@pytest.mark.parametrize("then", ["job", "event", "child"])
def test_nothing_begins_after_somebody_wanted_the_run_stopped_while_a_function_ran(
    app: Lateshift, kit: Kit, done: list[str], by: str, then: str
) -> None:
    @app.on("order.placed")
    @app.task
    def heard(data: None) -> None:
        done.append("heard")

    @app.task
    def charge() -> None:
        done.append("charge")

    @app.workflow
    async def inner(flow: Flow) -> None:
        done.append("child")

    def reserve() -> None:
        done.append("reserve")
        if by == "cancel":
            app.store.jobs.cancel([job.id], by="ann")
        else:
            assert app.store.workflows.direct(job.id, Phase.UNDOING, why="wrong", by="ann")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(reserve, undo=lambda: done.append("release"), name="reserve")
        match then:
            case "job":
                await flow.step(charge)
            case "event":
                await flow.emit("order.placed")
            case "child":
                await flow.child(inner)

    job = order.enqueue()
    kit.drain()
    assert done == ["reserve", "release"]
    assert not any(sent.task in ("charge", "heard", "inner") for sent in kit.enqueued())
    view = app.store.reports.job(job.id)
    assert view is not None
    assert view.state is (State.CANCELLED if by == "cancel" else State.DEAD)


def test_an_undo_that_hangs_is_tried_again(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undoing, "UNDO_LIMIT", timedelta(milliseconds=10))

    async def undo(what: str) -> None:
        done.append(f"undo {what}")
        if done.count(f"undo {what}") == 1:
            await asyncio.Event().wait()

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(shop.do, "it", undo=undo)
        raise ValueError("no")

    job = order.enqueue()
    kit.travel(minutes=30)
    assert done == ["do it", "undo it", "undo it"]
    view = app.store.reports.job(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
