"""The text of metrics: whatever a name holds, it forges no sample."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.outcome import plain
from lateshift.telemetry.exposition import DROPPED, LABEL_LIMIT, SERIES_MOST, Family, Sample, render
from tests.telemetry.reading import of, read


def test_a_gauge_and_a_counter_are_written_as_the_format_says() -> None:
    families = [
        Family(
            "lateshift_jobs", "gauge", "Jobs.", [Sample(3, {"queue": "a", "state": "ready"}), Sample(0.25)]
        ),
        Family("lateshift_done_total", "counter", "Ended \\ or\nnot.", [Sample(7)]),
    ]

    assert render(families) == (
        "# HELP lateshift_jobs Jobs.\n"
        "# TYPE lateshift_jobs gauge\n"
        'lateshift_jobs{queue="a",state="ready"} 3\n'
        "lateshift_jobs 0.25\n"
        "# HELP lateshift_done_total Ended \\\\ or\\nnot.\n"
        "# TYPE lateshift_done_total counter\n"
        "lateshift_done_total 7\n"
    )


def test_openmetrics_names_a_counter_without_its_ending_and_says_where_it_ends() -> None:
    text = render([Family("lateshift_done_total", "counter", 'The "done".', [Sample(7)])], openmetrics=True)

    assert text == (
        '# HELP lateshift_done The \\"done\\".\n# TYPE lateshift_done counter\nlateshift_done_total 7\n# EOF\n'
    )


@given(st.text(st.characters(exclude_categories=[]), max_size=LABEL_LIMIT * 2))
def test_whatever_a_label_holds_it_is_one_label(value: str) -> None:
    found = read(
        render([Family("lateshift_jobs", "gauge", "Jobs.", [Sample(1, {"queue": value, "state": "x"})])])
    )

    [(name, labels)] = found
    queue = dict(labels)["queue"]
    assert (name, dict(labels)["state"]) == ("lateshift_jobs", "x")
    if value.isprintable() and len(plain(value)) <= LABEL_LIMIT:
        assert queue == plain(value)
    assert all(character == "\n" or character >= " " for character in queue)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (1e300, "1e+300"),
        (2, "2"),
        (True, "1"),
        (0.1, "0.1"),
    ],
)
def test_numbers_are_written_as_the_format_has_them(value: float, written: str) -> None:
    assert render([Family("a", "gauge", "A.", [Sample(value)])]).endswith(f"\na {written}\n")


def test_a_metric_has_so_many_samples_and_what_is_beyond_is_counted() -> None:
    samples = [Sample(1, {"queue": str(number)}) for number in range(SERIES_MOST + 7)]
    found = read(render([Family("lateshift_jobs", "gauge", "Jobs.", samples)]))

    assert sum(name == "lateshift_jobs" for name, _ in found) == SERIES_MOST
    assert of(found, DROPPED, metric="lateshift_jobs") == 7


def test_what_is_the_same_after_it_was_cut_is_written_once() -> None:
    samples = [Sample(1, {"queue": "x" * 500 + str(number)}) for number in range(2)]

    assert len(read(render([Family("lateshift_jobs", "gauge", "Jobs.", samples)]))) == 1


def test_a_metric_without_samples_is_left_out() -> None:
    assert render([Family("lateshift_jobs", "gauge", "Jobs.", [])]) == ""


@pytest.mark.parametrize(
    ("name", "kind"), [("a b", "gauge"), ("done", "counter"), ("done_total", "gauge"), ("", "gauge")]
)
def test_a_wrong_name_is_refused(name: str, kind: str) -> None:
    with pytest.raises(ValueError, match="is no name for a"):
        Family(name, kind, "", [])  # type: ignore[arg-type]


def test_of_a_histogram_all_parts_are_told_or_none() -> None:
    parts = ("_bucket", "_bucket", "_sum", "_count")
    bounds: tuple[dict[str, str], ...] = ({"le": "1.0"}, {"le": "+Inf"}, {}, {})
    samples = [
        Sample(1, {"queue": str(number), **more}, part)
        for number in range(SERIES_MOST // 4 + 3)
        for part, more in zip(parts, bounds, strict=True)
    ]

    found = read(render([Family("lateshift_x_seconds", "histogram", "x", samples[2:])]))

    told = [name for name, _ in found if name.startswith("lateshift_x_seconds")]
    assert told.count("lateshift_x_seconds_count") == SERIES_MOST // 4
    assert told.count("lateshift_x_seconds_bucket") == 2 * (SERIES_MOST // 4 - 1)
    assert found[DROPPED, frozenset({("metric", "lateshift_x_seconds")})] == len(samples) - 2 - len(told)
