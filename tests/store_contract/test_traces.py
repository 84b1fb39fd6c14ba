"""The context of a job: written with it whichever way it is enqueued, and given to whoever leases it, to the end of its life."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.job import Lane, Line, NewJob, Place
from lateshift.model.outcome import DeadLettered
from lateshift.store.contract import Store
from tests.store_contract.driving import (
    DAY,
    FAILED,
    GUARDED,
    LINE,
    TTL,
    Supervisor,
    Worker,
    keyed,
    make_batch,
    make_job,
)

TRACE = '{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'


def traced(job: NewJob, trace: str | None = TRACE, *, first: bool = False) -> NewJob:
    return replace(job, trace=trace, first=first)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("count", [1, 2, 250])
def test_every_job_has_the_context_it_came_with(
    store: Store, worker: Worker, count: int, first: bool
) -> None:
    jobs = [traced(make_job(), None if n % 3 == 2 else f"{TRACE}{n}", first=first) for n in range(count)]
    store.jobs.enqueue(jobs)
    leases = worker.lease(count)
    assert {lease.id: lease.trace for lease in leases} == {job.id: job.trace for job in jobs}
    assert {lease.id: lease.trace for lease in store.jobs.held(worker.id)} == {
        job.id: job.trace for job in jobs
    }


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (make_job(place=Place(session="s", limit_key="k")), GUARDED),
        (make_job(exclusive="e"), GUARDED),
        (keyed("k"), LINE),
        (make_job(lane=Lane.PROCESS), Line("default", Lane.PROCESS)),
    ],
    ids=["session", "exclusive", "key", "process"],
)
def test_guards_and_keys_do_not_cost_a_job_its_context(
    store: Store, worker: Worker, job: NewJob, line: Line
) -> None:
    store.jobs.enqueue([traced(job)])
    [lease] = worker.lease(1, line)
    assert lease.trace == TRACE
    [held] = store.jobs.held(worker.id)
    assert held.trace == TRACE


def test_a_scheduled_job_and_the_jobs_of_a_batch_keep_it(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.jobs.enqueue([traced(make_job(delay=timedelta(minutes=1)), first=True)])
    clock.move(minutes=1)
    store.jobs.promote(10)
    assert worker.lease_one().trace == TRACE
    batch, jobs = make_batch(store, 120, added=0)
    store.batches.add(batch.id, 0, [traced(job, first=True) for job in jobs])
    assert {lease.trace for lease in worker.lease(120)} == {TRACE}


def test_a_retry_a_job_taken_back_and_one_resubmitted_keep_it(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [answer] = store.jobs.enqueue([traced(make_job(), first=True)])
    worker.settle(worker.lease_one(), FAILED)
    assert worker.lease_one().trace == TRACE
    clock.move(seconds=TTL.total_seconds() + 1)
    supervisor.sweep()
    again = Worker(store)
    lease = again.lease_one()
    assert lease.trace == TRACE
    again.settle(lease, DeadLettered("permanent", b"[]", DAY))
    assert store.jobs.resubmit([answer.id], by="ana") == [answer.id]
    assert again.lease_one().trace == TRACE


def test_a_job_sent_again_keeps_the_context_of_the_first_time(store: Store, worker: Worker) -> None:
    job = traced(make_job(), first=True)
    store.jobs.enqueue([job])
    store.jobs.enqueue([replace(job, first=False)])
    assert worker.lease_one().trace == TRACE
