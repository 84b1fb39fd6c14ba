"""What others have said, cut for a list."""

import pytest

from lateshift.model.words import sentence, shortened


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the disk is full", "the disk is full"),
        ("the disk of the server is full", "the disk of the…"),
        ("cannot connect, as nobody listens", "cannot connect, as…"),
        ("it is at ht://x/… no more", "it is at ht://x/…"),
        ("x" * 30, "x" * 19 + "…"),
        ("a " + "x" * 30, "a " + "x" * 17 + "…"),
    ],
)
def test_a_text_is_cut_where_a_word_ends_and_says_so(text: str, told: str) -> None:
    assert shortened(text, 20) == told
    assert len(told) <= 20


@pytest.mark.parametrize(("text", "told"), [("it is", "it is."), ("it is.", "it is."), ("it i…", "it i…"), ("is it?", "is it?")])  # fmt: skip
def test_a_sentence_has_one_end(text: str, told: str) -> None:
    assert sentence(text) == told
