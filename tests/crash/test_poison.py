"""Row 19 of the catalogue: a job that ends its worker, every time."""

import time

import pytest

from tests.crash.checker import COMPLETED, DEAD, RUNNING, Fault
from tests.crash.scene import Scene, until


@pytest.mark.parametrize("how", ["kill", "exit", "segfault"])
def test_a_job_that_kills_its_worker_is_dead_lettered_after_three_and_the_others_complete(
    scene: Scene, how: str
) -> None:
    innocents = scene.send("quick", count=100)
    innocents += scene.send("slow_sync", 0.05, count=50)
    [poison] = scene.send("poison", how)
    innocents += scene.send("slow", 0.05, count=50)
    scene.host(2)
    scene.until_settled()
    deaths = scene.lines("start", poison)
    scene.faults += [Fault("poison", line.at, time.time(), frozenset({line.pid})) for line in deaths]
    rows = scene.rows()
    row = rows[poison]
    assert (row.state, row.reason, row.attempt, row.losses) == (DEAD, "worker_lost", 3, 3)
    assert len(deaths) == 3
    assert {rows[job].state for job in innocents} == {COMPLETED}
    scene.check()


def test_several_poisons_at_once_do_not_bring_an_innocent_down(scene: Scene) -> None:
    """Each of them kills three workers: jobs beside them are lost often, and must not be taken for the cause."""
    poisons = scene.send("poison", "kill", count=4)
    innocents = scene.send("slow", 0.2, count=20) + scene.send("slow_sync", 0.2, count=20)
    scene.host(2)
    scene.until_settled(seconds=90)
    deaths = [line for line in scene.lines("start") if line.job in poisons]
    scene.faults += [Fault("poison", line.at, time.time(), frozenset({line.pid})) for line in deaths]
    rows = scene.rows()
    assert {rows[job].reason for job in poisons} == {"worker_lost"}
    assert {rows[job].state for job in innocents} == {COMPLETED}
    scene.check()


def test_a_worker_holds_one_job_at_a_time_of_those_that_were_lost_twice(scene: Scene) -> None:
    """However quick they are: one of them may be the poison, and would take the others with it for the third time."""
    host = scene.host()
    jobs = scene.send("slow_then_quick", count=40)
    for times in (1, 2):
        scene.until_started(*jobs, times=times)
        scene.kill(until(host.workers, "a worker lives")[0])
    held, over = 0, False
    while not over:
        rows = scene.rows().values()
        held = max(held, sum(row.state == RUNNING and row.losses == 2 for row in rows))
        over = all(row.settled_at for row in rows)
    assert held <= 1
    assert {row.state for row in scene.rows().values()} == {COMPLETED}
    scene.check()
