"""The life of a job on its page: when each thing was by the clock, how long the job waited before each attempt, and how long that ran."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lateshift.dashboard.rendering import clock
from lateshift.dashboard.telling import Moment, life_of
from lateshift.model.job import AttemptRecord, State
from tests.unit.explaining import view

MADE = datetime(2026, 11, 18, 20, 45, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return MADE + timedelta(seconds=seconds)


def failed(attempt: int, seconds: float, ran_for: float | None) -> AttemptRecord:
    return AttemptRecord(attempt=attempt, fence=attempt, at=at(seconds), reason="failed", ran_for=ran_for)


def life(state: State, **more: Any) -> list[Moment]:
    return life_of(view(state, created_at=MADE, due_at=MADE, **more), [], {})


def waits(moments: list[Moment]) -> list[tuple[str, float | None, float | None]]:
    return [(each.title, each.waited, each.lasted) for each in moments]


def test_each_attempt_says_how_long_it_waited_and_how_long_it_ran() -> None:
    tries = [failed(1, 3, 1), failed(2, 6, 2), failed(3, 10, 0.5)]
    moments = life(
        State.DEAD, history=tries, settled_at=at(10), reason="exhausted", attempt=3, started_at=at(9.5)
    )
    assert waits(moments) == [
        ("Made", None, None),
        ("Attempt 1: failed", 2.0, 1),
        ("Attempt 2: failed", 1.0, 2),
        ("Attempt 3: failed", 3.5, 0.5),
        ("Dead: exhausted", None, None),
    ]


def test_a_job_that_completed_at_once_tells_its_wait_before_the_start() -> None:
    moments = life(State.COMPLETED, history=[], started_at=at(4), settled_at=at(6), attempt=1)
    assert waits(moments) == [("Made", None, None), ("Completed", 4.0, 2.0)]


def test_one_that_runs_tells_how_long_it_waited() -> None:
    moments = life(State.RUNNING, history=[failed(1, 3, 1)], started_at=at(8), attempt=2, holder=UUID(int=1))
    assert waits(moments)[1:] == [("Attempt 1: failed", 2.0, 1), ("Attempt 2 runs", 5.0, None)]


def test_a_wait_that_clocks_make_negative_is_none_and_one_that_is_not_known_is_not_told() -> None:
    moments = life(State.DEAD, history=[failed(1, 1, 5), failed(2, 2, None)], settled_at=at(2), attempt=2)
    assert [each.waited for each in moments] == [None, 0.0, None, None]


@pytest.mark.parametrize(
    ("when", "told"),
    [
        (MADE, "20:45:00"),
        (MADE - timedelta(days=1), "2026-11-17 20:45:00"),
        (MADE + timedelta(hours=4), "2026-11-19 00:45:00"),
    ],
)
def test_a_clock_shows_the_date_unless_it_is_today(when: datetime, told: str) -> None:
    assert clock(when, MADE + timedelta(minutes=5)) == told
