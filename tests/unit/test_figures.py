"""Figures of a period: sums, shares, and the periods that a chart has."""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.figures import (
    COLUMNS,
    WAITS,
    Figures,
    Grain,
    Over,
    Sample,
    filled,
    from_row,
    to_row,
    together,
)

NOW = datetime(2026, 3, 1, 12, 34, 56, tzinfo=UTC)


def test_a_period_begins_at_a_whole_number_of_its_steps() -> None:
    assert [grain.begins(NOW).isoformat()[11:16] for grain in Grain] == ["12:34", "12:30", "12:00"]


@pytest.mark.parametrize(("over", "count"), [(Over.HOUR, 60), (Over.DAY, 288), (Over.WEEK, 168)])
def test_a_chart_ends_with_the_period_that_is_under_way(over: Over, count: int) -> None:
    periods = over.periods(NOW)

    assert len(periods) == count
    assert periods[0] == over.begins(NOW)
    assert periods[-1] <= NOW < periods[-1] + over.grain.step
    assert over.length <= over.grain.kept - over.grain.step


def test_where_nothing_was_kept_nothing_happened() -> None:
    periods = Over.HOUR.periods(NOW)
    one = Sample(periods[7], Figures(completed=3))

    samples = filled([one], periods, {periods[7]})

    assert [sample.at for sample in samples] == periods
    assert sum(sample.figures.completed for sample in samples) == 3
    assert samples[7] == one
    assert [sample.at for sample in samples if sample.sampled] == [periods[7]]


def test_a_row_is_read_as_it_was_written() -> None:
    figures = Figures(
        started=1, completed=2, retried=3, dead=4, cancelled=5, waited=6.5, longest=7.5, ran=8.5, waits=[1, 2, 3, 4, 5, 6, 7], backlog=9,
        busy=10.5, present=11.5,
    )  # fmt: skip

    assert len(to_row(figures)) == len(COLUMNS)
    assert from_row(to_row(figures)) == figures


def test_sums_keep_the_longest_wait_and_the_largest_backlog() -> None:
    total = together(
        [Figures(completed=1, longest=3.0, backlog=2), Figures(completed=2, longest=1.0, backlog=9)]
    )

    assert (total.completed, total.longest, total.backlog) == (3, 3.0, 9)


def test_how_long_most_waited_is_told_between_the_places_where_waits_are_counted() -> None:
    half_within_a_second = Figures(started=10, waits=[0, 0, 5, 5, 0, 0, 0], longest=6.0)

    assert half_within_a_second.wait_within(0.5) == 1.0
    assert half_within_a_second.wait_within(0.9) == pytest.approx(5.0)
    assert half_within_a_second.wait_within(1.0) == 6.0
    assert Figures(started=1, waits=[1, 0, 0, 0, 0, 0, 0], longest=0.004).wait_within(0.95) <= 0.004  # type: ignore[operator]
    assert Figures().wait_within(0.5) is None


def of_waits(*waits: float) -> Figures:
    figures = Figures(started=len(waits), waited=sum(waits), longest=max(waits))
    for wait in waits:
        figures.waits[bisect_left(WAITS, wait)] += 1
    return figures


def test_where_all_waited_alike_most_are_not_told_to_have_waited_less() -> None:
    for figures in (of_waits(302.0), of_waits(302.0, 302.0, 302.0), of_waits(0.5)):
        assert figures.wait_within(0.95) == pytest.approx(figures.mean_wait)


@given(st.lists(st.floats(0, 5000), min_size=1, max_size=60), st.floats(0.5, 1.0))
def test_how_long_most_waited_is_told_within_what_the_counts_the_mean_and_the_longest_allow(
    waits: list[float], share: float
) -> None:
    figures = of_waits(*waits)

    told = figures.wait_within(share)

    assert told is not None
    assert told <= max(waits)
    mean, longest = sum(waits) / len(waits), max(waits)
    assert told * share + longest * (1 - share) >= mean - 1e-6 * (1 + longest)


def test_the_share_of_idle_time_is_never_negative() -> None:
    assert Figures(busy=15.0, present=60.0).idle_share == 0.75
    assert Figures(busy=61.0, present=60.0).idle_share == 0.0
    assert Figures(busy=61.0, present=60.0).there == 61.0
    assert Figures().idle_share is None


def test_hours_are_kept_for_five_weeks() -> None:
    assert {grain: grain.kept for grain in Grain} == {
        Grain.MINUTE: timedelta(hours=2), Grain.FIVE_MINUTES: timedelta(days=2), Grain.HOUR: timedelta(weeks=5),
    }  # fmt: skip
