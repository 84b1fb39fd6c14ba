"""Moments in the past as people write them: 15m, 2h or 3d ago; 2026-11-30, 2026-11-30T09:00, 2026-11-30T09:00+01:00."""

import re
from datetime import UTC, datetime, timedelta

from lateshift.errors import OptionInvalid

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"(\d{1,6})(min|s|m|h|d)")
_AGO = re.compile(rf"(?:{_PART.pattern})+")


def span(text: str) -> timedelta | None:
    """A number of seconds, or as people write it: 90s, 15m, 1h 30m. None if it is neither."""
    said = text.replace(" ", "")
    if _AGO.fullmatch(said):
        return timedelta(seconds=sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(said)))
    try:
        return timedelta(seconds=float(said))
    except (ValueError, OverflowError):
        return None


def moment(name: str, text: str | None, now: datetime) -> datetime | None:
    """A time without a zone is UTC. None stays None. Raises OptionInvalid."""
    if text is None:
        return None
    said = text.strip().replace(" ", "") if text[:1].isdigit() else ""
    try:
        if _AGO.fullmatch(said):
            parts = _PART.findall(said)
            return now - timedelta(seconds=sum(int(number) * _UNITS[unit] for number, unit in parts))
        at = datetime.fromisoformat(text.strip())
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise OptionInvalid(
            f"{name} {text!r} is no moment: say how long ago (15m, 2h, 3d), or when (2026-11-30, 2026-11-30T09:00Z).",
            name if name.isidentifier() else None,
        ) from None
