"""Exclusive keys: of the jobs that share one, one runs at a time, over all machines."""

from lateshift.clock import ManualClock
from lateshift.model.job import Lane, Line, State
from lateshift.model.outcome import Later, Settlement
from lateshift.store.contract import Store, Want
from tests.store_contract.driving import (
    DONE,
    GUARDED,
    HOUR,
    RELEASED,
    SOLO,
    Supervisor,
    Worker,
    added,
    make_job,
    query,
    see,
)


def test_only_one_job_of_a_key_is_leased_at_a_time(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    ids = added(store, *[make_job(exclusive="k") for _ in range(3)])

    assert [lease.id for lease in worker.lease(5, GUARDED)] == ids[:1]
    assert other_worker.lease(5, GUARDED) == []
    assert [see(store, id).state for id in ids] == [State.RUNNING, State.BLOCKED, State.BLOCKED]


def test_settling_the_holder_readies_the_next_in_the_same_exchange(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job(exclusive="k") for _ in range(3)])
    done = []
    leases = worker.lease(5, GUARDED)
    while leases:
        [lease] = leases
        done.append(lease.id)
        leases = store.jobs.exchange(worker.id, [Settlement(lease, DONE)], [Want(GUARDED, 5)]).leases

    assert done == ids


def test_different_keys_run_beside_each_other(store: Store, worker: Worker) -> None:
    added(store, *[make_job(exclusive=key) for key in "aabbc"])

    assert sorted(lease.exclusive or "" for lease in worker.lease(10, GUARDED)) == ["a", "b", "c"]


def test_jobs_of_a_held_key_do_not_delay_the_jobs_of_another(store: Store, worker: Worker) -> None:
    added(store, *[make_job(exclusive="held") for _ in range(8)])
    worker.lease_one(GUARDED)
    [free] = added(store, make_job(exclusive="free"))

    assert [lease.id for lease in worker.lease(1, GUARDED)] == [free]


def test_a_key_holds_over_queues(store: Store, worker: Worker) -> None:
    added(store, make_job(exclusive="k"), make_job(exclusive="k", queue="other"))
    [lease] = worker.lease(5, GUARDED)
    assert worker.lease(5, Line("other", Lane.GUARDED)) == []
    worker.settle(lease)

    assert len(worker.lease(5, Line("other", Lane.GUARDED))) == 1


def test_a_paused_queue_does_not_keep_a_key_from_the_other_queues(store: Store, worker: Worker) -> None:
    other = Line("other", Lane.GUARDED)
    added(store, make_job(exclusive="k"))
    [lease] = worker.lease(5, GUARDED)
    added(store, make_job(exclusive="k", queue="other", priority=5))
    [waits] = added(store, make_job(exclusive="k"))
    assert worker.lease(5, GUARDED) == worker.lease(5, other) == []
    store.queues.pause("other", by="ana")
    worker.settle(lease)

    assert [lease.id for lease in worker.lease(5, GUARDED)] == [waits]


def test_of_a_key_that_waits_in_many_queues_still_only_one_runs(store: Store, worker: Worker) -> None:
    lines = [Line(queue, Lane.GUARDED) for queue in "abc"]
    added(store, *[make_job(exclusive="k", queue=line.queue) for line in lines for _ in range(2)])
    done = 0
    while leases := worker.lease(5, lines[done % 3]):
        assert [other for line in lines for other in worker.lease(5, line)] == []
        worker.settle_all(leases)
        done += len(leases)

    assert done == 6


def test_the_supervisor_unblocks_a_queue_beside_one_that_has_a_ready_job(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    added(store, make_job(exclusive="k"))
    [lease] = worker.lease(5, GUARDED)
    added(store, make_job(exclusive="k", queue="other"))
    next_one, waits = added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    assert worker.lease(5, GUARDED) == []
    store.queues.pause("other", by="ana")
    worker.settle(lease)
    store.jobs.cancel([next_one], by="ana")

    assert supervisor.unblock() == 1
    assert [lease.id for lease in worker.lease(5, GUARDED)] == [waits]


def test_a_retry_opens_the_key_for_the_next_and_stands_in_line_again(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    first, second = added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    [lease] = worker.lease(5, GUARDED)
    worker.settle(lease, Later(HOUR, counts=True, history=b"[]"))
    [next_one] = worker.lease(5, GUARDED)
    assert next_one.id == second
    clock.move(hours=1)
    store.jobs.promote(10)

    assert worker.lease(5, GUARDED) == []
    worker.beat()
    assert not worker.settle(next_one), "its complete-by has passed"
    assert see(store, first).state is State.BLOCKED


def test_the_next_of_a_key_is_the_one_with_the_highest_priority(store: Store, worker: Worker) -> None:
    first, low, high = added(store, *[make_job(exclusive="k", priority=level) for level in (9, 1, 5)])
    [lease] = worker.lease(5, GUARDED)
    assert lease.id == first
    worker.settle(lease)

    assert [lease.id for lease in worker.lease(5, GUARDED)] == [high]
    assert see(store, low).state is State.BLOCKED


def test_a_job_handed_back_does_not_keep_its_key(store: Store, worker: Worker) -> None:
    added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    [lease] = worker.lease(5, GUARDED)
    worker.settle(lease, RELEASED)

    assert len(worker.lease(5, GUARDED)) == 1


def test_a_dead_holder_frees_its_key(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    first, second = added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    worker.lease(5, GUARDED)
    worker.die()
    supervisor.sweep()

    [lease] = other_worker.lease(5, GUARDED)
    other_worker.settle(lease)
    [last] = other_worker.lease(5, GUARDED)
    assert {lease.id, last.id} == {first, second}


def test_a_late_settlement_does_not_open_a_key_that_another_holds(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    added(store, *[make_job(exclusive="k") for _ in range(3)])
    [old] = worker.lease(5, GUARDED)
    worker.die()
    supervisor.sweep()
    other_worker.lease(5, GUARDED)

    assert not worker.settle(old, DONE)
    assert other_worker.lease(5, GUARDED) == []
    [[running]] = query(store, "SELECT count(*) FROM {job} WHERE exclusive = 'k' AND state = 2")
    assert running == 1


def test_a_suspect_with_a_key_still_excludes_the_others(store: Store, supervisor: Supervisor) -> None:
    added(store, make_job(exclusive="k", attempts=9))
    for line in (GUARDED, GUARDED):
        loser = Worker(store)
        loser.lease_one(line)
        loser.die()
        supervisor.sweep()
    worker = Worker(store)
    added(store, make_job(exclusive="k"))

    suspect = worker.lease_one(SOLO)
    assert worker.lease(5, GUARDED) == []
    worker.settle(suspect)
    assert len(worker.lease(5, GUARDED)) == 1


def test_a_key_whose_next_job_was_cancelled_is_unblocked_by_the_supervisor(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    _, second, third = added(store, *[make_job(exclusive="k") for _ in range(3)])
    [lease] = worker.lease(5, GUARDED)
    worker.settle(lease)
    store.jobs.cancel([second], by="ana")
    assert supervisor.unblock() == 1

    assert [lease.id for lease in worker.lease(5, GUARDED)] == [third]


def test_unblock_leaves_a_key_alone_that_is_held_or_about_to_be(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    added(store, *[make_job(exclusive="k") for _ in range(3)])
    [lease] = worker.lease(5, GUARDED)
    assert supervisor.unblock() == 0
    worker.settle(lease)

    assert supervisor.unblock() == 0
    assert len(worker.lease(5, GUARDED)) == 1


def test_unblock_needs_the_present_term(store: Store, worker: Worker, supervisor: Supervisor) -> None:
    _, second, _ = added(store, *[make_job(exclusive="k") for _ in range(3)])
    [lease] = worker.lease(5, GUARDED)
    worker.settle(lease)
    store.jobs.cancel([second], by="ana")

    assert store.jobs.unblock(term=supervisor.term - 1, limit=10) == 0
    assert worker.lease(5, GUARDED) == []
