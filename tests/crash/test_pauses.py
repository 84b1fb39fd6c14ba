"""Rows 21, 22 and 24 of the catalogue: processes that are silent for a while, and wake."""

import os
import signal

from tests.crash.checker import COMPLETED, query
from tests.crash.scene import Scene, until


def test_a_worker_that_wakes_after_its_lease_cannot_settle_and_the_second_result_stands(short: Scene) -> None:
    """Row 21."""
    host = short.host(crash="worker.before_settle:1:stop")
    [job] = short.send("quick")
    worker = short.hit(pauses=True)
    with short.paused(host.pid):
        short.host()
        short.until_settled(job)
        row = short.rows()[job]
        assert (row.state, row.attempt, row.fence) == (COMPLETED, 2, 2)
        os.kill(worker, signal.SIGCONT)
        until(lambda: host.says("came too late"), "its settlement is answered with `lost`")
    assert short.rows()[job] == row
    assert [line.fence for line in short.lines("effect", job)] == [1, 2]
    short.check()


def test_a_worker_stopped_alone_is_ended_by_its_host_when_its_lease_is_over(short: Scene) -> None:
    """Row 21, when only the worker is paused: its host does not beat for it."""
    host = short.host(crash="worker.before_settle:1:stop")
    [job] = short.send("quick")
    stopped = short.hit(pauses=True)
    short.until_settled(job)
    until(lambda: stopped not in host.workers(), "its host has ended it")
    row = short.rows()[job]
    assert (row.state, row.attempt, row.losses) == (COMPLETED, 2, 1)
    short.check()


def test_a_host_that_wakes_after_its_lease_is_refused_its_heartbeat_and_ends_its_workers(
    short: Scene,
) -> None:
    """Row 22: a worker in a process of its own is told by the strongest word there is."""
    host = short.host()
    [worker] = host.workers()
    jobs = [*short.send("slow", 30.0), *short.send("slow_sync", 30.0)]
    short.until_started(*jobs)
    with short.paused(worker), short.paused(host.pid):
        other = short.host()
        short.until_started(*jobs, times=2)
    until(lambda: worker not in host.workers(), "the host has ended it")
    starts = short.lines("start")
    assert {line.parent for line in starts if line.fence == 2} == {other.pid}
    assert (
        query(short.url, _ALIVE.format(worker), _ALIVE.format(worker).replace("member", "lateshift.member"))
        == []
    )
    assert not short.lines("effect")


_ALIVE = "SELECT 1 FROM member WHERE dead_at IS NULL AND pid = {}"


def test_bodies_in_a_program_that_wakes_after_its_lease_are_told_to_stop(short: Scene) -> None:
    """Row 22, for a worker inside a user's own process, which nobody may kill."""
    program = short.embedded()
    jobs = [*short.send("polite", 30.0), *short.send("polite_async", 30.0)]
    short.until_started(*jobs)
    with short.paused(program.pid):
        other = short.host()
        short.until_started(*jobs, times=2)
    until(lambda: len(short.lines("told")) == 2, "both bodies were told")
    assert {(line.pid, line.fence) for line in short.lines("told")} == {(program.pid, 1)}
    assert {line.parent for line in short.lines("start") if line.fence == 2} == {other.pid}
    assert {(row.fence, row.settled_at) for row in short.rows().values()} == {(2, None)}


def test_a_body_that_holds_the_interpreter_lock_for_longer_than_the_lease_keeps_its_job(short: Scene) -> None:
    """Row 24: its host beats for it."""
    short.host()
    [job] = short.send("hog", 4.5)
    beside = short.send("slow_sync", 0.1)
    short.until_settled()
    row = short.rows()[job]
    assert (row.state, row.attempt, row.losses) == (COMPLETED, 1, 0)
    [start], [effect] = short.lines("start", job), short.lines("effect", job)
    assert effect.at - start.at > short.heartbeat + 0.5
    assert short.rows()[beside[0]].attempt == 1
    short.check()
