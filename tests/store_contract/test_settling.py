"""Settling: a job ends once, with what its attempt said."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.history import append
from lateshift.model.job import AttemptRecord, Line, Note, Place, Progress, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome, Settlement
from lateshift.store.contract import Store, Want
from tests.store_contract.driving import (
    DAY,
    DONE,
    FAILED,
    GUARDED,
    HOUR,
    LINE,
    RELEASED,
    Worker,
    added,
    make_job,
    query,
    see,
)


def record(clock: ManualClock, reason: str) -> bytes:
    return append(None, AttemptRecord(attempt=1, fence=1, at=clock.now(), reason=reason, message="no"))


def test_a_completed_job_keeps_its_result_and_what_it_was(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(task="paint", priority=3, payload=b"[1]"))

    assert worker.settle(worker.lease_one(), Completed(b'{"a":1}', DAY))

    view = see(store, id)
    assert (view.state, view.result, view.reason) == (State.COMPLETED, b'{"a":1}', None)
    assert (view.task, view.priority, view.payload) == ("paint", 3, b"[1]")
    assert (view.attempt, view.fence) == (1, 1)
    assert view.settled_at is not None
    assert view.started_at is not None
    assert view.settled_at >= view.started_at


@pytest.mark.parametrize("line", [LINE, GUARDED], ids=["plain", "guarded"])
@pytest.mark.parametrize("count", [1, 250])
def test_how_long_a_body_ran_is_kept_as_the_time_of_its_start(
    store: Store, worker: Worker, clock: ManualClock, line: Line, count: int
) -> None:
    place = Place() if line == GUARDED else None
    ids = added(store, *(make_job(place=place, time_limit=None) for _ in range(3 * count)))
    leases = worker.lease(3 * count, line)
    clock.move(seconds=20)
    ran = {**dict.fromkeys(ids[:count], 0.25), **dict.fromkeys(ids[count : 2 * count], 3600.0)}
    ends = [
        Settlement(it, Completed(None, DAY, None, ran[it.id]) if it.id in ran else Completed(None, DAY))
        for it in leases
    ]

    assert store.jobs.exchange(worker.id, ends, []).lost == []

    lasted = []
    for id in (ids[0], ids[count], ids[-1]):
        view = see(store, id)
        assert view.settled_at is not None
        assert view.started_at is not None
        lasted.append((view.settled_at - view.started_at).total_seconds())
    assert lasted[0] == pytest.approx(0.25, abs=0.001)
    assert 20 <= lasted[1] < 25  # never before it was leased
    assert 20 <= lasted[2] < 25  # where nobody said how long, since then


def test_a_completed_job_may_have_no_result(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), Completed(None, DAY))

    assert (see(store, id).state, see(store, id).result) == (State.COMPLETED, None)


def test_a_dead_letter_keeps_its_reason_its_history_and_its_payload(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job(payload=b"[1]"))
    worker.settle(worker.lease_one(), DeadLettered("permanent", record(clock, "permanent"), DAY))

    view = see(store, id)
    assert (view.state, view.reason, view.payload) == (State.DEAD, "permanent", b"[1]")
    assert [(entry.attempt, entry.reason, entry.message) for entry in view.history] == [
        (1, "permanent", "no")
    ]


def test_a_cancelled_attempt_ends_its_job_with_the_reason(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), Cancelled("not needed", DAY))

    assert (see(store, id).state, see(store, id).reason) == (State.CANCELLED, "not needed")


def test_a_cancelled_attempt_leaves_its_line_in_the_history(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), Cancelled("not needed", DAY, record(clock, "cancelled")))
    assert [line.reason for line in see(store, id).history] == ["cancelled"]


def test_a_failed_attempt_with_a_delay_waits_for_it(store: Store, worker: Worker, clock: ManualClock) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), Later(HOUR, counts=True, history=record(clock, "failed")))

    view = see(store, id)
    assert (view.state, view.attempt, view.holder, view.complete_by) == (State.SCHEDULED, 1, None, None)
    assert [entry.reason for entry in view.history] == ["failed"]
    assert view.due_at > clock.now() + timedelta(minutes=59)
    assert worker.lease(10) == []


def test_a_failed_attempt_without_a_delay_is_ready_at_once(store: Store, worker: Worker) -> None:
    added(store, make_job())
    worker.settle(worker.lease_one(), FAILED)

    assert worker.lease_one().attempt == 2


def test_an_attempt_that_does_not_count_gives_its_number_out_again(store: Store, worker: Worker) -> None:
    added(store, make_job())
    first = worker.lease_one()
    worker.settle(first, RELEASED)
    second = worker.lease_one()

    assert (first.attempt, second.attempt) == (1, 1)
    assert (first.fence, second.fence) == (1, 2)


def test_history_reaches_the_next_attempt_and_stays_when_nothing_new_is_said(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    history = record(clock, "failed")
    worker.settle(worker.lease_one(), Later(timedelta(0), counts=True, history=history))
    second = worker.lease_one()
    assert second.history == history
    worker.settle(second, RELEASED)

    worker.settle(worker.lease_one(), DONE)

    assert [entry.reason for entry in see(store, id).history] == ["failed"]


def test_one_exchange_settles_every_kind_of_end(store: Store, worker: Worker, clock: ManualClock) -> None:
    ids = added(store, *[make_job() for _ in range(6)])
    leases = worker.lease(6)
    outcomes: list[Outcome] = [
        Completed(b"1", DAY),
        Completed(b"2", 2 * DAY),
        DeadLettered("exhausted", record(clock, "failed"), DAY),
        Cancelled("enough", DAY),
        Later(HOUR, counts=True, history=record(clock, "failed")),
        RELEASED,
    ]

    said = [Settlement(lease, outcome) for lease, outcome in zip(leases, outcomes, strict=True)]
    assert store.jobs.exchange(worker.id, said, []).lost == []

    assert [see(store, id).state for id in ids] == [
        State.COMPLETED,
        State.COMPLETED,
        State.DEAD,
        State.CANCELLED,
        State.SCHEDULED,
        State.READY,
    ]
    assert [see(store, id).result for id in ids[:2]] == [b"1", b"2"]
    assert store.jobs.held(worker.id) == []


def test_saying_the_same_settlement_again_changes_nothing_and_is_no_loss(
    store: Store, worker: Worker
) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    worker.settle(lease, DONE)
    before = see(store, id)

    assert worker.settle(lease, DONE)
    assert see(store, id) == before


def test_saying_a_settlement_twice_in_one_exchange_settles_once(store: Store, worker: Worker) -> None:
    ids = added(store, make_job(), make_job())
    leases = worker.lease(2)

    assert worker.settle_all([leases[0], leases[1], leases[0]]) == []

    assert [see(store, id).state for id in ids] == [State.COMPLETED, State.COMPLETED]
    assert store.upkeep.check() == []


@pytest.mark.parametrize("many", [6, 250])  # one by one, and in blocks with a rest
def test_of_many_completions_in_one_exchange_those_that_came_too_late_are_named_and_no_other(
    store: Store, worker: Worker, other_worker: Worker, many: int
) -> None:
    added(store, *[make_job() for _ in range(many)])
    leases = worker.lease(many)
    for lease in leases[1::2]:
        worker.settle(lease, RELEASED)
    other_worker.lease(many)
    results = [None if number % 4 == 0 else b"%d" % number for number in range(many)]
    keeps = [DAY if number % 10 else HOUR for number in range(many)]
    ends = [Completed(result, keep) for result, keep in zip(results, keeps, strict=True)]
    said = [Settlement(lease, end) for lease, end in zip(leases, ends, strict=True)]

    lost = store.jobs.exchange(worker.id, said, []).lost

    assert {lease.id for lease in lost} == {lease.id for lease in leases[1::2]}
    assert len(lost) == many // 2
    views = [see(store, lease.id) for lease in leases]
    assert [view.state for view in views] == [State.COMPLETED, State.RUNNING] * (many // 2)
    assert [view.result for view in views[::2]] == results[::2]
    # Said again, as after an answer that was lost: what was written then is no loss now.
    assert len(store.jobs.exchange(worker.id, said, []).lost) == many // 2


@pytest.mark.parametrize("many", [6, 250])
def test_what_guarded_a_job_is_known_when_it_is_settled(store: Store, worker: Worker, many: int) -> None:
    places = [Place(session=f"s{n}", tenant=f"t{n}", limit_key=f"k:{n}") for n in range(many)]
    places = [place if n % 3 else Place(tenant=place.tenant) for n, place in enumerate(places)]
    ids = added(store, *[make_job(place=place) for place in places])
    leases = worker.lease(many, line=GUARDED)
    assert len(leases) == many
    assert worker.settle_all(leases) == []
    views = [see(store, id) for id in ids]
    assert {view.state for view in views} == {State.COMPLETED}
    assert [(view.session, view.tenant, view.limit_key) for view in views] == [
        (place.session, place.tenant, place.limit_key) for place in places
    ]


def test_a_block_of_completions_past_their_complete_by_is_refused(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    added(store, *[make_job(time_limit=HOUR) for _ in range(120)])
    leases = worker.lease(120)
    clock.move(hours=2)
    worker.beat()

    assert len(store.jobs.exchange(worker.id, [Settlement(lease, DONE) for lease in leases], []).lost) == 120


def test_a_settled_job_is_final(store: Store, worker: Worker, clock: ManualClock) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    worker.settle(lease, DONE)

    assert not worker.settle(lease, FAILED)
    assert not worker.settle(lease, DeadLettered("late", record(clock, "late"), DAY))
    assert not worker.settle(lease, Cancelled("late", DAY))
    assert (see(store, id).state, see(store, id).reason) == (State.COMPLETED, None)
    assert worker.lease(10) == []


def test_a_dead_member_can_settle_what_it_still_holds(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    worker.die()

    assert worker.settle(lease, DONE)
    assert see(store, id).state is State.COMPLETED


def test_progress_and_checkpoint_are_kept_and_reach_the_next_attempt(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()

    assert store.jobs.save([Note(lease, Progress(1, 4, "page 1"), b'{"page":1}')]) == []
    assert (see(store, id).progress, see(store, id).checkpoint) == (Progress(1, 4, "page 1"), b'{"page":1}')
    assert store.jobs.save([Note(lease, Progress(2, 4)), Note(lease, None, b'{"page":2}')]) == []
    assert (see(store, id).progress, see(store, id).checkpoint) == (Progress(2, 4), b'{"page":2}')

    worker.settle(lease, FAILED)
    assert worker.lease_one().checkpoint == b'{"page":2}'


def test_a_job_that_completes_past_its_complete_by_is_refused(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job(time_limit=HOUR))
    lease = worker.lease_one()
    clock.move(minutes=61)

    assert not worker.settle(lease, DONE)
    assert store.jobs.save([Note(lease, Progress(1))]) == [lease]
    assert (see(store, id).state, see(store, id).progress) == (State.RUNNING, None)


def test_a_holder_may_say_that_it_stopped_at_the_complete_by(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job(time_limit=HOUR))
    lease = worker.lease_one()
    clock.move(minutes=61)

    assert worker.settle(lease, FAILED)
    assert see(store, id).state is not State.RUNNING


def test_a_settlement_and_a_claim_are_one_step_for_others(
    store: Store, worker: Worker, other_worker: Worker
) -> None:
    added(store, *[make_job() for _ in range(3)])
    lease = worker.lease_one()
    store.jobs.exchange(worker.id, [Settlement(lease, DONE)], [Want(LINE, 1)])

    assert len(other_worker.lease(10)) == 1


def test_a_settled_job_that_was_brought_back_by_hand_does_not_keep_others_from_being_settled(
    store: Store, worker: Worker
) -> None:
    first, second = added(store, make_job(), make_job())
    lease, _ = leases = worker.lease(2)
    worker.settle(lease, DONE)
    copy = "SELECT id, queue, lane, 2, 0, 3, 1, due_at, due_at, task, payload, holder FROM {settled}"
    query(
        store,
        "INSERT INTO {job} (id, queue, lane, state, priority, attempts, fence, due_at, created_at, task, payload, holder) "
        + copy,
    )
    assert len(store.upkeep.check()) == 1

    worker.settle_all(leases)

    assert store.upkeep.check() == []
    assert [see(store, id).state for id in (first, second)] == [State.COMPLETED, State.COMPLETED]


@pytest.mark.parametrize("outcome", [DONE, Later(timedelta(minutes=1), counts=True)])
def test_the_last_word_of_progress_comes_with_the_end_of_any_job(
    store: Store, worker: Worker, outcome: Outcome
) -> None:
    id = added(store, make_job())[0]
    lease = worker.lease_one()
    store.jobs.save([Note(lease, Progress(4, 5), number=1)])
    word = Note(lease, Progress(5, 5), number=2, ago=timedelta(seconds=1))
    assert store.jobs.exchange(worker.id, [Settlement(lease, outcome, word)], []).lost == []

    seen = see(store, id)
    assert seen.progress == Progress(5, 5)
    assert seen.said is not None
    assert (seen.said.fence, seen.said.number) == (lease.fence, 2)


def test_a_word_of_progress_is_kept_with_its_number_and_time_and_once(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    id = added(store, make_job())[0]
    lease = worker.lease_one()
    clock.move(minutes=1)
    said = clock.now() - timedelta(seconds=30)
    assert store.jobs.save([Note(lease, Progress(1, 2), number=1, ago=timedelta(seconds=30))]) == []
    first = see(store, id).said
    assert first is not None
    assert first.at is not None
    assert abs(first.at - said) < timedelta(seconds=5)

    clock.move(minutes=1)
    assert store.jobs.save([Note(lease, Progress(1, 2), number=1)]) == []  # its answer had been lost
    assert see(store, id).said == first
    assert store.jobs.save([Note(lease, Progress(1, 2), number=11)]) == []
    later = see(store, id).said
    assert later is not None
    assert later.number == 11
    assert later.at is not None
    assert later.at > first.at
