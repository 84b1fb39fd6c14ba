"""Batches: each job is counted once however it ends, and each callback is enqueued once, when it is due and not before."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.errors import BatchClosed, BatchUnknown, KeyConflict
from lateshift.model.batch import NewBatch, job_id_at, place_of
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, NewJob, Place, State
from lateshift.model.outcome import Cancelled, DeadLettered, Outcome, Settlement
from lateshift.store import postgres, sqlite
from lateshift.store.batching import BATCH_KEPT
from lateshift.store.contract import Store
from tests.digits import first_digits
from tests.store_contract.driving import (
    DAY,
    DONE,
    FAILED,
    GUARDED,
    Supervisor,
    Worker,
    added,
    callbacks,
    look,
    make_batch,
    make_job,
    query,
    see,
)

DEAD = DeadLettered("exhausted", b"[]", DAY)
STOPPED = Cancelled("enough", DAY)


def counts(store: Store, batch: NewBatch) -> tuple[int, int, int, int, int]:
    """Waiting, running, completed, failed, cancelled."""
    view = look(store, batch)
    return view.waiting, view.running, view.completed, view.failed, view.cancelled


# Enqueueing


def test_a_batch_is_there_before_its_jobs(store: Store) -> None:
    batch, _ = make_batch(store, 3, added=0)

    view = look(store, batch)
    assert (view.total, view.added, view.sealed, view.finished) == (3, 0, False, False)


def test_its_jobs_are_in_the_order_of_their_places(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 250)

    leases = worker.lease(250)

    assert [lease.id for lease in leases] == [job.id for job in jobs]
    assert [place_of(lease.id) for lease in leases] == list(range(250))
    assert {lease.batch for lease in leases} == {batch.id}
    assert see(store, jobs[0].id).batch == batch.id


def test_jobs_that_are_in_already_are_left_out(store: Store) -> None:
    batch, jobs = make_batch(store, 5, added=2)

    assert store.batches.add(batch.id, 0, jobs[:2]) == 2
    assert store.batches.add(batch.id, 1, jobs[1:4]) == 4
    assert not look(store, batch).sealed
    assert store.batches.add(batch.id, 4, jobs[4:]) == 5
    assert store.batches.add(batch.id, 0, jobs) == 5
    assert look(store, batch).sealed
    assert counts(store, batch) == (5, 0, 0, 0, 0)


def test_a_job_that_has_passed_its_retention_is_not_made_again(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    batch, jobs = make_batch(store, 2, added=1)
    worker.settle(worker.lease_one())
    clock.move(days=2)
    supervisor.purge()
    assert store.reports.job(jobs[0].id) is None

    store.batches.add(batch.id, 0, jobs)

    assert counts(store, batch) == (1, 0, 1, 0, 0)
    assert store.reports.job(jobs[0].id) is None


def test_nothing_is_added_beyond_a_gap(store: Store) -> None:
    batch, jobs = make_batch(store, 3, added=1)

    with pytest.raises(ValueError, match="nothing can be added at 2"):
        store.batches.add(batch.id, 2, jobs[2:])
    assert look(store, batch).added == 1


def test_nothing_is_added_to_a_batch_that_is_not_there(store: Store) -> None:
    with pytest.raises(BatchUnknown, match="There is no batch"):
        store.batches.add(new_job_id(), 0, [make_job()])
    assert store.batches.view(new_job_id()) is None


def test_jobs_of_several_kinds_go_in_together(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 4, added=0)
    other = replace(jobs[0].spec, priority=5)
    jobs = [replace(job, spec=other) if place % 2 else job for place, job in enumerate(jobs)]

    store.batches.add(batch.id, 0, jobs)

    assert [place_of(lease.id) for lease in worker.lease(9)] == [1, 3, 0, 2]


def test_an_empty_batch_is_done_at_once(store: Store) -> None:
    batch, _ = make_batch(store, 0)

    assert look(store, batch).finished
    assert callbacks(store) == ["then"]


def test_one_key_is_one_batch(store: Store) -> None:
    first = NewBatch(id=new_job_id(), total=2, key="nightly", digest=b"1")
    again = NewBatch(id=new_job_id(), total=2, key="nightly", digest=b"1")
    other = NewBatch(id=new_job_id(), total=3, key="nightly", digest=b"2")
    assert store.batches.open(first).id == first.id
    assert store.batches.open(again).id == first.id
    assert store.batches.view(again.id) is None

    with pytest.raises(KeyConflict, match="'nightly' was used for a batch of other calls"):
        store.batches.open(other)


def test_the_last_digits_tell_the_jobs_of_a_batch_apart() -> None:
    id = new_job_id()
    ids = [job_id_at(id, place) for place in range(50_000)]

    assert len({each.hex[-6:] for each in ids}) == 50_000
    assert ids == sorted(ids)
    assert {each.version for each in ids} == {7}
    for place in (0, 1, 2**20 - 1, 2**20, 10_000_000):
        assert place_of(job_id_at(id, place)) == place


# Counting


def test_each_end_is_counted_once(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 6)
    leases = worker.lease(5)
    assert counts(store, batch) == (1, 5, 0, 0, 0)

    said: list[Outcome] = [DONE, DONE, DEAD, STOPPED, FAILED]
    for _ in range(2):  # said again, as when the answer was lost
        settlements = [Settlement(lease, outcome) for lease, outcome in zip(leases, said, strict=True)]
        store.jobs.exchange(worker.id, settlements, [])
    assert counts(store, batch) == (2, 0, 2, 1, 1)


def test_a_whole_block_is_counted(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 230)
    plain = added(store, *[make_job() for _ in range(20)])
    leases = worker.lease(250)

    assert worker.settle_all(leases) == []
    assert worker.settle_all(leases) == []

    assert counts(store, batch) == (0, 0, 230, 0, 0)
    assert see(store, plain[0]).state is State.COMPLETED
    assert callbacks(store) == ["then"]


def test_two_batches_in_one_exchange_are_told_apart(store: Store, worker: Worker) -> None:
    one, _ = make_batch(store, 3)
    other, _ = make_batch(store, 2, then=False)

    worker.settle_all(worker.lease(5))

    assert counts(store, one) == (0, 0, 3, 0, 0)
    assert counts(store, other) == (0, 0, 2, 0, 0)
    assert callbacks(store) == ["then"]


def test_a_lease_that_was_lost_counts_nothing(store: Store, worker: Worker, supervisor: Supervisor) -> None:
    batch, _ = make_batch(store, 1)
    lease = worker.lease_one()
    worker.die()
    supervisor.sweep()

    assert worker.settle(lease) is False
    assert counts(store, batch) == (1, 0, 0, 0, 0)


def test_what_the_supervisor_buries_is_counted(store: Store, supervisor: Supervisor) -> None:
    batch, _ = make_batch(store, 2, attempts=1)
    worker = Worker(store)
    [_, told] = worker.lease(2)
    store.jobs.cancel([told.id], by="ana")
    worker.die()

    supervisor.sweep()
    supervisor.sweep()

    assert counts(store, batch) == (0, 0, 0, 1, 1)
    assert callbacks(store) == ["on_failure"]


def test_what_an_operator_cancels_is_counted(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 3)
    lease = worker.lease_one()
    store.jobs.cancel([job.id for job in jobs], by="ana")
    assert counts(store, batch) == (0, 1, 0, 0, 2)

    worker.settle(lease, FAILED)  # it would be tried again, but for the stop order

    assert counts(store, batch) == (0, 0, 0, 0, 3)
    assert callbacks(store) == ["then"]


def test_plain_jobs_count_for_no_batch(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), DEAD)
    store.jobs.resubmit([id], by="ana")

    assert store.batches.finish(limit=10) == 0
    assert store.batches.newest(None, 10) == []
    assert see(store, id).batch is None


def test_jobs_that_only_one_may_run_of_are_counted(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 3, added=0)
    spec = replace(jobs[0].spec, lane=Lane.GUARDED, exclusive="task:report")
    store.batches.add(batch.id, 0, [replace(job, spec=spec) for job in jobs])

    for outcome in (DONE, DEAD, DONE):
        [lease] = worker.lease(3, GUARDED)
        worker.settle(lease, outcome)

    assert counts(store, batch) == (0, 0, 2, 1, 0)
    assert callbacks(store) == ["on_failure"]


def test_jobs_of_a_session_are_counted_and_keep_their_order(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 4, added=0)
    spec, other = (replace(jobs[0].spec, lane=Lane.COROUTINE.guarded, task=task) for task in ("pack", "ship"))
    in_session = [
        replace(job, spec=other if place % 2 else spec, place=Place(session="user:7"))
        for place, job in enumerate(jobs)
    ]
    store.batches.add(batch.id, 0, in_session)

    ends: list[Outcome] = [DONE, DEAD, STOPPED]
    for place, outcome in enumerate(ends):
        [lease] = worker.lease(4, GUARDED)
        assert (place_of(lease.id), lease.batch, lease.session) == (place, batch.id, "user:7")
        worker.settle(lease, outcome)
    store.batches.cancel(batch.id, by="ana")
    assert store.batches.cancel_jobs(batch.id, None, 10, by="ana") is None

    assert counts(store, batch) == (0, 0, 1, 1, 2)
    assert see(store, jobs[3].id).state is State.CANCELLED


def test_cancelling_a_batch_gives_the_turn_to_the_next_of_the_session(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 2, added=0)
    spec = replace(jobs[0].spec, lane=Lane.COROUTINE.guarded)
    store.batches.add(batch.id, 0, [replace(job, spec=spec, place=Place(session="user:7")) for job in jobs])
    [other] = added(store, make_job(place=Place(session="user:7")))
    assert worker.lease(1, GUARDED)[0].id == jobs[0].id
    assert worker.lease(1, GUARDED) == []

    store.batches.cancel(batch.id, by="ana")
    store.batches.cancel_jobs(batch.id, None, 10, by="ana")
    worker.settle(store.jobs.held(worker.id)[0], STOPPED)

    assert [lease.id for lease in worker.lease(1, GUARDED)] == [other]
    assert counts(store, batch) == (0, 0, 0, 0, 2)


def test_plain_jobs_are_written_as_they_were_without_batches() -> None:
    """No statement more, and no parameter more."""
    blocks = sqlite.enqueue.INSERT_BLOCKS
    jobs = [make_job() for _ in range(sum(blocks) + 1)]
    jobs = [replace(job, first=True) for job in jobs]
    sent = list(sqlite.enqueue.statements(jobs, 0))
    assert [sql for sql, _ in sent] == [*blocks.values(), sqlite.enqueue.INSERT_FIRST]
    assert [len(rows[0]) for _, rows in sent] == [*(10 + 2 * size for size in blocks), 12]
    assert [len(rows) for _, rows in sent] == [1, 1, 1]
    [(sql, [row])] = postgres.enqueue.statements(jobs, timedelta(0))
    assert (sql, len(row)) == (postgres.enqueue.INSERT_FIRSTS, 12)
    [(sql, [row])] = postgres.enqueue.statements(jobs[:1], timedelta(0))
    assert (sql, len(row)) == (postgres.enqueue.INSERT_NOW, 9)
    for sql in (*blocks.values(), sqlite.enqueue.INSERT_FIRST, sqlite.enqueue.INSERT):
        assert "batch" not in sql
    for sql in (postgres.enqueue.INSERT_FIRSTS, postgres.enqueue.INSERT_NOW, postgres.settling.COMPLETE):
        assert "batch_count" not in sql


# Callbacks


def test_then_follows_the_last_completion(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 2)
    first, last = worker.lease(2)

    worker.settle(first)
    assert callbacks(store) == []
    worker.settle(last)

    view = look(store, batch)
    assert callbacks(store) == ["then"]
    assert (view.finished, view.then_enqueued, view.on_failure_enqueued) == (True, True, False)
    assert view.then is not None
    assert see(store, view.then).batch is None


def test_then_waits_for_jobs_that_are_still_to_come(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 3, added=2)
    worker.settle_all(worker.lease(2))
    assert (look(store, batch).finished, callbacks(store)) == (False, [])

    store.batches.add(batch.id, 2, jobs[2:])
    assert callbacks(store) == []
    worker.settle(worker.lease_one())

    look(store, batch)
    assert callbacks(store) == ["then"]


def test_on_failure_follows_the_first_failure_at_once(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 3, added=2)
    first, second = worker.lease(2)

    worker.settle(first, DEAD)
    assert callbacks(store) == ["on_failure"]
    worker.settle(second, DEAD)

    assert counts(store, batch) == (1, 0, 0, 2, 0)
    assert callbacks(store) == ["on_failure"]


def test_a_batch_that_was_resubmitted_finishes_anew(store: Store, worker: Worker, clock: ManualClock) -> None:
    batch, [job] = make_batch(store, 1)
    worker.settle(worker.lease_one(), DEAD)
    first = look(store, batch).finished_at
    clock.move(hours=1)
    store.jobs.resubmit([job.id], by="ana")
    assert look(store, batch).finished_at is None
    worker.settle(worker.lease_one())
    second = look(store, batch).finished_at
    assert first is not None
    assert second is not None
    assert second >= first + timedelta(hours=1)


def test_cancelling_a_batch_that_was_cancelled_and_has_ended_says_so(store: Store) -> None:
    batch, _ = make_batch(store, 2)
    assert store.batches.cancel(batch.id, by="ana")
    assert store.batches.cancel_jobs(batch.id, None, 10, by="ana") is None
    assert look(store, batch).finished
    assert not store.batches.cancel(batch.id, by="ana")


def test_a_batch_is_discarded_only_while_it_is_empty(store: Store) -> None:
    empty, _ = make_batch(store, 2, added=0)
    begun, _ = make_batch(store, 2, added=1)
    assert store.batches.discard(empty.id)
    assert not store.batches.discard(empty.id)
    assert not store.batches.discard(begun.id)
    assert store.batches.view(empty.id) is None
    assert look(store, begun).added == 1


def test_a_failure_is_told_even_if_it_was_resubmitted_before_anybody_looked(store: Store) -> None:
    batch, jobs = make_batch(store, 2, attempts=1)
    worker, supervisor = Worker(store), Supervisor(store)
    worker.lease_one()
    worker.die()
    supervisor.sweep()
    assert store.jobs.resubmit([jobs[0].id], by="ana") == [jobs[0].id]

    assert counts(store, batch) == (2, 0, 0, 0, 0)
    assert callbacks(store) == ["on_failure"]


def test_then_follows_when_what_had_failed_has_completed_after_all(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 2)
    good, bad = worker.lease(2)
    worker.settle(good)
    worker.settle(bad, DEAD)
    assert (look(store, batch).finished, callbacks(store)) == (True, ["on_failure"])
    assert store.batches.failed(batch.id, None, 10) == [bad.id]

    store.jobs.resubmit([bad.id], by="ana")
    assert (look(store, batch).finished, counts(store, batch)) == (False, (1, 0, 1, 0, 0))
    worker.settle(worker.lease_one())

    assert (look(store, batch).finished, counts(store, batch)) == (True, (0, 0, 2, 0, 0))
    assert callbacks(store) == ["on_failure", "then"]
    assert see(store, jobs[1].id).batch == batch.id


def test_each_callback_comes_once_however_often_its_batch_is_finished(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 1)
    for _ in range(3):
        worker.settle(worker.lease_one(), DEAD)
        store.jobs.resubmit(store.batches.failed(batch.id, None, 10), by="ana")
    for _ in range(3):
        worker.settle(worker.lease_one(), STOPPED)
        look(store, batch)
        store.jobs.resubmit([job.id for job in store.batches.settled(batch.id, None, 10)], by="ana")

    assert callbacks(store) == ["on_failure", "then"]


def test_a_batch_without_callbacks_just_ends(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 2, then=False, on_failure=False)
    good, bad = worker.lease(2)
    worker.settle(good)
    worker.settle(bad, DEAD)

    view = look(store, batch)
    assert (view.finished, view.finished_at is not None, view.then, view.on_failure) == (
        True,
        True,
        None,
        None,
    )


def test_a_callback_whose_id_is_taken_keeps_no_job_from_being_settled(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 1)
    assert batch.then is not None
    lease = worker.lease_one()
    added(store, batch.then)

    assert worker.settle(lease)
    assert look(store, batch).finished
    assert callbacks(store) == ["then"]


# A producer that died


def test_a_batch_whose_producer_died_can_be_sealed(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 5, added=2)
    worker.settle_all(worker.lease(2))
    assert not look(store, batch).finished

    assert store.batches.seal(batch.id) is True
    assert store.batches.seal(batch.id) is False

    view = look(store, batch)
    assert (view.total, view.finished) == (2, True)
    assert callbacks(store) == ["then"]
    with pytest.raises(BatchClosed, match="was sealed when 2 of its jobs were in"):
        store.batches.add(batch.id, 2, jobs[2:])


def test_a_batch_whose_producer_died_can_be_cancelled(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 5, added=2)
    assert store.batches.cancel(batch.id, by="ana") is True

    with pytest.raises(BatchClosed, match="was cancelled by ana when 2 of its jobs were in"):
        store.batches.add(batch.id, 2, jobs[2:])
    assert store.batches.cancel_jobs(batch.id, None, 10, by="ana") is None
    assert look(store, batch).finished
    assert callbacks(store) == []


# Cancelling all


def test_cancelling_ends_what_waits_and_tells_what_runs(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 5)
    other, _ = make_batch(store, 1)
    completed, running = worker.lease(2)
    worker.settle(completed)

    assert store.batches.cancel(batch.id, by="ana") is True
    assert store.batches.cancel(batch.id, by="bob") is True
    last = store.batches.cancel_jobs(batch.id, None, 3, by="ana")
    assert last == jobs[3].id
    assert store.batches.cancel_jobs(batch.id, last, 3, by="ana") is None

    assert counts(store, batch) == (0, 1, 1, 0, 3)
    assert [order.id for order in store.jobs.stop_orders(worker.id)] == [running.id]
    worker.settle(running, STOPPED)
    view = look(store, batch)
    assert (view.finished, view.cancelled_by) == (True, "ana")
    assert callbacks(store) == []
    assert counts(store, other) == (1, 0, 0, 0, 0)
    assert query(store, "SELECT DISTINCT action, subject FROM {audit}") == [("cancel", f"batch {batch.id}")]


def test_no_callback_follows_a_batch_that_was_called_off(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 2)
    good, bad = worker.lease(2)
    store.batches.cancel(batch.id, by="ana")
    worker.settle(good)
    worker.settle(bad, DEAD)

    assert look(store, batch).finished
    assert callbacks(store) == []


def test_a_batch_that_has_finished_is_not_cancelled(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 1)
    worker.settle(worker.lease_one())

    assert store.batches.cancel(batch.id, by="ana") is False
    assert look(store, batch).cancelled_by is None
    assert callbacks(store) == ["then"]
    assert store.batches.cancel(new_job_id(), by="ana") is False


# Looking


def test_what_has_ended_is_read_page_by_page(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 7)
    make_batch(store, 3)
    leases = worker.lease(6)
    for lease in reversed(leases):
        worker.settle(lease, DEAD if place_of(lease.id) == 4 else DONE)

    pages = []
    after = None
    while page := store.batches.settled(batch.id, after, 4):
        pages.append([place_of(view.id) for view in page])
        after = page[-1].id

    assert pages == [[0, 1, 2, 3], [4, 5]]
    assert store.batches.failed(batch.id, None, 10) == [jobs[4].id]
    assert store.batches.failed(batch.id, jobs[4].id, 10) == []


def test_batches_are_listed_newest_first_and_found_by_their_digits(store: Store) -> None:
    ids = [make_batch(store, 1)[0].id for _ in range(3)]

    assert [view.id for view in store.batches.newest(None, 2)] == [ids[2], ids[1]]
    assert [view.id for view in store.batches.newest(ids[1], 5)] == [ids[0]]
    for id in ids:
        assert store.batches.find(id.hex[-8:], 5) == [id]
        assert store.batches.find(id.hex, 5) == [id]
    assert store.batches.find(first_digits(ids), 5) == ids[::-1]
    assert store.batches.find("0000", 5) == []


# Retention


def test_a_batch_is_purged_after_its_jobs(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    batch, jobs = make_batch(store, 2, then=False, on_failure=False)
    short, long = worker.lease(2)
    worker.settle(short)
    worker.settle(long, DeadLettered("exhausted", b"[]", timedelta(days=30)))
    look(store, batch)

    clock.move(days=BATCH_KEPT.days, seconds=1)
    supervisor.purge()
    assert [view.id for view in store.batches.settled(batch.id, None, 5)] == [jobs[1].id]
    assert counts(store, batch) == (0, 0, 1, 1, 0)

    clock.move(days=30)
    supervisor.purge()
    clock.move(days=1)
    supervisor.purge()
    assert store.batches.view(batch.id) is None
    assert store.batches.open(replace(batch, total=1)).added == 0


def test_a_batch_that_is_not_finished_stays(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    unsealed, _ = make_batch(store, 2, added=0)
    reopened, jobs = make_batch(store, 1)
    worker.settle(worker.lease_one(), DEAD)
    look(store, reopened)
    store.jobs.resubmit([jobs[0].id], by="ana")
    look(store, reopened)

    clock.move(days=1000)
    supervisor.purge()

    assert store.batches.view(unsealed.id) is not None
    assert store.batches.view(reopened.id) is not None


def test_erasing_a_job_changes_no_count(store: Store, worker: Worker) -> None:
    batch, jobs = make_batch(store, 2)
    worker.settle(worker.lease_one())
    assert store.upkeep.erase([jobs[0].id]) == 1

    assert counts(store, batch) == (1, 0, 1, 0, 0)
    assert store.batches.settled(batch.id, None, 5) == []


def test_a_callback_is_kept_as_it_was_asked_for(store: Store) -> None:
    then = make_job(task="then", queue="after", priority=7, delay=timedelta(hours=1), payload=b'{"a":1}')
    batch = NewBatch(id=new_job_id(), total=0, then=then)
    store.batches.open(batch)
    store.batches.add(batch.id, 0, [])

    view = see(store, then.id)
    assert (view.task, view.queue, view.priority, view.payload) == ("then", "after", 7, b'{"a":1}')
    assert view.state is State.SCHEDULED


def test_a_job_of_a_batch_that_no_batch_knows_is_settled_all_the_same(store: Store, worker: Worker) -> None:
    """As after a restore by hand: what is not there is not counted."""
    batch, jobs = make_batch(store, 1)
    lease = worker.lease_one()
    query(store, "DELETE FROM {batch}")

    assert worker.settle(lease)
    assert store.batches.finish(limit=10) in (0, 1)
    assert store.batches.finish(limit=10) == 0
    assert see(store, jobs[0].id).state is State.COMPLETED
    assert isinstance(jobs[0], NewJob)
    assert store.batches.view(batch.id) is None


def test_a_callback_that_this_release_cannot_read_keeps_no_job_from_being_settled(
    store: Store, worker: Worker
) -> None:
    batch, _ = make_batch(store, 1)
    lease = worker.lease_one()
    query(store, "UPDATE {batch} SET then_call = {}", b"from the future")

    assert worker.settle(lease)
    view = look(store, batch)
    assert (view.finished, view.then, view.then_enqueued, callbacks(store)) == (True, None, False, [])


def test_a_check_finds_a_batch_that_has_miscounted(store: Store, worker: Worker) -> None:
    batch, _ = make_batch(store, 2)
    worker.settle_all(worker.lease(2))
    look(store, batch)
    assert store.upkeep.check() == []
    query(store, "UPDATE {batch} SET completed = completed + 1")

    assert store.upkeep.check() == ["1 batches have counted other jobs than their own"]


def test_a_supervisor_looks_after_what_a_dead_worker_left(store: Store, worker: Worker) -> None:
    """Its lines are many, or nobody has looked at them: either way all is counted."""
    batch, _ = make_batch(store, 30)
    for lease in worker.lease(30):
        worker.settle(lease)
    view = store.batches.view(batch.id)
    assert view is not None
    assert view.completed == 30
    assert store.batches.finish(limit=10) in (0, 1)
    assert store.batches.finish(limit=10) == 0
    assert look(store, batch).completed == 30
