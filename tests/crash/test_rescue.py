"""Rows 13 to 16 and 18 of the catalogue: the supervisor dies, races, and meets members that look alike."""

import os
import signal
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.job import Lane, Line
from lateshift.store.contract import Want
from lateshift.store.open import open_store
from lateshift.worker.service import introduce
from tests.crash.checker import COMPLETED, RUNNING, change, query
from tests.crash.scene import Scene, until


def test_a_rescuer_that_dies_in_the_middle_of_a_batch_has_changed_nothing_and_the_next_finishes(
    short: Scene,
) -> None:
    """Row 13."""
    host = short.host()
    jobs = short.send("slow", 1.0, count=9)
    short.until_started(*jobs)
    short.kill_group(host)
    short.rescuer(crash="sweep.mid_batch:1:kill")
    short.hit()
    assert {(row.state, row.losses) for row in short.rows().values()} == {(RUNNING, 0)}
    short.host()
    short.until_settled()
    rows = short.rows()
    assert {(rows[job].state, rows[job].attempt, rows[job].losses) for job in jobs} == {(COMPLETED, 2, 1)}
    short.check()


def test_a_settlement_that_overtakes_the_rescuer_stands(short: Scene) -> None:
    """Row 14: the rescuer has read that the job is overdue; before it writes, the job is settled."""
    host = short.host(crash="worker.before_settle:1:stop")
    [job] = short.send("quick")
    worker = short.hit(pauses=True)
    with short.paused(host.pid):
        rescuer = _rescuer_that_has_read(short)
        os.kill(worker, signal.SIGCONT)
        short.until_settled(job)
        os.kill(rescuer, signal.SIGCONT)
        before = _terms(short)
        until(lambda: _terms(short) > before, "the rescuer has finished that round, and renewed its term")
    row = short.rows()[job]
    assert (row.state, row.attempt, row.fence, row.losses) == (COMPLETED, 1, 1, 0)
    assert len(short.lines("start", job)) == 1
    short.check()


def _rescuer_that_has_read(short: Scene) -> int:
    """A rescuer stopped at `sweep.after_read`, with the only running job among what it read."""
    mark = "SELECT dead_at IS NOT NULL FROM {}member ORDER BY started_at LIMIT 1"
    while True:
        group = short.rescuer(crash="sweep.after_read:1:stop")
        pid = short.hit(pauses=True)
        if query(short.url, mark.format(""), mark.format("lateshift."))[0][0]:
            return pid
        group.kill()  # the member had not been silent for long enough


def _terms(short: Scene) -> float:
    """When the present term of the supervisor ends: it grows at every renewal."""
    sqlite = "SELECT expires_at / 1e6 FROM lock WHERE name = 'supervisor'"
    postgres = "SELECT extract(epoch FROM expires_at)::float8 FROM lateshift.lock WHERE name = 'supervisor'"
    return float(query(short.url, sqlite, postgres)[0][0])


@pytest.mark.parametrize("first", ["prune", "sweep"])
def test_jobs_of_a_dead_member_come_back_whether_it_is_pruned_or_swept_first(
    scene: Scene, first: str
) -> None:
    """Row 15."""
    host = scene.host()
    jobs = scene.send("slow", 0.5, count=3)
    scene.until_started(*jobs)
    scene.kill_group(host)
    clock = ManualClock()
    store = open_store(scene.url, clock)
    clock.move(minutes=20)  # past the heartbeat, and past how long a dead member is kept
    grip = store.locks.acquire("supervisor", new_member_id(), timedelta(minutes=1))
    assert grip is not None
    if first == "prune":
        store.jobs.take_back(term=grip.fence, limit=0)  # declares the member dead, takes nothing
        clock.move(minutes=20)
        store.upkeep.purge(term=grip.fence, limit=1000)
    taken = store.jobs.take_back(term=grip.fence, limit=100)
    clock.move(minutes=20)
    store.upkeep.purge(term=grip.fence, limit=1000)
    store.locks.release(grip)
    store.close()
    assert {job.id.hex for job in taken} == set(jobs)
    scene.host()
    scene.until_settled()
    scene.check()


def test_a_member_that_somebody_deleted_holds_nothing_any_more(scene: Scene) -> None:
    """Row 15, by hand: the row is gone while its worker lives; the job runs again, the worker is ended."""
    host = scene.host()
    [worker] = host.workers()
    [job] = scene.send("slow", 1.0)
    scene.until_started(job)
    scene.note("deleted", 0.0, frozenset({worker}), pauses=True)
    change(scene.url, "DELETE FROM member", "DELETE FROM lateshift.member")
    scene.host()
    scene.until_settled()
    assert scene.rows()[job].state == COMPLETED
    scene.check()


def test_a_member_is_not_its_host_name_nor_its_pid(short: Scene) -> None:
    """Row 16: three members with one name, host and pid; the dead one's leases expire, the others' do not."""
    dead = short.host()
    [orphan] = short.send("slow", 1.0)
    short.until_started(orphan)
    short.kill_group(dead)
    hosts = [short.host(), short.host()]
    workers = {worker for host in hosts for worker in host.workers()}
    until(lambda: workers <= short.members(), "both have joined")
    change(
        short.url,
        "UPDATE member SET name = 'worker 1', host = 'pod', pid = 1",
        "UPDATE lateshift.member SET name = 'worker 1', host = 'pod', pid = 1",
    )
    jobs = short.send("slow", 4.5, count=8)
    short.until_started(*jobs)
    short.until_settled()
    rows = short.rows()
    assert (rows[orphan].attempt, rows[orphan].losses) == (2, 1)
    assert {(rows[job].attempt, rows[job].losses) for job in jobs} == {(1, 0)}
    assert not any(host.ended for host in hosts)
    short.check()


def test_hosts_that_start_together_run_each_waiting_job_once(scene: Scene) -> None:
    """Row 18: start-up, recovery and leases at the same moment, and no fault to explain a second start."""
    scene.send("quick", count=100)
    scene.send("quick_sync", count=100)
    for host in [scene.host(2, ready=False) for _ in range(2)]:
        until(host.workers, "it has started")
    scene.until_settled()
    assert scene.check().told["executions"] == 200


def test_recovery_never_takes_a_job_from_a_member_that_has_just_leased_it(scene: Scene) -> None:
    """Row 18: leases and recovery in a tight race, with members that join at the moment of their first lease."""
    scene.send("quick", count=150)
    store = scene.app.store
    grip = store.locks.acquire("supervisor", new_member_id(), timedelta(minutes=1))
    assert grip is not None
    over = threading.Event()
    taken: list[object] = []

    def rescue() -> None:
        while not over.is_set():
            taken.extend(store.jobs.take_back(term=grip.fence, limit=100))

    rescuer = threading.Thread(target=rescue)
    rescuer.start()
    leased = 0
    while leased < 150:
        member = new_member_id()
        store.members.join(introduce(member, "worker", "test", scene.app.clock), timedelta(seconds=30))
        leased += len(store.jobs.exchange(member, [], [Want(Line("default", Lane.COROUTINE), 1)]).leases)
    over.set()
    rescuer.join()
    assert not taken
    assert {(row.state, row.fence) for row in scene.rows().values()} == {(RUNNING, 1)}


def test_a_rescuer_frozen_in_the_middle_of_its_transaction_does_not_keep_the_next_from_leading(
    tmp_path: Path, postgres_url: str
) -> None:
    """Row 13, with a process that neither dies nor goes on. PostgreSQL only: in SQLite whoever is frozen with the
    write lock keeps everybody waiting, until it wakes or dies (row 52)."""
    with closing(Scene(tmp_path, postgres_url, heartbeat=3.0)) as short:
        host = short.host()
        jobs = short.send("slow", 0.5, count=3)
        short.until_started(*jobs)
        short.kill_group(host)
        short.rescuer(crash="sweep.mid_batch:1:stop")
        frozen = short.hit(pauses=True)
        short.host()
        short.until_settled(seconds=15)
        os.kill(frozen, signal.SIGCONT)
        assert {(row.state, row.losses) for row in short.rows().values()} == {(COMPLETED, 1)}
        short.check()
