"""Edits of arguments: what differs, and what a job's history keeps of it."""

from datetime import UTC, datetime

import msgspec

from lateshift.model.edit import WAS_LIMIT, Changed, Edit, changes, line_of, named, written
from lateshift.model.outcome import MESSAGE_LIMIT

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_an_edit_changes_adds_and_removes() -> None:
    edit = Edit(b'{"a":1,"b":2,"c":3}', b'{"a":1,"b":4,"d":null}')

    assert changes(edit) == [Changed("b", b"2", b"4"), Changed("c", b"3", None), Changed("d", None, b"null")]


def test_the_line_names_each_change_and_keeps_old_values() -> None:
    line = line_of(Edit(b'{"b":2,"c":"x"}', b'{"b":4,"d":1}'), by="ana", attempt=3, fence=7, at=NOW)

    assert line.message == 'by ana, with other arguments: b 2 → 4, c "x" → nothing, d nothing → 1'
    assert line.was == {"b": 2, "c": "x"}


def test_large_old_values_are_kept_in_part() -> None:
    before = msgspec.json.encode({"a": "x" * 200_000, "b": "y" * 50_000})
    line = line_of(Edit(before, b"{}"), by="ana", attempt=1, fence=1, at=NOW)

    assert len(msgspec.json.encode(line)) < WAS_LIMIT + MESSAGE_LIMIT + 1000
    assert line.was is not None
    assert line.was["b"].startswith('"yyy')


def test_arguments_that_are_not_touched_stay_byte_for_byte() -> None:
    payload = b'{"big":123456789012345678901234567890,"pi":3.140,"text":"\\u00e9"}'

    assert written(named(payload)) == payload
    assert named(b"[1]") == {}
