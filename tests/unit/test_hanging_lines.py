"""Long lines of JSON and of tracebacks on pages: text as it was, which goes on below where it began."""

import re
from html import unescape
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lateshift.dashboard import lines
from lateshift.dashboard.lines import DEEPEST, SHORT, hanging

_TAG = re.compile(r"</?span[^>]*>")


@given(st.text(alphabet=st.sampled_from("ab <&>'\"{}:,\n  ")))
def test_what_is_read_and_copied_is_the_text_and_nothing_else(text: str) -> None:
    assert unescape(_TAG.sub("", hanging(text))) == text


@given(st.text())
def test_no_text_becomes_markup(text: str) -> None:
    assert not set("<>") & set(_TAG.sub("", hanging(text)))


def test_an_indentation_stays_with_the_first_sign_of_a_long_line() -> None:
    line = '    "' + "k" * SHORT + '": 1,\n'
    assert f'<span class="line at-2"><span class="kept">    &#34;</span>{"k" * SHORT}' in hanging(line)


def test_short_lines_are_left_alone_and_the_deepest_are_indented_alike() -> None:
    assert hanging('{\n  "a": 1\n}') == "{\n  &#34;a&#34;: 1\n}"
    assert f"at-{DEEPEST}" in hanging(" " * 100 + "x")


def test_the_style_sheet_knows_every_indentation() -> None:
    sheet = (Path(lines.__file__).parent / "static" / "tables.css").read_text()
    assert all(f".at-{depth} {{ --at: {depth}; }}" in sheet for depth in range(1, DEEPEST + 1))
    assert f".at-{DEEPEST + 1}" not in sheet
