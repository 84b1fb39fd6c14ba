"""Sessions: one at a time, in the order of enqueueing, whatever happens to the one whose turn it is."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import SequenceUsed
from lateshift.model.ids import JobId
from lateshift.model.job import Holds, Lease, NewJob, Place, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later
from lateshift.store.contract import Gap, Store
from lateshift.store.postgres import sweeping as sweeping_on_postgres
from lateshift.store.sqlite import sweeping as sweeping_on_sqlite
from tests.store_contract.driving import (
    DAY,
    DONE,
    FAILED,
    GUARDED,
    RELEASED,
    SOLO,
    Supervisor,
    Worker,
    added,
    make_job,
    make_key,
    query,
    see,
)

DEAD = DeadLettered("permanent", b"[]", DAY)


def in_session(
    name: str = "s", *, number: int | None = None, holds: Holds = Holds.NOTHING, **more: object
) -> NewJob:
    return make_job(place=Place(name, number, holds=holds), time_limit=None, **more)  # type: ignore[arg-type]


def lease(worker: Worker, count: int = 10) -> list[JobId]:
    return [lease.id for lease in worker.lease(count, GUARDED)]


def lease_one(worker: Worker) -> Lease:
    [lease] = worker.lease(10, GUARDED)
    return lease


def states(store: Store, ids: list[JobId]) -> list[State]:
    return [see(store, id).state for id in ids]


@pytest.mark.parametrize("together", [True, False])
def test_the_jobs_of_a_session_run_one_at_a_time_in_the_order_of_enqueueing(
    store: Store, worker: Worker, other_worker: Worker, together: bool
) -> None:
    jobs = [in_session() for _ in range(5)]
    ids = added(store, *jobs) if together else [id for job in jobs for id in added(store, job)]
    for place, id in enumerate(ids):
        running = lease_one(worker if place % 2 else other_worker)
        assert running.id == id
        assert lease(other_worker) == []
        assert (worker if place % 2 else other_worker).settle(running)
    assert lease(worker) == []


def test_sessions_run_beside_each_other_and_beside_jobs_without_one(store: Store, worker: Worker) -> None:
    ids = added(store, in_session("a"), in_session("a"), in_session("b"), make_job(place=Place()))
    assert lease(worker) == [ids[0], ids[2], ids[3]]


def test_a_session_belongs_to_its_queue(store: Store, worker: Worker) -> None:
    added(store, in_session("a"), in_session("a", queue="other"))
    assert len(lease(worker)) == 1
    assert len(worker.lease(10, GUARDED.__class__("other", GUARDED.lane))) == 1


def test_settling_the_head_readies_the_next_in_the_same_exchange(store: Store, worker: Worker) -> None:
    first, second, third = added(store, in_session(), in_session(), in_session())
    running = lease_one(worker)
    assert states(store, [first, second, third]) == [State.RUNNING, State.BLOCKED, State.BLOCKED]
    worker.settle(running)
    assert states(store, [second, third]) == [State.READY, State.BLOCKED]


def test_priority_does_not_change_the_order_within_a_session(store: Store, worker: Worker) -> None:
    first, _second = added(store, in_session(priority=0), in_session(priority=9))
    assert lease_one(worker).id == first


def test_the_wait_for_another_try_is_the_turn_of_the_head(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    first, second = added(store, in_session(), in_session())
    worker.settle(lease_one(worker), Later(timedelta(minutes=5), counts=True, history=b"[]"))
    assert lease(worker) == []
    clock.move(minutes=5)
    store.jobs.promote(10)
    retried = lease_one(worker)
    assert (retried.id, retried.attempt) == (first, 2)
    worker.settle(retried)
    assert lease_one(worker).id == second


@pytest.mark.parametrize("outcome", [FAILED, RELEASED])
def test_a_head_that_goes_back_at_once_keeps_its_turn(store: Store, worker: Worker, outcome: Later) -> None:
    first, _ = added(store, in_session(), in_session())
    worker.settle(lease_one(worker), outcome)
    assert lease_one(worker).id == first


@pytest.mark.parametrize("outcome", [DONE, DEAD, Cancelled("asked", DAY)])
def test_however_the_head_ends_the_next_has_the_turn(
    store: Store, worker: Worker, outcome: Completed | DeadLettered | Cancelled
) -> None:
    _, second = added(store, in_session(), in_session())
    worker.settle(lease_one(worker), outcome)
    assert lease_one(worker).id == second


def test_a_head_that_is_cancelled_while_it_waits_gives_its_turn_on(store: Store, worker: Worker) -> None:
    first, second = added(store, in_session(), in_session())
    store.jobs.cancel([first], by="ana")
    assert lease_one(worker).id == second


def test_a_blocked_job_that_is_cancelled_is_passed_over(store: Store, worker: Worker) -> None:
    _first, second, third = added(store, in_session(), in_session(), in_session())
    store.jobs.cancel([second], by="ana")
    worker.settle(lease_one(worker))
    assert lease_one(worker).id == third


def test_a_dead_worker_gives_the_turn_back_to_its_job(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    first, second = added(store, in_session(), in_session())
    lost = lease_one(worker)
    worker.die()
    supervisor.sweep()
    again = lease_one(other_worker)
    assert (again.id, again.fence) == (first, 2)
    assert not worker.settle(lost)
    assert lease(other_worker) == []
    other_worker.settle(again)
    assert lease_one(other_worker).id == second


def test_a_suspect_runs_alone_and_keeps_its_turn(store: Store, supervisor: Supervisor) -> None:
    first, second = added(store, in_session(), in_session())
    for _ in range(2):
        worker = Worker(store)
        assert lease(worker) == [first]
        worker.die()
        supervisor.sweep()
    worker = Worker(store)
    assert lease(worker) == []
    suspect = worker.lease_one(SOLO)
    assert (suspect.id, suspect.session) == (first, "s")
    worker.settle(suspect)
    assert lease_one(worker).id == second


def test_the_death_of_the_head_by_its_workers_gives_the_turn_on(store: Store, supervisor: Supervisor) -> None:
    first, second = added(store, in_session(attempts=1), in_session())
    worker = Worker(store)
    assert lease(worker) == [first]
    worker.die()
    supervisor.sweep()
    assert states(store, [first, second]) == [State.DEAD, State.READY]


def test_a_dead_letter_holds_its_session_if_it_was_to_until_it_is_resubmitted(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    first, second = added(store, in_session(holds=Holds.ON_DEAD), in_session())
    worker.settle(lease_one(worker), DEAD)
    [later] = added(store, in_session())
    supervisor.release_waiting()
    assert lease(worker) == []
    view = store.sessions.get("default", "s")
    assert view is not None
    assert (view.held_by, view.held_why) == (first, "dead")
    assert [each.name for each in store.sessions.list(held=True, limit=10)] == ["s"]
    ended = see(store, first).settled_at
    assert ended is not None
    assert abs(view.since - ended) < timedelta(seconds=10)
    [queue] = store.queues.list()
    assert (queue.blocked, queue.held) == (2, 2)

    assert store.jobs.resubmit([first], by="ana") == [first]
    for id in (first, second, later):
        running = lease_one(worker)
        assert running.id == id
        worker.settle(running)
    assert store.sessions.list(held=True, limit=10) == []


@pytest.mark.parametrize("holds", [Holds.ON_DEAD, Holds.NOTHING])
def test_a_session_waits_for_one_that_was_resubmitted_for_later(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock, holds: Holds
) -> None:
    first, second = added(store, in_session(holds=holds), in_session())
    worker.settle(lease_one(worker), DEAD)
    store.jobs.resubmit([first], by="ana", delays={first: timedelta(hours=1)})
    [later] = added(store, in_session())
    supervisor.release_waiting()
    assert lease(worker) == []

    clock.move(hours=1, seconds=1)
    store.jobs.promote(10)
    for id in (first, second, later):
        running = lease_one(worker)
        assert running.id == id
        worker.settle(running)


def test_a_session_goes_on_when_the_one_that_was_resubmitted_for_later_is_cancelled(
    store: Store, worker: Worker
) -> None:
    first, second = added(store, in_session(holds=Holds.ON_DEAD), in_session())
    worker.settle(lease_one(worker), DEAD)
    store.jobs.resubmit([first], by="ana", delays={first: timedelta(hours=1)})
    assert lease(worker) == []

    store.jobs.cancel([first], by="ana")
    assert lease_one(worker).id == second


def test_who_runs_keeps_the_turn_when_an_earlier_one_is_resubmitted_for_later(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    first, second, third = added(store, in_session(), in_session(), in_session())
    worker.settle(lease_one(worker), DEAD)
    running = lease_one(worker)
    assert running.id == second
    store.jobs.resubmit([first], by="ana", delays={first: timedelta(seconds=5)})
    clock.move(seconds=6)
    store.jobs.promote(10)
    assert lease(worker) == []

    worker.settle(running)
    for id in (first, third):
        running = lease_one(worker)
        assert running.id == id
        worker.settle(running)


def test_a_job_whose_workers_died_holds_its_session_too(store: Store, supervisor: Supervisor) -> None:
    first, _ = added(store, in_session(holds=Holds.ON_DEAD, attempts=1), in_session())
    worker = Worker(store)
    lease(worker)
    worker.die()
    supervisor.sweep()
    assert lease(Worker(store)) == []
    assert [each.held_by for each in store.sessions.list(held=True, limit=10)] == [first]


def test_an_operator_lets_a_held_session_go_on_without_its_dead_letter(store: Store, worker: Worker) -> None:
    _, second = added(store, in_session(holds=Holds.ON_DEAD), in_session())
    worker.settle(lease_one(worker), DEAD)
    assert store.sessions.release("default", "s", by="ana")
    assert not store.sessions.release("default", "s", by="ana")
    assert not store.sessions.release("default", "nobody", by="ana")
    assert lease_one(worker).id == second


def test_what_a_session_keeps_is_written_with_the_settlement_and_given_to_the_next(
    store: Store, worker: Worker
) -> None:
    added(store, in_session(), in_session(), in_session("other"))
    first, beside = worker.lease(10, GUARDED)
    assert (first.session_state, beside.session_state) == (None, None)
    worker.settle(first, Completed(None, DAY, b'{"n":1}'))
    worker.settle(beside)
    second = lease_one(worker)
    assert second.session_state == b'{"n":1}'
    assert [each.session_state for each in store.jobs.held(worker.id)] == [b'{"n":1}']


def test_what_a_session_keeps_is_not_written_by_an_attempt_that_lost_its_lease(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    added(store, in_session())
    lost = lease_one(worker)
    worker.die()
    supervisor.sweep()
    again = lease_one(other_worker)
    assert not worker.settle(lost, Completed(None, DAY, b"1"))
    assert again.session_state is None
    assert store.sessions.get("default", "s") is None


def test_a_settlement_said_twice_does_not_bring_old_state_back(store: Store, worker: Worker) -> None:
    added(store, in_session(), in_session())
    first = lease_one(worker)
    worker.settle(first, Completed(None, DAY, b"1"))
    worker.settle(lease_one(worker), Completed(None, DAY, b"2"))
    assert worker.settle(first, Completed(None, DAY, b"1"))
    view = store.sessions.get("default", "s")
    assert view is not None
    assert view.state == b"2"


def test_a_delayed_job_takes_its_place_when_it_is_due(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [delayed] = added(store, in_session(delay=timedelta(minutes=5)))
    [now] = added(store, in_session())
    running = lease_one(worker)
    assert running.id == now
    clock.move(minutes=5)
    store.jobs.promote(10)
    assert lease(worker) == []
    worker.settle(running)
    assert lease_one(worker).id == delayed


def test_ten_thousand_waiting_jobs_of_one_session_delay_nobody_else(store: Store, worker: Worker) -> None:
    ids = added(store, *(in_session() for _ in range(2000)))
    [other] = added(store, make_job(place=Place()))
    assert lease(worker, 2) == [ids[0], other]


# Numbers


def test_jobs_that_arrive_out_of_order_run_by_their_numbers(store: Store, worker: Worker) -> None:
    ids = {n: added(store, in_session(number=n))[0] for n in (3, 1, 2)}
    for n in (1, 2, 3):
        running = lease_one(worker)
        assert running.id == ids[n]
        worker.settle(running)


def test_a_job_waits_for_a_number_that_is_missing(store: Store, worker: Worker) -> None:
    [second] = added(store, in_session(number=2))
    assert lease(worker) == []
    assert see(store, second).state is State.BLOCKED
    [first] = added(store, in_session(number=1))
    running = lease_one(worker)
    assert running.id == first
    worker.settle(running)
    assert lease_one(worker).id == second


def test_after_its_time_the_session_goes_on_without_the_number_and_the_gap_is_told_once(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    ids = added(store, in_session(number=3), in_session(number=4))
    assert lease(worker) == []
    clock.move(seconds=59)
    assert supervisor.release_waiting() == []
    assert lease(worker) == []
    clock.move(seconds=2)
    assert supervisor.release_waiting() == [Gap("default", "s", 1, 3, held=False)]
    assert supervisor.release_waiting() == []
    assert lease(worker) == ids[:1]


def test_after_its_time_the_session_is_held_if_so_asked_and_goes_on_when_the_number_comes(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [second] = added(store, in_session(number=2, holds=Holds.ON_GAP))
    lease(worker)
    clock.move(minutes=2)
    assert supervisor.release_waiting() == [Gap("default", "s", 1, 2, held=True)]
    clock.move(minutes=2)
    assert supervisor.release_waiting() == []
    assert lease(worker) == []
    [first] = added(store, in_session(number=1))
    running = lease_one(worker)
    assert running.id == first
    worker.settle(running)
    assert lease_one(worker).id == second
    assert store.sessions.list(held=True, limit=10) == []


def test_an_operator_lets_a_session_go_on_without_the_number(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [second] = added(store, in_session(number=2, holds=Holds.ON_GAP))
    lease(worker)
    clock.move(minutes=2)
    supervisor.release_waiting()
    assert store.sessions.release("default", "s", by="ana")
    assert lease_one(worker).id == second


def test_a_number_is_used_once(store: Store, worker: Worker) -> None:
    added(store, in_session(number=1), in_session(number=2))
    with pytest.raises(SequenceUsed, match="number 2 of the session 's'"):
        store.jobs.enqueue([in_session(number=2)])
    worker.settle(lease_one(worker))
    with pytest.raises(SequenceUsed, match="past 1 and expects 2"):
        store.jobs.enqueue([make_job(), in_session(number=1)])
    with pytest.raises(SequenceUsed, match="another job of this call"):
        store.jobs.enqueue([in_session(number=7), in_session(number=7)])
    assert len(worker.lease(10)) == 0


def test_a_refused_number_frees_the_keys_of_its_call(store: Store) -> None:
    added(store, in_session(number=1))
    with pytest.raises(SequenceUsed):
        store.jobs.enqueue([make_job(key=make_key("k")), in_session(number=1)])
    [answer] = store.jobs.enqueue([make_job(key=make_key("k"))])
    assert answer.created


def test_a_numbered_job_may_be_sent_again_before_and_after_it_ran(store: Store, worker: Worker) -> None:
    job = in_session(number=1)
    added(store, job)
    added(store, job)
    worker.settle(lease_one(worker))
    added(store, job)
    assert lease(worker) == []


def test_the_numbers_of_two_sessions_are_two_matters(store: Store, worker: Worker) -> None:
    ids = added(store, in_session("a", number=1), in_session("b", number=1))
    assert lease(worker) == ids


def test_the_net_finds_a_session_whose_next_job_nobody_readied(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    _first, second = added(store, in_session(), in_session())
    worker.settle(lease_one(worker))

    query(store, "UPDATE {job} SET state = 3, blocked_by = 'session:s'")
    assert lease(worker) == []
    supervisor.release_waiting()
    assert lease_one(worker).id == second


def test_a_session_is_remembered_for_ninety_days_after_its_last_job(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, in_session())
    worker.settle(lease_one(worker), Completed(None, DAY, b"1"))
    clock.move(days=89)
    supervisor.purge()
    assert store.sessions.get("default", "s") is not None
    clock.move(days=2)
    supervisor.purge()
    assert store.sessions.get("default", "s") is None


def test_two_running_jobs_of_a_session_are_found_by_a_check(store: Store, worker: Worker) -> None:
    added(store, in_session("a"), in_session("b"))
    lease(worker)
    assert store.upkeep.check() == []
    query(store, "UPDATE {job} SET session = 'a'")
    assert store.upkeep.check() == ["1 sessions have two jobs running"]


def test_a_job_that_completed_before_it_could_be_taken_back_holds_nothing(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    added(store, in_session(holds=Holds.ON_DEAD, attempts=1), in_session())
    running = lease_one(worker)
    clock.move(seconds=31)

    def settled_meanwhile(name: str) -> None:
        if name == "sweep.after_read":
            assert worker.settle(running)

    for sweeping in (sweeping_on_sqlite, sweeping_on_postgres):
        monkeypatch.setattr(sweeping, "crashpoint", settled_meanwhile)
    assert supervisor.sweep() == []
    assert store.sessions.list(held=True, limit=10) == []
    assert len(lease(Worker(store))) == 1


def test_a_job_that_has_begun_goes_on_before_one_that_was_enqueued_earlier_and_comes_back(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [delayed] = added(store, in_session(delay=timedelta(seconds=5)))
    [begun] = added(store, in_session())
    worker.settle(lease_one(worker), Later(timedelta(seconds=10), counts=True, history=b"[]"))
    clock.move(seconds=10)
    store.jobs.promote(10)
    running = lease_one(worker)
    assert running.id == begun
    worker.settle(running)
    assert lease_one(worker).id == delayed


def test_who_runs_keeps_the_turn_though_a_number_comes_that_stands_before_it(
    store: Store, worker: Worker
) -> None:
    added(store, in_session("other"), in_session("other"))
    [running] = added(store, in_session())
    leased = {lease.id: lease for lease in worker.lease(10, GUARDED)}
    [numbered] = added(store, in_session(number=1))
    assert lease(worker) == []
    worker.settle(leased[running])
    assert lease_one(worker).id == numbered


def test_dead_letters_that_come_back_while_another_runs_wait_in_their_own_order(
    store: Store, worker: Worker
) -> None:
    first, second, third, fourth = added(store, *(in_session() for _ in range(4)))
    worker.settle(lease_one(worker), DEAD)
    worker.settle(lease_one(worker), DEAD)
    running = lease_one(worker)
    assert running.id == third
    for id in (second, first):
        store.jobs.resubmit([id], by="a test")
    assert lease(worker) == []
    worker.settle(running)
    for id in (first, second, fourth):
        running = lease_one(worker)
        assert running.id == id
        worker.settle(running)


def test_a_gap_is_borne_as_long_as_the_job_in_front_says(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    soon, late = timedelta(seconds=1), timedelta(minutes=10)
    added(store, make_job(place=Place("s", 5, soon), time_limit=None))
    assert lease(worker) == []
    [third] = added(store, make_job(place=Place("s", 3, late), time_limit=None))
    assert lease(worker) == []
    clock.move(seconds=5)
    assert supervisor.release_waiting() == []
    clock.move(minutes=10)
    worker.beat()
    assert supervisor.release_waiting() == [Gap("default", "s", 1, 3, held=False)]
    assert lease(Worker(store)) == [third]


def test_a_number_that_waits_for_another_try_is_not_missing(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [second] = added(store, in_session(number=2))
    lease(worker)
    [first] = added(store, in_session(number=1))
    worker.settle(lease_one(worker), Later(timedelta(minutes=5), counts=True, history=b"[]"))
    clock.move(minutes=2)
    assert supervisor.release_waiting() == []
    clock.move(minutes=3)
    store.jobs.promote(10)
    again = Worker(store)
    assert lease(again) == [first]
    assert see(store, second).state is State.BLOCKED


def test_what_waits_for_a_number_is_left_alone_by_the_net(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    [second] = added(store, in_session(number=2))
    lease(worker)
    supervisor.release_waiting()
    assert see(store, second).state is State.BLOCKED


def test_a_cancelled_number_that_was_used_again_does_not_come_back(store: Store, worker: Worker) -> None:
    [gone] = added(store, in_session(number=1))
    [other] = added(store, in_session("other"))
    store.jobs.cancel([gone, other], by="ana")
    added(store, in_session(number=1))
    assert store.jobs.resubmit([gone, other], by="ana") == [other]


def test_a_held_session_is_not_forgotten(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    added(store, in_session(holds=Holds.ON_DEAD), in_session())
    worker.settle(lease_one(worker), DEAD)
    clock.move(days=100)
    supervisor.purge()
    assert [each.name for each in store.sessions.list(held=True, limit=10)] == ["s"]
