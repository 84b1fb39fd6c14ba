"""Counts, durations and ids as people read them."""

from datetime import timedelta
from uuid import UUID


def duration(length: timedelta | float | None) -> str:
    """Short enough for a table: 0.4s, 12s, 3m 5s, 2h 10m, 4d 3h."""
    if length is None:
        return ""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if abs(seconds) < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // smaller}{small_unit}"
    return f"{whole}s"


def counted(number: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, most: int) -> str:
    """Its beginning, cut where a word ends, if one ends in the second half; what is cut says so."""
    if len(text) <= most:
        return text
    whole = text.rfind(" ", most // 2, most)
    return text[: whole if whole > 0 else most - 1].rstrip(" ,.;:") + "…"


def sentence(text: str) -> str:
    """With a full stop, unless it has an end."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def short(id: UUID) -> str:
    """Ids begin with the time; their last digits tell them apart."""
    return f"…{str(id)[-6:]}"
