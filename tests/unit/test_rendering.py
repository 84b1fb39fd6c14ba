"""Numbers as pages tell them."""

from datetime import timedelta

import pytest

from lateshift.dashboard.rendering import duration, share


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 ms"),
        (0.000_012, "12 µs"),
        (0.000_999_9, "1 ms"),
        (0.34, "340 ms"),
        (12.4, "12.4 s"),
        (200, "3 min 20 s"),
    ],
)
def test_a_time_is_told_in_the_unit_that_matters(seconds: float, told: str) -> None:
    assert duration(seconds) == told
    assert duration(timedelta(seconds=seconds)) == told


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (0.0, "0 %"),
        (0.000_01, "0.1 %"),
        (0.25, "25 %"),
        (0.123, "12.3 %"),
        (0.999_99, "99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(part: float, told: str) -> None:
    assert share(part) == told
