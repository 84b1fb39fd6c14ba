"""Logs of attempts: kept with the exchange that settles, bounded, and gone with the job."""

from datetime import UTC, datetime

from lateshift.clock import ManualClock
from lateshift.model.attempt_log import LEASES_LOGGED, AttemptLog, LogLine
from lateshift.model.ids import new_job_id
from lateshift.model.job import Lane, Lease, Line, State
from lateshift.model.outcome import Settlement
from lateshift.store.contract import Store
from tests.store_contract.driving import (
    DONE,
    FAILED,
    RELEASED,
    Supervisor,
    Worker,
    added,
    make_job,
    query,
    see,
)

AT = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def line(message: str) -> LogLine:
    return LogLine(AT, "INFO", "shop", message)


def log(lease: Lease, *messages: str, logged: int | None = None) -> AttemptLog:
    return AttemptLog(
        job=lease.id, attempt=lease.attempt, fence=lease.fence, lines=[line(it) for it in messages],
        logged=len(messages) if logged is None else logged,
    )  # fmt: skip


def test_what_an_attempt_logged_is_kept_with_its_settlement(store: Store, worker: Worker) -> None:
    added(store, make_job())
    lease = worker.lease_one()
    told = log(lease, "first", "NUL \0, and ünïcödé", logged=7)

    answer = store.jobs.exchange(worker.id, [Settlement(lease, DONE)], [], [told])

    assert answer.lost == []
    assert see(store, lease.id).state is State.COMPLETED
    assert store.logs.of(lease.id) == [told]
    assert told.dropped == 5


def test_each_attempt_has_its_own_log(store: Store, worker: Worker) -> None:
    added(store, make_job())
    first = worker.lease_one()
    store.jobs.exchange(worker.id, [Settlement(first, FAILED)], [], [log(first, "one")])
    second = worker.lease_one()
    store.jobs.exchange(worker.id, [Settlement(second, DONE)], [], [log(second, "two")])

    kept = store.logs.of(first.id)

    assert [(it.attempt, it.lines[0].message) for it in kept] == [(1, "one"), (2, "two")]
    assert kept[0].fence < kept[1].fence


def test_guarded_jobs_and_plain_ones_are_logged_alike(store: Store, worker: Worker) -> None:
    added(store, make_job(), make_job(exclusive="till"))
    leases = [worker.lease_one(), worker.lease_one(Line("default", Lane.GUARDED))]

    said = [Settlement(lease, DONE) for lease in leases]
    store.jobs.exchange(worker.id, said, [], [log(lease, "done") for lease in leases])

    assert [len(store.logs.of(lease.id)) for lease in leases] == [1, 1]


def test_a_log_told_again_is_kept_once_and_an_older_one_changes_nothing(store: Store, worker: Worker) -> None:
    added(store, make_job())
    lease = worker.lease_one()
    store.logs.keep([log(lease, "one")])
    store.logs.keep([log(lease, "one", "two"), log(lease, "one")])
    store.logs.keep([log(lease, "one")])

    [kept] = store.logs.of(lease.id)

    assert [it.message for it in kept.lines] == ["one", "two"]


def test_an_attempt_that_lost_its_lease_leaves_its_log_under_its_own_fence(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    added(store, make_job())
    old = worker.lease_one()
    worker.die()
    supervisor.sweep()
    new = other_worker.lease_one()

    answer = store.jobs.exchange(worker.id, [Settlement(old, DONE)], [], [log(old, "late")])

    assert answer.lost == [old]
    store.jobs.exchange(other_worker.id, [Settlement(new, DONE)], [], [log(new, "done")])
    assert [it.fence for it in store.logs.of(old.id)] == [old.fence, new.fence]


def test_of_a_job_that_was_leased_very_often_the_newest_logs_stay(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    for number in range(LEASES_LOGGED + 5):
        lease = worker.lease_one()
        store.jobs.exchange(worker.id, [Settlement(lease, RELEASED)], [], [log(lease, str(number))])

    kept = store.logs.of(id)

    assert len(kept) == LEASES_LOGGED
    assert kept[-1].lines[0].message == str(LEASES_LOGGED + 4)


def test_nothing_is_kept_of_a_job_that_is_gone(store: Store, worker: Worker) -> None:
    added(store, make_job())
    lease = worker.lease_one()
    worker.settle(lease)
    store.upkeep.erase([lease.id])

    store.logs.keep([log(lease, "late")])

    assert store.logs.of(lease.id) == []
    assert store.logs.of(new_job_id()) == []


def test_logs_go_with_their_job_at_the_end_of_its_retention(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, make_job(), make_job())
    gone, stays = worker.lease(2)
    store.jobs.exchange(worker.id, [Settlement(gone, DONE)], [], [log(gone, "done")])
    store.logs.keep([log(stays, "running")])
    clock.move(days=2)

    supervisor.purge()

    assert query(store, "SELECT count(*) FROM {attempt_log}") == [(1,)]
    assert len(store.logs.of(stays.id)) == 1


def test_logs_go_with_a_job_that_is_erased(store: Store, worker: Worker) -> None:
    added(store, make_job())
    lease = worker.lease_one()
    store.jobs.exchange(worker.id, [Settlement(lease, DONE)], [], [log(lease, "done")])

    assert store.upkeep.erase([lease.id]) == 1

    assert query(store, "SELECT count(*) FROM {attempt_log}") == [(0,)]
