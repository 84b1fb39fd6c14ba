"""Instants as numbers, as SQLite keeps them: whole microseconds since 1970, never through a float."""

from datetime import UTC, datetime, timedelta

MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_number(instant: datetime) -> int:
    return (instant - _EPOCH) // MICROSECOND


def to_instant(number: int) -> datetime:
    return _EPOCH + timedelta(microseconds=number)
