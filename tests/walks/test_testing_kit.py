"""The kit for users' own tests: jobs run by hand, time travel, assertions; and the app is as it was afterwards."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest

from lateshift import Lateshift, Limit, Permanent, Retry, Snooze, State, current
from lateshift.clock import SYSTEM
from lateshift.errors import ArgumentsInvalid, JobDead, NotDrained, ResultTimeout, UsageError
from lateshift.testing import Kit, assert_enqueued, assert_not_enqueued, enqueued, testing

HOUR = timedelta(hours=1)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=f"sqlite:///{tmp_path}/jobs.db")
    yield app
    app.close()


@pytest.fixture
def kit(app: Lateshift) -> Iterator[Kit]:
    with testing(app) as kit:
        yield kit


# The app


def test_the_app_is_on_memory_in_the_block_and_as_it_was_afterwards(app: Lateshift, tmp_path: Path) -> None:
    @app.task
    def work() -> None: ...

    before = work.enqueue()
    settings, store = app.settings, app.store
    with testing(app) as kit:
        assert app.settings.store == "memory://"
        assert app.clock is kit.clock
        work.enqueue()
        assert len(kit.drain()) == 1
    assert (app.settings, app.store, app.clock) == (settings, store, SYSTEM)
    assert before.state is State.READY
    assert app.store.queues.list()[0].ready == 1


def test_an_app_whose_store_was_never_opened_makes_no_file(app: Lateshift, tmp_path: Path) -> None:
    app.task(name="work")(lambda: None)
    with testing(app):
        app.find_task("work")
    assert list(tmp_path.iterdir()) == []


def test_each_kit_begins_with_nothing(app: Lateshift) -> None:
    @app.task
    def work() -> None: ...

    for _ in range(2):
        with testing(app) as kit:
            assert kit.drain() == []
            work.enqueue()
            assert len(kit.enqueued()) == 1


def test_an_app_that_is_closed_within_the_block_does_no_harm(app: Lateshift, kit: Kit) -> None:
    @app.task
    def work() -> None: ...

    work.enqueue()
    app.close()
    kit.assert_enqueued(work)


# Running


def test_drain_runs_what_is_ready_and_what_that_makes(app: Lateshift, kit: Kit) -> None:
    @app.task
    def parent(number: int) -> str:
        child.enqueue(number + 1)
        return "parent"

    @app.task(queue="other")
    async def child(number: int) -> int:
        return number

    job = parent.enqueue(1)
    ran = kit.drain()
    assert [(each.task, each.attempt, each.ended, each.result) for each in ran] == [
        ("parent", 1, "completed", "parent"),
        ("child", 1, "completed", 2),
    ]
    assert kit.result(job) == "parent"
    assert kit.ran(child) == ran[1:]
    assert kit.drain() == []


@pytest.mark.anyio
async def test_adrain_runs_coroutines_on_this_loop_and_plain_functions_on_threads(app: Lateshift) -> None:
    @app.task
    async def here() -> bool:
        return asyncio.get_running_loop() is loop

    @app.task
    def there() -> str:
        return threading.current_thread().name

    loop = asyncio.get_running_loop()
    async with testing(app) as kit:
        jobs = await here.aenqueue(), await there.aenqueue()
        assert len(await kit.adrain()) == 2
        assert kit.result(jobs[0])
        assert kit.result(jobs[1]).startswith("lateshift-job")


@pytest.mark.parametrize("options", [{}, {"process": True}, {"singleton": True}], ids=str)
def test_plain_functions_run_on_the_tests_own_thread_without_a_loop(
    app: Lateshift, kit: Kit, options: dict[str, bool]
) -> None:
    seen: list[object] = []
    variable = ContextVar("variable", default="none")
    variable.set("the test's")

    async def nothing() -> None: ...

    @app.task(**options)  # type: ignore[call-overload, untyped-decorator]
    def work() -> None:
        asyncio.run(nothing())
        seen.append((threading.current_thread(), variable.get()))

    for _ in range(3):
        work.enqueue()
    assert len(kit.drain()) == 3
    assert seen == [(threading.current_thread(), "the test's")] * 3


def test_a_failure_is_tried_again_only_when_the_clock_was_moved(app: Lateshift, kit: Kit) -> None:
    @app.task(retry=Retry(attempts=2, base=HOUR))
    def fragile() -> int:
        if current().attempt == 1:
            raise ConnectionError("not yet")
        return current().attempt

    job = fragile.enqueue()
    [ran] = kit.drain()
    assert (ran.ended, ran.error) == ("failed", "ConnectionError: not yet")
    with pytest.raises(ResultTimeout):
        kit.result(job)
    assert kit.drain() == []
    kit.clock.move(hours=1)
    assert [each.ended for each in kit.drain()] == ["completed"]
    assert kit.result(job) == 2


def test_dead_letters_can_be_read(app: Lateshift, kit: Kit) -> None:
    @app.task
    def hopeless(number: int) -> None:
        raise Permanent(f"no {number}")

    jobs = [hopeless.enqueue(number) for number in range(2)]
    assert [ran.ended for ran in kit.drain()] == ["dead", "dead"]
    dead = kit.dead_letters(hopeless)
    assert [view.id for view in dead] == [job.id for job in jobs]
    assert dead[1].history[-1].message == "no 1"
    with pytest.raises(JobDead, match="no 0"):
        kit.result(jobs[0])


def test_a_job_of_a_member_that_fell_silent_runs_again(app: Lateshift, kit: Kit) -> None:
    @app.task
    def moves_the_clock() -> int:
        if current().attempt == 1:
            kit.clock.move(minutes=5)  # the worker's heartbeat is over, though it runs on
        return current().attempt

    job = moves_the_clock.enqueue()
    kit.drain()
    kit.drain()
    assert job.state is State.COMPLETED


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_what_is_meant_for_the_test_reaches_it_through_a_body(app: Lateshift, kit: Kit, kind: str) -> None:
    @app.task
    def plain() -> None:
        pytest.fail("not this one")

    @app.task
    async def waiting() -> None:
        pytest.fail("not this one")

    job = (plain if kind == "thread" else waiting).enqueue()
    with pytest.raises(pytest.fail.Exception, match="not this one"):
        kit.drain()
    assert (job.state, job.view().attempt) == (State.READY, 0)


# Time


def test_what_is_delayed_waits_for_the_clock(app: Lateshift, kit: Kit) -> None:
    @app.task
    def work() -> None: ...

    work.options(delay=3 * HOUR).enqueue()
    work.options(at=datetime(2099, 1, 1, tzinfo=UTC)).enqueue()
    assert kit.drain() == []
    kit.clock.move(hours=2, minutes=59)
    assert kit.drain() == []
    kit.clock.move(minutes=1)
    assert len(kit.drain()) == 1
    kit.clock.move_to(datetime(2099, 1, 1, tzinfo=UTC))
    assert len(kit.drain()) == 1


def test_the_clock_stands_still_between_moves(kit: Kit) -> None:
    first = kit.clock.now()
    assert kit.clock.now() == first
    kit.clock.move(days=1)
    assert kit.clock.now() - first == timedelta(days=1)


def test_travelling_runs_each_job_at_its_own_time(app: Lateshift, kit: Kit) -> None:
    start, seen = kit.clock.now(), []

    @app.task
    def hourly() -> None:
        seen.append(app.clock.now() - start)
        hourly.options(delay=HOUR).enqueue()

    @app.task
    def polls() -> None:
        raise Snooze(timedelta(minutes=50))

    hourly.enqueue()
    polls.enqueue()
    ran = kit.travel(hours=3)
    assert seen == [0 * HOUR, HOUR, 2 * HOUR, 3 * HOUR]
    assert [each.task for each in ran].count("polls") == 4
    assert kit.clock.now() - start == 3 * HOUR


def test_travelling_fires_what_the_app_schedules_each_tick_at_its_time(app: Lateshift, kit: Kit) -> None:
    days: list[datetime] = []

    @app.task
    def report(day: datetime) -> None:
        days.append(day)
        assert app.clock.now() == day

    app.schedule(report, cron="0 2 * * *", timezone="Europe/Madrid", tick_as="day")
    kit.clock.move_to(datetime(2026, 3, 27, 12, tzinfo=UTC))
    assert [ran.task for ran in kit.travel(days=3)] == ["report"] * 3
    assert [day.hour for day in days] == [1, 1, 0]  # at 02:00 in Madrid; on the 29th the clocks skip it


@pytest.mark.anyio
async def test_async_code_travels_too(app: Lateshift) -> None:
    @app.task
    async def work() -> None: ...

    async with testing(app) as kit:
        await work.options(delay=HOUR).aenqueue()
        assert await kit.atravel(minutes=59) == []
        assert len(await kit.atravel(minutes=1)) == 1


# Inline


def test_inline_an_enqueue_returns_when_all_that_came_of_it_has_run(app: Lateshift, kit: Kit) -> None:
    @app.task
    def parent() -> None:
        child.enqueue(1)
        seen.append("parent")

    @app.task
    async def child(number: int) -> int:
        seen.append("child")
        return number

    seen: list[str] = []
    with kit.inline():
        parent.enqueue()
        assert seen == ["parent", "child"]
        assert kit.result(child.options(queue="other").enqueue(7)) == 7
        app.enqueue_many(child.call(number) for number in range(3))
    assert len(seen) == 6
    job = child.enqueue(8)
    assert job.state is State.READY


@pytest.mark.anyio
async def test_inline_async_callers_find_their_jobs_done_on_their_own_loop(app: Lateshift) -> None:
    @app.task
    async def double(number: int) -> int:
        assert asyncio.get_running_loop() is loop
        return 2 * number

    loop = asyncio.get_running_loop()
    async with testing(app) as kit:
        with kit.inline():
            jobs = await asyncio.gather(*(double.aenqueue(number) for number in range(5)))
            assert [kit.result(job) for job in jobs] == [0, 2, 4, 6, 8]
            assert kit.result(await double.aenqueue(9)) == 18


# Assertions


def test_what_was_enqueued_is_found_by_the_arguments_that_are_named(app: Lateshift, kit: Kit) -> None:
    @app.task(queue="images")
    def thumbnail(path: str, width: int = 200, tags: tuple[str, ...] = ()) -> None: ...

    thumbnail.enqueue("cat.png")
    thumbnail.options(queue="slow", key="one").enqueue("cat.png", width=100, tags=("a",))
    thumbnail.options(queue="slow", key="one").enqueue("cat.png", width=100, tags=("a",))
    kit.drain()
    assert_enqueued(thumbnail)
    assert_enqueued(thumbnail, "cat.png", times=2)
    assert_enqueued(thumbnail, path="cat.png", width=200, times=1)
    assert_enqueued(thumbnail, "cat.png", tags=["a"], queue="slow", times=1)
    assert_enqueued(thumbnail, mock.ANY, width=100)
    assert_not_enqueued(thumbnail, "dog.png")
    assert_not_enqueued(thumbnail, "cat.png", width=100, queue="images")
    first, second = enqueued(thumbnail)
    assert (first.arguments, first.queue, first.key) == ({"path": "cat.png"}, "images", None)
    assert (second.queue, second.key) == ("slow", "one")


def test_a_failed_assertion_shows_what_was_enqueued_instead(app: Lateshift, kit: Kit) -> None:
    @app.task
    def thumbnail(path: str) -> None: ...

    @app.task
    def pack(order: int) -> None: ...

    thumbnail.options(delay=HOUR, key="k").enqueue("cat.png")
    pack.enqueue(1)
    with pytest.raises(AssertionError) as failure:
        kit.assert_enqueued(thumbnail, "dog.png", queue="images")
    assert str(failure.value).splitlines() == [
        "thumbnail(path='dog.png') on images was not enqueued.",
        "Enqueued of thumbnail:",
        "  thumbnail(path='cat.png') on default, in 1:00:00, key 'k'",
        "Of other tasks: pack (1)",
    ]
    with pytest.raises(AssertionError, match="was enqueued once, not twice"):
        kit.assert_enqueued(thumbnail, times=2)
    with pytest.raises(AssertionError, match=r"pack\(order=1\) was enqueued once\."):
        kit.assert_not_enqueued(pack, 1)


def test_a_tasks_own_argument_goes_before_an_option_of_that_name(app: Lateshift, kit: Kit) -> None:
    @app.task
    def serve(queue: str, times: int) -> None: ...

    serve.enqueue("front", 3)
    kit.assert_enqueued(serve, queue="front", times=3)
    kit.assert_not_enqueued(serve, queue="default")


# Misuse


def test_a_job_that_makes_another_each_time_ends_the_drain_with_its_name(app: Lateshift, kit: Kit) -> None:
    @app.task
    def again() -> None:
        again.enqueue()

    again.enqueue()
    with pytest.raises(NotDrained, match=r"2\d attempts ran and more.*again \(2\d\).*limit="):
        kit.drain(limit=20)
    assert kit.app.store.reports.running(10) == []


def test_a_job_that_does_not_end_ends_the_drain_with_its_name(app: Lateshift, kit: Kit) -> None:
    @app.task
    async def stuck() -> None:
        await asyncio.Event().wait()

    job = stuck.enqueue()
    with pytest.raises(NotDrained, match=r"still running: stuck \(1\).*patience="):
        kit.drain(patience=timedelta(milliseconds=20))
    assert (job.state, job.view().attempt) == (State.READY, 0)


@pytest.mark.anyio
async def test_plain_calls_in_async_code_are_refused_with_the_right_ones(app: Lateshift) -> None:
    async with testing(app) as kit:
        with pytest.raises(UsageError, match=r"await kit\.adrain"):
            kit.drain()
        with pytest.raises(UsageError, match=r"await kit\.atravel"):
            kit.travel(hours=1)


def test_a_kit_that_is_not_open_is_refused(app: Lateshift) -> None:
    @app.task
    def work(number: int) -> None: ...

    kit = testing(app)
    for use in (kit.drain, lambda: assert_enqueued(work, 1)):
        with pytest.raises(UsageError, match=r"with testing\(app\) as kit"):
            use()
    with kit, pytest.raises(UsageError, match="Make another"):
        kit.__enter__()
    with kit_of(app), pytest.raises(ArgumentsInvalid, match=r"work: .*It takes \(number\)"):
        assert_enqueued(work, 1, 2)


def kit_of(app: Lateshift) -> Kit:
    return testing(app)


def test_the_package_does_not_import_pytest() -> None:
    program = "import lateshift.testing, sys; assert not {'pytest', '_pytest'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_another_store_can_be_tested_on_so_that_a_callers_transaction_reaches_it(
    app: Lateshift, tmp_path: Path
) -> None:
    @app.task
    def work(number: int) -> None: ...

    with testing(app, store=f"sqlite:///{tmp_path}/test.db?driver=sqlite3") as kit:
        for number in range(2):
            own = sqlite3.connect(tmp_path / "test.db")
            own.execute("BEGIN")
            work.options(connection=own).enqueue(number)
            own.rollback() if number else own.commit()
            own.close()
        kit.assert_enqueued(work, 0)
        assert len(kit.drain()) == 1


def test_travelling_passes_the_time_that_a_missing_number_is_waited_for(app: Lateshift, kit: Kit) -> None:
    @app.task
    def part(number: int) -> None: ...

    part.options(session="s", sequence=2, gap_after=timedelta(minutes=1)).enqueue(2)
    assert kit.drain() == []
    assert [ran.task for ran in kit.travel(minutes=2)] == ["part"]


def test_what_guards_a_job_is_seen_in_what_was_enqueued(app: Lateshift, kit: Kit) -> None:
    app.limit("vendor", Limit(concurrency=1))

    @app.task
    def part(number: int) -> None: ...

    part.options(session="s", sequence=2, tenant="acme", limit_key="vendor:x").enqueue(2)
    [sent] = kit.enqueued(part)
    assert (sent.session, sent.sequence, sent.tenant, sent.limit_key) == ("s", 2, "acme", "vendor:x")
