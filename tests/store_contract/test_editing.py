"""Resubmit with other arguments: in one transaction, with a line that says what they were."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import msgspec
import pytest

from lateshift.clock import ManualClock
from lateshift.model.edit import Edit
from lateshift.model.history import append
from lateshift.model.ids import JobId
from lateshift.model.job import AttemptRecord, NewJob, State
from lateshift.model.outcome import DeadLettered
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import DAY, DONE, Worker, added, make_job, query, see

SMALL, LARGE = b'{"path":"cat.png","width":1}', b'{"path":"cat.png","width":9}'
EDIT = Edit(SMALL, LARGE)


@pytest.fixture
def dead(store: Store, worker: Worker) -> JobId:
    [id] = bury(store, worker, make_job(task="paint", payload=SMALL))
    return id


def bury(store: Store, worker: Worker, *jobs: NewJob) -> list[JobId]:
    ids = added(store, *jobs)
    worker.settle_all(worker.lease(len(jobs)), DeadLettered("permanent", b"[]", DAY))
    return ids


def test_a_dead_letter_runs_again_with_its_new_arguments(store: Store, worker: Worker, dead: JobId) -> None:
    assert store.jobs.resubmit([dead], by="ana", edits={dead: EDIT}) == [dead]

    lease = worker.lease_one()
    assert (lease.id, lease.task, lease.payload, lease.attempt) == (dead, "paint", LARGE, 1)


def test_a_cancelled_job_can_be_edited_too(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job(payload=SMALL))
    store.jobs.cancel([id], by="ana")

    assert store.jobs.resubmit([id], by="ana", edits={id: EDIT}) == [id]
    assert worker.lease_one().payload == LARGE


def test_the_history_says_who_changed_what_and_what_it_was(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    [id] = added(store, make_job(payload=SMALL))
    failed = AttemptRecord(attempt=1, fence=1, at=clock.now(), reason="permanent")
    worker.settle(worker.lease_one(), DeadLettered("permanent", append(None, failed), DAY))
    store.jobs.resubmit([id], by="ana", edits={id: EDIT})

    first, line = see(store, id).history
    assert first == failed
    assert (line.attempt, line.fence, line.reason, line.was) == (1, 1, "resubmitted", {"width": 1})
    assert line.message == "by ana, with other arguments: width 1 → 9"
    assert abs(line.at - clock.now()) < timedelta(minutes=1)


def test_an_edited_resubmission_is_audited_once(store: Store, dead: JobId) -> None:
    store.jobs.resubmit([dead], by="bob", edits={dead: EDIT})
    store.jobs.resubmit([dead], by="eve", edits={dead: EDIT})

    traces = query(store, "SELECT action, subject, actor FROM {audit} ORDER BY at")
    assert traces == [("resubmit", str(dead), "bob")]


def test_an_edit_made_for_other_arguments_leaves_the_job_as_it_is(store: Store, dead: JobId) -> None:
    before = see(store, dead)

    assert store.jobs.resubmit([dead], by="ana", edits={dead: Edit(LARGE, SMALL)}) == []
    assert see(store, dead) == before
    assert query(store, "SELECT action FROM {audit}") == []


def test_what_waits_runs_or_has_completed_is_never_edited(store: Store, worker: Worker) -> None:
    ids = added(store, *[make_job(payload=SMALL) for _ in range(3)])
    first, _ = worker.lease(2)
    worker.settle(first, DONE)
    before = [see(store, id) for id in ids]

    assert store.jobs.resubmit(ids, by="ana", edits=dict.fromkeys(ids, EDIT)) == []
    assert [see(store, id) for id in ids] == before


def test_some_are_edited_and_others_resubmitted_as_they_are(store: Store, worker: Worker) -> None:
    ids = bury(store, worker, *[make_job(payload=SMALL) for _ in range(4)])
    edits = {ids[1]: EDIT, ids[3]: Edit(LARGE, SMALL)}

    assert store.jobs.resubmit(ids, by="ana", edits=edits) == ids[:3]
    assert [see(store, id).payload for id in ids] == [SMALL, LARGE, SMALL, SMALL]
    assert [see(store, id).state for id in ids] == [State.READY] * 3 + [State.DEAD]


def test_an_edit_for_a_job_that_is_not_named_changes_nothing(store: Store, worker: Worker) -> None:
    named, other = bury(store, worker, *[make_job(payload=SMALL) for _ in range(2)])

    assert store.jobs.resubmit([named], by="ana", edits={named: EDIT, other: EDIT}) == [named]
    assert (see(store, other).state, see(store, other).payload) == (State.DEAD, SMALL)


def test_of_operators_who_edit_the_same_jobs_at_once_one_wins_each(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    ids = bury(store, worker, *[make_job(payload=SMALL) for _ in range(20)])
    others = [open_store(store.url, clock) for _ in range(2)]
    gate = Barrier(3)

    def resubmit(number: int, mine: Store, order: list[JobId]) -> list[JobId]:
        edits = dict.fromkeys(order, Edit(SMALL, b'{"path":"cat.png","width":%d}' % (number + 2)))
        gate.wait(timeout=30)
        return mine.jobs.resubmit(order, by=f"operator {number}", edits=edits)

    with ThreadPoolExecutor(3) as threads:
        orders = [ids, ids[::-1], ids[10:] + ids[:10]]
        done = list(threads.map(resubmit, range(3), [store, *others], orders))
    for other in others:
        other.close()

    assert sorted(id for each in done for id in each) == ids
    for number, mine in enumerate(done):
        for view in (see(store, id) for id in mine):
            assert msgspec.json.decode(view.payload)["width"] == number + 2
            assert [line.was for line in view.history] == [{"width": 1}]
    assert len(query(store, "SELECT 1 FROM {audit} WHERE action = 'resubmit'")) == 20
    assert store.upkeep.check() == []
