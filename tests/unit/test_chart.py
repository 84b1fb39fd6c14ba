"""Charts: what is drawn, and the same in words."""

from datetime import UTC, datetime

import pytest

from lateshift.dashboard.chart import PERIODS, charts
from lateshift.model.figures import Figures, Over, Sample

NOW = datetime(2026, 3, 1, 12, 34, 56, tzinfo=UTC)


def samples(over: Over, **figures: Figures) -> list[Sample]:
    """`first`, `last`: of the first and the last period; the rest is empty."""
    periods = over.periods(NOW)
    known = {periods[0]: figures.get("first"), periods[-1]: figures.get("last")}
    return [Sample(at, known.get(at) or Figures()) for at in periods]


@pytest.mark.parametrize("over", Over)
def test_a_chart_has_no_more_periods_than_it_has_room_for_and_a_hint_for_each(over: Over) -> None:
    drawn = charts(samples(over), over, workers=True)

    assert [chart.title for chart in drawn] == [
        "Jobs in a minute",
        "Time until a job starts",
        "Backlog",
        "Workers",
    ]
    for chart in drawn:
        assert len(chart.hints) <= PERIODS
        assert chart.width == 10 * len(chart.hints)
        assert all(not series.drawn for series in chart.series if series.name not in ("there", "busy"))


def test_bars_stand_on_one_another_and_the_scale_is_a_round_number() -> None:
    first = Figures(completed=30, retried=5, dead=5)
    jobs = charts(samples(Over.HOUR, first=first), Over.HOUR, workers=False)[0]

    assert jobs.marks == ["50", "25", "0"]
    completed, failed = jobs.series
    assert completed.drawn == "M1 100V40h8V100z"
    assert failed.drawn == "M1 40V20h8V40z"
    assert jobs.hints[0] == "11:35 UTC: completed 30, failed 10"
    assert jobs.said.startswith(
        "Jobs in a minute over the last hour: completed, at most 30, in the last full minute 0; failed, at most 10"
    )


def test_the_period_under_way_is_told_apart_and_looks_like_no_end() -> None:
    counted = samples(Over.HOUR, last=Figures(completed=10, backlog=1))
    counted[-2] = Sample(counted[-2].at, Figures(completed=20, backlog=2))
    jobs, _, backlog, _ = charts(counted, Over.HOUR, workers=True)
    assert (jobs.last, jobs.series[0].last) == ("last full minute", "20")
    assert jobs.series[0].drawn == "M581 100V0h8V100z"
    assert jobs.series[0].under_way == "M591 100V50h8V100z"
    assert jobs.hints[-1] == "12:34 UTC, not over yet: completed 10, failed 0"
    assert "not over" not in jobs.hints[-2]
    assert backlog.series[0].last == "2"
    assert "L595" not in backlog.series[0].drawn
    assert backlog.series[0].under_way == ""


def test_of_periods_that_nobody_sampled_no_backlog_is_drawn_and_none_is_told() -> None:
    counted = [
        Sample(it.at, Figures(backlog=4), place not in (1, 58)) for place, it in enumerate(samples(Over.HOUR))
    ]
    backlog = charts(counted, Over.HOUR, workers=True)[2]
    [series] = backlog.series
    assert series.drawn.startswith("M1 100V33.3h8V100zM25 100L25 33.3L35 33.3")
    assert series.last == "–"
    assert backlog.hints[1] == "11:36 UTC: jobs that wait –"


@pytest.mark.parametrize(
    ("completed", "marks"),
    [(0, ["2", "1", "0"]), (1, ["2", "1", "0"]), (5, ["6", "3", "0"]), (9_000, ["10,000", "5,000", "0"])],
)
def test_the_marks_of_a_scale_of_counts_are_whole_numbers(completed: int, marks: list[str]) -> None:
    first = Figures(completed=completed)
    assert charts(samples(Over.HOUR, first=first), Over.HOUR, workers=False)[0].marks == marks


def test_at_first_the_period_under_way_is_all_there_is_to_tell() -> None:
    jobs = charts(samples(Over.HOUR, last=Figures(completed=30)), Over.HOUR, workers=False)[0]
    assert (jobs.last, jobs.series[0].last) == ("minute under way", "30")


@pytest.mark.parametrize(
    ("over", "last"),
    [(Over.HOUR, "last full minute"), (Over.DAY, "last full 15 min"), (Over.WEEK, "last full 2 h")],
)
def test_the_last_values_of_all_series_are_of_the_one_period_that_is_named(over: Over, last: str) -> None:
    waited = Figures(started=2, waited=1.0, waits=[0, 0, 2, 0, 0, 0, 0], longest=1.0, ran=3.0)
    drawn = charts(samples(over, first=waited, last=waited), over, workers=False)
    assert [(chart.title, chart.last) for chart in drawn if chart.title != "Backlog"] == [
        (
            "Jobs in a minute",
            "minute under way" if over is Over.HOUR else last.replace("last full ", "") + " under way",
        ),
        ("Time until a job starts", last),
        ("Worker time", last),
    ]
    assert [series.last for series in drawn[1].series] == [
        "–",
        "–",
    ]  # nothing started in it, whatever did since
    assert drawn[3].series[0].last == "0"


@pytest.mark.parametrize(
    ("over", "marks"), [(Over.DAY, ["0.1", "0.05", "0"]), (Over.WEEK, ["0.01", "0.005", "0"])]
)
def test_small_numbers_have_marks_too(over: Over, marks: list[str]) -> None:
    jobs = charts(samples(over, first=Figures(completed=1)), over, workers=False)[0]
    assert jobs.marks == marks
    assert jobs.hints[0].endswith(
        "completed 0.067, failed 0" if over is Over.DAY else "completed under 0.01, failed 0"
    )


def test_a_short_time_has_marks_that_differ() -> None:
    waited = Figures(started=2, waited=0.008, waits=[2, 0, 0, 0, 0, 0, 0], longest=0.004)
    starts = charts(samples(Over.HOUR, first=waited), Over.HOUR, workers=False)[1]
    assert len(set(starts.marks)) == 3
    assert starts.marks[:2] == ["5 ms", "2.5 ms"]


def test_a_week_is_told_by_whole_days() -> None:
    jobs = charts(samples(Over.WEEK), Over.WEEK, workers=False)[0]
    assert jobs.ago == ("7 d ago", "6 d", "5 d", "4 d", "3 d", "2 d", "1 d", "now")


def test_a_line_has_a_gap_where_nothing_started() -> None:
    waited = Figures(started=2, waited=1.0, waits=[0, 0, 2, 0, 0, 0, 0], longest=1.0)
    starts = charts(samples(Over.HOUR, first=waited, last=waited), Over.HOUR, workers=False)[1]

    assert starts.series[1].drawn.count("M") == 2
    assert starts.marks == ["1 s", "500 ms", "0"]


def test_a_point_of_a_line_that_stands_alone_is_a_dot() -> None:
    waited = Figures(started=2, waited=1.0, waits=[0, 0, 2, 0, 0, 0, 0], longest=1.0)
    alone = charts(samples(Over.HOUR, first=waited, last=waited), Over.HOUR, workers=False)[1]
    assert alone.series[1].dots == "M5 50h0M595 50h0"

    side_by_side = samples(Over.HOUR, first=waited)
    side_by_side[1] = Sample(side_by_side[1].at, waited)
    drawn = charts(side_by_side, Over.HOUR, workers=False)
    assert drawn[1].series[1].dots == ""
    assert drawn[1].series[1].drawn == "M5 50L15 50"
    assert drawn[2].series[0].dots == ""


def test_how_many_workers_were_there_is_told_of_whole_minutes() -> None:
    first = Figures(present=240.0, busy=60.0)
    counted = samples(Over.HOUR)
    counted[-2] = Sample(counted[-2].at, first)
    workers = charts(counted, Over.HOUR, workers=True)[3]

    assert [series.last for series in workers.series] == ["4", "1"]


def test_the_scale_of_workers_goes_up_to_one_at_least() -> None:
    """What a worker did in its first moments is no mountain."""
    counted = samples(Over.HOUR, first=Figures(present=6, busy=0.1))
    workers = charts(counted, Over.HOUR, workers=True)[3]
    assert workers.marks == ["1", "0.5", "0"]


def test_the_words_of_a_day_name_the_day() -> None:
    jobs = charts(samples(Over.DAY), Over.DAY, workers=False)[0]
    assert jobs.hints[-1].startswith("Mar 01 12:")
    assert jobs.ago[0] == "1 d ago"


@pytest.mark.parametrize(
    ("ran", "marks"),
    [
        (45, ["50 s", "25 s", "0"]),
        (55, ["1 min", "30 s", "0"]),
        (262, ["5 min", "2 min 30 s", "0"]),
        (1_300, ["1 h", "30 min", "0"]),
        (50_000, ["1 d", "12 h", "0"]),
    ],
)
def test_a_scale_of_time_has_marks_that_people_read_clocks_by(ran: float, marks: list[str]) -> None:
    times = charts(samples(Over.HOUR, last=Figures(ran=ran)), Over.HOUR, workers=False)[-1]

    assert (times.title, times.marks) == ("Worker time", marks)
