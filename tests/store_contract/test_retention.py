"""Retention deletes what is past its time, and nothing before it."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.job import State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Outcome
from lateshift.store.contract import Store
from tests.store_contract.driving import (
    DAY,
    HOUR,
    TTL,
    Supervisor,
    Worker,
    added,
    keyed,
    make_job,
    query,
    see,
)

ENDS: list[Outcome] = [Completed(None, DAY), DeadLettered("permanent", b"[]", DAY), Cancelled("enough", DAY)]


@pytest.mark.parametrize("end", ENDS, ids=repr)
def test_a_settled_job_is_kept_for_its_time_and_then_deleted(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock, end: Outcome
) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), end)
    clock.move(hours=23, minutes=59)
    worker.beat()
    assert supervisor.purge() == 0
    assert store.reports.job(id) is not None
    clock.move(minutes=1)

    assert supervisor.purge() == 1
    assert store.reports.job(id) is None


def test_each_job_is_kept_for_its_own_time(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    short, long = added(store, make_job(), make_job())
    first, second = worker.lease(2)
    worker.settle(first, Completed(None, HOUR))
    worker.settle(second, Completed(None, 3 * HOUR))
    clock.move(hours=2)

    supervisor.purge()

    assert store.reports.job(short) is None
    assert see(store, long).state is State.COMPLETED


def test_a_job_that_has_not_ended_is_never_deleted(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    ids = added(store, make_job(), make_job(), make_job(delay=HOUR))
    worker.lease_one()
    clock.move(days=10_000)
    supervisor.purge()

    assert [see(store, id).state for id in ids] == [State.RUNNING, State.READY, State.SCHEDULED]


def test_a_job_kept_for_no_time_can_still_be_met_by_a_repeat_of_its_enqueue(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    job = make_job()
    store.jobs.enqueue([job])
    worker.settle(worker.lease_one(), Completed(None, timedelta(0)))
    clock.move(minutes=4)
    supervisor.purge()
    store.jobs.enqueue([job])
    assert see(store, job.id).state is State.COMPLETED
    clock.move(minutes=1)

    assert supervisor.purge() >= 1
    assert store.reports.job(job.id) is None


def test_a_purge_keeps_to_its_limit(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, *[make_job() for _ in range(5)])
    worker.settle_all(worker.lease(5))
    clock.move(days=2)

    assert [supervisor.purge(limit=2) for _ in range(4)] == [2, 2, 1, 0]


def test_keys_are_deleted_only_after_their_window(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [first] = store.jobs.enqueue([keyed("order-1", window=3 * DAY)])
    worker.settle(worker.lease_one(), Completed(None, DAY))
    clock.move(days=2, hours=23)
    assert supervisor.purge() >= 1
    assert store.reports.job(first.id) is None
    [again] = store.jobs.enqueue([keyed("order-1", window=3 * DAY)])
    assert (again.id, again.created) == (first.id, False)
    clock.move(hours=1)

    assert supervisor.purge() == 1
    assert query(store, "SELECT count(*) FROM {job_key}") == [(0,)]


def test_dead_members_stay_in_sight_for_a_while_and_live_ones_for_good(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    dead, alive = Worker(store), Worker(store)
    dead.die()
    clock.move(minutes=9)
    alive.beat()
    supervisor.purge()
    assert {view.id for view in store.reports.members()} == {dead.id, alive.id}
    clock.move(minutes=1)
    alive.beat()

    supervisor.purge()
    assert {view.id for view in store.reports.members()} == {alive.id}


def test_a_dead_member_that_still_holds_a_job_is_not_deleted(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    dead = Worker(store)
    added(store, make_job(time_limit=None))
    dead.lease_one()
    dead.die()
    clock.move(days=1)
    supervisor.purge()

    assert [view.id for view in store.reports.members()] == [dead.id]


def test_only_the_present_term_may_purge(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one())
    clock.move(days=2)

    assert store.upkeep.purge(term=supervisor.term + 1, limit=10) == 0
    assert store.locks.acquire("supervisor", new_member_id(), TTL) is None
    assert store.reports.job(id) is not None


def test_what_operators_did_is_kept_for_a_year(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.queues.pause("default", by="me")
    clock.move(days=364)
    assert supervisor.purge() == 0
    clock.move(days=2)
    assert supervisor.purge() == 1
