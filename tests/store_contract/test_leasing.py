"""Leasing: in order, bounded, counted, to live members only."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.job import Lane, Line, State
from lateshift.model.outcome import Settlement
from lateshift.store.contract import Store, Want
from tests.store_contract.driving import (
    DONE,
    FAILED,
    GUARDED,
    HOUR,
    LINE,
    RELEASED,
    Worker,
    added,
    make_job,
    see,
)


def test_a_lease_carries_what_the_body_needs(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(task="paint", payload=b"[1]", attempts=4, time_limit=HOUR))

    lease = worker.lease_one()

    assert (lease.id, lease.task, lease.payload, lease.attempts) == (id, "paint", b"[1]", 4)
    assert (lease.attempt, lease.fence, lease.time_limit) == (1, 1, HOUR)
    assert (lease.queue, lease.lane, lease.exclusive) == ("default", Lane.COROUTINE, None)
    assert (lease.checkpoint, lease.history) == (None, None)


def test_a_leased_job_is_running_with_its_holder_and_complete_by(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(time_limit=HOUR))
    worker.lease_one()

    view = see(store, id)
    assert (view.state, view.holder, view.attempt, view.fence) == (State.RUNNING, worker.id, 1, 1)
    assert view.started_at is not None
    assert view.complete_by is not None
    assert view.complete_by - view.started_at < HOUR + timedelta(milliseconds=100)
    assert view.complete_by - view.started_at >= HOUR


def test_a_job_without_a_time_limit_has_no_complete_by(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(time_limit=None))
    worker.lease_one()

    assert see(store, id).complete_by is None


@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_a_claim_of_n_gives_at_most_n(store: Store, worker: Worker, count: int) -> None:
    added(store, *[make_job() for _ in range(5)])

    leases = worker.lease(count)

    assert len(leases) == min(count, 5)
    assert len(store.reports.running(100)) == len(leases)


@pytest.mark.parametrize("line", [LINE, GUARDED])
@pytest.mark.parametrize("by_age", [False, True])
def test_a_claim_of_less_than_nothing_gives_nothing(
    store: Store, worker: Worker, line: Line, by_age: bool
) -> None:
    added(store, make_job(lane=line.lane), make_job(lane=line.lane))

    assert worker.lease(-1, line, by_age=by_age) == []
    assert store.reports.running(10) == []


def test_jobs_of_one_call_are_leased_in_the_order_they_were_given(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(50)])

    assert [lease.id for lease in worker.lease(20) + worker.lease(40)] == ids


def test_jobs_of_several_calls_are_leased_first_come_first_served(store: Store, worker: Worker) -> None:
    late_ids = [make_job() for _ in range(4)]
    ids = [added(store, job)[0] for job in reversed(late_ids)]

    assert [lease.id for lease in worker.lease(10)] == ids


def test_a_higher_priority_goes_first(store: Store, worker: Worker) -> None:
    jobs = [make_job(priority=priority) for priority in (0, -100, 100, 5, 5)]
    added(store, *jobs)

    low, lowest, highest, one, two = [job.id for job in jobs]
    assert [lease.id for lease in worker.lease(10)] == [highest, one, two, low, lowest]


def test_each_lane_of_a_queue_is_leased_on_its_own(store: Store, worker: Worker) -> None:
    ids = {lane: added(store, make_job(lane=lane))[0] for lane in Lane}

    for lane in Lane:
        assert [lease.id for lease in worker.lease(10, Line("default", lane))] == [ids[lane]]


def test_one_exchange_leases_from_many_lines(store: Store, worker: Worker) -> None:
    added(store, *[make_job(queue=queue) for queue in "aabbb"], make_job(lane=Lane.SOLO))
    wants = [
        Want(Line("a", Lane.COROUTINE), 1),
        Want(Line("b", Lane.COROUTINE), 2),
        Want(Line("c", Lane.SOLO), 5),
    ]

    leases = store.jobs.exchange(worker.id, [], [*wants, Want(Line("default", Lane.SOLO), 1)]).leases

    assert sorted(lease.queue for lease in leases) == ["a", "b", "b", "default"]


def test_one_exchange_settles_and_leases(store: Store, worker: Worker) -> None:
    first, second = added(store, make_job(), make_job())
    lease = worker.lease_one()

    exchanged = store.jobs.exchange(worker.id, [Settlement(lease, DONE)], [Want(LINE, 5)])

    assert see(store, first).state is State.COMPLETED
    assert [lease.id for lease in exchanged.leases] == [second]
    assert exchanged.lost == []


def test_a_job_that_is_handed_back_can_be_leased_in_the_same_exchange(store: Store, worker: Worker) -> None:
    added(store, make_job())
    lease = worker.lease_one()

    [again] = store.jobs.exchange(worker.id, [Settlement(lease, RELEASED)], [Want(LINE, 1)]).leases

    assert (again.id, again.fence, again.attempt) == (lease.id, 2, 1)


def test_each_lease_counts_an_attempt_and_raises_the_fence_by_one(store: Store, worker: Worker) -> None:
    added(store, make_job(attempts=10))
    seen = []
    for _ in range(4):
        lease = worker.lease_one()
        seen.append((lease.attempt, lease.fence))
        worker.settle(lease, FAILED)

    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("line", [LINE, GUARDED])
def test_a_member_nobody_knows_leases_nothing(store: Store, line: Line) -> None:
    added(store, make_job(lane=line.lane))

    assert store.jobs.exchange(new_member_id(), [], [Want(line, 1)]).leases == []


@pytest.mark.parametrize("line", [LINE, GUARDED])
def test_a_member_whose_heartbeat_has_run_out_leases_nothing_until_it_beats_again(
    store: Store, worker: Worker, clock: ManualClock, line: Line
) -> None:
    """Else one that wakes from a long pause takes jobs that the supervisor takes back a moment later."""
    added(store, make_job(lane=line.lane))
    clock.move(minutes=1)
    assert worker.lease_in_silence(1, line) == []
    worker.beat()
    assert len(worker.lease_in_silence(1, line)) == 1


@pytest.mark.parametrize("line", [LINE, GUARDED])
def test_a_member_that_was_declared_dead_leases_nothing(store: Store, worker: Worker, line: Line) -> None:
    added(store, make_job(lane=line.lane))
    worker.die()

    assert worker.lease(1, line) == []
    assert worker.lease(1, line, by_age=True) == []


def test_held_gives_every_lease_of_one_holder(store: Store, worker: Worker, other_worker: Worker) -> None:
    added(store, *[make_job(payload=b"[%d]" % number) for number in range(5)])
    mine = worker.lease(3)
    other_worker.lease(2)
    worker.settle(mine[0])

    held = store.jobs.held(worker.id)

    assert {(lease.id, lease.fence, lease.payload) for lease in held} == {
        (lease.id, lease.fence, lease.payload) for lease in mine[1:]
    }
    assert store.jobs.held(new_member_id()) == []


def test_a_share_by_age_goes_to_the_oldest_job_whatever_its_priority(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [old] = added(store, make_job(priority=-50))
    clock.move(minutes=1)
    added(store, *[make_job(priority=50) for _ in range(3)])
    [middle] = added(store, make_job(priority=0))

    assert [lease.id for lease in worker.lease(1, by_age=True)] == [old]
    assert len(worker.lease(3, by_age=True)) == 3
    assert [lease.id for lease in worker.lease(1, by_age=True)] == [middle]


@pytest.mark.parametrize("lane", [Lane.COROUTINE, Lane.GUARDED])
def test_a_stream_of_urgent_jobs_cannot_starve_an_old_one(
    store: Store, worker: Worker, clock: ManualClock, lane: Lane
) -> None:
    [old] = added(store, make_job(priority=-100, lane=lane))
    started = []
    for turn in range(5):
        clock.move(seconds=1)
        added(store, *[make_job(priority=100, lane=lane) for _ in range(5)])
        leases = worker.lease(1, Line("default", lane), by_age=turn == 3)
        started += [lease.id for lease in leases]

    assert old in started


def test_a_claim_by_age_keeps_to_its_line_and_count(store: Store, worker: Worker) -> None:
    added(store, make_job(queue="other"), *[make_job(priority=3) for _ in range(4)])

    leases = worker.lease(2, by_age=True)

    assert [lease.queue for lease in leases] == ["default", "default"]
    assert worker.lease(5, Line("none", Lane.COROUTINE), by_age=True) == []


def test_lines_names_each_line_with_a_ready_job_once(store: Store, worker: Worker) -> None:
    added(
        store,
        *[make_job(queue=queue) for queue in ("a", "b", "a", "c")],
        make_job(queue="b", lane=Lane.PROCESS),
    )
    added(store, make_job(queue="later", delay=HOUR))
    worker.lease(5, Line("c", Lane.COROUTINE))

    assert sorted(store.jobs.lines(), key=lambda line: (line.queue, line.lane)) == [
        Line("a", Lane.COROUTINE),
        Line("b", Lane.COROUTINE),
        Line("b", Lane.PROCESS),
    ]


def test_lines_can_be_narrowed_by_names_and_patterns(store: Store) -> None:
    added(store, *[make_job(queue=queue) for queue in ("images.small", "images.big", "mail", "mail2")])

    def names(*queues: str) -> list[str]:
        return sorted(line.queue for line in store.jobs.lines(queues))

    assert names("images.*") == ["images.big", "images.small"]
    assert names("mail") == ["mail"]
    assert names("mail", "*.big") == ["images.big", "mail"]
    assert names() == []


def test_a_lease_looked_up_later_has_the_time_that_is_left(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    added(store, make_job(time_limit=HOUR), make_job(time_limit=None))
    worker.lease(2)
    clock.move(minutes=45)
    left = [lease.time_limit for lease in store.jobs.held(worker.id)]
    clock.move(minutes=45)
    over = [lease.time_limit for lease in store.jobs.held(worker.id)]

    assert None in left
    [time] = [limit for limit in left if limit is not None]
    assert HOUR / 4 - timedelta(minutes=1) < time <= HOUR / 4
    assert sorted(over, key=str) == [timedelta(0), None]
