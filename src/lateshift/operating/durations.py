"""Lengths of time as people write them: 90s, 15m, 1h30m, 2d."""

import re
from datetime import timedelta

from lateshift.errors import OptionInvalid

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(min|s|m|h|d)")


def length(text: str) -> timedelta:
    """Raises OptionInvalid."""
    said = text.replace(" ", "")
    parts = _PART.findall(said)
    if not parts or "".join(number + unit for number, unit in parts) != said:
        raise OptionInvalid(f"{text!r} is no duration, such as 90s, 15m, 1h30m or 2d.")
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        raise OptionInvalid(f"{text!r} is longer than any calendar.") from None
