"""Rows 11, 12 and 17 of the catalogue: processes that are told to stop."""

import os
import random
import signal
import time

from tests.crash.checker import COMPLETED, READY
from tests.crash.scene import Scene, until

INFINITE = 60.0  # seconds: longer than any test


def test_jobs_that_do_not_end_within_the_stop_time_are_handed_back_and_count_no_attempt(scene: Scene) -> None:
    """Row 11, the graceful half: what was released is no failure, and the fence shows that it was leased."""
    host = scene.host(stop_time=0.3)
    jobs = scene.send("slow", INFINITE, count=3) + scene.send("slow_sync", INFINITE, count=3)
    scene.until_started(*jobs)
    at, pids = time.time(), host.pids()
    host.send(signal.SIGTERM)
    assert host.wait() == 0
    scene.note("stop", at, pids)
    rows = scene.rows()
    assert {(rows[job].state, rows[job].attempt, rows[job].losses) for job in jobs} == {(READY, 0, 0)}
    assert all(rows[job].fence >= 1 for job in jobs)
    second = scene.host()
    scene.until_started(*jobs, times=2)
    assert {line.attempt for line in scene.lines("start")} == {1}
    scene.kill_group(second)


def test_a_process_job_that_does_not_listen_is_ended_with_its_worker_and_handed_back(scene: Scene) -> None:
    """Row 11, for a job in a process of its own."""
    host = scene.host(stop_time=0.3)
    [job] = scene.send("cpu", INFINITE)
    scene.until_started(job)
    [start] = scene.lines("start", job)
    host.send(signal.SIGTERM)
    assert host.wait() == 0
    until(lambda: not _lives(start.pid), "the job's own process is gone too")
    row = scene.rows()[job]
    assert (row.state, row.attempt, row.losses) == (READY, 0, 0)


def test_jobs_of_a_group_killed_in_its_stop_time_are_those_of_a_lost_worker(short: Scene) -> None:
    """Row 11, the other half: whoever started us has no patience."""
    host = short.host(stop_time=INFINITE)
    jobs = short.send("slow", 1.0, count=3) + short.send("slow_sync", 1.0, count=3)
    short.until_started(*jobs)
    host.send(signal.SIGTERM)
    until(lambda: host.says("stopping:"), "its worker stops")
    short.kill_group(host)
    short.host()
    short.until_settled()
    rows = short.rows()
    assert {(rows[job].state, rows[job].attempt, rows[job].losses) for job in jobs} == {(COMPLETED, 2, 1)}
    short.check()


def test_a_worker_that_cannot_even_stop_is_killed_by_its_host_after_the_grace(scene: Scene) -> None:
    """Row 11, the last resort: a body that holds the interpreter keeps its worker from hearing anything."""
    host = scene.host(stop_time=0.1)
    [job] = scene.send("hog", INFINITE)
    scene.until_started(job)
    at, pids = time.time(), host.pids()
    host.send(signal.SIGTERM)
    host.wait()
    scene.note("stop", at, pids)
    assert host.says("has not stopped within")
    second = scene.host()
    scene.until_started(job, times=2)
    row = scene.rows()[job]
    assert (row.attempt, row.losses) == (2, 1)
    scene.kill_group(second)


def test_a_storm_of_signals_is_one_request_to_stop(scene: Scene) -> None:
    """Row 12."""
    host = scene.host(2, stop_time=0.5)
    jobs = scene.send("slow", INFINITE, count=4) + scene.send("quick", count=50)
    scene.until_started(*jobs[:4])
    draw = random.Random(12)
    at, pids = time.time(), host.pids()
    targets = [host.pid, *host.workers()]
    for _ in range(20):
        pid = draw.choice(targets)
        if _lives(pid):
            os.kill(pid, draw.choice([signal.SIGTERM, signal.SIGINT]))
        time.sleep(0.05)
    if not host.ended:
        host.send(signal.SIGTERM)
    assert host.wait() == 0, host.log.read_text()
    scene.note("signals", at, pids)
    rows = scene.rows()
    assert {rows[job].state for job in jobs[:4]} == {READY}
    assert {rows[job].state for job in jobs[4:]} <= {READY, COMPLETED}
    second = scene.host(stop_time=0.0)
    scene.until_settled(*jobs[4:])
    scene.kill_group(second)


def test_a_draining_process_claims_nothing_not_even_what_was_taken_back_from_the_dead(short: Scene) -> None:
    """Row 17."""
    doomed = short.host()
    [orphan] = short.send("slow", 0.5)
    short.until_started(orphan)
    old = short.host(stop_time=INFINITE)
    short.kill_group(
        doomed
    )  # after the start of the next, so that the orphan comes back while that one drains
    [last] = short.send("slow", 8.0)
    short.until_started(last)
    draining = {*old.workers(), old.pid}
    old.send(signal.SIGTERM)
    until(lambda: old.says("stopping:"), "the old process drains")
    new = short.host()
    jobs = short.send("quick", count=50)
    short.until_settled(orphan, *jobs)
    assert not old.ended
    assert not [line for line in short.lines("start") if line.job != last and line.pid in draining]
    assert {line.parent for line in short.lines("start") if line.job in jobs} == {new.pid}
    assert old.wait() == 0
    short.until_settled()
    assert short.rows()[last].attempt == 1
    short.check()


def test_a_claim_that_is_answered_while_its_worker_stops_burns_no_attempt(scene: Scene) -> None:
    """Row 17, the race inside one process."""
    host = scene.host(stop_time=0.3, crash="worker.after_claim_commit:1:stop")
    [job] = scene.send("slow", INFINITE)
    worker = scene.hit(pauses=True)
    os.kill(worker, signal.SIGTERM)
    os.kill(worker, signal.SIGCONT)
    until(lambda: not _lives(worker), "it has stopped")
    host.send(signal.SIGTERM)
    assert host.wait() == 0
    row = scene.rows()[job]
    assert (row.state, row.attempt, row.losses) == (READY, 0, 0)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
