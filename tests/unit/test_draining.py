"""How long until a queue is empty, from what is known of it, and when nothing is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift.model.draining import DRAINS, QUEUES_TOLD, Drain, Ends, Told, drain, seen_for, slowest
from lateshift.model.figures import ALL, Figures, Sample

Workers = list[tuple[tuple[str, ...], dict[str, Any]]]
NOW = datetime(2026, 3, 1, 12, 5, 20, tzinfo=UTC)
WINDOW = NOW - timedelta(minutes=5, seconds=20)


def seconds(takes: timedelta | None) -> float | None:
    return None if takes is None else round(takes.total_seconds(), 3)


@pytest.mark.parametrize(
    ("backlog", "ends", "known", "takes", "why"),
    [
        pytest.param(0, None, {}, 0, None, id="nothing waits"),
        pytest.param(0, 5.0, {"paused": True}, 0, None, id="nothing waits in a paused queue"),
        pytest.param(60, 2.0, {}, 30, None, id="at the present pace"),
        pytest.param(60, None, {}, None, None, id="nothing has ended yet"),
        pytest.param(60, 0.0, {}, None, None, id="nothing ends"),
        pytest.param(40, 2.0, {"paused": True}, None, "paused", id="paused"),
        pytest.param(40, 2.0, {"served": False}, None, "no worker", id="nobody serves it"),
        pytest.param(40, 2.0, {"parked": 40}, None, "parked", id="all behind a breaker"),
        pytest.param(40, 2.0, {"parked": 10}, 15, "parked", id="what is parked does not move, the rest does"),
        pytest.param(40, 2.0, {"held": 40}, None, "session held", id="all behind a session that is held"),
        pytest.param(40, 2.0, {"held": 10}, 15, "session held", id="what is behind a session that is held does not move, the rest does"),
        pytest.param(40, 2.0, {"held": 30, "parked": 10}, None, "parked, session held", id="some for a breaker, some for a session"),
        pytest.param(300, 0.9, {"limit": 100 / 60, "rationed": True}, 180, None, id="the rate is what holds it"),
        pytest.param(300, None, {"limit": 100 / 60, "rationed": True}, 180, None, id="nothing has ended, but they wait for the rate"),
        pytest.param(300, None, {"limit": 100 / 60}, None, None, id="nothing ends, and they wait for something else than the rate"),
        pytest.param(300, 50.0, {"limit": 100 / 60}, 180, None, id="after a burst, no faster than the rate"),
        pytest.param(300, 0.5, {"limit": 100 / 60}, 600, None, id="slower than its rate for want of workers"),
        pytest.param(300, 0.5, {"limit": 9.0, "paused": True, "rationed": True}, None, "paused", id="paused, with a rate"),
        pytest.param(10**9, 1e-12, {}, 10**9, None, id="no number is too large"),
    ],
)  # fmt: skip
def test_how_long_a_queue_takes(
    backlog: int, ends: float | None, known: dict[str, Any], takes: float | None, why: str | None
) -> None:
    found = drain(backlog, ends, **known)

    assert (seconds(found.takes), found.why) == (takes, why)
    assert found.moving + found.held_up == backlog


def moves(count: int, takes: float | None) -> Drain:
    return Drain(takes=None if takes is None else timedelta(seconds=takes), moving=count)


def stands(count: int, why: str) -> Drain:
    return Drain(takes=None, held_up=count, why=why)


EMPTY = Drain(takes=timedelta(0))


@pytest.mark.parametrize(
    ("drains", "takes", "why", "more"),
    [
        pytest.param([], 0, None, False, id="no queues"),
        pytest.param([EMPTY, EMPTY], 0, None, False, id="all are empty"),
        pytest.param([moves(60, 30), moves(10, 90), EMPTY], 90, None, False, id="as long as the slowest"),
        pytest.param([moves(60, 30), stands(40, "parked")], 30, "parked", False, id="one does not move"),
        pytest.param([stands(3, "paused"), stands(4, "no worker")], None, "no worker, paused", False, id="none moves"),
        pytest.param([moves(60, 30), moves(7, None)], 30, None, True, id="of one nobody knows"),
        pytest.param([moves(7, None), EMPTY], None, None, True, id="nobody knows"),
    ],
)  # fmt: skip
def test_how_long_several_queues_take(
    drains: list[Drain], takes: float | None, why: str | None, more: bool
) -> None:
    total, unknown = slowest(drains)

    assert (seconds(total.takes), total.why, unknown) == (takes, why, more)


MANY = {f"queue{number}": 9.0 for number in range(QUEUES_TOLD)}


@pytest.mark.parametrize(
    ("workers", "told"),
    [
        pytest.param([], Ends(False, None, False), id="nobody is there"),
        pytest.param([((), {})], Ends(True, None, False), id="one that has not told yet"),
        pytest.param(
            [((), {DRAINS: {"mail": 1.5}}), (("mail",), {DRAINS: {"mail": 2.0}}), ((), {})], Ends(True, 3.5, True), id="what all end together"
        ),
        pytest.param([((), {DRAINS: {"images": 9.0}})], Ends(True, None, True), id="nobody ends any of this queue"),
        pytest.param([((), {DRAINS: {"mail": 1.5}}), ((), {"completed": 3})], Ends(True, 1.5, False), id="one of an older release"),
        pytest.param(
            [(("ma*",), {DRAINS: {"mail": 1.5}}), (("images",), {"completed": 3})], Ends(True, 1.5, True), id="an older one serves others"
        ),
        pytest.param([(("images", "m"), {DRAINS: {"images": 1.5}})], Ends(False, None, False), id="all serve others"),
        pytest.param([((), {DRAINS: MANY})], Ends(True, None, False), id="one that ends jobs of more queues than it tells of"),
        pytest.param([((), {DRAINS: MANY}), ((), {DRAINS: {"mail": 2.0}})], Ends(True, 2.0, True), id="what one leaves out another tells"),
        pytest.param([(("images",), {DRAINS: MANY})], Ends(False, None, False), id="what is left out by who serves others"),
    ],
)  # fmt: skip
def test_what_workers_tell_of_a_queue(workers: Workers, told: Ends) -> None:
    assert Told(workers).of("mail") == told


def test_what_workers_tell_of_all_queues_is_told_by_each_whatever_it_serves() -> None:
    workers: Workers = [(("mail",), {DRAINS: {ALL: 1.0}}), (("images",), {DRAINS: {ALL: 2.0, "images": 2.0}})]
    assert Told(workers).of(ALL) == Ends(True, 3.0, True)
    assert Told([*workers, (("images",), {"completed": 3})]).of(ALL) == Ends(True, 3.0, False)


def minute(ago: int, *, started: int = 0, completed: int = 0, dead: int = 0, backlog: int = 0) -> Sample:
    figures = Figures(started=started, completed=completed, dead=dead, backlog=backlog)
    return Sample(NOW.replace(second=0) - timedelta(minutes=ago), figures)


@pytest.mark.parametrize(
    ("samples", "came", "seen"),
    [
        pytest.param([minute(0, started=9)], None, 20, id="only the minute that is under way"),
        pytest.param([minute(4, backlog=7), minute(1, started=9), minute(0, dead=1)], None, 80, id="from the first start"),
        pytest.param([minute(5, completed=9)], None, 320, id="the whole window"),
        pytest.param([minute(1, completed=9)], NOW - timedelta(seconds=30), 30, id="since a worker is there"),
        pytest.param([minute(1, completed=9)], NOW - timedelta(hours=3), 80, id="workers were there before"),
        pytest.param([minute(0, completed=9)], NOW - timedelta(seconds=1), 10, id="never less than workers take to tell"),
        pytest.param([], None, 320, id="nothing happened"),
    ],
)  # fmt: skip
def test_how_long_there_was_something_to_see(
    samples: list[Sample], came: datetime | None, seen: float
) -> None:
    assert seen_for(samples, WINDOW, NOW, came) == seen
