"""Charts as values: what a template draws as SVG with nothing but attributes, so that no script and no style is needed. Numbers in,
coordinates and words out."""

from collections.abc import Callable, Sequence
from math import ceil, floor, log10

from msgspec import Struct

from lateshift.dashboard.rendering import duration, rate
from lateshift.model.figures import Figures, Over, Sample
from lateshift.operating.overview import merged

HIGH = 100  # of the drawing; its width is WIDE for each period
WIDE = 10
PERIODS = 96  # at most in one chart
TIMES = (
    60,
    120,
    300,
    600,
    1_200,
    3_600,
    7_200,
    14_400,
    43_200,
    86_400,
    172_800,
    345_600,
)  # seconds, at the top of a chart
AGO = {
    Over.HOUR: ("1 h ago", "45 min", "30 min", "15 min", "now"),
    Over.DAY: ("1 d ago", "18 h", "12 h", "6 h", "now"),
    Over.WEEK: ("7 d ago", "6 d", "5 d", "4 d", "3 d", "2 d", "1 d", "now"),
}


class Series(Struct, frozen=True, kw_only=True):
    """`kind`: bars, area or line. `meaning`: by which it is coloured. `drawn`: a path, of the periods that are over. `under_way`: the
    bar of the one that is not, which would look like an end. `dots`: of the points of a line that have none beside them. `last`: at the
    period that the chart says."""

    name: str
    kind: str
    meaning: str
    drawn: str
    under_way: str
    dots: str
    last: str


class Chart(Struct, frozen=True, kw_only=True):
    """`last`: which period the last values are of. `said`: the same in words. `hints`: of each period, told where the pointer rests."""

    title: str
    series: list[Series]
    width: int
    marks: list[str]  # the scale, from the top
    ago: Sequence[str]
    hints: list[str]
    last: str
    said: str


Value = Callable[[Figures, float], float | None]
"""What a series has at a period, of its figures and of the seconds of it that have passed."""


class Wanted(Struct, frozen=True):
    """One series: its name, how it is drawn, by which meaning it is coloured, and what it takes of a period's figures. `partly`: which
    means something of a period that is not over, too. `sampled`: of which nothing is known where nobody has told what waits."""

    name: str
    kind: str
    meaning: str
    value: Value
    partly: bool = False
    sampled: bool = False

    def of(self, sample: Sample, passed: float) -> float | None:
        return None if self.sampled and not sample.sampled else self.value(sample.figures, passed)


def charts(samples: Sequence[Sample], over: Over, *, workers: bool) -> list[Chart]:
    """`workers`: what only all queues together have."""
    few = merged(samples, PERIODS)
    step = over.length.total_seconds() / len(few)
    passed = [step] * len(few)  # also of the period under way: what has been counted, not what it may come to
    wanted: list[tuple[str, Callable[[float], str], float, list[Wanted]]] = [  # the third: what a scale goes up to at least
        ("Jobs in a minute", _number, 0, [
            Wanted("completed", "bars", "good", lambda it, seconds: it.completed / seconds * 60),
            Wanted("failed", "bars", "bad", lambda it, seconds: it.failed / seconds * 60),
        ]),
        ("Time until a job starts", _time, 0, [
            Wanted("95 % within", "line", "busy", lambda it, _: it.wait_within(0.95), partly=True),
            Wanted("mean", "line", "soft", lambda it, _: it.mean_wait, partly=True),
        ]),
        ("Backlog", _number, 0, [Wanted("jobs that wait", "area", "late", lambda it, _: it.backlog, sampled=True)]),
    ]  # fmt: skip
    if workers:
        wanted.append(("Workers", _number, 1, [
            Wanted("there", "line", "soft", lambda it, seconds: max(it.present / (ceil(seconds / 60) * 60), it.busy / seconds)),
            Wanted("busy", "area", "busy", lambda it, seconds: it.busy / seconds),
        ]))  # fmt: skip
    else:
        wanted.append(("Worker time", _time, 0, [Wanted("ran", "bars", "busy", lambda it, _: it.ran)]))
    return [
        _chart(title, told, least, series, list(zip(few, passed, strict=True)), over)
        for title, told, least, series in wanted
    ]


def _chart(
    title: str,
    told: Callable[[float], str],
    least: float,
    wanted: Sequence[Wanted],
    samples: Sequence[tuple[Sample, float]],
    over: Over,
) -> Chart:
    columns = [[each.of(sample, passed) for sample, passed in samples] for each in wanted]
    stacked = all(each.kind == "bars" for each in wanted)
    if stacked:
        largest = max((sum(value or 0 for value in row) for row in zip(*columns, strict=True)), default=0.0)
    else:
        largest = max((value for column in columns for value in column if value is not None), default=0.0)
    top = max(
        least,
        _round_up_time(largest) if told is _time else _round_up(largest) if least else _whole(largest),
    )
    below = [0.0] * len(samples)
    begun = not any(any(column[:-1]) for column in columns)  # nothing but the period under way
    shown, period = -1 if begun else -2, _period(samples[0][1])
    last = f"{period} under way" if begun else f"last full {period}"
    series = []
    for each, column in zip(wanted, columns, strict=True):
        over_with: list[float | None] = column if each.partly else column[:-1]
        drawn = _drawn(each.kind, over_with, below[: len(over_with)], top)
        dots = _dots(over_with, top) if each.kind == "line" else ""
        under_way = _bar(len(over_with), below[-1], column[-1] or 0, top) if each.kind == "bars" else ""
        if stacked:
            below = [low + (value or 0) for low, value in zip(below, column, strict=True)]
        series.append(Series(
            name=each.name, kind=each.kind, meaning=each.meaning, drawn=drawn, under_way=under_way, dots=dots, last=_or_none(column[shown], told)
        ))  # fmt: skip
    pattern = "%H:%M" if over is Over.HOUR else "%b %d %H:%M"
    hints = [
        f"{sample.at.strftime(pattern)} UTC{', not over yet' if place == len(samples) - 1 else ''}: "
        + ", ".join(
            f"{each.name} {_or_none(column[place], told)}"
            for each, column in zip(wanted, columns, strict=True)
        )
        for place, (sample, _) in enumerate(samples)
    ]
    marks = [_mark_of_time(at) if told is _time else f"{at:,g}" for at in (top, top / 2, 0)]
    said = f"{title} over the last {over.name.lower()}: " + "; ".join(
        f"{each.name}, at most {_or_none(max((it for it in column if it is not None), default=None), told)}, "
        f"in the {last} {series[place].last}"
        for place, (each, column) in enumerate(zip(wanted, columns, strict=True))
    )
    return Chart(
        title=title,
        series=series,
        width=len(samples) * WIDE,
        marks=marks,
        ago=AGO[over],
        hints=hints,
        last=last,
        said=said,
    )


def _drawn(kind: str, values: Sequence[float | None], below: Sequence[float], top: float) -> str:
    """A path in a drawing that is HIGH high, where nothing is at the bottom. A line and an area have gaps where there is no value."""
    if kind == "bars":
        pairs = zip(values, below, strict=True)
        return "".join(_bar(place, low, value or 0, top) for place, (value, low) in enumerate(pairs))
    if kind == "area":
        return "".join(_area(run, top) for run in _runs(values)) if any(values) else ""
    parts, gap = [], True
    for place, value in enumerate(values):
        if value is not None:
            parts.append(f"{'M' if gap else 'L'}{place * WIDE + WIDE // 2} {_y(value, top)}")
        gap = value is None
    return "".join(parts)


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Values that stand beside one another, with their places."""
    runs: list[list[tuple[int, float]]] = []
    for place, value in enumerate(values):
        if value is None:
            continue
        if not runs or runs[-1][-1][0] != place - 1:
            runs.append([])
        runs[-1].append((place, value))
    return runs


def _area(run: Sequence[tuple[int, float]], top: float) -> str:
    """One period alone is a bar, for between its middle and its middle there is nothing to see."""
    if len(run) == 1:
        return _bar(run[0][0], 0.0, run[0][1], top)
    points = [f"{place * WIDE + WIDE // 2} {_y(value, top)}" for place, value in run]
    return f"M{run[0][0] * WIDE + WIDE // 2} {HIGH}L{'L'.join(points)}V{HIGH}z"


def _bar(place: int, low: float, value: float, top: float) -> str:
    """Of nothing there is none."""
    bar = f"M{place * WIDE + 1} {_y(low, top)}V{_y(low + value, top)}h{WIDE - 2}V{_y(low, top)}z"
    return bar if value else ""


def _dots(values: Sequence[float | None], top: float) -> str:
    """Strokes of no length, whose round ends are a dot whatever shape the drawing is pulled into, as a circle's would not be."""
    beside = [None, *values, None]
    return "".join(
        f"M{place * WIDE + WIDE // 2} {_y(value, top)}h0"
        for place, value in enumerate(values)
        if value is not None and beside[place] is None and beside[place + 2] is None
    )


def _y(value: float, top: float) -> str:
    return f"{HIGH - value / top * HIGH:.1f}".removesuffix(".0")


def _round_up(largest: float) -> float:
    """The next of 1, 2, 5, 10, 20 …: a scale that can be read."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** floor(log10(largest))
    return next(step * power for step in (1, 2, 5, 10, 20) if step * power >= largest)


def _whole(largest: float) -> float:
    """The same of counts, where half of it is whole, too. Less than one a minute is no count."""
    top = _round_up(largest)
    return {1.0: 2.0, 5.0: 6.0}.get(top, top)


def _round_up_time(seconds: float) -> float:
    """The same of a time, of which minutes, hours and days are read."""
    nice = TIMES if seconds > 50 else ()
    return next((top for top in nice if top >= seconds), _round_up(seconds))


def _period(seconds: float) -> str:
    return "minute" if seconds == 60 else duration(seconds)


def _number(value: float) -> str:
    return "under 0.01" if 0 < value < 0.01 else rate(value)


def _time(seconds: float) -> str:
    """Of a sum: nothing is nothing, in any unit."""
    return duration(seconds) if seconds else "0"


def _mark_of_time(seconds: float) -> str:
    """Exactly: two marks are never the same."""
    if not seconds:
        return "0"
    return f"{seconds * 1000:g} ms" if seconds < 1 else duration(seconds)


def _or_none(value: float | None, told: Callable[[float], str]) -> str:
    return "–" if value is None else told(value)
