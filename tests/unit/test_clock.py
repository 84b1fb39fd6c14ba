"""Clocks that tests move."""

from datetime import UTC, datetime, timedelta, timezone

from lateshift.clock import StillClock


def test_a_still_clock_moves_only_when_it_is_moved() -> None:
    clock = StillClock()
    first = clock.now(), clock.microseconds()
    assert (clock.now(), clock.microseconds()) == first
    clock.move(hours=1)
    assert (clock.now() - first[0], clock.microseconds() - first[1]) == (timedelta(hours=1), 3_600_000_000)


def test_its_two_times_are_the_same_instant() -> None:
    clock = StillClock()
    clock.move_to(datetime(2000, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now() == datetime(2000, 1, 1, tzinfo=UTC)
    assert clock.microseconds() == 946_684_800_000_000


def test_durations_move_with_it_and_run_on() -> None:
    clock = StillClock()
    before = clock.monotonic()
    clock.move(hours=1)
    assert clock.monotonic() - before >= 3600
