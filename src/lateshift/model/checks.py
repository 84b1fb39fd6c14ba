"""What options of every kind must be: checked where they are given, so that a wrong one is named at once."""

from datetime import timedelta
from typing import Any

from lateshift.errors import OptionInvalid
from lateshift.model.outcome import plain
from lateshift.model.retry import LONGEST_DELAY


def duration(name: str, value: Any) -> timedelta:
    """A timedelta of at most LONGEST_DELAY, so that no date runs over."""
    if not isinstance(value, timedelta):
        raise OptionInvalid(
            f"{name} is a timedelta, such as timedelta(seconds=10), not {value!r}.", _option(name)
        )
    if value > LONGEST_DELAY:
        raise OptionInvalid(
            f"{name} must be at most {LONGEST_DELAY.days:,} days, not {value}.", _option(name)
        )
    return value


def text(name: str, value: Any, limit: int) -> str:
    """Some characters, all of which both stores can keep."""
    if not isinstance(value, str):
        raise OptionInvalid(f"{name} is text, not {value!r}.", _option(name))
    if not 0 < len(value) <= limit:
        raise OptionInvalid(f"{name} must have 1 to {limit} characters, not {len(value)}.", _option(name))
    if plain(value) != value:
        raise OptionInvalid(f"{name} {value!r} has characters that cannot be stored.", _option(name))
    return value


def line(name: str, value: Any, limit: int) -> str:
    """Text that a path and a table can have in it: nothing that breaks or turns a line."""
    checked = text(name, value, limit)
    if not checked.isprintable():
        raise OptionInvalid(f"{name} {value!r} is one line of printable characters.", _option(name))
    return checked


def _option(name: str) -> str | None:
    """The name of an option, and not words about something."""
    return name if name.isidentifier() else None
