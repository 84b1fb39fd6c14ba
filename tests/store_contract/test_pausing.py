"""Pause: a paused queue gives out nothing, and delays no other."""

import pytest

from lateshift.clock import ManualClock
from lateshift.model.job import Lane, Line, State
from lateshift.store.contract import QueueView, Store, Want
from tests.store_contract.driving import DONE, GUARDED, HOUR, LINE, Worker, added, make_job, query, see

OTHER = Line("other", Lane.COROUTINE)


def queue(store: Store, name: str) -> QueueView:
    [found] = [view for view in store.queues.list() if view.name == name]
    return found


@pytest.mark.parametrize("line", [LINE, GUARDED])
@pytest.mark.parametrize("by_age", [False, True])
def test_a_paused_queue_gives_out_nothing(store: Store, worker: Worker, line: Line, by_age: bool) -> None:
    [id] = added(store, make_job(lane=line.lane))
    store.queues.pause("default", by="ana")

    assert worker.lease(10, line, by_age=by_age) == []
    assert store.jobs.lines() == []
    assert see(store, id).state is State.READY


def test_a_queue_that_is_paused_stays_so_as_it_is_and_nothing_is_audited(store: Store) -> None:
    assert store.queues.pause("default", by="ana") is True
    before = queue(store, "default")

    assert store.queues.pause("default", by="bob") is False

    assert queue(store, "default") == before
    assert [(row.action, row.actor) for row in store.audit.list(limit=10)] == [("pause", "ana")]
    assert store.queues.resume("default", by="bob") is True
    assert store.queues.pause("default", by="bob") is True


def test_a_resumed_queue_gives_out_again(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    store.queues.pause("default", by="ana")

    assert store.queues.resume("default", by="me") is True

    assert store.jobs.lines() == [LINE]
    assert worker.lease_one().id == id


def test_other_queues_do_not_notice_a_pause(store: Store, worker: Worker) -> None:
    added(store, make_job(), make_job(queue="other"))
    store.queues.pause("default", by="ana")

    leases = store.jobs.exchange(worker.id, [], [Want(LINE, 5), Want(OTHER, 5)]).leases

    assert [lease.queue for lease in leases] == ["other"]


def test_what_runs_when_its_queue_is_paused_can_settle(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    lease = worker.lease_one()
    store.queues.pause("default", by="ana")

    assert worker.settle(lease, DONE)
    assert see(store, id).state is State.COMPLETED


def test_a_paused_queue_takes_jobs_and_promotes_them(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.queues.pause("default", by="ana")
    added(store, make_job(delay=HOUR))
    clock.move(hours=2)
    store.jobs.promote(10)
    assert worker.lease(10) == []
    store.queues.resume("default", by="me")

    assert len(worker.lease(10)) == 1


def test_a_pause_shows_who_did_it_and_when(store: Store, clock: ManualClock) -> None:
    store.queues.pause("default", by="ana")

    view = queue(store, "default")
    assert view.paused_by == "ana"
    assert view.paused_at is not None
    assert abs((view.paused_at - clock.now()).total_seconds()) < 5

    store.queues.resume("default", by="me")
    [view] = store.queues.list(of=["default"])
    assert (view.paused_by, view.paused_at) == (None, None)


def test_a_queue_without_jobs_is_known_only_as_long_as_it_is_paused(store: Store) -> None:
    store.queues.pause("maill", by="ana")
    assert store.queues.names() == ["maill"]
    assert [view.name for view in store.queues.list()] == ["maill"]

    store.queues.resume("maill", by="ana")
    assert store.queues.names() == []
    assert store.queues.list() == []


def test_resuming_a_queue_that_is_not_paused_says_so(store: Store) -> None:
    assert store.queues.resume("default", by="me") is False
    store.queues.pause("default", by="ana")
    assert store.queues.resume("default", by="me") is True
    assert store.queues.resume("default", by="me") is False


def test_pausing_and_resuming_leave_traces(store: Store) -> None:
    store.queues.resume("default", by="me")
    store.queues.pause("default", by="ana")
    store.queues.resume("default", by="me")

    traces = query(store, "SELECT action, subject FROM {audit} ORDER BY at")
    assert traces == [("pause", "default"), ("resume", "default")]


def test_a_queue_counts_its_jobs_by_state(store: Store, worker: Worker, clock: ManualClock) -> None:
    added(store, *[make_job() for _ in range(3)], make_job(delay=HOUR), make_job(queue="other"))
    added(store, make_job(exclusive="k"), make_job(exclusive="k"))
    worker.lease(1)
    worker.lease(2, GUARDED)
    clock.move(minutes=5)

    view = queue(store, "default")
    assert (view.ready, view.scheduled, view.running, view.blocked, view.dead) == (2, 1, 2, 1, 0)
    assert view.oldest_ready is not None
    assert 300 <= view.oldest_ready.total_seconds() < 310
    assert queue(store, "other").ready == 1
    assert [view.name for view in store.queues.list()] == ["default", "other"]


def test_where_more_jobs_run_than_are_counted_every_queue_says_so(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{kind}.queues.COUNT_LIMIT", 3)
    added(store, *[make_job() for _ in range(4)], make_job(queue="other"))
    worker.lease(2)
    assert not queue(store, "default").more_running

    worker.lease(2)

    assert (queue(store, "default").running, queue(store, "default").more_running) == (3, True)
    assert (queue(store, "other").running, queue(store, "other").more_running) == (0, True)
