"""Durations and moments as people write them: 90s, 15m, 1h30m, 2d; 2026-11-30, 2026-11-30T09:00, 2026-11-30T09:00Z."""

from datetime import datetime, timedelta

import click

from lateshift.errors import OptionInvalid
from lateshift.operating import written


def length(text: str) -> timedelta:
    """The type of an option that is a duration."""
    try:
        return written.length(text)
    except OptionInvalid as error:
        raise click.BadParameter(str(error)) from None


def moment(text: str) -> datetime:
    """The type of an option that is a date, with or without a time and a zone."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no date, such as 2026-11-30, 2026-11-30T09:00 or 2026-11-30T09:00+01:00."
        ) from None
