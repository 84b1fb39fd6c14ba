"""Between two filters stands a bounded queue: while it is full the filter before it waits, and so on up to whoever puts items in."""

import pytest

from lateshift import JobFilter, Lateshift, QueueFull, State
from lateshift.testing import Kit

MOST = 3


def count(app: Lateshift, queue: str) -> int:
    return app.store.queues.waiting(queue, 1000)


def all_begin(app: Lateshift, kit: Kit, queue: str) -> None:
    """The jobs of all items come to this queue before one of them runs: a filter that has some in hand may begin others until those have
    come to the next queue."""
    app.store.queues.pause(queue, by="the test")
    kit.drain()
    app.store.queues.resume(queue, by="the test")
    kit.drain()


def test_a_filter_waits_while_the_queue_after_it_is_full_and_all_items_come_through(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    app.queue("second", max_ready=MOST)

    @app.task(queue="first")
    def parse(number: int) -> int:
        done.append(f"parse {number}")
        return number

    @app.task(queue="second")
    def store(number: int) -> int:
        return number * 10

    pipeline = app.pipeline(parse | store, queue="items")
    app.store.queues.pause("second", by="the test")
    jobs = [pipeline.enqueue(number) for number in range(20)]
    all_begin(app, kit, "first")
    assert count(app, "second") == len(done) == MOST
    waiting = app.store.reports.jobs(JobFilter(queue="first", state=State.BLOCKED), 100)
    assert {(view.state, view.attempt) for view in waiting} == {(State.BLOCKED, 0)}
    [reason] = [it for it in app.job(waiting[0].id).explain().reasons if it.code == "queue_behind_full"]
    assert f"goes to queue second, where {MOST} of at most {MOST} wait" in reason.says
    app.store.queues.resume("second", by="the test")
    for _ in range(20):
        kit.drain()
    assert [kit.result(job) for job in jobs] == [number * 10 for number in range(20)]


def test_it_goes_on_up_to_whoever_puts_items_in(app: Lateshift, kit: Kit) -> None:
    for queue in ("first", "second", "third"):
        app.queue(queue, max_ready=MOST)

    @app.task(queue="first")
    def parse(number: int) -> int:
        return number

    @app.task(queue="second")
    def enrich(number: int) -> int:
        return number

    @app.task(queue="third")
    def store(number: int) -> int:
        return number

    pipeline = app.pipeline(parse | enrich | store)
    app.store.queues.pause("third", by="the test")
    jobs = []
    with pytest.raises(QueueFull):
        for number in range(100):
            jobs.append(pipeline.enqueue(number))
            kit.drain()
    # Three in the last queue, and as many before each of the others, and at most what one filter had in hand.
    assert 3 * MOST <= len(jobs) <= 3 * MOST + 3
    app.store.queues.resume("third", by="the test")
    for _ in range(20):
        kit.drain()
    assert [kit.result(job) for job in jobs] == list(range(len(jobs)))


def test_a_filter_with_options_waits_too_and_its_task_elsewhere_does_not(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    app.queue("second", max_ready=MOST)

    @app.task(queue="first")
    def parse(number: int) -> int:
        done.append(f"parse {number}")
        return number

    @app.task(queue="second")
    def store(number: int) -> int:
        return number

    parse.enqueue(100)  # before the pipeline is built
    pipeline = app.pipeline(parse.options(queue="slow", priority=3) | store, queue="items")
    app.store.queues.pause("second", by="the test")
    jobs = [pipeline.enqueue(number) for number in range(10)]
    all_begin(app, kit, "slow")
    assert count(app, "second") == MOST
    elsewhere = parse.enqueue(200)
    kit.drain()
    assert kit.result(elsewhere) == 200
    app.store.queues.resume("second", by="the test")
    for _ in range(20):
        kit.drain()
    assert [kit.result(job) for job in jobs] == list(range(10))
