"""When something was or will be, as people say it."""

from datetime import UTC, datetime, timedelta

import pytest

from lateshift.dashboard.rendering import named, told

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"), (0.012, "just now"), (0.999, "just now"), (1, "1 s ago"), (58.1, "58 s ago"), (59.99, "59 s ago"),
        (60, "1 min ago"), (67, "1 min ago"), (3_599, "59 min ago"), (3_600, "1 h ago"), (7_559, "2 h 5 min ago"),
        (86_399, "23 h 59 min ago"), (90_000, "1 d 1 h ago"), (-0.5, "now"), (-4.8, "in 4 s"), (-90, "in 1 min"),
        (-5_400, "in 1 h 30 min"),
    ],
)  # fmt: skip
def test_a_time_is_told_as_people_say_it(seconds: float, said: str) -> None:
    assert told(NOW - timedelta(seconds=seconds), NOW) == said


def test_a_name_may_be_broken_where_its_words_end_and_stays_text() -> None:
    assert str(named("a_b.c:d/e-f")) == "a_<wbr>b.<wbr>c:<wbr>d/<wbr>e-<wbr>f"
    assert str(named("<script>'\"&_")) == "&lt;script&gt;&#39;&#34;&amp;_<wbr>"
