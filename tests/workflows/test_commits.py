"""What a run writes together: jobs are not kept waiting by a function beside them, and one that is refused harms no other step."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from lateshift import Flow, Lateshift, StepFailed
from lateshift.model.workflow.step import StepState
from lateshift.testing import Kit
from lateshift.workflow import run as runs

PATIENCE = 20.0  # seconds, for what should take a moment


def test_a_job_beside_a_function_that_takes_long_begins_at_once(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LOOK_EVERY", 3600.0)
    begun = threading.Event()

    @app.task
    def charge() -> None:
        begun.set()

    def pack() -> bool:
        return begun.wait(PATIENCE)  # as long as the job has not begun

    @app.workflow
    async def fulfil(flow: Flow) -> list[Any]:
        return await flow.gather(flow.step(pack), flow.step(charge))

    job = fulfil.enqueue()
    kit.drain()
    assert kit.result(job) == [True, None]


def test_of_two_jobs_in_one_commit_only_the_refused_one_fails(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    @app.task
    def numbered() -> None: ...

    @app.task
    def charge(card: str) -> str:
        done.append(card)
        return f"{card} charged"

    @app.workflow
    async def order(flow: Flow) -> list[Any]:
        return await flow.gather(
            flow.step(charge, "blue"),
            _error(flow.step(numbered.options(session="s", sequence=1))),
            flow.step(charge, "red"),
        )

    numbered.options(session="s", sequence=1).enqueue()
    kit.drain()
    job = order.enqueue()
    kit.drain()
    assert kit.result(job) == ["blue charged", "SequenceUsed", "red charged"]
    assert sorted(done) == ["blue", "red"]


def test_a_refused_job_is_told_though_a_function_beside_it_goes_on(
    app: Lateshift, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "LOOK_EVERY", 3600.0)
    told = threading.Event()

    @app.task
    def numbered() -> None: ...

    def pack() -> bool:
        return told.wait(PATIENCE)

    async def refused(flow: Flow) -> str:
        error = await _error(flow.step(numbered.options(session="s", sequence=1)))
        told.set()
        return error

    @app.workflow
    async def order(flow: Flow) -> list[Any]:
        return await flow.gather(flow.step(pack), refused(flow))

    numbered.options(session="s", sequence=1).enqueue()
    kit.drain()
    job = order.enqueue()
    kit.drain()
    assert kit.result(job) == [True, "SequenceUsed"]


class Refusing:
    """See interposed.Around. A store that will not have jobs of one task."""

    def __init__(self, task: str) -> None:
        self._task = task

    def __call__(self, verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if verb == "workflows.advance" and any(
            job.spec.task == self._task for one in args[0] for job in one.jobs
        ):
            raise ValueError("no such job")
        return call(*args, **kwargs)


def test_an_event_whose_job_is_refused_was_not_emitted_and_the_code_is_told(
    app: Lateshift, store_url: str, done: list[str]
) -> None:
    @app.on("order.placed")
    @app.task
    def heard(data: int) -> None: ...

    @app.workflow
    async def place(flow: Flow) -> str:
        await flow.step(done.append, "placed", name="place")
        return await _error(flow.emit("order.placed", 7))

    with Kit(app, store=store_url, around=Refusing("heard")) as kit:
        job = place.enqueue()
        kit.drain()
        assert kit.result(job) == "ValueError"
        view = app.store.workflows.view(job.id)
        assert view is not None
        assert [step.state for step in view.steps] == [StepState.COMPLETED, StepState.FAILED]
    assert done == ["placed"]


async def _error(step: Any) -> str:
    try:
        await step
    except StepFailed as failure:
        return failure.error
    return "well"
