"""Throughput as the live view shows it, and its little chart."""

from lateshift.cli.view import sparkline
from lateshift.cli.watch import Pace


def test_a_rate_is_the_mean_of_the_last_three_whole_seconds() -> None:
    pace = Pace(0.0)
    for second, jobs in enumerate([10, 20, 30, 40]):
        pace.gain(jobs, second + 0.5)
    assert pace.rate(4.0) == 30.0
    assert pace.total == 100


def test_a_young_rate_is_not_thinned_by_the_time_before() -> None:
    pace = Pace(100.0)
    pace.gain(50, 100.5)
    assert pace.rate(101.2) == 50.0


def test_the_last_minute_forgets_what_is_older() -> None:
    pace = Pace(0.0)
    pace.gain(5, 0.5)
    pace.gain(7, 65.5)
    minute = pace.last_minute(66.0)
    assert len(minute) == 60
    assert minute[-1] == 7
    assert sum(minute) == 7


def test_the_highest_value_reaches_the_top_and_nothing_stays_at_the_bottom() -> None:
    assert sparkline([0, 1, 2, 4], width=10, tall=1) == [" ▂▄█"]
    assert sparkline([0, 1, 2, 4], width=10, tall=2) == ["   █", " ▄██"]
    assert sparkline([0, 0], width=10, tall=1) == ["  "]
    assert sparkline(range(100), width=5, tall=1) == ["█████"]
