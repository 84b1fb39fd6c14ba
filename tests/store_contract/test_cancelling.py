"""Cancel: no new attempt starts once it is acknowledged."""

from datetime import timedelta

from lateshift.clock import ManualClock
from lateshift.model.ids import new_job_id
from lateshift.model.job import State
from lateshift.model.outcome import Cancelled, Later
from lateshift.store.contract import StopOrder, Store
from tests.store_contract.driving import (
    DAY,
    DONE,
    GUARDED,
    HOUR,
    RELEASED,
    Supervisor,
    Worker,
    added,
    make_job,
    query,
    see,
)


def test_a_ready_job_is_cancelled_at_once(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())

    assert store.jobs.cancel([id], by="ana") == [id]

    view = see(store, id)
    assert (view.state, view.reason, view.attempt) == (State.CANCELLED, "cancelled by ana", 0)
    assert worker.lease(10) == []


def test_a_scheduled_job_is_cancelled_at_once(store: Store, worker: Worker, clock: ManualClock) -> None:
    [id] = added(store, make_job(delay=HOUR))

    assert store.jobs.cancel([id], by="ana") == [id]

    clock.move(hours=2)
    assert store.jobs.promote(10).lines == []
    assert see(store, id).state is State.CANCELLED


def test_a_blocked_job_is_cancelled_at_once(store: Store, worker: Worker) -> None:
    first, second = added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    lease, *none = worker.lease(2, GUARDED)
    assert (lease.id, none) == (first, [])
    assert see(store, second).state is State.BLOCKED

    assert store.jobs.cancel([second], by="ana") == [second]

    worker.settle(lease)
    assert worker.lease(2, GUARDED) == []


def test_a_running_job_gets_a_stop_order_for_its_holder_alone(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    added(store, make_job(), make_job())
    lease, other = worker.lease_one(), other_worker.lease_one()
    assert store.jobs.stop_orders(worker.id) == []

    assert store.jobs.cancel([lease.id], by="ana") == [lease.id]

    assert store.jobs.stop_orders(worker.id) == [StopOrder(lease.id, lease.fence, "ana")]
    assert store.jobs.stop_orders(other_worker.id) == []
    assert (see(store, lease.id).state, see(store, lease.id).cancel_requested) == (State.RUNNING, True)
    assert not see(store, other.id).cancel_requested


def test_a_stop_order_ends_with_its_attempt(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    store.jobs.cancel([id], by="ana")
    worker.settle(lease, Cancelled("cancelled by ana", DAY))

    assert store.jobs.stop_orders(worker.id) == []
    assert (see(store, id).state, see(store, id).reason) == (State.CANCELLED, "cancelled by ana")


def test_a_cancelled_job_that_fails_or_is_handed_back_is_not_tried_again(
    store: Store, worker: Worker
) -> None:
    added(store, *[make_job() for _ in range(3)])
    leases = worker.lease(3)
    ids = [lease.id for lease in leases]
    store.jobs.cancel(ids, by="ana")

    assert worker.settle(leases[0], Later(timedelta(0), counts=True, history=b"[]"))
    assert worker.settle(leases[1], Later(HOUR, counts=True, history=b"[]"))
    assert worker.settle(leases[2], RELEASED)

    assert [see(store, id).state for id in ids] == [State.CANCELLED] * 3
    assert {see(store, id).reason for id in ids} == {"cancelled by ana"}
    assert worker.lease(10) == []


def test_a_cancelled_singleton_that_is_handed_back_opens_its_key(store: Store, worker: Worker) -> None:
    first, second = added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    [lease] = worker.lease(2, GUARDED)
    store.jobs.cancel([first], by="ana")

    assert worker.settle(lease, RELEASED)

    assert see(store, first).state is State.CANCELLED
    assert [lease.id for lease in worker.lease(2, GUARDED)] == [second]


def test_a_job_that_completes_before_it_hears_of_the_cancel_is_completed(
    store: Store, worker: Worker
) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    store.jobs.cancel([id], by="ana")

    assert worker.settle(lease, DONE)
    assert see(store, id).state is State.COMPLETED


def test_a_cancelled_job_whose_worker_dies_is_cancelled(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    [id] = added(store, make_job())
    worker.lease_one()
    store.jobs.cancel([id], by="ana")
    worker.die()

    [taken] = supervisor.sweep()

    assert (taken.id, taken.dead) == (id, False)
    view = see(store, id)
    assert (view.state, view.reason) == (State.CANCELLED, "cancelled by ana")


def test_cancel_gives_only_jobs_that_had_not_ended(store: Store, worker: Worker) -> None:
    done, running, ready = added(store, *[make_job() for _ in range(3)])
    first, _ = worker.lease(2)
    worker.settle(first)

    assert store.jobs.cancel([done, new_job_id(), running, ready], by="ana") == [running, ready]
    assert see(store, done).state is State.COMPLETED
    assert store.jobs.cancel([], by="ana") == []


def test_cancelling_leaves_a_trace_of_who_did_it(store: Store) -> None:
    [id] = added(store, make_job())
    store.jobs.cancel([id], by="ana")
    store.jobs.cancel([id], by="bob")

    assert query(store, "SELECT action, subject, actor FROM {audit}") == [("cancel", str(id), "ana")]
