"""What callers can say when they enqueue, and what they are told when it is wrong."""

import asyncio
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lateshift import JobFilter, Lateshift, Retry, State
from lateshift.errors import (
    ArgumentsInvalid,
    JobDead,
    JobUnknown,
    KeyConflict,
    LateshiftError,
    OptionInvalid,
    PayloadTooLarge,
    ResultTimeout,
    TaskInvalid,
    TaskUnknown,
)
from lateshift.model.ids import new_job_id

MANY = 20_000


def jobs_of(app: Lateshift) -> int:
    return len(app.store.reports.jobs(JobFilter(), 100))


def test_many_jobs_are_enqueued_in_bounded_memory(app: Lateshift) -> None:
    @app.task
    def count(number: int) -> None: ...

    app.enqueue_many(count.call(number) for number in range(2000))
    tracemalloc.start()
    try:
        assert app.enqueue_many(count.call(number) for number in range(MANY)) == MANY
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 1024 * 1024  # a chunk, not the whole: all of them at once would be several times that
    [queue] = app.store.queues.list()
    assert queue.ready == 10_000  # the count stops there


def test_repeating_calls_that_were_enqueued_makes_nothing_twice(app: Lateshift) -> None:
    @app.task
    def count(number: int) -> None: ...

    calls = [count.call(number) for number in range(50)]
    assert app.enqueue_many(calls) == 50
    assert app.enqueue_many(calls) == 0
    more = [*calls, count.call(50)]
    assert app.enqueue_many([*more, *more]) == 1
    assert jobs_of(app) == 51


def test_a_repeated_call_with_a_key_is_counted_once(app: Lateshift) -> None:
    @app.task
    def count(number: int) -> None: ...

    call = count.options(key="a").call(1)
    assert app.enqueue_many([call]) == 1
    assert app.enqueue_many([call]) == 0
    assert app.enqueue_many([count.options(key="a").call(1)]) == 0
    assert jobs_of(app) == 1


@pytest.mark.anyio
async def test_callers_that_wait_together_share_a_commit_and_each_gets_its_own_job(app: Lateshift) -> None:
    @app.task
    async def count(number: int) -> None: ...

    commits = 0
    enqueue = app.store.jobs.enqueue

    def counted(jobs: Any) -> Any:
        nonlocal commits
        commits += 1
        return enqueue(jobs)

    app.store.jobs.enqueue = counted  # type: ignore[method-assign]
    jobs = await asyncio.gather(*(count.aenqueue(number) for number in range(100)))
    assert len({job.id for job in jobs}) == 100
    assert commits <= 3
    assert jobs_of(app) == 100


@pytest.mark.anyio
async def test_one_callers_mistake_is_not_the_others(app: Lateshift) -> None:
    @app.task
    async def pay(cents: int) -> None: ...

    await pay.options(key="order-1").aenqueue(100)
    answers = await asyncio.gather(
        *(pay.aenqueue(number) for number in range(5)),
        pay.options(key="order-1").aenqueue(200),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers].count(KeyConflict) == 1
    assert jobs_of(app) == 6


def test_the_same_key_and_arguments_are_the_same_job_and_others_are_refused(app: Lateshift) -> None:
    @app.task
    def pay(cents: int) -> None: ...

    @app.task
    def mail(cents: int) -> None: ...

    first = pay.options(key="order-1").enqueue(100)
    again = pay.options(key="order-1", delay=timedelta(hours=1)).enqueue(100)
    assert (first.created, again.created, again.id) == (True, False, first.id)
    with pytest.raises(KeyConflict, match="order-1"):
        pay.options(key="order-1").enqueue(200)
    assert mail.options(key="order-1").enqueue(200).created  # another task's key is another key


def test_a_time_in_the_past_is_now_and_one_in_the_future_is_kept(app: Lateshift) -> None:
    @app.task
    def later() -> None: ...

    past = later.options(at=datetime(2020, 1, 1, tzinfo=UTC)).enqueue()
    future = later.options(at=datetime(2099, 1, 1, 12, tzinfo=UTC)).enqueue()
    assert past.state is State.READY
    assert (future.state, future.view().due_at) == (State.SCHEDULED, datetime(2099, 1, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"priority": 101}, "from -100 to 100"),
        ({"queue": "no spaces"}, "is no queue name"),
        ({"queue": ""}, "is no queue name"),
        ({"key": ""}, "1 to 200 characters"),
        ({"key": "x" * 201}, "1 to 200 characters"),
        ({"key": "x", "key_window": timedelta(0)}, "key_window"),
        ({"delay": timedelta(seconds=-1)}, "must not be negative"),
        ({"at": datetime(2026, 1, 1)}, "needs a time zone"),  # noqa: DTZ001
        ({"at": datetime(2026, 1, 1, tzinfo=UTC), "delay": timedelta(1)}, "not both"),
        ({"delay": timedelta.max}, "3,650 days"),
        ({"key": "k", "key_window": timedelta.max}, "3,650 days"),
        ({"key_window": timedelta(1)}, "give a key"),
        ({"key": 5}, "text"),
        ({"key": "a\0b"}, "cannot be stored"),
        ({"key": "a\ud800"}, "cannot be stored"),
    ],
)
def test_a_wrong_option_is_refused_and_nothing_is_enqueued(
    app: Lateshift, options: dict[str, Any], says: str
) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(OptionInvalid, match=says):
        work.options(**options).enqueue()
    assert jobs_of(app) == 0


def test_wrong_arguments_and_too_large_ones_are_refused_and_nothing_is_enqueued(app: Lateshift) -> None:
    @app.task
    def thumbnail(path: str, width: int = 200) -> None: ...

    with pytest.raises(ArgumentsInvalid, match="width"):
        thumbnail.enqueue("cat.png", width="wide")  # type: ignore[arg-type]
    with pytest.raises(PayloadTooLarge):
        thumbnail.enqueue("x" * 300_000)
    assert jobs_of(app) == 0


def test_tasks_that_cannot_be_are_refused_when_they_are_registered(app: Lateshift) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(TaskInvalid, match="already"):
        app.task(name="work")(lambda: None)
    with pytest.raises(TaskInvalid, match="named function"):
        app.task(lambda: None)
    with pytest.raises(OptionInvalid, match="process=True"):
        app.task(name="capped", memory=1)(lambda: None)
    with pytest.raises(OptionInvalid, match="time_limit"):
        app.task(name="instant", time_limit=timedelta(0))(lambda: None)
    wrong: list[dict[str, Any]] = [{"time_limit": 3}, {"keep": timedelta.max}, {"retry": 3}]
    for options in wrong:
        with pytest.raises(OptionInvalid, match=next(iter(options))):
            app.task(name="odd", **options)(lambda: None)
    with pytest.raises(TaskInvalid, match="name every parameter"):
        app.task(name="stars")(lambda *stars: None)
    with pytest.raises(OptionInvalid, match="base"):
        Retry(3, base=2)  # type: ignore[arg-type]
    with pytest.raises(TaskUnknown, match="Its tasks: work"):
        app.find_task("wrok")


def test_a_task_is_still_a_function(app: Lateshift) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(1, 2) == 3
    assert (add.name, add.__doc__) == ("add", "Adds.")


def test_a_job_that_nobody_runs_is_late_and_one_that_is_not_there_is_unknown(app: Lateshift) -> None:
    @app.task
    def work() -> None: ...

    job = work.enqueue()
    with pytest.raises(ResultTimeout, match="Is a worker running"):
        job.result(timedelta(0))
    assert app.job(str(job.id)).state is State.READY
    with pytest.raises(JobUnknown):
        app.job(new_job_id())


def test_what_belongs_inside_a_task_says_so_outside() -> None:
    from lateshift import progress

    with pytest.raises(LateshiftError, match="No task is running here"):
        progress(1)


def test_the_two_times_that_a_clock_shows_twice_are_two(app: Lateshift) -> None:
    @app.task
    def work() -> None: ...

    zone = ZoneInfo("Europe/Berlin")
    times = [datetime(2032, 10, 31, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1)]
    calls = [work.options(at=at).call() for at in times]
    app.enqueue_many(calls)
    assert [app.job(call.id).view().due_at for call in calls] == [at.astimezone(UTC) for at in times]


def test_an_error_in_the_middle_of_many_calls_says_how_many_are_enqueued(app: Lateshift) -> None:
    @app.task
    def work(number: int) -> None: ...

    def calls() -> Iterator[Any]:
        yield from (work.call(number) for number in range(1500))
        yield "not a call"

    with pytest.raises(OptionInvalid, match="takes calls") as caught:
        app.enqueue_many(calls())
    [note] = caught.value.__notes__
    assert note.startswith("1,000 jobs were enqueued before this, and stay. Repeating these very calls")
    assert [queue.ready for queue in app.store.queues.list()] == [1000]


def test_wrong_names_and_times_of_locks_and_waits_are_refused(app: Lateshift) -> None:
    @app.task
    def work() -> None: ...

    job = work.enqueue()
    wrongs: list[Callable[[], object]] = [
        lambda: app.lock(""),
        lambda: app.lock("a\0"),
        lambda: app.lock("a", ttl=timedelta(0)),
        lambda: app.lock("a", wait=1),  # type: ignore[arg-type]
        lambda: job.result(timeout=1),  # type: ignore[arg-type]
        lambda: app.job("nope"),
    ]
    for wrong in wrongs:
        with pytest.raises(OptionInvalid):
            wrong()
    with pytest.raises(ResultTimeout, match="it is ready"):
        job.result(timedelta(0))


@pytest.mark.anyio
async def test_a_result_that_is_not_what_the_annotation_says_is_a_dead_letter_that_says_so(
    app: Lateshift,
) -> None:
    @app.task
    async def number() -> int:
        return "no"  # type: ignore[return-value]

    async with app.running():
        job = await number.aenqueue()
        with pytest.raises(JobDead, match="the result cannot be kept"):
            await job.aresult(timedelta(seconds=20))
