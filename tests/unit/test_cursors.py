"""The values of a cursor as text: in the same order, equal where they are, and back from a position as they were."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.trigger import known_by
from lateshift.triggers.cursors import (
    earlier,
    event_of,
    is_after,
    is_ordered,
    latest,
    overlap,
    read,
    sortable,
    written,
)
from lateshift.triggers.unreadable import Unreadable

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-11))])
WIDE = datetime(2, 1, 1), datetime(9998, 1, 1)  # noqa: DTZ001 - whatever the zone
NUMBERS = st.one_of(
    st.integers(), st.integers(-(2**63), 2**63 - 1), st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False), st.integers(-20, 20), st.decimals(-3, 3, places=2),
)  # fmt: skip
AWARE = st.datetimes(*WIDE, timezones=ZONES)
NAIVE = st.datetimes(*WIDE)
TEXT = st.text()
KEYS = st.one_of(st.integers(), st.text())
SAME_KIND = st.one_of(
    *(st.tuples(kind, kind) for kind in (NUMBERS, AWARE, NAIVE, st.dates(), TEXT, st.uuids(), st.binary()))
)


def compared(one: Any, other: Any) -> int:
    if isinstance(one, float):
        one = Decimal(repr(one))
    if isinstance(other, float):
        other = Decimal(repr(other))
    return int(one > other) - int(one < other)


def by_bytes(one: str, other: str) -> int:
    return (one.encode() > other.encode()) - (one.encode() < other.encode())


@given(SAME_KIND)
@example((-5, Decimal("-5.5")))
@example((Decimal("-5.5"), Decimal("-5.55")))
@example((Decimal("5E+3"), 5000))
@example((Decimal("-0"), 0))
@example(("a", "a b"))
@example(("a\0", "a!"))
def test_texts_sort_as_the_values_do(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert by_bytes(sortable(one), sortable(other)) == compared(one, other)


@given(SAME_KIND, KEYS, KEYS)
def test_events_sort_by_the_cursor_whatever_the_keys(pair: tuple[Any, Any], key: Any, other_key: Any) -> None:
    one, other = pair
    order = compared(one, other)
    events = known_by(event_of(one, key)), known_by(event_of(other, other_key))
    if order and all(len(event) < 900 for event in events):
        assert by_bytes(*events) == order
    if not order:
        assert (events[0] == events[1]) == (key == other_key)


@given(SAME_KIND, KEYS)
def test_what_is_forgotten_before_a_value_is_what_lies_before_it(pair: tuple[Any, Any], key: Any) -> None:
    """The rule of Rows: events before the first 200 characters of the floor's text go."""
    value, floor = pair
    event = known_by(event_of(value, key))
    if event.encode() < sortable(floor)[:200].encode():
        assert compared(value, floor) < 0


@given(st.one_of(NUMBERS, AWARE, NAIVE, st.dates(), TEXT, st.uuids(), st.binary(), st.none()))
def test_a_position_is_read_as_it_was_written(value: Any) -> None:
    stood = read("orders.id", written("orders.id", value, None))
    assert stood == (value, None)
    assert type(stood[0]) is type(value)


@pytest.mark.parametrize(
    "position",
    [b"", b"{}", b"7", b'{"of":"orders.id","newest":{"x":1},"since":null}', written("orders.at", 1, 1)],
)
def test_a_position_of_something_else_is_none(position: bytes) -> None:
    assert read("orders.id", position) is None


def test_a_position_is_that_of_one_database_and_an_old_one_of_any() -> None:
    position = written("orders.id", 7, 5, database="postgresql shop")
    assert read("orders.id", position, database="postgresql shop") == (7, 5)
    assert read("orders.id", position, database="postgresql other") is None
    old = b'{"of":"orders.id","newest":{"int":7},"since":{"int":5}}'
    assert read("orders.id", old, database="postgresql other") == (7, 5)


NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("like", "most"),
    [
        (datetime(2999, 1, 1, tzinfo=UTC), NOW + MINUTE),
        (datetime(2999, 1, 1), datetime(2026, 5, 1, 14, 1)),  # noqa: DTZ001 - of the zone
        (date(2999, 1, 1), date(2026, 5, 1)),
        ("2999-01-01 00:00:00", "2026-05-01 14:01:00"),
        ("2999-01-01T00:00:00.5", "2026-05-01T14:01:00"),
        ("no time", "2026-05-01 14:01:00"),
        (Unreadable("timestamptz", "infinity", ""), NOW + MINUTE),
        (Unreadable("timestamp", "infinity", ""), datetime(2026, 5, 1, 14, 1)),  # noqa: DTZ001
        (Unreadable("date", "infinity", ""), date(2026, 5, 1)),
        (2**62, None),
        (UUID(int=1), None),
    ],
)
def test_the_latest_that_a_cursor_can_be_is_of_its_kind(like: Any, most: Any) -> None:
    zone = timedelta(hours=2)
    assert latest(like, NOW, zone, MINUTE) == most
    assert latest(like, NOW.astimezone(timezone(timedelta(hours=-11))), zone, MINUTE) == most
    if most is not None:
        assert is_after(like, most)
        assert latest(like, NOW, zone, timedelta.max) is not None


@given(AWARE, KEYS)
def test_the_receipt_of_a_time_that_python_has_none_for_outlasts_all_others(
    value: datetime, key: Any
) -> None:
    for text in ("infinity", "-infinity", "20000-01-01 00:00:00+00", "0044-03-15 00:00:00+00 BC"):
        event = event_of(Unreadable("timestamptz", text, ""), key)
        assert event > event_of(value, key)
    assert not is_after(Unreadable("timestamptz", "0044-03-15 00:00:00+00 BC", ""), value)


@given(st.one_of(NUMBERS, AWARE, NAIVE, st.dates()))
def test_a_step_back_is_not_after_the_value(value: Any) -> None:
    back = earlier(value, overlap(value, None, time=False))
    assert compared(back, value) <= 0
    assert type(back) is type(value)


def test_a_step_back_takes_the_overlap_away() -> None:
    assert earlier(5000, 1000) == 4000
    assert earlier(Decimal("12345678901234567890123456789012345678.5"), 1) == Decimal(
        "12345678901234567890123456789012345677.5"
    )
    minute = timedelta(minutes=1)
    assert earlier(datetime(2030, 1, 1, tzinfo=UTC), minute) == datetime(2029, 12, 31, 23, 59, tzinfo=UTC)
    assert earlier(date(2030, 1, 1), minute) == date(2029, 12, 31)
    assert earlier(datetime.min.replace(tzinfo=UTC), minute) == datetime.min.replace(tzinfo=UTC)
    assert earlier("2030-01-01 00:00:30", minute) == "2029-12-31 23:59:30"
    assert earlier("2030-01-01T00:00:30.123456", minute) == "2029-12-31T23:59:30"
    assert earlier("2030-01-01", minute) == "2029-12-31"
    assert earlier("abc", None) == "abc"


def test_the_overlap_is_of_the_cursors_kind() -> None:
    assert overlap(1, None, time=False) == 1000
    assert overlap(date(2030, 1, 1), None, time=False) == timedelta(seconds=60)
    assert overlap("2030-01-01", None, time=True) == timedelta(seconds=60)
    assert overlap("01J", None, time=False) is None
    with pytest.raises(TriggerInvalid, match="behind is a number"):
        overlap(1, timedelta(seconds=1), time=False)
    with pytest.raises(TriggerInvalid, match="behind is a timedelta"):
        overlap(datetime(2030, 1, 1, tzinfo=UTC), 5, time=False)
    with pytest.raises(TriggerInvalid, match="leave behind= out"):
        overlap(UUID(int=1), 5, time=False)


@pytest.mark.parametrize("value", [True, [1], Decimal("NaN"), float("inf"), {"a": 1}])
def test_what_cannot_be_a_cursor_is_refused_by_what_it_is(value: Any) -> None:
    with pytest.raises(TriggerInvalid, match="the cursor holds"):
        sortable(value)


def test_only_what_every_database_sorts_alike_is_ordered() -> None:
    assert [is_ordered(value) for value in (1, 1.5, Decimal(1), date(2030, 1, 1), "a", UUID(int=1), b"a")] == [
        *[True] * 4, *[False] * 3,
    ]  # fmt: skip
