"""Enqueued on an event loop without a thread: once, whatever becomes of the connection, and not at all where it would take more than a statement."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from msgspec import structs

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.job import Enqueued, Line, NewJob, Place, State
from lateshift.store.contract import EnqueueHere, Store
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore, database, on_loop
from lateshift.store.postgres.jobs import HERE_BYTES
from lateshift.store.postgres.on_loop import OnLoop
from lateshift.testing import testing
from tests.store_contract.driving import DONE, LINE, Worker, keyed, make_job, see
from tests.store_contract.test_deadlines import DEADLINE, Proxy, proxy
from tests.store_contract.test_reading_here import OTHERS, opened

__all__ = ["proxy"]  # a fixture

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def postgres(postgres_url: str, clock: ManualClock) -> Iterator[PostgresStore]:
    yield from opened(postgres_url, clock)


opening = contextmanager(opened)


@asynccontextmanager
async def connected(store: Store) -> AsyncIterator[EnqueueHere]:
    """With a connection, as soon as one job was enqueued by it."""
    async with store.jobs.enqueuing_here() as enqueue:
        for _ in range(10_000):
            if await enqueue([fresh()]) is not None:
                break
            await asyncio.sleep(0)
        else:
            pytest.fail("it never connected")
        yield enqueue


SPEC = make_job().spec


def fresh(by: str | None = None, **of: Any) -> NewJob:
    """Whose id was never sent."""
    job = structs.replace(make_job(**of), first=True, by=by)
    return job if of else structs.replace(job, spec=SPEC)


def made(*jobs: NewJob) -> list[Enqueued]:
    return [Enqueued(job.id, created=True) for job in jobs]


async def test_jobs_are_enqueued_here_or_there_is_no_way_here(store: Store) -> None:
    if not isinstance(store, PostgresStore):
        async with store.jobs.enqueuing_here() as enqueue:
            job = fresh()
            assert await enqueue([job]) is None
        assert store.reports.job(job.id) is None
        return
    async with connected(store) as enqueue:
        one, two, three = fresh(), fresh(), fresh()
        assert await enqueue([one]) == made(one)
        assert await enqueue([two, three]) == made(two, three)
        assert await enqueue([]) is None
    assert [see(store, job.id).state for job in (one, two, three)] == [State.READY] * 3
    assert store.upkeep.check() == []


async def test_who_started_them_is_told_and_workers_are_woken(postgres: PostgresStore) -> None:
    heard: list[Line] = []
    stop = postgres.wakes.listen(heard.append)
    async with connected(postgres) as enqueue:
        jobs = [fresh(by) for by in ("ann", "bob", None)]
        assert await enqueue(jobs) == made(*jobs)
        told = [(row.action, row.subject, row.actor) for row in postgres.audit.list(limit=10)]
        assert sorted(told) == sorted([("start", str(jobs[0].id), "ann"), ("start", str(jobs[1].id), "bob")])
        for _ in range(2000):
            if heard:
                break
            await asyncio.sleep(0.01)
            postgres.wakes._due._sent.clear()  # the quiet time is over
            await enqueue([fresh()])
    stop()
    assert heard[0] == LINE


@pytest.mark.parametrize(
    "job",
    [keyed("order 1"), fresh(place=Place(session="ann")), fresh(delay=timedelta(hours=1))],
    ids=["with a key", "in a session", "later"],
)
async def test_what_takes_more_than_a_statement_is_left_to_a_thread(
    postgres: PostgresStore, job: NewJob
) -> None:
    async with connected(postgres) as enqueue:
        assert await enqueue([job]) is None
        assert await enqueue([fresh(), job]) is None
    assert postgres.reports.job(job.id) is None


@pytest.mark.parametrize("many", [1, 3])
async def test_where_the_answer_is_lost_a_thread_sees_to_it_that_they_are_there_once(
    proxy: Proxy, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(on_loop, "CALL_SECONDS", DEADLINE)
    with opening(proxy.url, clock) as store:
        async with connected(store) as enqueue:
            before, jobs = ([fresh("ann") for _ in range(many)] for _ in range(2))
            assert await enqueue(before) == made(*before)  # the statement is prepared
            proxy.silent = True
            finish = await asyncio.wait_for(enqueue(jobs), 30)
            proxy.silent = False
            assert callable(finish)
            assert await enqueue([fresh()]) is None, "the connection is gone"
            assert [see(store, job.id).state for job in jobs] == [State.READY] * many, "it was committed"
            assert await asyncio.to_thread(finish) == made(*jobs)
        told = [row.subject for row in store.audit.list(limit=10)]
        assert sorted(told) == sorted(str(job.id) for job in (*before, *jobs))
        assert store.upkeep.check() == []


async def test_a_job_that_has_run_while_its_answer_was_lost_is_not_brought_back(
    proxy: Proxy, clock: ManualClock, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_loop, "CALL_SECONDS", DEADLINE)
    other = open_store(postgres_url, clock)
    with opening(proxy.url, clock) as store:
        async with connected(store) as enqueue:
            job = fresh()
            proxy.silent = True
            finish = await asyncio.wait_for(enqueue([job]), 30)
            proxy.silent = False
            worker = Worker(other)
            for lease in worker.lease(5, LINE):
                worker.settle(lease, DONE)
            assert callable(finish)
            assert await asyncio.to_thread(finish) == made(job)
            assert see(store, job.id).state is State.COMPLETED
            assert worker.lease(5, LINE) == []
    other.close()


async def test_where_the_connection_was_gone_before_it_was_sent_a_thread_makes_them(
    postgres: PostgresStore,
) -> None:
    async with connected(postgres) as enqueue:
        with psycopg.connect(postgres.url, autocommit=True) as other:
            other.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}".encode())
        jobs = [fresh(), fresh()]
        finish = await enqueue(jobs)
        assert callable(finish)
        assert await asyncio.to_thread(finish) == made(*jobs)
    assert [see(postgres, job.id).state for job in jobs] == [State.READY] * 2


@pytest.mark.parametrize("wrong", ["a standby", "no such name"])
async def test_it_is_seen_to_as_long_as_a_store_is_waited_for_also_by_a_first_connection(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """What would be hopeless at a start is not, where something may have been committed."""
    async with connected(postgres) as enqueue:
        with psycopg.connect(postgres.url, autocommit=True) as other:
            other.execute(f"SELECT pg_terminate_backend(pid, 5000) {OTHERS}".encode())
        for idle in postgres._database._idle:
            idle.close()
        postgres._database._idle.clear()
        looks = iter([True])
        if wrong == "a standby":
            monkeypatch.setattr(database, "is_standby", lambda connection: next(looks, False))
        else:
            connect = postgres._database.connect

            def unresolved() -> database.Connection:
                if next(looks, False):
                    raise psycopg.OperationalError("failed to resolve host 'db': Name or service not known")
                return connect()

            monkeypatch.setattr(postgres._database, "connect", unresolved)
        jobs = [fresh(), fresh()]
        finish = await enqueue(jobs)
        assert callable(finish)
        assert await asyncio.to_thread(finish) == made(*jobs)
        assert next(looks, None) is None


async def test_what_is_large_is_left_to_a_thread(postgres: PostgresStore) -> None:
    async with connected(postgres) as enqueue:
        large = [structs.replace(fresh(), payload=b"0" * (HERE_BYTES // 2 + 1)) for _ in range(2)]
        assert await enqueue(large) is None
        assert await enqueue(large[:1]) == made(large[0])


async def test_a_commit_that_is_under_way_when_the_loop_is_left_is_let_end(postgres: PostgresStore) -> None:
    """Whoever repeated it at once would be done with it before."""
    async with OnLoop(postgres._database) as here:
        for _ in range(10_000):  # it connects
            if await here.commit("SELECT 1", ()) is not None:
                break
            await asyncio.sleep(0)
        under_way = asyncio.create_task(here.commit("SELECT pg_sleep(0.3)", ()))
        await asyncio.sleep(0)
    assert await under_way is True


async def test_a_program_enqueues_by_it_and_elsewhere_on_threads(store_url: str) -> None:
    app = Lateshift("shop", store=store_url)

    @app.task
    async def pack(number: int) -> int:
        return number

    with testing(app, store=store_url) as kit:
        async with app.client.enqueuing_here():
            jobs = await asyncio.gather(*[pack.aenqueue(number) for number in range(20)])
            for number in range(200):  # on threads while it connects
                jobs.append(await pack.aenqueue(20 + number))
        jobs.append(await pack.aenqueue(220))
        await asyncio.to_thread(kit.drain)
        assert [job.result() for job in jobs] == list(range(221))


async def test_on_postgres_no_thread_is_needed(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = Lateshift("shop", store=postgres_url)

    @app.task
    async def pack(number: int) -> int:
        return number

    async with app.client.enqueuing_here():
        enqueue = app.store.jobs.enqueue
        by_thread: list[int] = []

        def counted(jobs: list[NewJob]) -> list[Enqueued]:
            by_thread.append(len(jobs))
            return enqueue(jobs)

        monkeypatch.setattr(app.store.jobs, "enqueue", counted)
        for _ in range(10_000):
            before = len(by_thread)
            await pack.aenqueue(1)
            if len(by_thread) == before:
                break
        by_thread.clear()
        await asyncio.gather(*[pack.aenqueue(number) for number in range(50)])
        assert by_thread == []
    app.close()
