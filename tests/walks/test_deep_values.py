"""How deep what a program hands over may be: as deep for all that is kept as JSON, and what is too deep is said where it was made."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lateshift import Flow, Job, JobEvent, Lateshift, Retry, State, acheckpoint, checkpoint, session
from lateshift.errors import LateshiftError
from lateshift.model.depth import JSON_DEPTH, PAYLOAD_DEPTH
from lateshift.model.triggering.events import Event
from lateshift.testing import Kit, testing

TOO_DEEP = rf"more than ({JSON_DEPTH}|{PAYLOAD_DEPTH}) lists and objects inside one another"
ONE_TRY = Retry(attempts=1)


def nest(depth: int) -> list[Any]:
    """So many lists inside one another."""
    made: list[Any] = []
    for _ in range(depth - 1):
        made = [made]
    return made


class Deep:
    """Every way in which a program hands something over."""

    def __init__(self, app: Lateshift) -> None:
        self.app = app

        @app.task(retry=ONE_TRY)
        def gives(depth: int) -> Any:
            return nest(depth)

        @app.task(retry=ONE_TRY)
        def saves(depth: int) -> None:
            checkpoint(nest(depth))

        @app.task(retry=ONE_TRY)
        async def asaves(depth: int) -> None:
            await acheckpoint(nest(depth))

        @app.task(retry=ONE_TRY)
        def remembers(depth: int) -> None:
            session.set_state(nest(depth))

        @app.workflow
        async def steps(flow: Flow, depth: int) -> None:
            await flow.step(nest, depth)

        @app.workflow
        async def ends(flow: Flow, depth: int) -> Any:
            return nest(depth)

        @app.workflow
        async def waits(flow: Flow, depth: int) -> Any:
            return await flow.wait_for("picked")

        @app.task
        def takes(value: Any) -> int:
            return 1

        self.noted: list[JobEvent] = []

        @app.task
        def notes(event: JobEvent) -> None:
            if event.result is not None:
                self.noted.append(event)

        @app.task
        def hears(data: Any) -> None: ...

        @app.task
        def hears_whole(event: Event) -> None: ...

        app.on("told.*")(hears)
        app.on("told.*")(hears_whole)
        self.gives, self.saves, self.asaves, self.remembers = gives, saves, asaves, remembers
        self.takes, self.notes = takes, notes
        self.steps, self.ends, self.waits = steps, ends, waits


@pytest.fixture
def deep(store_url: str) -> Deep:
    return Deep(Lateshift("deep", store=store_url))


@pytest.fixture
def kit(deep: Deep, store_url: str) -> Iterator[Kit]:
    with testing(deep.app, store=store_url) as kit:
        yield kit


JOBS: dict[str, Callable[[Deep, int], Job[Any]]] = {
    "result": lambda deep, depth: deep.gives.enqueue(depth),
    "checkpoint": lambda deep, depth: deep.saves.enqueue(depth),
    "checkpoint of a coroutine": lambda deep, depth: deep.asaves.enqueue(depth),
    "state of a session": lambda deep, depth: deep.remembers.options(session="ann").enqueue(depth),
    "result of a step": lambda deep, depth: deep.steps.enqueue(depth),
    "result of a workflow": lambda deep, depth: deep.ends.enqueue(depth),
}  # fmt: skip


@pytest.mark.parametrize("way", JOBS)
@pytest.mark.parametrize("depth", [JSON_DEPTH + 1, 500, 960, 5000])
def test_what_a_job_leaves_too_deep_is_its_failure_which_says_so(
    deep: Deep, kit: Kit, way: str, depth: int
) -> None:
    job = JOBS[way](deep, depth)
    kit.drain()

    view = job.view()
    assert view.state is State.DEAD
    assert re.search(TOO_DEEP, view.history[-1].message or "")
    assert kit.drain() == []


@pytest.mark.parametrize("way", JOBS)
def test_what_a_job_leaves_may_be_as_deep_as_the_limit(deep: Deep, kit: Kit, way: str) -> None:
    job = JOBS[way](deep, JSON_DEPTH)
    kit.drain()
    assert job.view().state is State.COMPLETED


def signal(deep: Deep, depth: int) -> None:
    deep.app.signal(deep.waits.enqueue(0).id, "picked", nest(depth))


HANDED: dict[str, Callable[[Deep, int], Any]] = {
    "signal": signal,
    "event": lambda deep, depth: deep.app.emit("told.all", nest(depth)),
    "argument": lambda deep, depth: deep.takes.enqueue(nest(depth)),
    "argument of a schedule": lambda deep, depth: deep.app.schedule(deep.takes, args=[nest(depth)], name="s", cron="0 0 1 1 *"),
}  # fmt: skip


@pytest.mark.parametrize("way", HANDED)
@pytest.mark.parametrize("depth", [PAYLOAD_DEPTH, 500, 960, 5000])
def test_what_is_handed_over_too_deep_is_refused(deep: Deep, kit: Kit, way: str, depth: int) -> None:
    with pytest.raises(LateshiftError, match=TOO_DEEP):
        HANDED[way](deep, depth)
    assert not kit.enqueued(deep.takes)


@pytest.mark.parametrize("way", HANDED)
def test_what_is_handed_over_may_be_as_deep_as_the_limit(deep: Deep, kit: Kit, way: str) -> None:
    HANDED[way](deep, JSON_DEPTH)
    kit.drain()


def test_whatever_a_job_gave_may_be_another_ones_argument_also_in_its_event(deep: Deep, kit: Kit) -> None:
    job = deep.gives.options(reply_to=deep.notes).enqueue(JSON_DEPTH)
    kit.drain()

    assert [event.result for event in deep.noted] == [nest(JSON_DEPTH)]
    deep.takes.enqueue(job.result())
    deep.takes.enqueue(deep.noted[0])
