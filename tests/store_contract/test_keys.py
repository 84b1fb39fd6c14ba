"""Idempotency keys: within the window, one key is one job."""

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.job import JobFilter, State
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, HOUR, Worker, keyed, make_job, see


def test_the_same_key_and_body_give_the_same_job(store: Store) -> None:
    [first] = store.jobs.enqueue([keyed("order-1")])
    [second] = store.jobs.enqueue([keyed("order-1")])

    assert (first.created, second.created) == (True, False)
    assert second.id == first.id
    assert len(store.reports.jobs(JobFilter(), 10)) == 1


def test_the_same_key_with_another_body_is_refused_and_changes_nothing(store: Store) -> None:
    [first] = store.jobs.enqueue([keyed("order-1", b"[1]")])

    with pytest.raises(KeyConflict, match=r"'order-1'.*noop.*another key"):
        store.jobs.enqueue([keyed("order-1", b"[2]")])

    assert [view.id for view in store.reports.jobs(JobFilter(), 10)] == [first.id]
    assert see(store, first.id).payload == b"[1]"


def test_keys_of_different_tasks_do_not_meet(store: Store) -> None:
    [first] = store.jobs.enqueue([keyed("order-1", task="pay")])
    [second] = store.jobs.enqueue([keyed("order-1", b"[2]", task="ship")])

    assert second.created
    assert second.id != first.id


def test_a_key_used_twice_in_one_call_is_one_job(store: Store) -> None:
    answers = store.jobs.enqueue([keyed("order-1"), keyed("order-1")])

    assert [answer.created for answer in answers] == [True, False]
    assert len({answer.id for answer in answers}) == 1
    assert len(store.reports.jobs(JobFilter(), 10)) == 1


def test_jobs_with_and_without_keys_go_in_one_call(store: Store) -> None:
    [old] = store.jobs.enqueue([keyed("order-1")])
    plain, fresh = make_job(), keyed("order-2")

    answers = store.jobs.enqueue([plain, keyed("order-1"), fresh])

    assert [answer.id for answer in answers] == [plain.id, old.id, fresh.id]
    assert [answer.created for answer in answers] == [True, False, True]


def test_a_key_holds_after_its_job_has_completed(store: Store, worker: Worker) -> None:
    [first] = store.jobs.enqueue([keyed("order-1")])
    worker.settle(worker.lease_one())

    [second] = store.jobs.enqueue([keyed("order-1")])

    assert (second.id, second.created) == (first.id, False)
    assert see(store, first.id).state is State.COMPLETED


def test_a_key_is_free_again_once_its_window_has_passed(store: Store, clock: ManualClock) -> None:
    [first] = store.jobs.enqueue([keyed("order-1", b"[1]", window=HOUR)])
    clock.move(minutes=59)
    assert not store.jobs.enqueue([keyed("order-1", b"[1]", window=HOUR)])[0].created
    clock.move(minutes=2)

    [later] = store.jobs.enqueue([keyed("order-1", b"[2]", window=HOUR)])

    assert later.created
    assert later.id != first.id
    assert see(store, first.id).state is State.READY


def test_a_repeat_does_not_lengthen_the_window(store: Store, clock: ManualClock) -> None:
    store.jobs.enqueue([keyed("order-1", window=HOUR)])
    clock.move(minutes=40)
    store.jobs.enqueue([keyed("order-1", window=HOUR)])
    clock.move(minutes=21)

    assert store.jobs.enqueue([keyed("order-1", window=HOUR)])[0].created


def test_repeating_id_and_key_gives_the_same_job(store: Store, worker: Worker) -> None:
    job = keyed("order-1")

    answers = store.jobs.enqueue([job]) + store.jobs.enqueue([job])

    assert [answer.id for answer in answers] == [job.id, job.id]
    assert len(worker.lease(10)) == 1


def test_a_key_may_be_any_text(store: Store) -> None:
    for text in ("", "'; DROP TABLE job; --", "%s", "é" * 100):
        [first] = store.jobs.enqueue([keyed(text, window=DAY)])
        [second] = store.jobs.enqueue([keyed(text, window=DAY)])
        assert (first.created, second.created, second.id) == (True, False, first.id)
