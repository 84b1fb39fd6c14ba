"""How a trigger stands, in words: for the terminal and for the dashboard."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from lateshift.model.triggering.trigger import REFUSED_COUNTED, SILENCE, TriggerView
from lateshift.model.words import duration

POSITION_BRIEF = 24  # characters of a position in a table


def is_uncounted(view: TriggerView) -> bool:
    """Whether its jobs are made where things happen: nobody reads, and nobody counts them."""
    return view.kind == "event" or view.by_database


def is_stuck(view: TriggerView, now: datetime) -> bool:
    """Whether something keeps it from reading, which nobody wanted."""
    if view.paused_at is not None or view.kind == "event":
        return False
    if view.kind == "webhook":
        return view.error is not None and not view.read_now
    if view.error is not None:
        return True
    return not view.by_database and (view.looked_at is None or now - view.looked_at >= SILENCE)


def state_in_words(view: TriggerView, now: datetime) -> str:
    if view.paused_at is not None:
        return f"paused by {view.paused_by}"
    if view.kind == "event":
        return "subscribed"
    if view.by_database:
        return view.error or "the database writes its jobs"
    if view.kind == "webhook":
        taken = f"taken at {view.about}"
        return taken if view.error is None else f"{taken}, but {view.error}" if view.read_now else view.error
    if view.looked_at is None:
        return "nobody has read it yet"
    silence = now - view.looked_at
    if silence >= SILENCE:
        return f"nobody has looked for {duration(silence)}"
    if view.error is not None:
        return view.error
    last = duration(max(timedelta(0), silence))
    return "reading" if view.read_now else f"nobody reads it; the last look was {last} ago"


def position_in_words(view: TriggerView) -> str:
    """Of rows, the newest value of the cursor. What is kept of files says nothing to people."""
    position = view.position
    if view.kind == "row" and isinstance(position, dict) and "newest" in position:
        position = next(iter((position["newest"] or {}).values()), None)
    if position is None or view.kind == "file":
        return "" if is_uncounted(view) or view.kind == "webhook" else "-"
    return clipped(position if isinstance(position, str) else as_json(position), POSITION_BRIEF)


def refused_in_words(view: TriggerView) -> str:
    """What is there to be looked at, and of how many."""
    now = f"{view.refused_now:,}" + ("+" if view.refused_now >= REFUSED_COUNTED else "")
    return now if view.refused <= view.refused_now else f"{now} of {view.refused:,}"


def as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
