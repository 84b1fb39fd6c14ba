"""Resubmit: the only way out of a settled state."""

import tracemalloc
from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.edit import Edit
from lateshift.model.history import append, read
from lateshift.model.ids import new_job_id
from lateshift.model.job import AttemptRecord, Note, Progress, State
from lateshift.model.outcome import Cancelled, DeadLettered, Outcome
from lateshift.store.contract import Store
from lateshift.store.postgres import editing
from tests.store_contract.driving import (
    DAY,
    DONE,
    FAILED,
    HOUR,
    Supervisor,
    Worker,
    added,
    make_job,
    query,
    see,
)


@pytest.mark.parametrize("end", [DeadLettered("permanent", b"[]", DAY), Cancelled("enough", DAY)], ids=repr)
def test_a_dead_or_cancelled_job_is_ready_again_with_fresh_attempts(
    store: Store, worker: Worker, end: Outcome
) -> None:
    [id] = added(store, make_job(task="paint", attempts=2, payload=b"[1]", priority=4))
    worker.settle(worker.lease_one(), FAILED)
    worker.settle(worker.lease_one(), end)

    assert store.jobs.resubmit([id], by="ana") == [id]

    view = see(store, id)
    assert (view.state, view.attempt, view.attempts, view.losses) == (State.READY, 0, 2, 0)
    assert (view.task, view.payload, view.priority) == ("paint", b"[1]", 4)
    assert (view.reason, view.settled_at, view.holder) == (None, None, None)
    lease = worker.lease_one()
    assert (lease.attempt, lease.fence) == (1, 3)
    assert lease.time_limit == HOUR


def test_a_resubmitted_job_keeps_its_history_and_checkpoint(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    store.jobs.save([Note(lease, Progress(1), b"here")])
    story = append(None, AttemptRecord(attempt=1, fence=1, at=clock.now(), reason="permanent"))
    worker.settle(lease, DeadLettered("permanent", story, DAY))
    store.jobs.resubmit([id], by="ana")

    again = worker.lease_one()

    assert again.checkpoint == b"here"
    assert [(record.reason, record.fence) for record in read(again.history)] == [
        ("permanent", 1),
        ("resubmitted", 1),
    ]


@pytest.mark.usefixtures("usual_recursion")
def test_nothing_of_a_history_is_lost_however_deep_old_arguments_in_it_are(
    store: Store, worker: Worker
) -> None:
    [id] = added(store, make_job())
    deep = "[" * 5_000 + "]" * 5_000
    head = '"attempt":1,"at":"2026-01-01T12:00:00Z"'
    story = f'[{{"fence":1,"reason":"failed",{head}}},{{"fence":2,"reason":"resubmitted","was":{{"tree":{deep}}},{head}}}]'
    worker.settle(worker.lease_one(), DeadLettered("permanent", story.encode(), DAY))
    store.jobs.resubmit([id], by="ana")

    records = see(store, id).history
    assert [(record.reason, record.was) for record in records] == [
        ("failed", None),
        ("resubmitted", {"tree": deep}),
        ("resubmitted", None),
    ]


def test_the_histories_of_many_are_not_in_memory_together(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    """Each gets its line all the same, and no other."""
    ids = added(store, *[make_job() for _ in range(100)])
    for number, lease in enumerate(worker.lease(len(ids))):
        story = None
        for attempt in range(9 if number % 10 else 1):
            text = "x" * (12_000 if number % 10 else 10)
            story = append(
                story,
                AttemptRecord(attempt=attempt, fence=1, at=clock.now(), reason=f"{number}", traceback=text),
            )
        assert story is not None
        worker.settle(lease, DeadLettered("exhausted", story, DAY))

    tracemalloc.start()
    try:
        done = store.jobs.resubmit(ids, by="ana")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 8_000_000  # of 10 MB, each of which is there as it was read and as it is written
    assert done == ids
    for number, id in enumerate(ids):
        *tried, line = see(store, id).history
        assert {record.reason for record in tried} == {f"{number}"}
        assert (len(tried), line.reason) == (9 if number % 10 else 1, "resubmitted")


def test_a_history_larger_than_is_read_together_is_read_all_the_same(
    store: Store, worker: Worker, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "HISTORY_BYTES", 1)
    ids = added(store, *[make_job() for _ in range(3)])
    story = append(None, AttemptRecord(attempt=1, fence=1, at=clock.now(), reason="permanent"))
    for lease in worker.lease(3):
        worker.settle(lease, DeadLettered("permanent", story, DAY))

    assert store.jobs.resubmit(ids, by="ana", delays={ids[1]: HOUR}) == ids
    assert [len(see(store, id).history) for id in ids] == [2, 2, 2]
    assert [see(store, id).state for id in ids] == [State.READY, State.SCHEDULED, State.READY]


def test_the_history_says_who_resubmitted_it_and_when(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), DeadLettered("permanent", b"[]", DAY))
    store.jobs.resubmit([id], by="ana")
    store.jobs.resubmit([id], by="eve")

    [line] = see(store, id).history
    assert (line.reason, line.message, line.was) == ("resubmitted", "by ana", None)
    assert abs(line.at - clock.now()) < timedelta(minutes=1)


def test_completed_running_and_unknown_jobs_are_left_alone(store: Store, worker: Worker) -> None:
    done, running, ready = added(store, *[make_job() for _ in range(3)])
    first, _ = worker.lease(2)
    worker.settle(first, DONE)
    before = [see(store, id) for id in (done, running, ready)]

    assert store.jobs.resubmit([done, running, ready, new_job_id()], by="ana") == []
    assert [see(store, id) for id in (done, running, ready)] == before


def test_resubmitting_twice_gives_one_job(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    store.jobs.cancel([id], by="ana")

    assert store.jobs.resubmit([id], by="ana") == [id]
    assert store.jobs.resubmit([id], by="ana") == []
    assert len(worker.lease(10)) == 1
    assert store.upkeep.check() == []


def test_many_are_resubmitted_at_once(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job() for _ in range(20)])
    store.jobs.cancel(ids[:10], by="ana")

    assert store.jobs.resubmit(ids, by="bob") == ids[:10]
    assert len(worker.lease(100)) == 20


def test_a_resubmitted_job_can_be_lost_as_often_as_a_new_one(
    store: Store, supervisor: Supervisor, clock: ManualClock
) -> None:
    [id] = added(store, make_job(attempts=1))
    for _ in range(2):
        worker = Worker(store)
        [line] = store.jobs.lines()
        worker.lease_one(line)
        worker.die()
        [taken] = supervisor.sweep()
        assert taken.dead
        assert store.jobs.resubmit([id], by="ana") == [id]

    assert see(store, id).losses == 0


def test_a_resubmitted_job_is_kept_past_the_retention_of_its_first_end(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), DeadLettered("permanent", b"[]", DAY))
    store.jobs.resubmit([id], by="ana")
    clock.move(days=3)
    supervisor.purge()

    assert see(store, id).state is State.READY


def test_resubmitting_leaves_a_trace_of_who_did_it(store: Store) -> None:
    [id] = added(store, make_job(delay=timedelta(hours=3)))
    store.jobs.cancel([id], by="ana")
    store.jobs.resubmit([id], by="bob")
    store.jobs.resubmit([id], by="eve")

    traces = query(store, "SELECT action, subject, actor FROM {audit} ORDER BY at")
    assert traces == [("cancel", str(id), "ana"), ("resubmit", str(id), "bob")]


def test_a_job_with_a_delay_is_scheduled_and_ready_when_it_is_due(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    ids = added(store, *[make_job() for _ in range(4)])
    store.jobs.cancel(ids[:3], by="ana")
    now, delays = clock.now(), {ids[1]: timedelta(seconds=2), ids[2]: HOUR, ids[3]: HOUR}

    assert store.jobs.resubmit(ids, by="bob", delays=delays) == ids[:3]

    views = [see(store, id) for id in ids]
    assert [view.state for view in views] == [State.READY, State.SCHEDULED, State.SCHEDULED, State.READY]
    waits = [(view.due_at - now).total_seconds() for view in views[:3]]
    assert waits == pytest.approx([0, 2, 3600], abs=1)
    assert {lease.id for lease in worker.lease(10)} == {ids[0], ids[3]}
    next_in = store.jobs.promote(10).next_in
    assert next_in is not None
    assert next_in.total_seconds() == pytest.approx(2, abs=1)
    clock.move(seconds=3)
    store.jobs.promote(10)
    assert [lease.id for lease in worker.lease(10)] == [ids[1]]
    clock.move(hours=1)
    store.jobs.promote(10)
    assert [lease.id for lease in worker.lease(10)] == [ids[2]]
    assert store.upkeep.check() == []


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=-5)], ids=repr)
def test_a_delay_that_is_none_makes_it_ready(store: Store, worker: Worker, delay: timedelta) -> None:
    [id] = added(store, make_job())
    store.jobs.cancel([id], by="ana")
    store.jobs.resubmit([id], by="ana", delays={id: delay})

    assert worker.lease_one().id == id


def test_one_that_was_resubmitted_for_later_is_not_resubmitted_again(store: Store) -> None:
    [id] = added(store, make_job())
    store.jobs.cancel([id], by="ana")
    assert store.jobs.resubmit([id], by="ana", delays={id: HOUR}) == [id]
    before = see(store, id)

    assert store.jobs.resubmit([id], by="ana") == []
    assert see(store, id) == before


def test_one_that_was_resubmitted_for_later_can_be_cancelled(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    worker.settle(worker.lease_one(), DeadLettered("permanent", b"[]", DAY))
    store.jobs.resubmit([id], by="ana", delays={id: HOUR})

    assert store.jobs.cancel([id], by="bob") == [id]
    assert see(store, id).state is State.CANCELLED


def test_a_delay_and_other_arguments_go_together(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(payload=b'{"a":1}'))
    worker.settle(worker.lease_one(), DeadLettered("permanent", b"[]", DAY))
    edit = Edit(b'{"a":1}', b'{"a":2}')

    assert store.jobs.resubmit([id], by="ana", edits={id: edit}, delays={id: HOUR}) == [id]
    view = see(store, id)
    assert (view.state, view.payload) == (State.SCHEDULED, b'{"a":2}')
