"""Durations and moments as people write them: 90s, 15m, 1h30m, 2d; 2026-11-30, 2026-11-30T09:00, 2026-11-30T09:00Z."""

import re
from datetime import datetime, timedelta

import click

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)(min|s|m|h|d)")


def length(text: str) -> timedelta:
    """The type of an option that is a duration."""
    parts = _PART.findall(text.replace(" ", ""))
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise click.BadParameter(f"{text!r} is no duration, such as 90s, 15m, 1h30m or 2d.")
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        raise click.BadParameter(f"{text!r} is longer than any calendar.") from None


def moment(text: str) -> datetime:
    """The type of an option that is a date, with or without a time and a zone."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no date, such as 2026-11-30, 2026-11-30T09:00 or 2026-11-30T09:00+01:00."
        ) from None
