"""Rates: read from text, and turned into times."""

import pytest

from lateshift.errors import OptionInvalid
from lateshift.model.ids import new_job_id
from lateshift.model.rate import RATE_LEAST, RATE_MOST, Rate


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("10/s", 10), ("300/min", 5), ("0.5/s", 0.5), ("7200/h", 2), (" 60 / minute ", 1)],
)
def test_a_rate_is_jobs_per_time(text: str, per_second: float) -> None:
    assert Rate.read(text).per_second == per_second


@pytest.mark.parametrize("text", ["10", "ten/s", "0/s", "-1/s", "10/year", "", "/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(OptionInvalid, match="such as 10/s"):
        Rate.read(text)


@pytest.mark.parametrize("text", ["0.9/h", "0.0001/s", "10001/s", "9" * 400 + "/s"])
def test_a_rate_that_is_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(OptionInvalid, match="from 1/h to 10,000/s") as refused:
        Rate.read(text)
    assert refused.value.field == "rate"
    assert Rate.read("1/h").per_second == RATE_LEAST
    assert Rate.read("10000/s").per_second == RATE_MOST


def test_each_is_due_after_the_one_before() -> None:
    ids = [new_job_id() for _ in range(3)]
    assert [delay.total_seconds() for delay in Rate(2).delays(ids).values()] == [0, 0.5, 1]
    assert [delay.total_seconds() for delay in Rate(2).delays(ids, after=200).values()] == [100, 100.5, 101]
