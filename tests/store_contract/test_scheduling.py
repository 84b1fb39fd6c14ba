"""Jobs for later: not before their time, and then soon."""

from datetime import timedelta

from lateshift.clock import ManualClock
from lateshift.model.job import Lane, Line, State
from lateshift.model.outcome import Later
from lateshift.store.contract import Store
from tests.store_contract.driving import HOUR, LINE, Worker, added, make_job, see


def test_a_delayed_job_is_not_leased_before_its_time(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job(delay=HOUR))
    clock.move(minutes=59)
    assert store.jobs.promote(10).lines == []
    assert worker.lease(10) == []
    assert see(store, id).state is State.SCHEDULED
    clock.move(minutes=1)

    assert store.jobs.promote(10).lines == [LINE]
    assert worker.lease_one().id == id


def test_a_job_for_an_instant_waits_for_it(store: Store, worker: Worker, clock: ManualClock) -> None:
    at = clock.now() + timedelta(days=3)
    [id] = added(store, make_job(at=at))
    assert see(store, id).due_at == at
    assert worker.lease(10) == []
    clock.move(days=3, seconds=1)
    store.jobs.promote(10)

    assert worker.lease_one().id == id


def test_an_instant_that_has_passed_is_now(store: Store, worker: Worker, clock: ManualClock) -> None:
    [past, none, back] = added(
        store,
        make_job(at=clock.now() - timedelta(days=3)),
        make_job(delay=timedelta(0)),
        make_job(delay=timedelta(days=-1)),
    )

    assert [lease.id for lease in worker.lease(10)] == [past, none, back]
    assert see(store, past).due_at >= see(store, past).created_at


def test_an_instant_goes_before_a_delay(store: Store, clock: ManualClock) -> None:
    at = clock.now() + timedelta(days=3)
    [id] = added(store, make_job(at=at, delay=HOUR))

    assert see(store, id).due_at == at


def test_jobs_of_one_call_share_their_due_time(store: Store) -> None:
    ids = added(store, *[make_job(delay=HOUR) for _ in range(3)])

    assert len({see(store, id).due_at for id in ids}) == 1


def test_promote_says_which_lines_got_jobs_and_when_the_next_are_due(
    store: Store, clock: ManualClock
) -> None:
    added(store, make_job(queue="a", delay=HOUR), make_job(queue="b", lane=Lane.THREAD, delay=HOUR))
    added(store, make_job(queue="a", delay=HOUR), make_job(queue="c", delay=2 * HOUR))

    before = store.jobs.promote(10)
    clock.move(hours=1, seconds=1)
    after = store.jobs.promote(10)

    assert before.lines == []
    assert before.next_in is not None
    assert HOUR - timedelta(minutes=1) < before.next_in <= HOUR
    assert sorted(line.queue for line in after.lines) == ["a", "b"]
    assert Line("b", Lane.THREAD) in after.lines
    assert after.next_in is not None
    assert timedelta(minutes=58) < after.next_in < HOUR


def test_promote_without_scheduled_jobs_knows_of_no_next(store: Store) -> None:
    added(store, make_job())

    assert store.jobs.promote(10).next_in is None
    assert store.jobs.promote(10).lines == []


def test_promote_keeps_to_its_limit_and_takes_the_longest_due_first(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    late, early, middle = added(store, *[make_job(delay=timedelta(minutes=minutes)) for minutes in (3, 1, 2)])
    clock.move(minutes=5)

    assert store.jobs.promote(2).next_in == timedelta(0)
    assert [lease.id for lease in worker.lease(10)] == [early, middle]
    assert store.jobs.promote(2).next_in is None
    assert [lease.id for lease in worker.lease(10)] == [late]


def test_a_retry_waits_for_its_delay(store: Store, worker: Worker, clock: ManualClock) -> None:
    added(store, make_job())
    lease = worker.lease_one()
    worker.settle(lease, Later(HOUR, counts=True, history=b"[]"))
    store.jobs.promote(10)
    assert worker.lease(10) == []
    clock.move(hours=1)
    store.jobs.promote(10)

    assert worker.lease_one().attempt == 2


def test_a_promoted_job_stands_in_line_by_its_due_time(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [late] = added(store, make_job(delay=HOUR))
    clock.move(hours=2)
    [fresh] = added(store, make_job())
    store.jobs.promote(10)

    assert [lease.id for lease in worker.lease(10)] == [late, fresh]
