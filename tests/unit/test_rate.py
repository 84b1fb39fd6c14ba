"""Rates: read from text, and turned into batches and pauses."""

import pytest

from lateshift.errors import OptionInvalid
from lateshift.model.rate import Rate


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


def test_batches_are_small_enough_to_keep_the_rate_even() -> None:
    assert (Rate(0.5).batch(200), Rate(10).batch(200), Rate(100_000).batch(200)) == (1, 2, 200)
    assert Rate(10).time_for(2) == 0.2
