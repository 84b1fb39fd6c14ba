"""How many jobs there are in a second: as many as were counted in the last five minutes, and never what a moment was like."""

from datetime import UTC, datetime, timedelta

import pytest

from lateshift.model.figures import Figures, Sample
from lateshift.model.lately import RECENT, per_second, seconds_counted

NOW = datetime(2026, 3, 1, 12, 5, 20, tzinfo=UTC)


def minute(ago: int, completed: int) -> Sample:
    return Sample(NOW.replace(second=0) - timedelta(minutes=ago), Figures(completed=completed))


def a_minute(*samples: Sample, came: timedelta | None = timedelta(days=1)) -> float:
    seconds = seconds_counted(samples, NOW, None if came is None else NOW - came)
    return 60 * per_second(samples, lambda it: it.completed, NOW, seconds)


@pytest.mark.parametrize("ago", [0, 1, 4])
def test_five_jobs_in_five_minutes_are_one_a_minute_whenever_they_were(ago: int) -> None:
    assert a_minute(minute(ago, 5)) == pytest.approx(1.0)


def test_of_the_minute_in_which_the_time_begins_as_much_is_counted_as_is_in_it() -> None:
    """At 12:05:20 the last five minutes have begun at 12:00:20: of 12:00 two thirds are in them."""
    assert a_minute(minute(5, 6)) == pytest.approx(4 / 5)
    assert a_minute(*[minute(ago, 60) for ago in range(1, 6)], minute(0, 20)) == pytest.approx(60.0)
    assert a_minute(minute(6, 1000)) == 0


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        pytest.param(timedelta(minutes=2), 2.5, id="since the first worker is there"),
        pytest.param(timedelta(seconds=10), 5.0, id="but never of less than a minute"),
        pytest.param(None, 1.0, id="nobody is there any more"),
    ],
)
def test_where_workers_came_since_it_is_told_of_the_time_that_they_are_there(
    came: timedelta | None, expected: float
) -> None:
    assert a_minute(minute(0, 5), came=came) == pytest.approx(expected)


def test_a_worker_that_was_started_anew_makes_the_time_no_shorter() -> None:
    assert a_minute(minute(3, 300), minute(0, 5), came=timedelta(seconds=15)) == pytest.approx(61.0)


def test_where_nothing_was_done_there_is_nothing() -> None:
    assert a_minute() == 0
    assert seconds_counted([], NOW, None) == RECENT.total_seconds()
