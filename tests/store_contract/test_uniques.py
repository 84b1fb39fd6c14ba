"""Identities: a job stands for its duplicates as long as its own rule says, and no longer."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict, SequenceUsed
from lateshift.model.job import JobFilter, NewJob, Place, Scope, State
from lateshift.model.outcome import Cancelled, DeadLettered, Later
from lateshift.store.contract import Store
from tests.store_contract.driving import (
    DAY,
    GUARDED,
    HOUR,
    LINE,
    Supervisor,
    Worker,
    added,
    make_job,
    make_key,
    only,
    query,
    see,
)

NEVER = Scope.NONE
WAITING = Scope.WAITING
UNSETTLED = Scope.UNSETTLED
DEAD = DeadLettered("permanent", b"[]", DAY)


def count(store: Store) -> int:
    return len(store.reports.jobs(JobFilter(), 1000))


def again(store: Store, text: str = "user 7", scope: Scope = UNSETTLED) -> bool:
    """Whether another of this identity would be a job of its own; it is one then."""
    [answer] = store.jobs.enqueue([make_job(unique=only(text, scope))])
    return answer.created


def test_a_duplicate_gives_the_job_that_is_there(store: Store) -> None:
    [first] = store.jobs.enqueue([make_job(payload=b"[1]", unique=only("user 7"))])
    [second] = store.jobs.enqueue([make_job(payload=b"[2]", unique=only("user 7"))])

    assert (first.created, second.created, second.id) == (True, False, first.id)
    assert count(store) == 1
    assert see(store, first.id).payload == b"[1]"


def test_other_identities_and_jobs_without_one_are_jobs_of_their_own(store: Store) -> None:
    jobs = [make_job(unique=only("user 7")), make_job(unique=only("user 8")), make_job(), make_job()]

    assert [answer.created for answer in store.jobs.enqueue(jobs)] == [True] * 4
    assert count(store) == 4


@pytest.mark.parametrize("scope", [WAITING, UNSETTLED])
def test_a_job_that_waits_stands_for_its_duplicates(store: Store, scope: Scope) -> None:
    for delay in (None, HOUR):
        store.jobs.enqueue([make_job(delay=delay, unique=only(f"{delay}", scope))])
        assert not again(store, f"{delay}", scope)
    assert count(store) == 2


def test_a_blocked_job_stands_for_its_duplicates(store: Store, worker: Worker) -> None:
    added(store, make_job(exclusive="k"))
    [id] = added(store, make_job(exclusive="k", unique=only("user 7", WAITING)))
    worker.lease(2, GUARDED)
    assert see(store, id).state is State.BLOCKED

    assert not again(store, scope=WAITING)


def test_a_job_that_runs_stands_for_its_duplicates_until_it_is_settled(store: Store, worker: Worker) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7"))])
    lease = worker.lease_one()
    assert not again(store)
    worker.settle(lease)

    assert again(store)
    assert count(store) == 2


def test_a_job_unique_while_it_waits_lets_another_wait_once_it_runs(store: Store, worker: Worker) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7", WAITING))])
    worker.lease_one()

    assert again(store, scope=WAITING)
    assert not again(store, scope=WAITING)
    assert see(store, first.id).state is State.RUNNING
    assert count(store) == 2


def test_a_job_that_waits_for_its_next_attempt_waits(store: Store, worker: Worker) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7", WAITING))])
    worker.settle(worker.lease_one(), Later(HOUR, counts=True, history=b"[]"))

    assert not again(store, scope=WAITING)


def test_a_dead_letter_stands_for_nobody_until_it_is_resubmitted(store: Store, worker: Worker) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7"))])
    worker.settle(worker.lease_one(), DEAD)
    store.jobs.resubmit([first.id], by="me")

    assert not again(store)
    worker.settle(worker.lease_one(), DEAD)
    assert again(store)
    assert store.jobs.resubmit([first.id], by="me") == [first.id]  # whoever resubmits it means it
    assert not again(store)
    assert count(store) == 2


def test_a_window_holds_whatever_became_of_the_job(store: Store, worker: Worker, clock: ManualClock) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7", NEVER, HOUR))])
    worker.settle(worker.lease_one())
    clock.move(minutes=59)
    [second] = store.jobs.enqueue([make_job(unique=only("user 7", NEVER, HOUR))])
    assert (second.id, second.created) == (first.id, False)
    clock.move(minutes=2)

    [third] = store.jobs.enqueue([make_job(unique=only("user 7", NEVER, HOUR))])
    assert third.created


def test_a_window_passes_though_the_job_still_waits(store: Store, clock: ManualClock) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7", NEVER, HOUR))])
    clock.move(minutes=61)

    assert again(store)


def test_a_duplicate_does_not_lengthen_the_window(store: Store, clock: ManualClock) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7", NEVER, HOUR))])
    clock.move(minutes=40)
    store.jobs.enqueue([make_job(unique=only("user 7", NEVER, HOUR))])
    clock.move(minutes=21)

    assert again(store)


def test_with_a_scope_and_a_window_either_is_enough(store: Store, worker: Worker, clock: ManualClock) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7", UNSETTLED, HOUR))])
    clock.move(hours=2)
    assert not again(store)  # it waits
    worker.beat()
    worker.settle(worker.lease_one())
    assert again(store)
    store.jobs.enqueue([make_job(unique=only("user 8", UNSETTLED, HOUR))])
    worker.settle_all(worker.lease(2))

    assert not again(store, "user 8")  # its hour has not passed


@pytest.mark.parametrize("running", [False, True])
def test_a_cancelled_job_stands_for_nobody(store: Store, worker: Worker, running: bool) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7", UNSETTLED, HOUR))])
    lease = worker.lease_one() if running else None
    store.jobs.cancel([first.id], by="me")
    if lease is not None:
        assert not again(store)  # it still runs
        worker.settle(lease, Cancelled("cancelled by me", DAY))

    assert again(store)


def test_duplicates_in_one_call_are_one_job(store: Store) -> None:
    jobs = [make_job(unique=only(text)) for text in ("a", "b", "a", "c", "b", "a")]
    plain = make_job()
    answers = store.jobs.enqueue([*jobs, plain])

    assert [answer.created for answer in answers] == [True, True, False, True, False, False, True]
    assert [answer.id for answer in answers] == [
        jobs[0].id, jobs[1].id, jobs[0].id, jobs[3].id, jobs[1].id, jobs[0].id, plain.id,
    ]  # fmt: skip
    assert count(store) == 4


def test_many_that_are_there_and_many_that_are_not_go_in_one_call(store: Store, worker: Worker) -> None:
    old = [make_job(unique=only(f"{number}")) for number in range(300)]
    store.jobs.enqueue(old)
    worker.settle_all(worker.lease(100))

    answers = store.jobs.enqueue([make_job(unique=only(f"{number}")) for number in range(400)])

    assert [answer.created for answer in answers] == [True] * 100 + [False] * 200 + [True] * 100
    assert [answer.id for answer in answers[100:300]] == [job.id for job in old[100:]]
    assert len(store.reports.jobs(JobFilter(state=State.READY), 1000)) == 400


def repeated(job: NewJob) -> NewJob:
    return replace(job, first=False)


def test_repeating_an_id_gives_its_own_job_whatever_became_of_it(store: Store, worker: Worker) -> None:
    job = make_job(unique=only("user 7"))
    answers = store.jobs.enqueue([job]) + store.jobs.enqueue([repeated(job)])
    worker.settle(worker.lease_one())
    [other] = store.jobs.enqueue([make_job(unique=only("user 7"))])
    answers += store.jobs.enqueue([repeated(job)])

    assert [(answer.id, answer.created) for answer in answers] == [(job.id, True)] * 3
    assert other.created
    assert not again(store)  # the other's
    assert count(store) == 2


def test_a_repeat_whose_job_has_ended_does_not_stand_for_a_new_one(store: Store, worker: Worker) -> None:
    old = make_job(unique=only("user 7", UNSETTLED, HOUR))
    store.jobs.enqueue([replace(old, unique=only("user 7"))])
    worker.settle(worker.lease_one())
    new = make_job(unique=only("user 7"))

    answers = store.jobs.enqueue([repeated(old), new])

    assert [(answer.id, answer.created) for answer in answers] == [(old.id, True), (new.id, True)]
    assert see(store, old.id).state is State.COMPLETED
    assert see(store, new.id).state is State.READY


def test_a_job_that_is_sent_again_does_not_lengthen_its_window(store: Store, clock: ManualClock) -> None:
    job = make_job(unique=only("user 7", NEVER, HOUR))
    store.jobs.enqueue([job])
    clock.move(minutes=61)
    new = make_job(unique=only("user 7", NEVER, HOUR))

    answers = store.jobs.enqueue([repeated(job), new])

    assert [(answer.id, answer.created) for answer in answers] == [(job.id, True), (new.id, True)]


def test_a_duplicate_that_was_refused_may_be_sent_again_later(store: Store, worker: Worker) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7"))])
    job = make_job(unique=only("user 7"))
    assert not store.jobs.enqueue([job])[0].created
    worker.settle(worker.lease_one())

    [answer] = store.jobs.enqueue([repeated(job)])

    assert (answer.id, answer.created) == (job.id, True)
    assert see(store, job.id).state is State.READY


def test_the_key_of_a_duplicate_names_the_job_that_is_there(store: Store, worker: Worker) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7"))])
    keyed = make_job(unique=only("user 7"), key=make_key("order-1"))
    assert [(answer.id, answer.created) for answer in store.jobs.enqueue([keyed])] == [(first.id, False)]
    worker.settle(worker.lease_one())

    [later] = store.jobs.enqueue([make_job(unique=only("user 7"), key=make_key("order-1"))])
    assert (later.id, later.created) == (first.id, False)
    with pytest.raises(KeyConflict):
        store.jobs.enqueue([make_job(unique=only("user 9"), key=make_key("order-1", b"[2]"))])
    assert again(store, "user 9")
    assert query(store, "SELECT count(*) FROM {job_key}") == [(1,)]


def test_a_key_that_is_there_takes_no_identity(store: Store) -> None:
    store.jobs.enqueue([make_job(key=make_key("order-1"))])
    assert not store.jobs.enqueue([make_job(key=make_key("order-1"), unique=only("user 7"))])[0].created

    assert again(store)


def test_a_job_that_is_taken_back_still_stands_for_its_duplicates(
    store: Store, supervisor: Supervisor, worker: Worker
) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7"))])
    worker.lease_one()
    worker.die()
    supervisor.sweep()

    assert not again(store)
    assert [line for line in store.jobs.lines() if line == LINE] == [LINE]


# Retention


def identities(store: Store) -> int:
    [[number]] = query(store, "SELECT count(*) FROM {job_identity}")
    return int(number)


def test_an_identity_stays_as_long_as_its_job_may_count(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    waits, dead, done = added(store, *[make_job(unique=only(text)) for text in ("waits", "dead", "done")])
    store.jobs.cancel([waits], by="me")
    store.jobs.resubmit([waits], by="me")  # so that it is leased last
    leases = {lease.id: lease for lease in worker.lease(2)}
    worker.settle(leases[dead], DeadLettered("permanent", b"[]", 90 * DAY))
    worker.settle(leases[done])
    clock.move(minutes=59)
    supervisor.purge()
    assert identities(store) == 3
    clock.move(minutes=2)
    supervisor.purge()
    assert identities(store) == 2

    for _ in range(5):
        clock.move(days=10)
        supervisor.purge()
        assert identities(store) == 2
    store.jobs.resubmit([dead], by="me")
    assert not again(store, "dead")
    assert not again(store, "waits")
    store.jobs.cancel([dead, waits], by="me")
    clock.move(days=100)
    for _ in range(2):
        supervisor.purge()
    assert identities(store) == 0


def test_an_identity_stays_for_its_window_when_its_job_is_gone(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7", NEVER, 3 * DAY))])
    worker.settle(worker.lease_one())
    clock.move(days=2)
    supervisor.purge()
    assert store.reports.job(first.id) is None
    [second] = store.jobs.enqueue([make_job(unique=only("user 7", NEVER, 3 * DAY))])
    assert (second.id, second.created) == (first.id, False)
    clock.move(days=1, minutes=1)

    supervisor.purge()
    assert identities(store) == 0


def test_a_purge_of_identities_keeps_to_its_limit_and_looks_at_each_once(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.jobs.enqueue([make_job(unique=only(f"{number}")) for number in range(5)])
    clock.move(hours=2)

    assert [supervisor.purge(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert identities(store) == 5


def test_an_erased_job_stands_for_nobody(store: Store, worker: Worker) -> None:
    [first] = store.jobs.enqueue([make_job(unique=only("user 7"))])
    worker.settle(worker.lease_one(), DEAD)
    store.upkeep.erase([first.id])

    assert again(store)


def test_a_window_may_be_any_length(store: Store, clock: ManualClock) -> None:
    store.jobs.enqueue([make_job(unique=only("user 7", NEVER, timedelta(days=3650)))])
    clock.move(days=3649)
    assert not again(store)


def test_a_duplicate_takes_no_turn_in_a_session(store: Store, worker: Worker) -> None:
    place = Place(session="user 7")
    first, second = make_job(place=place, unique=only("a")), make_job(place=place, unique=only("b"))
    answers = store.jobs.enqueue([first, make_job(place=place, unique=only("a")), second])
    assert [answer.id for answer in answers] == [first.id, first.id, second.id]
    [third] = store.jobs.enqueue([make_job(place=place, unique=only("b"))])  # which is blocked
    assert (third.id, third.created) == (second.id, False)

    lease = worker.lease_one(GUARDED)
    worker.settle(lease)
    assert worker.lease_one(GUARDED).id == second.id


def test_a_call_that_a_session_refuses_takes_no_identity(store: Store) -> None:
    numbered = Place(session="user 7", sequence=1)
    store.jobs.enqueue([make_job(place=numbered)])
    with pytest.raises(SequenceUsed):
        store.jobs.enqueue([make_job(place=numbered, unique=only("a", NEVER, HOUR))])

    assert again(store, "a")


def test_a_duplicate_with_a_number_gives_the_job_that_is_there(store: Store) -> None:
    one = make_job(place=Place("s", 1), unique=only("user 7"))
    two = make_job(place=Place("s", 1), unique=only("user 7"))
    [first], [second] = store.jobs.enqueue([one]), store.jobs.enqueue([two])
    assert (second.created, second.id) == (False, first.id)


def test_a_number_that_is_used_takes_no_identity(store: Store) -> None:
    added(store, make_job(place=Place("s", 1)))
    with pytest.raises(SequenceUsed):
        store.jobs.enqueue([make_job(place=Place("s", 1), unique=only("user 7"))])
    [answer] = store.jobs.enqueue([make_job(place=Place("s", 2), unique=only("user 7"))])
    assert answer.created
