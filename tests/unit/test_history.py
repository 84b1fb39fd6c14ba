"""The record of attempts: bounded, and readable by whoever comes later."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.model.history import KEPT, append, read
from lateshift.model.job import AttemptRecord

NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, UTC)


def record(attempt: int, message: str | None = None) -> AttemptRecord:
    return AttemptRecord(attempt=attempt, fence=attempt, at=NOW, reason="failed", message=message)


def test_no_history_is_an_empty_one() -> None:
    assert read(None) == []
    assert read(b"") == []
    assert read(b"[]") == []


def test_what_was_appended_is_read_as_it_was() -> None:
    full = AttemptRecord(
        attempt=2, fence=3, at=NOW, reason="failed", ran_for=0.5, error="ValueError", message="né\n\0", traceback="…",
        member="w1",
    )  # fmt: skip

    assert read(append(append(None, record(1)), full)) == [record(1), full]


@given(count=st.integers(0, 40))
def test_the_first_and_the_latest_are_kept(count: int) -> None:
    story = None
    for attempt in range(1, count + 1):
        story = append(story, record(attempt))

    kept = [entry.attempt for entry in read(story)]
    everything = list(range(1, count + 1))
    assert kept == (everything if count <= KEPT else [1, *everything[-KEPT + 1 :]])


def test_old_arguments_are_kept_longer_than_attempts() -> None:
    edited = AttemptRecord(attempt=2, fence=2, at=NOW, reason="resubmitted", was={"width": 1})
    story = append(append(None, record(1)), edited)
    for attempt in range(3, 40):
        story = append(story, record(attempt))

    kept = read(story)
    assert (len(kept), kept[0].attempt, kept[1], kept[-1].attempt) == (KEPT, 1, edited, 39)


def test_attempts_are_kept_longer_than_lines_that_say_only_that_somebody_resubmitted_the_job() -> None:
    story = None
    for attempt in range(1, 6):
        story = append(story, record(attempt))
    for number in range(12):
        story = append(
            story,
            AttemptRecord(attempt=5, fence=5, at=NOW, reason="resubmitted", message=f"by ann, {number}"),
        )

    kept = read(story)
    assert len(kept) == KEPT
    assert [entry.attempt for entry in kept if entry.reason == "failed"] == [1, 2, 3, 4, 5]
    assert kept[-1].message == "by ann, 11"


def test_a_history_of_nothing_but_edits_is_bounded() -> None:
    story = None
    for attempt in range(1, 40):
        story = append(story, AttemptRecord(attempt=attempt, fence=1, at=NOW, reason="resubmitted", was={}))

    assert [entry.attempt for entry in read(story)] == [1, *range(31, 40)]


def test_a_field_that_a_later_version_added_does_not_hinder_reading() -> None:
    text = b'[{"attempt":1,"fence":1,"at":"2026-01-01T00:00:00Z","reason":"failed","colour":"red"}]'

    assert read(text)[0].reason == "failed"


@pytest.mark.usefixtures("usual_recursion")
@pytest.mark.parametrize("left", ["[", '{"\\"}]":', '["]",['])
def test_nothing_is_lost_of_a_history_with_old_arguments_that_no_decoder_follows(left: str) -> None:
    right = {"[": "]", '{"\\"}]":': "}", '["]",[': "]]"}[left]
    deep = left * 5_000 + "1" + right * 5_000
    was = f'{{"tree":{deep},"width":[1,{{"a":"}}\\"]"}}]}}'
    edited = f'{{"attempt":1,"fence":2,"at":"2026-01-01T12:00:00Z","reason":"resubmitted","was":{was}}}'
    story = append(None, record(1, '["\\'))[:-1] + f",{edited}]".encode()

    first, second, last = read(append(story, record(3)))

    assert (first, last) == (record(1, '["\\'), record(3))
    assert (second.fence, second.was) == (2, {"tree": deep, "width": [1, {"a": '}"]'}]})
    assert read(msgspec.json.encode([first, second, last])) == [first, second, last]
