"""Take back: what a dead or late holder had goes to another, a bounded number of times."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.job import LOSSES_UNTIL_DEAD, Lane, Line, State
from lateshift.store.contract import Store, TakenBack
from lateshift.store.postgres import sweeping as sweeping_on_postgres
from lateshift.store.sqlite import sweeping as sweeping_on_sqlite
from lateshift.store.taking import GRACE
from tests.store_contract.driving import (
    DONE,
    HOUR,
    LINE,
    SOLO,
    TTL,
    Supervisor,
    Worker,
    added,
    make_job,
    see,
)


def test_the_job_of_a_silent_worker_is_ready_for_another(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    worker.lease_one()
    clock.move(seconds=29)
    assert supervisor.sweep() == []
    clock.move(seconds=1)

    assert supervisor.sweep() == [TakenBack(id, "default", LINE, "worker_lost", False, worker.id)]

    view = see(store, id)
    assert (view.state, view.holder, view.losses, view.attempt) == (State.READY, None, 1, 1)
    assert (view.complete_by, view.started_at) == (None, None)
    assert [(entry.attempt, entry.fence, entry.reason) for entry in view.history] == [(1, 1, "worker_lost")]
    assert view.history[0].member == str(worker.id)
    lease = Worker(store).lease_one()
    assert (lease.id, lease.attempt, lease.fence) == (id, 2, 2)


def test_a_heartbeat_keeps_every_lease_of_a_worker(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, *[make_job() for _ in range(3)])
    leases = worker.lease(3)
    for _ in range(10):
        clock.move(seconds=25)
        assert worker.beat()
        assert supervisor.sweep() == []

    assert worker.settle_all(leases) == []


def test_a_job_past_its_complete_by_is_taken_from_a_live_worker(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [id] = added(store, make_job(time_limit=timedelta(minutes=5)))
    lease = worker.lease_one()
    clock.move(minutes=5)
    worker.beat()
    assert supervisor.sweep() == []  # the holder may say so itself, for a moment
    clock.move(seconds=GRACE.total_seconds())

    assert supervisor.sweep() == [TakenBack(id, "default", LINE, "complete_by", False)]

    view = see(store, id)
    assert (view.state, view.losses, view.history[0].reason) == (State.READY, 0, "complete_by")
    assert not worker.settle(lease, DONE)


def test_a_job_without_a_time_limit_is_taken_only_from_a_silent_worker(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, make_job(time_limit=None))
    worker.lease_one()
    clock.move(days=100)
    worker.beat()
    assert supervisor.sweep() == []
    clock.move(seconds=31)

    assert len(supervisor.sweep()) == 1


def test_a_job_whose_worker_died_three_times_is_a_dead_letter(store: Store, supervisor: Supervisor) -> None:
    [id] = added(store, make_job(attempts=100, payload=b"[1]"))
    for death in range(1, LOSSES_UNTIL_DEAD + 1):
        loser = Worker(store)
        [line] = store.jobs.lines()
        loser.lease_one(line)
        loser.die()
        [taken] = supervisor.sweep()
        assert (taken.reason, taken.dead) == ("worker_lost", death == 3)

    view = see(store, id)
    assert (view.state, view.reason, view.losses, view.attempt) == (State.DEAD, "worker_lost", 3, 3)
    assert [entry.reason for entry in view.history] == ["worker_lost"] * 3
    assert view.payload == b"[1]"
    assert store.jobs.lines() == []


def test_after_two_losses_a_job_waits_in_the_solo_lane(store: Store, supervisor: Supervisor) -> None:
    added(store, make_job(attempts=100))
    lines = []
    for _ in range(2):
        loser = Worker(store)
        loser.lease_one(store.jobs.lines()[0])
        loser.die()
        [taken] = supervisor.sweep()
        assert [taken.line] == store.jobs.lines()
        lines.append(taken.line)

    assert lines == [LINE, SOLO]
    assert Worker(store).lease(5, LINE) == []


def test_the_last_attempt_is_not_repeated(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    lost, late = added(
        store, make_job(attempts=1, time_limit=None), make_job(attempts=1, time_limit=TTL, queue="late")
    )
    worker.lease_one()
    other = Worker(store)
    other.lease_one(Line("late", Lane.COROUTINE))
    clock.move(seconds=30 + GRACE.total_seconds())
    other.beat()

    taken = {job.id: (job.reason, job.dead) for job in supervisor.sweep()}

    assert taken == {lost: ("worker_lost", True), late: ("complete_by", True)}
    assert (see(store, lost).reason, see(store, late).reason) == ("worker_lost", "complete_by")
    assert see(store, lost).history[0].reason == "worker_lost"


def test_a_job_that_was_settled_in_time_is_left_alone(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one())
    worker.die()

    assert supervisor.sweep() == []
    assert see(store, id).state is State.COMPLETED


def test_a_member_declared_dead_cannot_come_back(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    clock.move(seconds=31)
    supervisor.sweep()

    assert not worker.beat()
    added(store, make_job())
    assert worker.lease(1) == []


def test_a_heartbeat_in_time_keeps_a_member_though_it_was_late(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    clock.move(seconds=31)
    assert worker.beat()

    supervisor.sweep()
    assert worker.beat()


def test_a_sweep_keeps_to_its_limit_and_the_next_one_goes_on(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    ids = added(store, *[make_job() for _ in range(5)])
    worker.lease(5)
    worker.die()

    first, second, third = (supervisor.sweep(limit=2) for _ in range(3))

    assert [len(first), len(second), len(third)] == [2, 2, 1]
    assert {job.id for job in first + second + third} == set(ids)
    assert supervisor.sweep() == []


def test_who_fell_silent_while_the_supervisor_waited_to_write_is_not_dead_yet(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.move(seconds=20)
    waiting = Worker(store)
    ids = added(store, make_job(time_limit=None), make_job(time_limit=None))
    worker.lease_in_silence()
    waiting.lease_one()
    clock.move(seconds=11)

    def kept_waiting(name: str) -> None:
        if name == "sweep.before_dead":
            clock.move(seconds=20)

    for sweeping in (sweeping_on_sqlite, sweeping_on_postgres):
        monkeypatch.setattr(sweeping, "crashpoint", kept_waiting)
    assert [job.id for job in supervisor.sweep()] == ids[:1]
    assert waiting.beat()


def test_a_job_held_by_a_member_that_was_forgotten_is_taken_back(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, make_job(time_limit=None))
    worker.lease_one()
    worker.die()
    clock.move(days=30)
    supervisor.purge()

    assert len(supervisor.sweep()) == 1


def test_only_the_present_term_may_take_back(store: Store, worker: Worker, clock: ManualClock) -> None:
    me, successor = new_member_id(), new_member_id()
    old = store.locks.acquire("supervisor", me, timedelta(seconds=10))
    assert old is not None
    added(store, make_job())
    worker.lease_one()
    worker.die()
    clock.move(seconds=11)
    new = store.locks.acquire("supervisor", successor, timedelta(seconds=10))
    assert new is not None

    assert store.jobs.take_back(term=old.fence, limit=10) == []
    assert store.jobs.take_back(term=new.fence + 1, limit=10) == []
    assert len(store.jobs.take_back(term=new.fence, limit=10)) == 1


def test_nobody_takes_back_after_the_term_was_given_up(store: Store, worker: Worker) -> None:
    grip = store.locks.acquire("supervisor", new_member_id(), HOUR)
    assert grip is not None
    added(store, make_job())
    worker.lease_one()
    worker.die()
    store.locks.release(grip)

    assert store.jobs.take_back(term=grip.fence, limit=10) == []


def test_who_is_lost_with_jobs_is_known_before_they_are_taken_back(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, *[make_job() for _ in range(3)])
    worker.lease(2)
    other_worker.lease(1)
    idle = Worker(store)
    assert store.members.lost(10) == []
    idle.die()
    worker.die()  # seen by its host
    [lost] = store.members.lost(10)
    assert (lost.id, lost.name, lost.host, lost.jobs) == (worker.id, "worker", "host", 2)
    clock.move(seconds=TTL.total_seconds())  # the other falls silent
    assert {one.id: one.jobs for one in store.members.lost(10)} == {worker.id: 2, other_worker.id: 1}
    assert len(store.members.lost(1)) == 1
    supervisor.sweep()
    assert store.members.lost(10) == []


def test_what_tells_of_a_lost_worker_is_enqueued_with_what_is_taken_from_it(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    added(store, make_job(), make_job())
    lease = worker.lease_one()
    other_worker.lease_one()
    page, other_page = make_job(task="page"), make_job(task="page")
    alerts = {worker.id: [page], other_worker.id: [other_page]}
    worker.die()
    assert store.jobs.take_back(term=supervisor.term + 1, limit=10, alerts=alerts) == []
    assert store.reports.job(page.id) is None
    [taken] = store.jobs.take_back(term=supervisor.term, limit=10, alerts=alerts)
    assert (taken.id, taken.holder) == (lease.id, worker.id)
    assert see(store, page.id).state is State.READY
    assert store.reports.job(other_page.id) is None  # nothing was taken from that one


def test_a_job_that_was_late_tells_of_no_lost_worker(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, make_job(time_limit=timedelta(minutes=5)))
    worker.lease_one()
    clock.move(minutes=6)
    worker.beat()
    page = make_job(task="page")
    [taken] = store.jobs.take_back(term=supervisor.term, limit=10, alerts={worker.id: [page]})
    assert (taken.reason, taken.holder) == ("complete_by", None)
    assert store.reports.job(page.id) is None
