"""Counts, durations and ids as people read them."""

from datetime import timedelta
from uuid import UUID

_UNITS = ((60, "m", 1, "s", 3600), (3600, "h", 60, "m", 86400), (86400, "d", 3600, "h", 0))


def in_two(seconds: float) -> tuple[int, str, int, str] | None:
    """A minute or more in two units next to one another, to the nearest of the smaller one: 119.7 seconds are 2 m 0 s, and a second less than two
    days 2 d 0 h. None for less. Whoever tells a length of time goes by this, so that it is nowhere told as another one."""
    if round(seconds) < 60:
        return None
    size, unit, smaller, small_unit, _ = next(
        it for it in _UNITS if not it[4] or round(seconds / it[2]) * it[2] < it[4]
    )
    whole = round(seconds / smaller) * smaller
    return whole // size, unit, whole % size // smaller, small_unit


def duration(length: timedelta | float | None) -> str:
    """Short enough for a table: 0.4s, 12s, 3m 5s, 2h 10m, 4d 3h."""
    if length is None:
        return ""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if abs(seconds) < 10:
        return f"{seconds:.1f}s"
    if (two := in_two(seconds)) is None:
        return f"{round(seconds)}s"
    many, unit, few, small_unit = two
    return f"{many}{unit} {few}{small_unit}"


def counted(number: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, most: int) -> str:
    """Its beginning, cut where a word ends, if one ends in the second half; what is cut says so."""
    if len(text) <= most:
        return text
    whole = text.rfind(" ", most // 2, most)
    return text[: whole if whole > 0 else most - 1].rstrip(" ,.;:…") + "…"


def sentence(text: str) -> str:
    """With a full stop, unless it has an end."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def short(id: UUID) -> str:
    """Ids begin with the time; their last digits tell them apart."""
    return f"…{str(id)[-6:]}"
