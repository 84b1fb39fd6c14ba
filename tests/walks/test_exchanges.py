"""The worker's talk with the store: leases that got lost on the way, and exchanges that overlap with the work."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from lateshift import Lateshift, Retry, State
from lateshift.clock import ManualClock
from lateshift.errors import StoreUnavailable
from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.job import Lane, Line
from lateshift.runtime.aside import send_aside
from lateshift.store.contract import Exchanged, Jobs, Want
from lateshift.worker import exchanges
from lateshift.worker.exchanges import Exchanges
from lateshift.worker.lines import Lines
from lateshift.worker.service import introduce
from lateshift.worker.settler import Settler
from lateshift.worker.worker import Worker

pytestmark = pytest.mark.anyio


def joined(app: Lateshift) -> MemberId:
    member = new_member_id()
    app.store.members.join(introduce(member, "worker", "w", app.clock), timedelta(minutes=1))
    return member


async def test_a_lease_that_its_worker_does_not_know_of_goes_back_uncounted(app: Lateshift) -> None:
    @app.task(retry=Retry(attempts=2))
    async def work() -> None: ...

    job = await work.aenqueue()
    member = joined(app)
    worker = Worker(app.store, app.tasks, member, app.settings, app.clock)
    # The answer to this lease never reached the worker.
    assert len(app.store.jobs.exchange(member, [], [Want(Line("default", Lane.COROUTINE), 1)]).leases) == 1
    await worker.return_strays()
    await worker.turn()
    assert job.view().state is State.RUNNING  # it may be on its way: one look is not enough
    await worker.return_strays()
    worker.stopping = True
    await worker.turn()
    view = job.view()
    assert (view.state, view.attempt, view.fence) == (State.READY, 0, 1)


async def test_a_lease_whose_exchange_is_still_unanswered_is_no_stray(app: Lateshift) -> None:
    @app.task
    async def work() -> None: ...

    member = joined(app)
    given, answering = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class Slow:
        """Leases at once, and answers late."""

        def __getattr__(self, name: str) -> Any:
            return getattr(app.store.jobs, name)

        def exchange(self, *said: Any) -> Exchanged:
            answer = app.store.jobs.exchange(*said)
            loop.call_soon_threadsafe(given.set)
            assert answering.wait(20)
            return answer

    job = await work.aenqueue()
    settler = Settler(lambda: None)
    talk = Exchanges(cast(Jobs, Slow()), member, settler, app.clock.monotonic)
    talk.send([Want(Line("default", Lane.COROUTINE), 1)])
    await given.wait()
    for _ in range(3):
        await talk.return_strays(set)
    assert len(settler) == 0
    answering.set()
    answered = await talk.answered()
    assert answered is not None
    assert [lease.id for lease in answered[1].leases] == [job.id]
    await talk.return_strays(set)  # nobody knows of it, though its exchange was answered long ago
    assert [settlement.lease.id for settlement in settler.waiting] == [job.id]


@pytest.mark.parametrize(("jobs", "overlap"), [(4, False), (4000, True)])
async def test_many_jobs_begin_while_the_next_exchange_is_under_way_and_few_before_it(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch, jobs: int, overlap: bool
) -> None:
    seen: list[str] = []

    @app.task
    async def work() -> None:
        seen.append("body")

    def send(*said: Any) -> Any:
        seen.append("exchange")
        return send_aside(*said)

    app.settings = replace(
        app.settings, concurrency=jobs // 2
    )  # so that there is more than the first lease takes
    app.enqueue_many(work.call() for _ in range(jobs))
    monkeypatch.setattr(exchanges, "send_aside", send)
    member = joined(app)
    worker = Worker(app.store, app.tasks, member, app.settings, app.clock)
    for _ in range(50):
        if worker.tally.completed == jobs and worker.quiet:
            break
        await worker.turn()
        await asyncio.sleep(0)
    assert ("exchange exchange body" in " ".join(seen)) is overlap
    assert seen.count("body") == jobs
    assert worker.quiet


async def test_what_is_being_settled_is_no_stray(app: Lateshift) -> None:
    @app.task(retry=Retry(attempts=3, base=timedelta(hours=1)))
    async def work() -> None:
        raise ValueError

    job = await work.aenqueue()
    worker = Worker(app.store, app.tasks, joined(app), app.settings, app.clock)
    settling, answering = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    store_exchange = app.store.jobs.exchange

    def exchange(holder: Any, settlements: Any, wants: Any) -> Exchanged:
        if settlements:
            loop.call_soon_threadsafe(settling.set)
            assert answering.wait(20)
        return store_exchange(holder, settlements, wants)

    app.store.jobs.exchange = exchange  # type: ignore[method-assign, assignment]
    while not worker.held:
        await worker.turn()
    turning = asyncio.create_task(turns(worker))
    await settling.wait()
    for _ in range(3):
        await worker.return_strays()
    answering.set()
    await turning
    view = job.view()
    assert (view.state, view.attempt) == (State.SCHEDULED, 1)
    assert [line.reason for line in view.history] == ["failed"]


async def turns(worker: Worker) -> None:
    """Until it holds nothing and has said everything, at most so many."""
    for _ in range(200):
        await worker.turn()
        await asyncio.sleep(0)
        if worker.quiet:
            return
    raise AssertionError("it does not come to rest")


async def test_a_low_priority_is_asked_for_by_its_age_also_while_exchanges_overlap(app: Lateshift) -> None:
    begun: list[str] = []

    @app.task
    async def high() -> None:
        begun.append("high")

    @app.task
    async def low() -> None:
        begun.append("low")

    for first in range(2):  # whichever of the turns comes first
        await low.aenqueue()
        worker = Worker(app.store, app.tasks, joined(app), app.settings, app.clock)
        for _ in range(40 + first):
            app.enqueue_many(high.options(priority=10).call() for _ in range(2000))
            await worker.turn()
            await asyncio.sleep(0)
            if begun.count("low") > first:
                break
        assert begun.count("low") == first + 1
        worker.stopping = True
        worker.hand_back_waiting()
        await turns(worker)


async def test_leases_that_have_come_begin_though_looking_for_others_fails(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    @app.task
    async def work(number: int) -> None:
        begun.append(number)

    app.settings = replace(app.settings, concurrency=1000)
    app.enqueue_many(work.call(number) for number in range(4000))
    worker = Worker(app.store, app.tasks, joined(app), app.settings, app.clock)
    await worker.turn()

    def away(limit: int) -> Any:
        raise StoreUnavailable("away")

    monkeypatch.setattr(app.store.jobs, "promote", away)
    monkeypatch.setattr(Lines, "look_due", lambda *_: True)
    for _ in range(4):
        await worker.turn()
        await asyncio.sleep(0)
    leased = {view.id for view in app.store.reports.running(5000)}
    assert len(begun) >= len(leased)


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_an_attempt_whose_complete_by_has_passed_before_it_could_begin_does_not_begin(
    app: Lateshift, kind: str
) -> None:
    begun: list[int] = []
    clock = ManualClock()  # the worker's own

    @app.task(name="coroutine", time_limit=timedelta(minutes=1))
    async def coroutine(number: int) -> None:
        begun.append(number)
        clock.move(minutes=2)

    @app.task(name="thread", time_limit=timedelta(minutes=1))
    def thread(number: int) -> None:
        begun.append(number)
        clock.move(minutes=2)

    app.settings = replace(app.settings, threads=1)
    task = app.tasks[kind]
    jobs = [task.enqueue(number) for number in range(3)]
    worker = Worker(app.store, app.tasks, joined(app), app.settings, clock)
    worker._rooms[task.lane].slots = 3  # all three are leased, and begin one after the other
    while not begun:
        await worker.turn()
        await asyncio.sleep(0.001)
    worker.stopping = True
    while not worker.quiet:
        worker.wake()
        await worker.turn()
        await asyncio.sleep(0.001)
    views = [job.view() for job in jobs]
    assert begun == [0]
    assert [(view.state, view.attempt) for view in views[1:]] == [(State.READY, 0)] * 2
    await worker.close()
