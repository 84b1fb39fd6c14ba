"""When something was or will be, as people say it."""

from datetime import UTC, datetime, timedelta

import pytest

from lateshift.dashboard.rendering import duration, named, told
from lateshift.model import words

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"), (0.012, "just now"), (0.999, "just now"), (1, "1 s ago"), (58.1, "58 s ago"), (59.99, "1 min ago"),
        (60, "1 min ago"), (67, "1 min 7 s ago"), (3_599, "59 min 59 s ago"), (3_600, "1 h ago"), (7_559, "2 h 6 min ago"),
        (86_399, "1 d ago"), (90_000, "1 d 1 h ago"), (-0.5, "now"), (-4.8, "in 5 s"), (-90, "in 1 min 30 s"),
        (-5_400, "in 1 h 30 min"), (-1_799.7, "in 30 min"), (-172_799, "in 2 d"), (-119.2, "in 1 min 59 s"),
    ],
)  # fmt: skip
def test_a_time_is_told_as_people_say_it(seconds: float, said: str) -> None:
    assert told(NOW - timedelta(seconds=seconds), NOW) == said


@pytest.mark.parametrize(
    ("seconds", "by_a_page", "by_a_command"),
    [
        (61, "1 min 1 s", "1m 1s"), (119.2, "1 min 59 s", "1m 59s"), (119.7, "2 min", "2m 0s"),
        (1_799.6, "30 min", "30m 0s"), (3_599.7, "1 h", "1h 0m"), (7_559, "2 h 6 min", "2h 6m"), (86_399, "1 d", "1d 0h"),
        (172_799, "2 d", "2d 0h"), (200_000, "2 d 8 h", "2d 8h"),
    ],
)  # fmt: skip
def test_pages_and_commands_round_a_time_alike(seconds: float, by_a_page: str, by_a_command: str) -> None:
    assert duration(seconds) == by_a_page
    assert told(NOW + timedelta(seconds=seconds), NOW) == f"in {by_a_page}"
    assert words.duration(seconds) == by_a_command


def test_a_name_may_be_broken_where_its_words_end_and_stays_text() -> None:
    assert str(named("a_b.c:d/e-f")) == "a_<wbr>b.<wbr>c:<wbr>d/<wbr>e-<wbr>f"
    assert str(named("<script>'\"&_")) == "&lt;script&gt;&#39;&#34;&amp;_<wbr>"
