"""A run goes on with code that fits what is recorded, or stops and says what does not."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from lateshift import Flow, Job, Lateshift, State
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
    return view.run.why if view.run.phase is Phase.HELD else None


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
