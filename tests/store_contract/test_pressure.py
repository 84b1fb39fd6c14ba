"""How much waits in a queue, and making room in it."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.job import JobFilter, Lane, Place, State
from lateshift.model.workflow.run import Advance, Asleep
from lateshift.store.contract import Store
from tests.store_contract.driving import GUARDED, HOUR, Supervisor, Worker, added, make_job, only, query, see


def test_what_is_due_and_waits_is_counted(store: Store, worker: Worker) -> None:
    added(store, *[make_job(exclusive="k") for _ in range(4)])
    worker.lease(4, GUARDED)
    assert len(store.reports.jobs(JobFilter(state=State.BLOCKED), 10)) == 3
    added(store, make_job(), make_job(lane=Lane.THREAD, priority=3), make_job(delay=HOUR))
    added(store, make_job(queue="other"))

    assert store.queues.waiting("default", 100) == 5
    assert store.queues.waiting("other", 100) == 1
    assert store.queues.waiting("nowhere", 100) == 0


def test_a_count_stops_at_its_limit(store: Store) -> None:
    added(store, *[make_job() for _ in range(20)])

    assert store.queues.waiting("default", 7) == 7
    assert store.queues.waiting("default", 20) == 20


def test_those_that_wait_longest_make_room_whatever_their_lane_and_priority(
    store: Store, clock: ManualClock
) -> None:
    ids = []
    for lane, priority in [(Lane.THREAD, 5), (Lane.COROUTINE, 9), (Lane.COROUTINE, -9), (Lane.THREAD, 0)]:
        ids += added(store, make_job(lane=lane, priority=priority))
        clock.move(seconds=1)
    added(store, make_job(queue="other"))

    assert store.jobs.shed("default", 1) == ids[:1]
    assert store.jobs.shed("default", 2) == ids[1:3]
    assert store.jobs.shed("default", 5) == ids[3:]
    assert store.jobs.shed("default", 5) == []
    assert store.queues.waiting("other", 10) == 1


def test_those_of_the_lowest_priority_make_room_the_latest_first(store: Store, clock: ManualClock) -> None:
    ids = []
    for lane, priority in [(Lane.THREAD, 5), (Lane.COROUTINE, 1), (Lane.THREAD, 1), (Lane.COROUTINE, 3)]:
        ids += added(store, make_job(lane=lane, priority=priority))
        clock.move(seconds=1)

    assert store.jobs.shed("default", 1, below=1) == []
    assert store.jobs.shed("default", 1, below=4) == [ids[2]]
    assert store.jobs.shed("default", 9, below=5) == [ids[1], ids[3]]
    assert [view.id for view in store.reports.jobs(JobFilter(state=State.READY), 10)] == [ids[0]]


def test_a_job_that_was_shed_is_cancelled_with_that_reason_and_may_be_resubmitted(store: Store) -> None:
    [id] = added(store, make_job())
    store.jobs.shed("default", 1)

    view = see(store, id)
    assert (view.state, view.reason) == (State.CANCELLED, "shed")
    assert [job.id for job in store.reports.jobs(JobFilter(reason="shed"), 10)] == [id]
    assert store.jobs.resubmit([id], by="me") == [id]


@pytest.mark.parametrize("below", [None, 5])
def test_what_runs_or_is_not_due_is_never_shed(store: Store, worker: Worker, below: int | None) -> None:
    added(store, make_job(), make_job(delay=HOUR))
    worker.lease_one()

    assert store.jobs.shed("default", 5, below=below) == []


@pytest.mark.parametrize("below", [None, 5])
def test_a_run_that_has_begun_and_the_job_of_its_step_are_never_shed(
    store: Store, worker: Worker, below: int | None
) -> None:
    [run] = added(store, make_job())
    lease = worker.lease_one()
    step = make_job()
    step = replace(step, spec=replace(step.spec, batch=run))
    sleep = Asleep(timedelta(0), None, 0, "")
    store.workflows.advance([Advance(lease=lease, begin=("orders", "1"), jobs=[step], sleep=sleep)])
    assert {see(store, id).state for id in (run, step.id)} == {State.READY}
    assert store.jobs.shed("default", 5, below=below) == []
    [other] = added(store, make_job())
    assert store.jobs.shed("default", 5, below=below) == [other]


def test_a_job_that_was_shed_does_not_stand_for_its_duplicates(store: Store) -> None:
    store.jobs.enqueue([make_job(unique=only("a", window=HOUR))])
    store.jobs.shed("default", 1)

    assert store.jobs.enqueue([make_job(unique=only("a", window=HOUR))])[0].created


def test_shedding_leaves_no_job_of_an_exclusive_key_stranded(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    ids = added(store, *[make_job(exclusive="k") for _ in range(3)])
    worker.settle(worker.lease(3, GUARDED)[0])
    assert store.jobs.shed("default", 1) == [ids[1]]
    supervisor.unblock()

    assert [lease.id for lease in worker.lease(3, GUARDED)] == [ids[2]]
    assert query(store, "SELECT count(*) FROM {job}") == [(1,)]


def test_shedding_the_head_of_a_session_lets_the_next_go_on(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job(place=Place(session="user 7")) for _ in range(3)])
    assert store.queues.waiting("default", 10) == 3
    assert store.jobs.shed("default", 1) == ids[:1]

    assert [lease.id for lease in worker.lease(3, GUARDED)] == [ids[1]]
    assert see(store, ids[2]).state is State.BLOCKED
