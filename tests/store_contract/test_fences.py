"""Fences: a holder who lost its lease changes nothing, and is told so."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.job import Lease, Note, Progress, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome, Settlement
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, DONE, HOUR, RELEASED, Supervisor, Worker, added, make_job, see

OUTCOMES: list[Outcome] = [
    Completed(b'"stale"', DAY),
    DeadLettered("stale", b"[]", DAY),
    Cancelled("stale", DAY),
    Later(timedelta(0), counts=True, history=b"[]"),
    Later(HOUR, counts=False),
]


def lost_lease(store: Store, worker: Worker, supervisor: Supervisor, attempts: int = 3) -> Lease:
    """A lease whose job was taken back from its holder, who does not know it."""
    added(store, make_job(attempts=attempts))
    lease = worker.lease_one()
    worker.die()
    assert len(supervisor.sweep()) == 1
    return lease


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_worker_that_lost_its_lease_cannot_settle_a_waiting_job(
    store: Store, worker: Worker, supervisor: Supervisor, outcome: Outcome
) -> None:
    old = lost_lease(store, worker, supervisor)
    before = see(store, old.id)

    assert not worker.settle(old, outcome)

    assert see(store, old.id) == before
    assert before.state is State.READY


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_worker_that_lost_its_lease_cannot_settle_what_another_runs(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor, outcome: Outcome
) -> None:
    old = lost_lease(store, worker, supervisor)
    new = other_worker.lease_one()
    assert new.fence == old.fence + 1
    before = see(store, old.id)

    assert not worker.settle(old, outcome)

    assert see(store, old.id) == before
    assert before.holder == other_worker.id
    assert other_worker.settle(new, DONE)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_worker_that_lost_its_lease_cannot_change_what_another_settled(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor, outcome: Outcome
) -> None:
    old = lost_lease(store, worker, supervisor)
    other_worker.settle(other_worker.lease_one(), DONE)
    before = see(store, old.id)

    assert not worker.settle(old, outcome)

    assert see(store, old.id) == before
    assert before.state is State.COMPLETED


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_a_worker_whose_job_was_made_a_dead_letter_is_told_that_its_lease_is_lost(
    store: Store, worker: Worker, supervisor: Supervisor, outcome: Outcome
) -> None:
    old = lost_lease(store, worker, supervisor, attempts=1)
    before = see(store, old.id)
    assert (before.state, before.reason) == (State.DEAD, "worker_lost")

    assert not worker.settle(old, outcome)
    assert see(store, old.id) == before


def test_a_worker_that_lost_its_lease_saves_nothing(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    old = lost_lease(store, worker, supervisor)
    assert store.jobs.save([Note(old, Progress(9), b"stale")]) == [old]
    new = other_worker.lease_one()

    assert store.jobs.save([Note(old, Progress(9), b"stale"), Note(new, Progress(1), b"fresh")]) == [old]

    assert (see(store, old.id).progress, see(store, old.id).checkpoint) == (Progress(1), b"fresh")


def test_only_the_lost_leases_of_an_exchange_are_refused(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    short, long = added(store, make_job(time_limit=timedelta(minutes=5)), make_job(time_limit=HOUR))
    leases = {lease.id: lease for lease in worker.lease(2)}
    clock.move(minutes=6)
    worker.beat()
    supervisor.sweep()

    lost = worker.settle_all(list(leases.values()))

    assert lost == [leases[short]]
    assert see(store, long).state is State.COMPLETED
    assert see(store, short).state is State.READY


def test_an_old_lease_of_the_same_worker_is_as_lost_as_anybody_elses(store: Store, worker: Worker) -> None:
    added(store, make_job())
    old = worker.lease_one()
    worker.settle(old, RELEASED)
    new = worker.lease_one()

    assert not worker.settle(old, DONE)
    assert see(store, old.id).state is State.RUNNING
    assert worker.settle(new, DONE)


def test_a_fence_never_goes_down_over_resubmission(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    old = worker.lease_one()
    worker.settle(old, DeadLettered("permanent", b"[]", DAY))
    store.jobs.resubmit([id], by="me")

    assert not worker.settle(old, DONE)
    new = worker.lease_one()
    assert new.fence > old.fence
    assert not worker.settle(old, DONE)
    assert see(store, id).state is State.RUNNING


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_of_an_old_and_a_new_lease_of_one_job_in_one_exchange_only_the_new_one_counts(
    store: Store, worker: Worker, outcome: Outcome
) -> None:
    added(store, make_job())
    old = worker.lease_one()
    worker.settle(old, RELEASED)
    new = worker.lease_one()

    for order in ([old, new], [new, old]):
        said = [Settlement(lease, outcome) for lease in order]
        lost = store.jobs.exchange(worker.id, said, []).lost
        assert old in lost
        assert (new in lost) == (order[0] is new and isinstance(outcome, Later))

    assert see(store, old.id).state is not State.RUNNING
