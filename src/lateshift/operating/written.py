"""What people write: lengths of time (90s, 15m, 1h30m, 2d), moments in the past (15m, 2h or 3d ago; 2026-11-30, 2026-11-30T09:00,
2026-11-30T09:00+01:00), and ids, whole or the first or last digits of one, as listings show them."""

import re
from datetime import UTC, datetime, timedelta

from lateshift.errors import OptionInvalid

LEAST_DIGITS = 4
WHOLE = 32

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(min|s|m|h|d)")
_LENGTH = re.compile(rf"(?:{_PART.pattern})+")
_DIGITS = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},{WHOLE}}}")


def length(text: str) -> timedelta:
    """Raises OptionInvalid."""
    try:
        found = _length(text)
    except OverflowError:
        raise OptionInvalid(f"{text!r} is longer than any calendar.") from None
    if found is None:
        raise OptionInvalid(f"{text!r} is no duration, such as 90s, 15m, 1h30m or 2d.")
    return found


def span(text: str) -> timedelta | None:
    """A number of seconds, or a length. None if it is neither."""
    try:
        found = _length(text)
        return timedelta(seconds=float(text.replace(" ", ""))) if found is None else found
    except (ValueError, OverflowError):
        return None


def moment(name: str, text: str | None, now: datetime) -> datetime | None:
    """A time without a zone is UTC. None stays None. Raises OptionInvalid."""
    if text is None:
        return None
    try:
        ago = _length(text)
        at = datetime.fromisoformat(text.strip()) if ago is None else now - ago
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise OptionInvalid(
            f"{name} {text!r} is no moment: say how long ago (15m, 2h, 3d), or when (2026-11-30, 2026-11-30T09:00Z).",
            name if name.isidentifier() else None,
        ) from None


def _length(text: str) -> timedelta | None:
    """None if it is none. Raises OverflowError."""
    said = text.replace(" ", "")
    if _LENGTH.fullmatch(said) is None:
        return None
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(said)))


def digits_in(text: str) -> str | None:
    """As an id is written, whole or in part; None if it is something else."""
    found = text.strip("… ").removeprefix("...").replace("-", "").lower()
    return found if _DIGITS.fullmatch(found) else None
