"""A lane that this release does not know, of a later one or written by hand: its jobs are left as they are, and no other job waits for that."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.explaining.explain import explain
from lateshift.model.job import JobFilter, State
from lateshift.model.member import Program, Serves
from lateshift.model.outcome import DeadLettered
from lateshift.store.contract import Store
from lateshift.store.lines import _strange
from tests.store_contract.driving import (
    DAY,
    GUARDED,
    LINE,
    Supervisor,
    Worker,
    added,
    make_job,
    query,
    see,
)
from tests.store_contract.test_facts import facts, guarded

LANES = pytest.mark.parametrize("lane", [-1, 7, 99, 32_000])


def strange(store: Store, lane: int) -> None:
    """All jobs that are there stand in that lane."""
    for table in ("job", "settled"):
        query(
            store, "UPDATE {job} SET lane = {}" if table == "job" else "UPDATE {settled} SET lane = {}", lane
        )


@LANES
def test_its_jobs_hide_no_others_from_workers_and_are_told_of_once(
    store: Store, caplog: pytest.LogCaptureFixture, lane: int
) -> None:
    _strange.clear()
    [id] = added(store, make_job(queue="a"))
    strange(store, lane)
    added(store, make_job(), make_job(queue="z"))

    for _ in range(3):
        assert [line.queue for line in store.jobs.lines()] == ["default", "z"]
    assert store.jobs.lines(["a"]) == []
    assert Worker(store).lease_one(LINE).queue == "default"
    assert see(store, id).state is State.READY
    assert caplog.text.count(f"jobs in the lane {lane}, as in the queue a, are left alone") == 1


@LANES
def test_its_jobs_are_made_ready_at_their_time_with_the_others(
    store: Store, clock: ManualClock, lane: int
) -> None:
    added(store, make_job(queue="a", delay=timedelta(minutes=1)))
    strange(store, lane)
    added(store, make_job(delay=timedelta(minutes=1)))
    clock.move(minutes=2)

    assert store.jobs.promote(10).lines == [LINE]
    assert {view.state for view in store.reports.jobs(JobFilter(), 10)} == {State.READY}


@LANES
def test_one_whose_worker_is_gone_is_taken_back_and_stays_in_its_lane(
    store: Store, supervisor: Supervisor, lane: int
) -> None:
    ids = added(store, make_job(), make_job())
    loser = Worker(store)
    loser.lease(2)
    query(store, "UPDATE {job} SET lane = {} WHERE attempt = 1", lane)
    loser.die()

    taken = supervisor.sweep()

    assert sorted(job.id for job in taken) == sorted(ids)
    assert {(job.queue, job.line) for job in taken} == {("default", None)}
    assert {see(store, id).state for id in ids} == {State.READY}
    assert query(store, "SELECT DISTINCT lane FROM {job}") == [(lane,)]


@LANES
def test_a_dead_one_is_resubmitted_into_its_lane_with_the_others(
    store: Store, worker: Worker, lane: int
) -> None:
    ids = added(store, make_job(), make_job())
    worker.settle_all(worker.lease(2), DeadLettered("permanent", b"[]", DAY))
    strange(store, lane)

    assert store.jobs.resubmit(ids, by="ana") == ids
    assert query(store, "SELECT DISTINCT lane FROM {job}") == [(lane,)]


@LANES
def test_one_that_waits_in_a_session_does_not_keep_its_predecessor_from_ending(
    store: Store, worker: Worker, lane: int
) -> None:
    first, second = added(store, guarded("s"), guarded("s"))
    lease = worker.lease_one(GUARDED)
    assert lease.id == first
    query(store, "UPDATE {job} SET lane = {} WHERE attempt = 0", lane)

    assert worker.settle(lease)
    assert see(store, second).state is State.READY


@LANES
def test_explain_says_that_no_worker_is_for_it(store: Store, worker: Worker, lane: int) -> None:
    program = Program(app="shop", version="1", tasks={"noop": "coroutine"})
    told = Serves(
        app="shop", version="1", code=program.digest, queues=(), slots={"coroutine": 9}, heartbeat=30.0
    )
    store.members.introduce(worker.id, told, program)
    [id] = added(store, make_job())
    strange(store, lane)

    found = facts(store, id)

    assert (found.guard.lane, found.line) == (None, None)
    assert "places of a kind that this release does not know" in " ".join(
        reason.says for reason in explain(found).reasons
    )
