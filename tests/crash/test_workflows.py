"""Rows 81 and 23 of the catalogue: a worker that runs a workflow is killed, or stopped and woken, between its steps."""

import os
import signal
from itertools import groupby

import pytest

from tests.crash.ledger import read
from tests.crash.scene import Scene, until

POINTS = ("workflow.before_advance", "workflow.before_commit", "workflow.after_commit")
FORWARD = ["do 0", "do 1", "do 2"]
BACK = ["undo 2-20", "undo 1-10", "undo 0-0"]


def steps(scene: Scene) -> list[tuple[str, int]]:
    """What was done, and by which process."""
    return [(" ".join(what), int(pid)) for *what, pid in read(scene.folder / "steps")]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("time", [1, 3, 6])
def test_a_worker_killed_at_a_step_or_an_undo_repeats_at_most_the_one_in_flight(
    scene: Scene, point: str, time: int
) -> None:
    scene.host(crash=f"{point}:{time}:kill")
    scene.send("order", "fails")
    scene.until_settled()
    did = [what for what, _ in steps(scene)]
    assert [what for what, _ in groupby(did)] == FORWARD + BACK
    assert len(did) <= len(FORWARD + BACK) + 1


def test_a_worker_that_wakes_after_its_run_was_taken_writes_nothing_and_begins_no_step(short: Scene) -> None:
    """Row 23. It was stopped when a step was done, before that could be written."""
    host = short.host(crash="workflow.before_advance:2:stop")
    [job] = short.send("order", "well")
    zombie = short.hit(pauses=True)
    with short.paused(host.pid):
        short.host()
        short.until_settled(job)
        row, did = short.rows()[job], steps(short)
        os.kill(zombie, signal.SIGCONT)
        until(lambda: host.says("came too late"), "its write is answered with `lost`")
    assert short.rows()[job] == row
    assert steps(short) == did
    assert [what for what, pid in did if pid == zombie] == ["do 0"]
    assert [what for what, pid in did if pid != zombie] == FORWARD
