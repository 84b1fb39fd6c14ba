"""What becomes of a job, from enqueue to its end, on both stores, with a worker in this process."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from lateshift import (
    NO_RETRY,
    Cancel,
    Lateshift,
    Permanent,
    Retry,
    Snooze,
    State,
    acheckpoint,
    checkpoint,
    current,
    last_checkpoint,
    progress,
)
from lateshift.errors import JobCancelled, JobDead
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)
AT_ONCE = Retry(attempts=3, base=timedelta(0))


async def test_an_async_task_gives_its_result(app: Lateshift) -> None:
    @app.task
    async def add(a: int, b: int = 2) -> int:
        return a + b

    async with app.running():
        assert await (await add.aenqueue(1)).aresult(SOON) == 3
        assert await (await add.aenqueue(1, b=5)).aresult(SOON) == 6


async def test_a_sync_task_runs_on_a_thread_and_gives_its_result(app: Lateshift) -> None:
    @app.task
    def where() -> str:
        return threading.current_thread().name

    async with app.running():
        assert (await (await where.aenqueue()).aresult(SOON)).startswith("lateshift-job")


async def test_a_job_that_fails_is_tried_again_and_its_failures_are_kept(app: Lateshift) -> None:
    @app.task(retry=AT_ONCE)
    async def third_time() -> int:
        if current().attempt < 3:
            raise ConnectionError("not yet")
        return current().attempt

    async with app.running():
        job = await third_time.aenqueue()
        assert await job.aresult(SOON) == 3
    records = job.view().history
    assert [(record.attempt, record.reason, record.error) for record in records] == [
        (1, "failed", "ConnectionError"),
        (2, "failed", "ConnectionError"),
    ]
    assert "not yet" in (records[0].traceback or "")


async def test_a_job_out_of_attempts_is_a_dead_letter_with_its_reason_and_can_be_resubmitted(
    app: Lateshift,
) -> None:
    broken = True

    @app.task(retry=AT_ONCE)
    async def fragile() -> str:
        if broken:
            raise ValueError("no good")
        return "mended"

    async with app.running():
        job = await fragile.aenqueue()
        with pytest.raises(JobDead, match="no good"):
            await job.aresult(SOON)
        view = job.view()
        assert (view.state, view.reason, view.attempt, len(view.history)) == (State.DEAD, "exhausted", 3, 3)
        broken = False
        assert app.client.resubmit([job.id]) == [job.id]
        assert await job.aresult(SOON) == "mended"
    assert job.view().fence == 4


@pytest.mark.parametrize("error", [Permanent("never"), KeyError("listed")])
async def test_a_permanent_failure_is_not_tried_again(app: Lateshift, error: Exception) -> None:
    @app.task(retry=Retry(attempts=5, never=(KeyError,)))
    async def hopeless() -> None:
        raise error

    async with app.running():
        job = await hopeless.aenqueue()
        with pytest.raises(JobDead):
            await job.aresult(SOON)
    assert (job.view().reason, job.view().attempt) == ("permanent", 1)


async def test_a_snooze_runs_the_job_again_and_counts_no_attempt(app: Lateshift) -> None:
    calls: list[int] = []

    @app.task(retry=NO_RETRY)
    async def polite() -> int:
        calls.append(current().attempt)
        if len(calls) < 3:
            raise Snooze(timedelta(milliseconds=1))
        return current().fence

    async with app.running():
        assert await (await polite.aenqueue()).aresult(SOON) == 3
    assert calls == [1, 1, 1]


async def test_a_task_can_cancel_its_own_job(app: Lateshift) -> None:
    @app.task
    def changed_its_mind() -> None:
        raise Cancel("not needed")

    async with app.running():
        job = await changed_its_mind.aenqueue()
        with pytest.raises(JobCancelled, match="not needed"):
            await job.aresult(SOON)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_checkpoint_is_given_to_the_next_attempt(app: Lateshift, kind: str) -> None:
    seen: list[int] = []

    @app.task(retry=AT_ONCE)
    async def in_async() -> None:
        seen.append(last_checkpoint(0))
        await acheckpoint(seen[-1] + 10)
        if len(seen) < 3:
            raise OSError("again")

    @app.task(retry=AT_ONCE)
    def in_thread() -> None:
        seen.append(last_checkpoint(0))
        checkpoint(seen[-1] + 10)
        if len(seen) < 3:
            raise OSError("again")

    async with app.running():
        await (await (in_async if kind == "async" else in_thread).aenqueue()).aresult(SOON)
    assert seen == [0, 10, 20]


async def test_progress_is_seen_while_the_job_runs(app: Lateshift) -> None:
    seen = asyncio.Event()

    @app.task
    async def long() -> None:
        progress(3, 10, "three of ten")
        await seen.wait()

    async with app.running():
        job = await long.aenqueue()
        view = await until(job.aview, lambda view: view.progress is not None)
        assert view.progress is not None
        assert (view.progress.done, view.progress.total, view.progress.note) == (3, 10, "three of ten")
        seen.set()
        await job.aresult(SOON)


async def test_a_waiting_job_is_cancelled_at_once(app: Lateshift) -> None:
    @app.task
    async def never() -> None: ...

    job = await never.aenqueue()
    assert await job.acancel()
    assert job.state is State.CANCELLED
    assert not await job.acancel()


async def test_a_running_coroutine_is_told_that_it_is_cancelled(app: Lateshift) -> None:
    running, told = asyncio.Event(), asyncio.Event()

    @app.task
    async def endless() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    async with app.running():
        job = await endless.aenqueue()
        await running.wait()
        assert await job.acancel()
        with pytest.raises(JobCancelled):
            await job.aresult(SOON)
    assert told.is_set()


async def test_a_running_thread_sees_that_it_is_cancelled(app: Lateshift) -> None:
    running = threading.Event()

    @app.task
    def endless() -> None:
        running.set()
        while not current().should_stop:
            threading.Event().wait(0.005)
        progress(1)

    async with app.running():
        job = await endless.aenqueue()
        await asyncio.to_thread(running.wait)
        assert await job.acancel()
        with pytest.raises(JobCancelled):
            await job.aresult(SOON)


async def test_a_cancelled_job_that_fails_is_not_tried_again(app: Lateshift) -> None:
    running, go = asyncio.Event(), asyncio.Event()

    @app.task(retry=AT_ONCE)
    async def failing() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("on the way out") from None

    async with app.running():
        job = await failing.aenqueue()
        await running.wait()
        await job.acancel()
        go.set()
        with pytest.raises(JobCancelled):
            await job.aresult(SOON)
    assert job.view().attempt == 1


async def test_an_attempt_past_its_time_limit_is_ended_and_tried_again(app: Lateshift) -> None:
    @app.task(time_limit=timedelta(milliseconds=300), retry=Retry(attempts=2, base=timedelta(0)))
    async def slow_at_first() -> int:
        if current().attempt == 1:
            await asyncio.Event().wait()
        return current().attempt

    async with app.running():
        job = await slow_at_first.aenqueue()
        assert await job.aresult(SOON) == 2
    assert [record.reason for record in job.view().history] == ["complete_by"]


async def test_a_task_nobody_here_knows_goes_back_and_burns_no_attempt(
    app: Lateshift, store_url: str
) -> None:
    newer = Lateshift("newer", store=store_url)

    @newer.task(retry=NO_RETRY)
    async def brand_new() -> str:
        return "known"

    @app.task
    async def old() -> None: ...

    job = await brand_new.aenqueue()
    async with app.running():
        await until(job.aview, lambda view: view.fence >= 1 and view.state is State.SCHEDULED)
        assert job.view().attempt == 0
    async with newer.running():
        assert await job.aresult(SOON) == "known"
    newer.close()


async def test_arguments_that_no_longer_fit_make_a_dead_letter_and_the_queue_flows(
    app: Lateshift, store_url: str
) -> None:
    older = Lateshift("older", store=store_url)

    @older.task(name="greet")
    async def greet_before(name: str) -> None: ...

    @app.task(name="greet")
    async def greet_now(names: list[str]) -> int:
        return len(names)

    bad = await greet_before.aenqueue("Ada")
    good = await greet_now.aenqueue(["Ada", "Grace"])
    async with app.running():
        assert await good.aresult(SOON) == 2
        with pytest.raises(JobDead, match="undecodable"):
            await bad.aresult(SOON)
    older.close()


async def test_a_result_that_cannot_be_kept_makes_a_dead_letter_without_a_second_run(app: Lateshift) -> None:
    runs: list[int] = []

    @app.task
    async def gives_a_lock() -> object:
        runs.append(1)
        return threading.Lock()

    async with app.running():
        with pytest.raises(JobDead, match="result cannot be kept"):
            await (await gives_a_lock.aenqueue()).aresult(SOON)
    assert runs == [1]


async def test_a_stopping_worker_hands_running_jobs_back_and_burns_no_attempt(app: Lateshift) -> None:
    running = asyncio.Event()

    @app.task(retry=NO_RETRY)
    async def endless() -> None:
        running.set()
        await asyncio.Event().wait()

    async with app.running():
        job = await endless.aenqueue()
        await running.wait()
    view = job.view()
    assert (view.state, view.attempt, view.fence, view.holder) == (State.READY, 0, 1, None)


async def test_a_singleton_has_one_running_job_at_a_time(app: Lateshift) -> None:
    at_once = 0
    most = 0

    @app.task(singleton=True)
    async def alone(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return number

    jobs = [await alone.aenqueue(number) for number in range(8)]
    async with app.running(), app.running():
        assert [await job.aresult(SOON) for job in jobs] == list(range(8))
    assert most == 1


async def test_a_paused_queue_gives_no_jobs_until_it_is_resumed(app: Lateshift) -> None:
    @app.task(queue="held")
    async def held() -> str:
        return "held"

    @app.task
    async def free() -> str:
        return "free"

    app.store.queues.pause("held", by="me")
    waiting = await held.aenqueue()
    async with app.running():
        assert await (await free.aenqueue()).aresult(SOON) == "free"
        assert waiting.state is State.READY
        app.store.queues.resume("held", by="me")
        assert await waiting.aresult(SOON) == "held"


async def test_a_delayed_job_starts_when_it_is_due_and_not_before(app: Lateshift) -> None:
    @app.task
    async def later() -> None: ...

    job = await later.options(delay=timedelta(milliseconds=300)).aenqueue()
    assert job.state is State.SCHEDULED
    async with app.running():
        await job.aresult(SOON)
    view = job.view()
    assert view.started_at is not None
    assert view.started_at >= view.due_at


async def test_quick_and_slow_jobs_beside_each_other_all_end(app: Lateshift) -> None:
    @app.task
    def quick(number: int) -> int:
        return number

    @app.task
    def slow() -> str:
        threading.Event().wait(0.6)
        return "slow"

    app.enqueue_many(quick.call(number) for number in range(400))
    slow_ones = [await slow.aenqueue() for _ in range(20)]
    app.enqueue_many(quick.call(number) for number in range(400))
    async with app.running():
        assert [await job.aresult(SOON) for job in slow_ones] == ["slow"] * 20
        await until(
            lambda: asyncio.to_thread(app.store.queues.list),
            lambda queues: not any(q.ready + q.running for q in queues),
        )
    assert app.store.upkeep.check() == []


async def test_a_thread_that_runs_past_its_time_limit_keeps_no_room_and_writes_nothing(
    app: Lateshift,
) -> None:
    go_on = threading.Event()
    refused: list[bool] = []

    @app.task(time_limit=timedelta(milliseconds=200), retry=NO_RETRY)
    def deaf() -> str:
        go_on.wait(20)
        refused.append(current().should_stop)
        return "too late"

    @app.task
    def quick() -> str:
        return "done"

    app.settings = replace(app.settings, threads=1)
    async with app.running():
        stuck = await deaf.aenqueue()
        with pytest.raises(JobDead, match="complete_by"):
            await stuck.aresult(SOON)
        assert await (await quick.aenqueue()).aresult(SOON) == "done"  # on another thread
        go_on.set()
        await until(lambda: asyncio.sleep(0), lambda _: bool(refused))
        assert await (await quick.aenqueue()).aresult(SOON) == "done"
    assert refused == [True]
    assert stuck.state is State.DEAD
