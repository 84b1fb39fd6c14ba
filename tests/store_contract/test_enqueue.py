"""Enqueue: accepted means kept, once, as it was given."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.ids import new_job_id
from lateshift.model.job import JobFilter, NewJob, State
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import DONE, HOUR, Worker, added, keyed, make_job, see


def test_an_enqueued_job_is_ready_with_all_that_was_asked_for(store: Store) -> None:
    job = make_job(task="paint", queue="images", priority=7, attempts=4, payload=b'["cat.png"]')

    [answer] = store.jobs.enqueue([job])

    assert (answer.id, answer.created) == (job.id, True)
    view = see(store, job.id)
    assert (view.task, view.queue, view.priority, view.attempts) == ("paint", "images", 7, 4)
    assert (view.state, view.attempt, view.fence, view.losses) == (State.READY, 0, 0, 0)
    assert (view.payload, view.holder, view.result, view.reason) == (b'["cat.png"]', None, None, None)
    assert (view.started_at, view.complete_by, view.settled_at) == (None, None, None)


def test_a_job_is_there_for_every_other_connection_once_enqueue_has_answered(store: Store) -> None:
    other = open_store(store.url, store.clock)
    [id] = added(store, make_job())

    assert see(other, id).state is State.READY
    other.close()


def test_answers_come_in_the_order_of_the_jobs_whatever_their_specs(store: Store) -> None:
    jobs = [make_job(queue=name, key=None) for name in "abacab"]

    answers = store.jobs.enqueue(jobs)

    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert [see(store, job.id).queue for job in jobs] == list("abacab")


@pytest.mark.parametrize("count", [2, 150])
def test_jobs_of_callers_who_wait_together_are_all_kept_and_may_be_sent_again(
    store: Store, count: int
) -> None:
    spec = make_job(task="paint").spec
    jobs = [NewJob(new_job_id(), spec, b"[%d]" % n, None, True) for n in range(count)]

    assert [answer.id for answer in store.jobs.enqueue(jobs)] == [job.id for job in jobs]
    store.jobs.enqueue([replace(job, first=False) for job in jobs])

    assert [see(store, job.id).payload for job in jobs] == [job.payload for job in jobs]
    assert {see(store, job.id).state for job in jobs} == {State.READY}
    assert len(store.reports.jobs(JobFilter(), 1000)) == count


# About the sizes of the blocks in which a store writes them.
COUNTS = pytest.mark.parametrize(
    "count", [1, 9, 10, 11, 19, 20, 21, 89, 99, 100, 101, 109, 110, 111, 119, 120, 199, 200, 211]
)


@COUNTS
def test_jobs_that_are_sent_together_are_all_there_however_many_they_are(
    store: Store, clock: ManualClock, count: int
) -> None:
    with paint(store, clock) as (app, task):
        assert app.enqueue_many(task.call(n) for n in range(count)) == count
        again = [NewJob(new_job_id(), task.spec, b"[%d]" % n, None, True) for n in range(count)]
        store.jobs.enqueue(again)
    kept = sorted(view.payload for view in store.reports.jobs(JobFilter(), 1000))
    assert kept == sorted([*(b'{"n":%d}' % n for n in range(count)), *(job.payload for job in again)])


@COUNTS
@pytest.mark.anyio
async def test_jobs_of_callers_who_ask_at_once_are_all_there_however_many_they_are(
    store: Store, clock: ManualClock, count: int
) -> None:
    with paint(store, clock) as (_, task):
        jobs = await asyncio.gather(*(task.aenqueue(n) for n in range(count)))
    kept = {view.id: view.payload for view in store.reports.jobs(JobFilter(), 1000)}
    assert kept == {job.id: b'{"n":%d}' % n for n, job in enumerate(jobs)}


@contextmanager
def paint(store: Store, clock: ManualClock) -> Iterator[tuple[Lateshift, Any]]:
    """A program on that store, and its task."""
    app = Lateshift("shop", store=store.url, clock=clock)

    @app.task
    def paint(n: int) -> None: ...

    try:
        yield app, paint
    finally:
        app.close()


def test_a_batch_of_a_thousand_jobs_is_kept_whole(store: Store) -> None:
    jobs = [make_job(payload=b"[%d]" % number) for number in range(1000)]

    store.jobs.enqueue(jobs)

    kept = {view.id: view.payload for view in store.reports.jobs(JobFilter(), 2000)}
    assert kept == {job.id: job.payload for job in jobs}


def test_enqueueing_nothing_answers_with_nothing(store: Store) -> None:
    assert store.jobs.enqueue([]) == []


def test_repeating_an_id_makes_no_second_job(store: Store, worker: Worker) -> None:
    job = make_job()
    store.jobs.enqueue([job])

    [again] = store.jobs.enqueue([job])

    assert again.id == job.id
    assert [lease.id for lease in worker.lease(10)] == [job.id]


def test_repeating_an_id_within_a_batch_makes_no_second_job(store: Store, worker: Worker) -> None:
    job = make_job()

    store.jobs.enqueue([job, job])

    assert [lease.id for lease in worker.lease(10)] == [job.id]


def test_repeating_the_id_of_a_running_job_does_not_disturb_it(store: Store, worker: Worker) -> None:
    job = make_job()
    store.jobs.enqueue([job])
    lease = worker.lease_one()

    store.jobs.enqueue([job])

    assert (see(store, job.id).state, see(store, job.id).fence) == (State.RUNNING, lease.fence)
    assert worker.lease(10) == []


@pytest.mark.parametrize("size", [1, 3])
def test_repeating_the_id_of_a_settled_job_does_not_bring_it_back(
    store: Store, worker: Worker, size: int
) -> None:
    jobs = [make_job() for _ in range(size)]
    store.jobs.enqueue(jobs)
    worker.settle_all(worker.lease(size))

    store.jobs.enqueue(jobs)

    assert {see(store, job.id).state for job in jobs} == {State.COMPLETED}
    assert worker.lease(10) == []
    assert store.upkeep.check() == []


def test_all_jobs_of_a_call_are_kept_or_none(store: Store) -> None:
    store.jobs.enqueue([keyed("order-1", b"[1]")])
    first, second = make_job(), keyed("order-2")

    with pytest.raises(KeyConflict):
        store.jobs.enqueue([first, second, keyed("order-1", b"[2]")])

    assert store.reports.job(first.id) is None
    assert store.reports.job(second.id) is None
    [answer] = store.jobs.enqueue([keyed("order-2", b"[3]")])
    assert answer.created


@pytest.mark.parametrize("payload", [b"", b"\x00\xff\xfe'\"\\", b"x" * 256 * 1024])
def test_a_payload_comes_back_byte_for_byte(store: Store, worker: Worker, payload: bytes) -> None:
    [id] = added(store, make_job(payload=payload))

    assert see(store, id).payload == payload
    lease = worker.lease_one()
    assert lease.payload == payload
    worker.settle(lease, DONE)
    assert see(store, id).payload == payload


@pytest.mark.parametrize("name", ["naïve café", "a'b\"c", "% %s {} ?", "日本語", "a*[b]", "x" * 200])
def test_names_may_hold_any_text(store: Store, worker: Worker, name: str) -> None:
    [id] = added(store, make_job(queue=name, task=name))

    [line] = store.jobs.lines()
    assert line.queue == name
    assert [(lease.id, lease.task) for lease in worker.lease(1, line)] == [(id, name)]


def test_creation_time_is_the_stores(store: Store, clock: ManualClock) -> None:
    clock.move(days=400)
    before = clock.now()
    [id] = added(store, make_job())

    created = see(store, id).created_at
    assert created.tzinfo is not None
    assert before - timedelta(seconds=5) < created < clock.now() + timedelta(seconds=5)


@pytest.mark.parametrize(
    "limit", [None, timedelta(microseconds=1), timedelta(seconds=90), timedelta(days=400), HOUR]
)
def test_a_time_limit_comes_back_exactly(store: Store, worker: Worker, limit: timedelta | None) -> None:
    added(store, make_job(time_limit=limit))

    assert worker.lease_one().time_limit == limit


@pytest.mark.parametrize(
    "at",
    [
        datetime(2033, 5, 18, 3, 33, 20, 123457, UTC),
        datetime(2038, 1, 19, 3, 14, 8, 1, UTC),
        datetime(9999, 12, 30, 23, 59, 59, 999999, UTC),
    ],
)
def test_an_instant_far_away_comes_back_to_the_microsecond(store: Store, at: datetime) -> None:
    [id] = added(store, make_job(at=at))

    assert see(store, id).due_at == at
    assert see(store, id).state is State.SCHEDULED
