"""What asyncio itself offers, around steps: it works as long as it calls none of them off, and says so when it does."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Flow, Lateshift, State
from lateshift.testing import Kit

DAY = timedelta(days=1)


async def of(step: Awaitable[Any]) -> Any:
    return await step


def test_steps_in_a_task_group_run_at_once_and_sleep_like_others(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task
    def charge(card: str) -> str:
        done.append(f"charge {card}")
        return f"{card} charged"

    def pack(what: str) -> str:
        done.append(f"pack {what}")
        return f"{what} packed"

    @app.workflow
    async def order(flow: Flow) -> list[str]:
        async with asyncio.TaskGroup() as group:
            steps: list[Awaitable[Any]] = [flow.step(charge, "blue"), flow.step(pack, "cup"), flow.sleep(DAY)]
            tasks = [group.create_task(of(step)) for step in steps]
            more = await flow.step(pack, "plate")
        return [str(task.result()) for task in tasks] + [more]

    job = order.enqueue()
    kit.travel(days=1)
    assert kit.result(job) == ["blue charged", "cup packed", "None", "plate packed"]
    assert sorted(done) == ["charge blue", "pack cup", "pack plate"]


def test_a_failure_in_a_task_group_undoes_the_run_and_says_of_what_it_died(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    def refuse() -> None:
        raise ValueError("no van")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(done.append, "stock", undo=lambda what: done.append(f"undo {what}"), name="stock")
        async with asyncio.TaskGroup() as group:
            for step in (flow.step(refuse), flow.sleep(DAY)):
                group.create_task(of(step))

    job = order.enqueue()
    kit.drain()
    assert done == ["stock", "undo stock"]
    view = app.store.reports.job(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    message = view.history[-1].message or ""
    assert "StepFailed: refuse: ValueError: no van" in message
    assert "flow.sleep was cancelled while the workflow waited for it" in message


@pytest.mark.parametrize("around", ["step", "gather", "wait_for"])
def test_a_timeout_of_asyncio_that_calls_a_step_off_is_refused_and_the_run_is_undone(
    app: Lateshift, kit: Kit, done: list[str], around: str
) -> None:
    begun = asyncio.Event()

    async def hang() -> None:
        done.append("hang")
        begun.set()
        await asyncio.Event().wait()

    async def run_out(limit: asyncio.Timeout) -> None:
        await begun.wait()
        limit.reschedule(0)

    @app.workflow
    async def order(flow: Flow) -> str:
        await flow.step(done.append, "stock", undo=lambda what: done.append(f"undo {what}"), name="stock")
        step: Awaitable[Any] = flow.step(hang) if around != "gather" else flow.gather(flow.step(hang))
        try:
            if around == "wait_for":
                waiting = asyncio.ensure_future(of(step))
                await begun.wait()
                await asyncio.wait_for(waiting, 0.01)
            else:
                async with asyncio.timeout(None) as limit:
                    beside = asyncio.create_task(run_out(limit))
                    await step
                    beside.cancel()
        except TimeoutError:
            await flow.step(done.append, "never here", name="late")
        return "well"

    job = order.enqueue()
    kit.drain()
    assert done == ["stock", "hang", "undo stock"]
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert (view.state, view.reason) == (State.DEAD, "undone")
    assert "Give the step a time_limit=" in (view.run.why or "")


def test_a_timeout_that_does_not_run_out_harms_nothing(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def order(flow: Flow) -> int:
        async with asyncio.timeout(60):
            return await flow.step(lambda: 7, name="seven")

    job = order.enqueue()
    kit.drain()
    assert kit.result(job) == 7


def test_what_was_on_its_way_to_the_store_is_written_though_nobody_waits_for_it(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(done.append, "stock", undo=lambda what: done.append(f"undo {what}"), name="stock")
        beginning = asyncio.ensure_future(of(flow.step(done.append, "card", name="card")))
        await asyncio.sleep(0)  # it is written as running, with the end of the step before it
        beginning.cancel()
        await beginning

    job = order.enqueue()
    kit.drain()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert next((step.name, step.state.label, step.undo_state.label) for step in view.steps) == (
        "stock", "completed", "undone",
    )  # fmt: skip
    assert done == ["stock", "undo stock"]


def test_a_timeout_of_asyncio_does_nothing_around_what_a_run_sleeps_through(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def order(flow: Flow) -> str:
        async with asyncio.timeout(3600):
            await flow.sleep(DAY)
        return "slept"

    job = order.enqueue()
    kit.drain()
    kit.travel(days=1)
    assert kit.result(job) == "slept"
