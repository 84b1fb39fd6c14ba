"""Numbers and names as pages tell them."""

from datetime import timedelta

import pytest

from lateshift.dashboard.rendering import duration, named, share, unparted


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 µs"),
        (0.000_000_3, "0 µs"),
        (0.000_001, "1 µs"),
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
    ("seconds", "told"), [(0.34, "340~ms"), (6.7, "6.7~s"), (200, "3~min 20~s"), (None, "–"), (-5, "−5~s")]
)
def test_a_number_is_not_parted_from_its_unit(seconds: float | None, told: str) -> None:
    assert unparted(duration)(seconds).replace("\N{NO-BREAK SPACE}", "~") == told
    assert unparted(share)(0.000_01).split(" ") == ["<\N{NO-BREAK SPACE}0.1\N{NO-BREAK SPACE}%"]


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (0.0, "0 %"),
        (0.000_01, "< 0.1 %"),
        (0.25, "25 %"),
        (0.123, "12.3 %"),
        (0.999_99, "> 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(part: float, told: str) -> None:
    assert share(part) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mail", "mail"),
        ("images.small", "images.<wbr>small"),
        ("send_invoice-2", "send_<wbr>invoice-<wbr>2"),
        ("a::b//c", "a::<wbr>b//<wbr>c"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
    ],
)
def test_a_name_is_broken_where_its_words_end_and_is_text_and_nothing_else(name: str, told: str) -> None:
    assert named(name) == told


def test_a_name_turns_no_text_around_and_steers_no_terminal() -> None:
    told = named("left\u202eright\x1b[31m")
    assert "left" in told
    assert not set("\u202e\x1b") & set(told)
