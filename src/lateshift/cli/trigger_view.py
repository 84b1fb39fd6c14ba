"""How triggers, and what they refused, are shown: in a table, whole, and as JSON."""

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Any

import msgspec

from lateshift.cli.output import amount, duration, print_facts, short
from lateshift.model.triggering.trigger import REFUSED_COUNTED, SILENCE, RefusedView, TriggerView

COLUMNS = (
    "trigger", "kind", "position", ">jobs", ">a minute", ">waiting", ">refused", "last", "state",
)  # fmt: skip
REFUSED_COLUMNS = ("id", "trigger", ">bytes", "when", "why")
POSITION_SHOWN = 60  # characters, and in a table:
POSITION_BRIEF = 24


def trigger_row(view: TriggerView, now: datetime) -> list[str]:
    counts = ["", "", ""] if is_uncounted(view) else [
        amount(view.made), f"{view.rate * 60:,.1f}", "" if view.lag is None else amount(view.lag),
    ]  # fmt: skip
    refused = "" if view.kind == "event" else refused_in_words(view)
    last = "" if is_uncounted(view) else _ago(view.last_at, now)
    return [
        view.name, view.kind, position_in_words(view), *counts, refused, last, state_in_words(view, now),
    ]  # fmt: skip


def is_uncounted(view: TriggerView) -> bool:
    """Whether its jobs are made where things happen: nobody reads, and nobody counts them."""
    return view.kind == "event" or view.by_database


def state_in_words(view: TriggerView, now: datetime) -> str:
    if view.paused_at is not None:
        return f"paused by {view.paused_by}"
    if view.kind == "event":
        return "subscribed"
    if view.by_database:
        return view.error or "the database writes its jobs"
    if view.looked_at is None:
        return "nobody has read it yet"
    silence = now - view.looked_at
    if silence >= SILENCE:
        return f"nobody has looked for {duration(silence)}"
    if view.error is not None:
        return view.error
    return "reading" if view.read_now else f"nobody reads it; the last look was {_ago(view.looked_at, now)}"


def position_in_words(view: TriggerView) -> str:
    """Of rows, the newest value of the cursor. What is kept of files says nothing to people."""
    position = view.position
    if view.kind == "row" and isinstance(position, dict) and "newest" in position:
        position = next(iter((position["newest"] or {}).values()), None)
    if position is None or view.kind == "file":
        return "" if is_uncounted(view) else "-"
    return _clipped(position if isinstance(position, str) else _json(position), POSITION_BRIEF)


def refused_in_words(view: TriggerView) -> str:
    """What is there to be looked at, and of how many."""
    now = amount(view.refused_now) + ("+" if view.refused_now >= REFUSED_COUNTED else "")
    return now if view.refused <= view.refused_now else f"{now} of {amount(view.refused)}"


def trigger_document(view: TriggerView) -> dict[str, Any]:
    return {
        "name": view.name, "app": view.app, "kind": view.kind, "about": view.about, "task": view.task,
        "position": view.position, "jobs": view.made, "repeated": view.repeated, "refused": view.refused,
        "refused_now": view.refused_now, "jobs_per_second": view.rate, "waiting": view.lag, "last_at": view.last_at,
        "looked_at": view.looked_at, "read_now": view.read_now, "by_database": view.by_database, "error": view.error,
        "last_error": view.last_error, "error_at": view.error_at, "paused": view.paused_at is not None,
        "paused_at": view.paused_at, "paused_by": view.paused_by,
    }  # fmt: skip


def print_trigger(view: TriggerView, now: datetime) -> None:
    print_facts(view.name, f"{view.kind}, {view.about}", _facts(view, now))


def _facts(view: TriggerView, now: datetime) -> list[tuple[str, str]]:
    counted = not is_uncounted(view)
    state = state_in_words(view, now)
    return [
        ("state", "trying again" if state == view.error else state), ("task", view.task), ("app", view.app),
        ("position", "" if view.position is None else _clipped(_json(view.position), POSITION_SHOWN)),
        ("jobs", f"{amount(view.made)}, {view.rate * 60:,.1f} a minute of late" if counted else ""),
        ("came again", amount(view.repeated) if view.repeated else ""),
        ("refused", refused_in_words(view) if view.refused or view.refused_now else ""),
        ("waiting", "" if view.lag is None else amount(view.lag)), ("last", _ago(view.last_at, now)),
        ("looked", _ago(view.looked_at, now) if counted else ""), *_error(view, now),
    ]  # fmt: skip


def _error(view: TriggerView, now: datetime) -> list[tuple[str, str]]:
    if view.last_error is None:
        return []
    when = _ago(view.error_at, now)
    if view.error is not None:
        return [("error", f"{view.error.rstrip('.')}, {when}")]
    return [("last error", f"{view.last_error.rstrip('.')}, {when}; all was well since")]


def refused_row(view: RefusedView, now: datetime) -> list[str]:
    return [short(view.id), view.trigger, amount(len(view.raw)), _ago(view.at, now), view.reason]


def refused_document(view: RefusedView) -> dict[str, Any]:
    return {
        "id": str(view.id), "trigger": view.trigger, "event": view.event, "at": view.at, "reason": view.reason,
        "raw_base64": b64encode(view.raw).decode(), "came_with": msgspec.json.decode(view.rest)["seen"],
    }  # fmt: skip


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _ago(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{duration(max(timedelta(0), now - moment))} ago"
