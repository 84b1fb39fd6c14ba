"""Rows 1 to 8 of the catalogue: a client, a worker or everybody dies."""

import random
import time

import pytest

from tests.crash.checker import COMPLETED, DEAD
from tests.crash.scene import Scene, until

KILLED = -9


def test_a_client_that_dies_after_sending_has_made_one_job_and_its_retry_gets_the_same(scene: Scene) -> None:
    """Row 1."""
    assert scene.caller(key="order-7", crash="client.after_send:1:kill").wait() == KILLED
    [row] = scene.rows().values()
    scene.host()
    scene.until_settled(row.job)
    assert scene.caller(key="order-7").wait() == 0
    [answer] = [line.job for line in scene.ledger.calls() if line.kind == "ok"]
    assert answer == row.job
    assert list(scene.rows()) == [row.job]
    assert scene.check().told["executions"] == 1


def test_a_client_that_dies_before_the_commit_has_made_nothing_and_was_told_nothing(scene: Scene) -> None:
    """Row 2."""
    assert scene.caller(key="order-7", crash="enqueue.before_commit:1:kill").wait() == KILLED
    assert not scene.rows()
    assert scene.caller(key="order-7").wait() == 0
    assert len(scene.rows()) == 1
    scene.host()
    scene.until_settled()
    assert scene.check().told["accepted"] == 1


def test_a_client_that_dies_after_the_commit_has_made_its_job_and_its_retry_gets_the_same(
    scene: Scene,
) -> None:
    """Row 3."""
    assert scene.caller(key="order-7", crash="enqueue.after_commit:1:kill").wait() == KILLED
    [row] = scene.rows().values()
    assert scene.caller(key="order-7").wait() == 0
    assert list(scene.rows()) == [row.job]
    scene.host()
    scene.until_settled()
    assert scene.check().told["executions"] == 1


def test_a_worker_that_dies_after_its_claim_leaves_the_job_to_a_second_attempt(scene: Scene) -> None:
    """Row 4."""
    scene.host(crash="worker.after_claim:1:kill")
    [job] = scene.send("quick")
    scene.hit()
    scene.until_settled()
    row = scene.rows()[job]
    assert (row.state, row.attempt, row.losses) == (COMPLETED, 2, 1)
    assert len(scene.lines("effect", job)) == 1
    [start] = scene.lines("start", job)
    assert start.at - scene.faults[0].at <= 2.0
    scene.check()


@pytest.mark.parametrize(("running", "kills"), [(1, 2), (64, 1)])
def test_a_worker_killed_at_any_time_costs_each_job_it_ran_one_start_at_the_most(
    scene: Scene, running: int, kills: int
) -> None:
    """Row 5."""
    host = scene.host(2)
    draw = random.Random(running)
    jobs = scene.send("slow", 0.8, count=(running + 1) // 2) + scene.send(
        "slow_sync", 0.8, count=running // 2
    )
    scene.until_started(*jobs[: (running + 1) // 2])
    for _ in range(kills):
        time.sleep(draw.random() / 2)
        scene.kill(draw.choice(until(host.workers, "a worker lives")))
    scene.until_settled()
    assert {row.state for row in scene.rows().values()} == {COMPLETED}
    scene.check()


def test_a_worker_that_dies_between_effect_and_settlement_repeats_the_effect_under_the_same_job_id(
    scene: Scene,
) -> None:
    """Row 6."""
    scene.host(crash="worker.before_settle:1:kill")
    [job] = scene.send("quick")
    scene.hit()
    scene.until_settled()
    effects = scene.lines("effect", job)
    assert [(line.attempt, line.fence) for line in effects] == [(1, 1), (2, 2)]
    assert scene.check().told["duplicates explained"] == 1


def test_a_worker_that_dies_after_the_settlement_was_committed_repeats_nothing(scene: Scene) -> None:
    """Row 7."""
    scene.host(crash="worker.after_settle_commit:1:kill")
    [job] = scene.send("quick")
    scene.hit()
    [after] = scene.send("quick")  # settled by the next worker, so the host has buried the first and gone on
    scene.until_settled(after)
    row = scene.rows()[job]
    assert (row.state, row.attempt, row.fence) == (COMPLETED, 1, 1)
    assert len(scene.lines("start", job)) == 1
    scene.check()


def test_everybody_dies_again_and_again_and_nothing_is_lost(short: Scene) -> None:
    """Row 8."""
    draw = random.Random(8)
    for _ in range(5):
        host = short.host(2)
        for task in ("quick", "quick_sync", "flaky"):
            short.send(task, count=10)
        jobs = short.send("slow", 0.3, count=10)
        short.until_started(draw.choice(jobs))
        time.sleep(draw.random() / 3)
        short.kill_group(host)
    short.host(2)
    short.until_settled()
    dead = [row for row in short.rows().values() if row.state == DEAD]
    assert all((row.reason, row.losses) == ("worker_lost", 3) for row in dead)
    short.check()
