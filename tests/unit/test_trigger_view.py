"""How a trigger is told to people: what is known of it now, and nothing that only was so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift.cli.trigger_view import COLUMNS, trigger_row
from lateshift.documents.trigger_words import (
    is_stuck,
    position_in_words,
    refused_in_words,
    state_in_words,
)
from lateshift.model.triggering.trigger import BY_DATABASE, REFUSED_COUNTED, TriggerView

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def ago(**length: float) -> datetime:
    return NOW - timedelta(**length)


def view(**told: Any) -> TriggerView:
    usual: dict[str, Any] = {
        "name": "orders", "app": "shop", "kind": "message", "about": "amqp://host queue orders", "task": "place", "position": None,
        "made": 7, "repeated": 0, "refused": 0, "rate": 0.0, "lag": None, "last_at": None, "looked_at": ago(seconds=5), "error": None,
        "last_error": None, "error_at": None, "paused_at": None, "paused_by": None, "refused_now": 0, "read_now": True,
    }  # fmt: skip
    return TriggerView(**usual | told)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "reading"),
        ({"looked_at": None, "read_now": False}, "nobody has read it yet"),
        ({"read_now": False}, "nobody reads it; the last look was 5.0s ago"),
        ({"error": "it does not answer"}, "it does not answer"),
        ({"error": "it does not answer", "looked_at": ago(minutes=5)}, "nobody has looked for 5m 0s"),
        ({"paused_at": ago(days=1), "paused_by": "ana", "looked_at": ago(days=1)}, "paused by ana"),
        ({"kind": "event", "looked_at": None, "read_now": False}, "subscribed"),
    ],
)
def test_the_state_is_what_is_so_now(told: dict[str, Any], words: str) -> None:
    assert state_in_words(view(**told), NOW) == words


def test_of_jobs_that_the_database_writes_nothing_is_told_that_nobody_counts() -> None:
    about = f"postgresql://host/shop table orders{BY_DATABASE}"
    written = view(kind="row", about=about, looked_at=ago(days=3), read_now=False, refused_now=2)
    row = dict(zip(COLUMNS, trigger_row(written, NOW), strict=True))
    assert row == {
        "trigger": "orders", "kind": "row", "position": "", ">jobs": "", ">a minute": "", ">waiting": "", ">refused": "2",
        "last": "", "state": "the database writes its jobs",
    }  # fmt: skip
    wrong = view(kind="row", about=about, looked_at=ago(days=3), error="there is no table orders")
    assert state_in_words(wrong, NOW) == "there is no table orders"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "-"),
        ({"kind": "file", "position": {"folder": [1, 2]}}, "-"),
        (
            {"kind": "row", "position": {"of": "t.id", "newest": {"int": 1207}, "since": {"int": 1200}}},
            "1207",
        ),
        (
            {"kind": "row", "position": {"of": "t.at", "newest": {"datetime": "2026-11-16T12:00:00"}}},
            "2026-11-16T12:00:00",
        ),
        ({"kind": "row", "position": {"of": "t.id", "newest": None, "since": None}}, "-"),
        ({"position": "x" * 100}, "x" * 23 + "…"),
        ({"kind": "event"}, ""),
    ],
)
def test_the_position_is_told_briefly(told: dict[str, Any], words: str) -> None:
    assert position_in_words(view(**told)) == words


@pytest.mark.parametrize(
    ("now", "ever", "words"),
    [(0, 0, "0"), (3, 3, "3"), (0, 3, "0 of 3"), (REFUSED_COUNTED, 5000, "1,000+ of 5,000")],
)
def test_what_was_refused_and_is_there_comes_first(now: int, ever: int, words: str) -> None:
    assert refused_in_words(view(refused_now=now, refused=ever)) == words


@pytest.mark.parametrize(
    ("told", "stuck"),
    [
        ({}, False),
        ({"looked_at": None}, True),
        ({"looked_at": ago(minutes=5)}, True),
        ({"error": "it does not answer"}, True),
        ({"error": "it does not answer", "paused_at": NOW}, False),
        ({"kind": "event", "looked_at": None}, False),
        ({"kind": "row", "about": f"a table{BY_DATABASE}", "looked_at": None}, False),
    ],
)
def test_a_trigger_is_stuck_if_something_keeps_it_from_reading(told: dict[str, Any], stuck: bool) -> None:
    assert is_stuck(view(**told), NOW) is stuck
