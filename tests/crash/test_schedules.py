"""A scheduler dies, by kill -9, or is paused, at the worst of moments: each tick makes one job all the same."""

import signal
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from lateshift.model.scheduling.plan import Outcome, Plan
from lateshift.model.scheduling.schedule import NewSchedule, TickView
from lateshift.model.scheduling.timing import Timing
from tests.crash.scene import Scene, until

SECOND = timedelta(seconds=1)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
SCHEDULES = 5


def schedule(scene: Scene) -> None:
    """Some that fire in every second."""
    for number in range(SCHEDULES):
        plan = Plan(timing=Timing(every=SECOND), overlap="allow", catch_up="all")
        job = scene.app.tasks["quick"].call(number).job
        scene.app.store.schedules.add(NewSchedule(name=f"s{number}", plan=plan, job=job), by="a test")


def ticks(scene: Scene) -> list[TickView]:
    return scene.app.store.schedules.ticks(LONG_AGO, 10_000)


def check(scene: Scene) -> None:
    """No tick is missing, each has a job of its own, and each job ran."""
    for number in range(SCHEDULES):
        scene.app.store.schedules.pause(f"s{number}", by="a test")
    found = ticks(scene)
    assert {tick.outcome for tick in found} == {Outcome.FIRED}
    for number in range(SCHEDULES):
        mine = [tick.at for tick in found if tick.schedule == f"s{number}"]
        assert mine == [mine[0] + place * SECOND for place in range(len(mine))]
    made = Counter(tick.job.hex for tick in found if tick.job is not None)
    assert set(made.values()) == {1}
    assert set(scene.rows()) == set(made)
    scene.until_settled(*made)
    assert {line.job for line in scene.lines("effect")} == set(made)


@pytest.mark.parametrize("point", ["schedule.before_fire", "schedule.before_commit", "schedule.after_commit"])
def test_another_scheduler_goes_on_wherever_one_dies(scene: Scene, point: str) -> None:
    schedule(scene)
    first = scene.host(crash=f"{point}:2:kill", ready=False)
    assert scene.hit() == first.pid
    before = len(ticks(scene))
    scene.host()
    until(lambda: len(ticks(scene)) >= before + 3 * SCHEDULES, "three more ticks of each")
    check(scene)


def test_a_scheduler_that_is_paused_before_it_decides_decides_nothing_twice(scene: Scene) -> None:
    schedule(scene)
    first = scene.host(crash="schedule.before_fire:2:stop", ready=False)
    assert scene.hit(pauses=True) == first.pid
    scene.host()
    until(lambda: len(ticks(scene)) >= 4 * SCHEDULES, "ticks that the other one fired")
    first.send(signal.SIGCONT)
    until(lambda: len(ticks(scene)) >= 6 * SCHEDULES, "ticks of both")
    check(scene)
