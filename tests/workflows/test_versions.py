"""A run goes on with code that fits what is recorded, or stops and says what does not."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Flow, Job, Lateshift, Permanent, State
from lateshift.errors import StepFailed
from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit

DAY = timedelta(days=1)


def begin(app: Lateshift, kit: Kit, body: Callable[..., Any]) -> Job[Any]:
    job = app.workflow(name="order")(body).enqueue()
    kit.drain()
    return job


def deploy(app: Lateshift, body: Callable[..., Any]) -> None:
    """Another release of the program."""
    del app._tasks["order"]
    app.workflow(name="order")(body)


def held(app: Lateshift, job: Job[Any]) -> str | None:
    view = app.store.workflows.view(job.id)
    assert view is not None
    return view.run.why if view.run.phase.is_held else None


def note(done: list[str]) -> Callable[[str], str]:
    def do(what: str) -> str:
        done.append(what)
        return what

    return do


def test_a_run_whose_code_asks_for_another_step_is_held_and_says_which(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    async def old(flow: Flow) -> None:
        await flow.step(do, "stock", name="reserve")
        await flow.sleep(DAY)

    async def new(flow: Flow) -> None:
        await flow.step(do, "mail", name="tell")
        await flow.step(do, "stock", name="reserve")
        await flow.sleep(DAY)

    job = begin(app, kit, old)
    deploy(app, new)
    kit.travel(days=1)
    assert held(app, job) == (
        'the code does not fit what is recorded: at step 1 it has recorded reserve with {"args":["stock"]}, and the code asks for '
        'tell with {"args":["mail"]}'
    )
    assert done == ["stock"]
    deploy(app, old)
    app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    assert job.state is State.COMPLETED


def test_a_changed_order_of_equal_steps_is_seen_by_their_arguments(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    order = ["a", "b"]
    do = note(done)

    async def body(flow: Flow) -> None:
        for each in order:
            await flow.step(do, each)
        await flow.sleep(DAY)

    job = begin(app, kit, body)
    order.reverse()
    kit.travel(days=1)
    assert 'it has recorded do with {"args":["a"]}, and the code asks for do with {"args":["b"]}' in (
        held(app, job) or ""
    )


def test_code_that_ends_before_what_is_recorded_is_held(app: Lateshift, kit: Kit, done: list[str]) -> None:
    do = note(done)

    async def old(flow: Flow) -> None:
        await flow.step(do, "a")
        await flow.step(do, "b")
        await flow.sleep(DAY)

    async def new(flow: Flow) -> None:
        await flow.step(do, "a")

    job = begin(app, kit, old)
    deploy(app, new)
    kit.travel(days=1)
    assert "it has recorded step 2 do, and the code ended without asking for it" in (held(app, job) or "")


def test_a_patch_lets_old_runs_go_the_old_way_and_new_ones_the_new(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    async def old(flow: Flow) -> str:
        await flow.step(do, "reserve")
        await flow.step(do, "mail")
        await flow.sleep(DAY)
        return "old"

    async def new(flow: Flow) -> str:
        await flow.step(do, "reserve")
        if flow.patched("2026-12-call"):
            await flow.step(do, "call")
            way = "new"
        else:
            await flow.step(do, "mail")
            way = "old"
        await flow.sleep(DAY)
        return way

    async def newest(flow: Flow) -> str:
        await flow.step(do, "reserve")
        await flow.step(do, "call")
        await flow.sleep(DAY)
        return "new"

    first = begin(app, kit, old)
    deploy(app, new)
    kit.travel(days=1)
    assert kit.result(first) == "old"
    second = app.tasks["order"].enqueue()
    kit.drain()
    kit.travel(hours=12)
    deploy(app, newest)  # no old run is left: the patch may go
    kit.travel(days=1)
    assert kit.result(second) == "new"
    assert done == ["reserve", "mail", "reserve", "call"]


def test_each_run_records_the_version_of_the_code_that_began_it(store_url: str) -> None:
    from lateshift.testing import testing

    app = Lateshift("shop", store=store_url, version="2026.11")
    with testing(app, store=store_url) as kit:

        async def body(flow: Flow) -> None:
            await flow.sleep(DAY)

        job = begin(app, kit, body)
        view = app.store.workflows.view(job.id)
        assert view is not None
        assert view.run.version == "2026.11"


def test_a_check_before_the_release_replays_runs_and_begins_nothing(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    async def old(flow: Flow) -> None:
        await flow.step(do, "stock", name="reserve")
        await flow.wait_for("go")
        await flow.step(do, "card", name="charge")

    async def new(flow: Flow) -> None:
        await flow.step(do, "stock", name="hold")
        await flow.wait_for("go")

    job = begin(app, kit, old)
    app.signal(job.id, "go")  # it is ready: the next step would be charge
    assert app.check().findings == []
    deploy(app, new)
    [finding] = app.check().findings
    assert (finding.task, finding.kind, finding.examples) == ("order", "workflow_diverged", [job.id])
    assert finding.error.startswith("at step 1 it has recorded reserve")
    assert done == ["stock"]
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert view.run.phase is Phase.FORWARD


def test_a_step_put_before_branches_is_seen_before_anything_runs_again(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    async def branch(flow: Flow, name: str) -> None:
        await flow.step(do, name)
        await flow.sleep(DAY)

    async def old(flow: Flow) -> None:
        await flow.step(do, "first")
        await flow.gather(branch(flow, "a"), branch(flow, "b"))

    async def new(flow: Flow) -> None:
        await flow.step(do, "first")
        await flow.step(do, "another")
        await flow.gather(branch(flow, "a"), branch(flow, "b"))

    async def patched(flow: Flow) -> None:
        await flow.step(do, "first")
        if flow.patched("another"):
            await flow.step(do, "another")
        await flow.gather(branch(flow, "a"), branch(flow, "b"))

    job = begin(app, kit, old)
    deploy(app, new)
    kit.travel(days=1)
    assert "at step 2 it has recorded gather 2, and the code asks for do" in (held(app, job) or "")
    assert done == ["first", "a", "b"]
    deploy(app, patched)
    app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    assert job.state is State.COMPLETED
    assert done == ["first", "a", "b"]


def test_another_number_of_branches_is_seen_and_none_of_them_begins(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)
    names = ["a", "b"]

    async def branch(flow: Flow, name: str) -> None:
        await flow.step(do, name)
        await flow.sleep(DAY)

    async def body(flow: Flow) -> None:
        await flow.gather(*[branch(flow, name) for name in names])

    job = begin(app, kit, body)
    names.append("c")
    kit.travel(days=1)
    assert "at step 1 it has recorded gather 2, and the code asks for gather 3" in (held(app, job) or "")
    assert sorted(done) == ["a", "b"]


def test_a_run_that_is_cancelled_while_no_code_fits_it_stays_held_and_is_told_of_once(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    @app.on("alert.*")
    @app.task
    def page(data: dict[str, str]) -> None:
        done.append(data["what"])

    async def old(flow: Flow) -> None:
        await flow.step(do, "a", undo=lambda what: do(f"undo {what}"))
        await flow.sleep(DAY)

    async def new(flow: Flow) -> None:
        await flow.step(do, "b")

    job = begin(app, kit, old)
    deploy(app, new)
    kit.travel(days=1)
    app.store.jobs.cancel([job.id], by="ann")
    kit.drain(limit=20)
    assert held(app, job) is not None
    assert done == ["a", "workflow_held"]
    deploy(app, old)
    app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    assert job.state is State.CANCELLED
    assert done == ["a", "workflow_held", "undo a"]


def test_a_run_that_is_to_be_undone_and_has_no_code_that_fits_is_undone_when_it_has(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    async def old(flow: Flow) -> None:
        await flow.step(do, "a", undo=lambda what: do(f"undo {what}"))
        await flow.sleep(DAY)
        await flow.step(do, "more")

    async def new(flow: Flow) -> None:
        await flow.step(do, "b")

    job = begin(app, kit, old)
    deploy(app, new)
    app.store.workflows.direct(job.id, Phase.UNDOING, why="the customer has gone", by="ann")
    misfit = 'the code does not fit what is recorded: at step 1 it has recorded do with {"args":["a"]}'
    for _ in range(2):  # resumed too early, it is held again
        kit.drain()
        assert (held(app, job) or "").startswith(f"the customer has gone; it is to be undone, but {misfit}")
        assert (held(app, job) or "").count("to be undone") == 1
        app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    deploy(app, old)
    app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.travel(days=2)
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason, view.run.why) == (State.DEAD, "undone", "the customer has gone")
    assert done == ["a", "undo a"]


def test_a_step_that_was_never_awaited_holds_the_run_until_the_code_is_mended(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    async def dropped(flow: Flow) -> None:
        await flow.step(do, "a")
        flow.step(do, "lost", name="lose")  # type: ignore[unused-coroutine, unused-ignore]
        await flow.step(do, "b")

    async def kept(flow: Flow) -> None:
        await flow.step(do, "a")
        lost = flow.step(do, "lost", name="lose")
        await flow.step(do, "b")
        del lost

    async def mended(flow: Flow) -> None:
        await flow.step(do, "a")
        await flow.gather(flow.step(do, "lost", name="lose"), flow.step(do, "c"))
        await flow.step(do, "b")

    async def mended_too(flow: Flow) -> None:
        await flow.step(do, "a")
        await flow.step(do, "lost", name="lose")
        await flow.step(do, "b")

    for forgets, mends, before, after in (
        (dropped, mended, ["a"], ["lost", "c", "b"]),
        (kept, mended_too, ["a", "b"], ["lost"]),
    ):
        done.clear()
        app._tasks.pop("order", None)
        job = begin(app, kit, forgets)
        assert (
            held(app, job)
            == "WorkflowInvalid: flow.step(lose, …) was never awaited: write `await flow.step(lose, …)`"
        )
        assert done == before
        deploy(app, mends)
        app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
        kit.drain()
        assert (job.state, done) == (State.COMPLETED, before + after)


def test_code_that_goes_another_way_after_a_failure_need_not_await_what_it_had_made(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    def fail() -> None:
        raise ValueError("no")

    async def body(flow: Flow) -> None:
        try:
            made: list[Any] = [flow.step(fail), flow.step(do, "never")]
            for step in made:
                await step
        except StepFailed:
            await flow.step(do, "another way")

    job = begin(app, kit, body)
    assert (job.state, done) == (State.COMPLETED, ["another way"])


def test_a_check_leaves_out_dead_jobs_of_steps_and_runs_that_would_begin_from_nothing(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    do = note(done)

    @app.task(name="charge")
    def charge(card: str) -> None:
        raise Permanent("the bank says no")

    async def old(flow: Flow) -> None:
        await flow.step(do, "stock", name="reserve")
        await flow.step(charge, "blue")

    async def with_undo(flow: Flow) -> None:
        await flow.step(do, "stock", name="reserve", undo=do)
        await flow.step(charge, "blue")

    async def new(flow: Flow) -> None:
        await flow.step(do, "stock", name="hold")

    failed = begin(app, kit, old)
    deploy(app, with_undo)
    undone = app.tasks["order"].enqueue()
    by_itself = charge.enqueue("red")
    kit.drain()
    assert [job.state for job in (failed, undone, by_itself)] == [State.DEAD] * 3
    del app._tasks["charge"]
    deploy(app, new)

    @app.task(name="charge")
    def charge_amount(card: str, amount: int) -> None: ...

    report = app.check()
    assert report.looked_at == {"dead": 3}
    assert [(finding.task, finding.examples) for finding in report.findings] == [("charge", [by_itself.id])]


@pytest.mark.parametrize("as_task", [False, True])
def test_a_result_that_new_code_cannot_read_holds_the_run_and_undoes_nothing(
    app: Lateshift, kit: Kit, done: list[str], *, as_task: bool
) -> None:
    def release(shelf: str) -> None:
        done.append("release")

    def old_reserve(shelf: str) -> str:
        return f"{shelf} 7"

    def new_reserve(shelf: str) -> int:
        return 7

    def with_code(reserve: Callable[..., Any]) -> Callable[..., Any]:
        app._tasks.pop("reserve", None)
        step = app.task(name="reserve")(reserve) if as_task else reserve

        async def body(flow: Flow) -> str:
            found = await flow.step(step, "shelf", name="reserve", undo=release)
            await flow.sleep(DAY)
            return str(found)

        return body

    old = with_code(old_reserve)
    job = begin(app, kit, old)
    deploy(app, with_code(new_reserve))
    kit.travel(days=1)
    assert held(app, job) == (
        f"the code does not fit what is recorded: at step 1 {'reserve' if as_task else 'new_reserve'}: the result is not what the task's "
        "annotation says: expected `int`, got `str`."
    )
    job.cancel()
    kit.drain()
    assert done == [], "to be undone it needs code that fits, too"
    deploy(app, with_code(old_reserve))
    app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    assert (job.state, done) == (State.CANCELLED, ["release"])


def test_a_run_that_has_begun_is_held_when_new_code_takes_other_arguments(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    def release(order: int) -> None:
        done.append(f"release {order}")

    def reserve(order: int) -> None:
        done.append(f"reserve {order}")

    async def old(flow: Flow, order: int) -> None:
        await flow.step(reserve, order, undo=release)
        await flow.sleep(DAY)
        raise ValueError("no stock")

    async def new(flow: Flow, order: int, customer: str) -> None:
        await flow.step(reserve, order, undo=release)
        await flow.sleep(DAY)

    job = app.workflow(name="order")(old).enqueue(7)
    kit.drain()
    unbegun = app.tasks["order"].options(delay=DAY).enqueue(8)
    deploy(app, new)
    kit.travel(days=1)
    assert "the code does not fit what is recorded: its arguments: order: " in (held(app, job) or "")
    assert "customer" in (held(app, job) or "")
    assert (unbegun.state, unbegun.view().reason) == (State.DEAD, "undecodable"), "of it nothing was done"
    deploy(app, old)
    app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ann")
    kit.drain()
    assert job.view().reason == "undone"
    assert done == ["reserve 7", "release 7"]
