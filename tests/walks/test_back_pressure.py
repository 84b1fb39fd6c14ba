"""A queue that may hold so much and no more, as a program meets it."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from lateshift import JobFilter, Lateshift, QueueFull, State
from lateshift.errors import JobUnknown
from lateshift.model import estimate
from lateshift.model.job import Lane, Line
from lateshift.testing import testing
from tests.store_contract.driving import Worker

SOON = timedelta(seconds=20)


def ready(app: Lateshift) -> int:
    return app.store.queues.waiting("orders", 1_000_000)


def test_a_full_queue_refuses_and_takes_more_when_it_has_drained(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "FULL_MOST", 0.0)  # however long it took to count
    app.queue("orders", max_ready=3)

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    with testing(app) as kit:
        for order in range(3):
            pack.enqueue(order)
        with pytest.raises(QueueFull, match="max_ready, 3"):
            pack.enqueue(3)
        assert pack.options(delay=timedelta(hours=1)).enqueue(4).created  # not due yet
        assert pack.options(queue="other").enqueue(5).created
        kit.drain()
        assert pack.enqueue(3).created


def test_a_blocked_caller_waits_its_time_and_no_longer(app: Lateshift) -> None:
    app.queue("orders", max_ready=1, wait=timedelta(milliseconds=300))

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    pack.enqueue(1)
    began = time.monotonic()
    with pytest.raises(QueueFull, match=r"none went within 0\.3 s"):
        pack.enqueue(2)
    assert 0.3 <= time.monotonic() - began < 20
    assert ready(app) == 1


@pytest.mark.anyio
async def test_an_awaiting_caller_holds_up_nobody_and_goes_on_when_there_is_room(app: Lateshift) -> None:
    app.queue("orders", max_ready=2, wait=SOON)

    @app.task(queue="orders")
    async def pack(order: int) -> int:
        return order

    @app.task
    async def other() -> None: ...

    for order in range(2):
        await pack.aenqueue(order)
    waiting = [asyncio.create_task(pack.aenqueue(order)) for order in range(2, 10)]
    assert (await other.aenqueue()).created  # the loop turns, and other queues are open
    assert not any(task.done() for task in waiting)
    async with app.running():
        jobs = await asyncio.gather(*waiting)
        assert [await job.aresult(SOON) for job in jobs] == [*range(2, 10)]


@pytest.mark.anyio
async def test_a_caller_that_is_cancelled_while_it_waits_enqueues_nothing(app: Lateshift) -> None:
    app.queue("orders", max_ready=1, wait=SOON)

    @app.task(queue="orders")
    async def pack(order: int) -> None: ...

    first = await pack.aenqueue(1)
    waiting = asyncio.create_task(pack.aenqueue(2))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await first.acancel()

    assert len(app.store.reports.jobs(JobFilter(), 10)) == 1
    assert (await pack.aenqueue(3)).created


def test_many_are_enqueued_as_there_is_room_and_the_error_says_how_many_were(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "FULL_MOST", 0.0)  # however long it took to count
    app.queue("orders", max_ready=50)

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    calls = [pack.call(order) for order in range(80)]
    with pytest.raises(QueueFull) as caught:
        app.enqueue_many(calls)
    [note] = caught.value.__notes__
    assert note.startswith("50 jobs were enqueued before this, and stay. Repeating these very calls")
    assert ready(app) == 50
    worker = Worker(app.store)
    worker.settle_all(worker.lease(40, Line("orders", Lane.THREAD)))
    assert app.enqueue_many(calls) == 30
    assert len(app.store.reports.jobs(JobFilter(), 200)) == 80


@pytest.mark.anyio
async def test_async_many_flow_through_a_small_queue_while_workers_drain_it(app: Lateshift) -> None:
    app.queue("orders", max_ready=20, wait=SOON)

    @app.task(queue="orders")
    async def pack(order: int) -> None: ...

    async with app.running():
        assert await app.aenqueue_many(pack.call(order) for order in range(300)) == 300
    assert len(app.store.reports.jobs(JobFilter(), 1000)) == 300


def test_what_is_shed_is_seen_by_its_caller(app: Lateshift) -> None:
    app.queue("orders", max_ready=2, when_full="shed_new")

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    jobs = [pack.enqueue(order) for order in range(3)]
    assert [(job.created, job.shed) for job in jobs] == [(True, False), (True, False), (False, True)]
    with pytest.raises(JobUnknown, match="was shed"):
        jobs[2].view()
    assert app.enqueue_many(pack.call(order) for order in range(1500)) == 0
    assert ready(app) == 2


def test_the_oldest_make_room_and_are_seen_as_shed(app: Lateshift) -> None:
    app.queue("orders", max_ready=2, when_full="shed_oldest")

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    jobs = [pack.enqueue(order) for order in range(5)]
    assert [job.state for job in jobs] == [State.CANCELLED] * 3 + [State.READY] * 2
    assert {job.view().reason for job in jobs[:3]} == {"shed"}
    assert app.enqueue_many(pack.call(order) for order in range(30)) == 30
    assert ready(app) == 2


def test_the_lowest_make_room_for_higher_ones_and_only_for_those(app: Lateshift) -> None:
    app.queue("orders", max_ready=2, when_full="shed_lowest")

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    low, middle = pack.enqueue(1), pack.options(priority=5).enqueue(2)
    high = pack.options(priority=9).enqueue(3)
    equal = pack.options(priority=5).enqueue(4)
    assert [low.state, middle.state, high.state] == [State.CANCELLED, State.READY, State.READY]
    assert (equal.shed, equal.created) == (True, False)


@pytest.fixture
def own(store_url: str) -> Iterator[tuple[Lateshift, Any]]:
    """An app, and a connection of the program's own to its store."""
    sqlite = store_url.startswith("sqlite")
    app = Lateshift("test", store=f"{store_url}?driver=sqlite3" if sqlite else store_url)
    assert app.store.queues.list() == []  # opened and made
    connection: Any = (
        sqlite3.connect(store_url.removeprefix("sqlite:///")) if sqlite else psycopg.connect(store_url)
    )
    yield app, connection
    connection.close()
    app.close()


def test_in_a_transaction_of_ones_own_a_full_queue_refuses_at_once(own: tuple[Lateshift, Any]) -> None:
    app, connection = own
    app.queue("orders", max_ready=1, wait=timedelta(hours=1), when_full="shed_oldest")

    @app.task(queue="orders")
    def pack(order: int) -> None: ...

    assert pack.options(connection=connection).enqueue(1).created
    connection.commit()
    with pytest.raises(QueueFull):
        pack.options(connection=connection).enqueue(2)
    connection.commit()
    assert [view.state for view in app.store.reports.jobs(JobFilter(), 10)] == [State.READY]
