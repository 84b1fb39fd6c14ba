"""A producer or a worker of a batch dies, by kill -9, at the worst of moments: no job is lost or made twice, and the callback
is enqueued once."""

from collections import Counter

import msgspec
import pytest

from lateshift.model.batch import BatchView
from tests.crash.producer import CALLBACK
from tests.crash.scene import Scene, until

KILLED = -9
COUNT = 2500  # three chunks


def batch_of(scene: Scene) -> BatchView:
    [view] = scene.app.store.batches.newest(None, 10)
    return view


def numbers(scene: Scene) -> Counter[int]:
    """How many jobs there are of each number."""
    return Counter(msgspec.json.decode(row.payload)["number"] for row in scene.rows().values())


@pytest.mark.parametrize(("point", "added"), [("batch.before_commit", 1000), ("batch.after_commit", 2000)])
def test_a_producer_that_dies_between_two_chunks_is_followed_by_one_that_goes_on(
    scene: Scene, point: str, added: int
) -> None:
    assert scene.producer(COUNT, crash=f"{point}:2:kill").wait() == KILLED
    left = batch_of(scene)
    assert (left.added, left.total, left.sealed) == (added, COUNT, False)
    scene.host()
    until(lambda: batch_of(scene).completed == added, "what is in has run")
    assert numbers(scene)[CALLBACK] == 0

    assert scene.producer(COUNT).wait() == 0
    until(lambda: batch_of(scene).finished, "all have ended")
    until(
        lambda: scene.lines("effect") and scene.lines("effect")[-1].number == CALLBACK, "the callback has run"
    )

    assert batch_of(scene).completed == COUNT
    assert numbers(scene) == Counter([*range(COUNT), CALLBACK])
    assert Counter(line.number for line in scene.lines("effect")) == Counter([*range(COUNT), CALLBACK])


@pytest.mark.parametrize(
    "point",
    [
        "worker.before_settle",
        "worker.after_settle_commit",
        "batch.before_finish_commit",
        "batch.after_finish_commit",
    ],
)
def test_the_callback_is_enqueued_once_wherever_the_worker_of_the_last_job_dies(
    scene: Scene, point: str
) -> None:
    assert scene.producer(1).wait() == 0
    host = scene.host(crash=f"{point}:1:kill")
    if scene.hit() == host.pid:  # its supervisor looked at the batch before the worker did
        scene.host()

    until(lambda: any(line.number == CALLBACK for line in scene.lines("effect")), "the callback has run")
    view = until(lambda: (view := batch_of(scene)).finished and view, "all have ended")

    assert view
    assert (view.completed, view.then_enqueued) == (1, True)
    assert numbers(scene) == {0: 1, CALLBACK: 1}
    assert sum(line.number == CALLBACK for line in scene.lines("start")) == 1
    assert sum(line.number == 0 for line in scene.lines("start")) <= 2
