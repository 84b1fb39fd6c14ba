"""User code that misbehaves in ways one would not think of: no job is lost, and no other job suffers."""

import asyncio
import sys
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from lateshift import NO_RETRY, JobFilter, Lateshift, State, progress
from lateshift.errors import JobCancelled, JobDead
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I cannot say")


class Undecided(Exception):
    @property
    def retry_after(self) -> float:
        raise RuntimeError("I do not know")


@dataclass
class Choosy:
    number: int

    def __post_init__(self) -> None:
        if self.number == 13:
            raise KeyError("not thirteen")


@pytest.fixture(params=["async", "thread"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("error", [Speechless, Undecided])
async def test_an_error_that_cannot_be_read_is_an_error_like_any_other(
    app: Lateshift, error: type[Exception], kind: str
) -> None:
    @app.task(retry=NO_RETRY)
    async def in_async() -> None:
        raise error

    @app.task(retry=NO_RETRY)
    def in_thread() -> None:
        raise error

    async with app.running():
        job = await (in_async if kind == "async" else in_thread).aenqueue()
        with pytest.raises(JobDead):
            await job.aresult(SOON)


async def test_arguments_that_raise_when_they_are_read_harm_no_other_job(
    app: Lateshift, store_url: str
) -> None:
    older = Lateshift("older", store=store_url)

    @older.task(name="take")
    async def before(choice: dict[str, int]) -> None: ...

    @app.task(name="take")
    async def take(choice: Choosy) -> int:
        return choice.number

    jobs = [await before.aenqueue({"number": number}) for number in (1, 2, 13, 3, 4)]
    async with app.running():
        good = [await app.job(job.id).aresult(SOON) for job in (jobs[0], jobs[1], jobs[3], jobs[4])]
        with pytest.raises(JobDead, match="undecodable"):
            await jobs[2].aresult(SOON)
    assert good == [1, 2, 3, 4]
    older.close()


async def test_a_body_that_exits_ends_its_job_and_nothing_else(app: Lateshift, kind: str) -> None:
    @app.task(retry=NO_RETRY)
    async def in_async() -> None:
        sys.exit(3)

    @app.task(retry=NO_RETRY)
    def in_thread() -> None:
        sys.exit(3)

    @app.task(retry=NO_RETRY)
    async def neighbour() -> str:
        await asyncio.sleep(0)
        return "unharmed"

    async with app.running():
        job = await (in_async if kind == "async" else in_thread).aenqueue()
        others = [await neighbour.aenqueue() for _ in range(3)]
        with pytest.raises(JobDead, match="SystemExit"):
            await job.aresult(SOON)
        assert [await other.aresult(SOON) for other in others] == ["unharmed"] * 3


async def test_a_progress_that_is_no_number_fails_its_own_job_only(app: Lateshift) -> None:
    seen = asyncio.Event()

    @app.task(retry=NO_RETRY)
    async def odd(value: str) -> None:
        progress(float(value) if value == "nan" else object())  # type: ignore[arg-type]

    @app.task
    async def good() -> None:
        progress(1, 2)
        await seen.wait()

    async with app.running():
        bad = [await odd.aenqueue(value) for value in ("nan", "object")]
        job = await good.aenqueue()
        for each in bad:
            with pytest.raises(JobDead):
                await each.aresult(SOON)
        view = await until(job.aview, lambda view: view.progress is not None)
        assert view.progress is not None
        assert view.progress.done == 1
        seen.set()
    assert len(app.store.reports.jobs(JobFilter(), 10)) == 3


async def test_a_job_cancelled_while_it_waits_for_a_slot_never_begins_and_its_slot_is_not_lost(
    app: Lateshift,
) -> None:
    begun: list[str] = []
    go = asyncio.Event()

    @app.task
    async def work(name: str) -> str:
        begun.append(name)
        await go.wait()
        return name

    app.settings = replace(app.settings, concurrency=1)
    first = await work.aenqueue("first")
    second = await work.aenqueue("second")
    async with app.running():
        await until(first.aview, lambda view: view.state is State.RUNNING)
        await second.acancel()
        go.set()
        assert await first.aresult(SOON) == "first"
        with pytest.raises(JobCancelled):
            await second.aresult(SOON)
        assert await (await work.aenqueue("third")).aresult(SOON) == "third"
    assert begun == ["first", "third"]


async def test_singletons_take_their_places_from_the_threads_they_run_on(app: Lateshift) -> None:
    app.settings = replace(app.settings, threads=1)
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    @app.task
    def busy() -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(20)

    @app.task(singleton=True)
    def alone() -> str:
        return "alone"

    async with app.running():
        first = await busy.aenqueue()
        await until(first.aview, lambda view: view.state is State.RUNNING)
        waiting = await alone.aenqueue()
        other = await busy.aenqueue()
        await until(other.aview, lambda view: view.state is State.READY)
        release.set()
        assert await waiting.aresult(SOON) == "alone"
    assert waiting.view().fence <= 2  # not leased and handed back again and again
