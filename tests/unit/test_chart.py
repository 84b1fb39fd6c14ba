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
        "Jobs in a minute over the last hour: completed, at most 30, at the end 0; failed, at most 10"
    )


def test_of_the_period_under_way_is_shown_what_was_counted() -> None:
    jobs = charts(samples(Over.HOUR, last=Figures(completed=30)), Over.HOUR, workers=False)[0]
    assert jobs.series[0].last == "30"


def test_a_line_has_a_gap_where_nothing_started() -> None:
    waited = Figures(started=2, waited=1.0, waits=[0, 0, 2, 0, 0, 0, 0], longest=1.0)
    starts = charts(samples(Over.HOUR, first=waited, last=waited), Over.HOUR, workers=False)[1]

    assert starts.series[1].drawn.count("M") == 2
    assert starts.marks == ["1 s", "500 ms", "0 ms"]


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
    last = Figures(present=240.0, busy=60.0)
    workers = charts(samples(Over.HOUR, last=last), Over.HOUR, workers=True)[3]

    assert [series.last for series in workers.series] == ["4", "1"]


def test_the_words_of_a_day_name_the_day() -> None:
    jobs = charts(samples(Over.DAY), Over.DAY, workers=False)[0]
    assert jobs.hints[-1].startswith("Mar 01 12:")
    assert jobs.ago[0] == "1 d ago"


@pytest.mark.parametrize(
    ("ran", "marks"),
    [
        (45, ["50 s", "25 s", "0 ms"]),
        (55, ["1 min", "30 s", "0 ms"]),
        (262, ["5 min", "2 min 30 s", "0 ms"]),
        (1_300, ["1 h", "30 min", "0 ms"]),
        (50_000, ["1 d", "12 h", "0 ms"]),
    ],
)
def test_a_scale_of_time_has_marks_that_people_read_clocks_by(ran: float, marks: list[str]) -> None:
    times = charts(samples(Over.HOUR, last=Figures(ran=ran)), Over.HOUR, workers=False)[-1]

    assert (times.title, times.marks) == ("Worker time", marks)
