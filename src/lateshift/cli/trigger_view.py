"""How triggers, and what they refused, are shown: in a table, whole, and as JSON."""

from base64 import b64encode
from datetime import datetime, timedelta
from typing import Any

import msgspec

from lateshift.cli.output import amount, duration, print_facts
from lateshift.model.triggering.trigger import RefusedView, TriggerView

COLUMNS = ("trigger", "kind", ">jobs", ">a minute", ">waiting", ">refused", "last", "state")
REFUSED_COLUMNS = ("id", "trigger", ">bytes", "when", "why")
SILENCE = timedelta(minutes=1)  # a reader says more often that it looks
POSITION_SHOWN = 60  # characters


def trigger_row(view: TriggerView, now: datetime) -> list[str]:
    counts = ["", "", "", ""] if view.kind == "event" else [
        amount(view.made), f"{view.rate * 60:,.1f}", "" if view.lag is None else amount(view.lag), amount(view.refused),
    ]  # fmt: skip
    return [view.name, view.kind, *counts, _ago(view.last_at, now), state_in_words(view, now)]


def state_in_words(view: TriggerView, now: datetime) -> str:
    if view.paused_at is not None:
        return f"paused by {view.paused_by}"
    if view.kind == "event":
        return "subscribed"
    if view.error is not None:
        return view.error
    if view.looked_at is None:
        return "nobody has read it yet"
    silence = now - view.looked_at
    return "reading" if silence < SILENCE else f"nobody has looked for {duration(silence)}"


def trigger_document(view: TriggerView) -> dict[str, Any]:
    return {
        "name": view.name, "app": view.app, "kind": view.kind, "about": view.about, "task": view.task,
        "position": view.position, "jobs": view.made, "repeated": view.repeated, "refused": view.refused,
        "jobs_per_second": view.rate, "waiting": view.lag, "last_at": view.last_at, "looked_at": view.looked_at,
        "error": view.error, "error_at": view.error_at, "paused": view.paused_at is not None,
        "paused_at": view.paused_at, "paused_by": view.paused_by,
    }  # fmt: skip


def print_trigger(view: TriggerView, now: datetime) -> None:
    print_facts(view.name, f"{view.kind}, {view.about}", _facts(view, now))


def _facts(view: TriggerView, now: datetime) -> list[tuple[str, str]]:
    position = "" if view.position is None else msgspec.json.encode(view.position).decode()
    error = f"{view.error}, {_ago(view.error_at, now)}" if view.error else ""
    return [
        ("state", state_in_words(view, now) if view.error is None else "trying again"), ("task", view.task),
        ("app", view.app), ("position", position if len(position) <= POSITION_SHOWN else position[: POSITION_SHOWN - 1] + "…"),
        ("jobs", f"{amount(view.made)}, {view.rate * 60:,.1f} a minute of late" if view.kind != "event" else ""),
        ("came again", amount(view.repeated) if view.repeated else ""),
        ("refused", amount(view.refused) if view.refused else ""),
        ("waiting", "" if view.lag is None else amount(view.lag)), ("last", _ago(view.last_at, now)),
        ("looked", _ago(view.looked_at, now)), ("error", error),
    ]  # fmt: skip


def refused_row(view: RefusedView, now: datetime) -> list[str]:
    return [str(view.id), view.trigger, amount(len(view.raw)), _ago(view.at, now), view.reason]


def refused_document(view: RefusedView) -> dict[str, Any]:
    return {
        "id": str(view.id), "trigger": view.trigger, "event": view.event, "at": view.at, "reason": view.reason,
        "raw_base64": b64encode(view.raw).decode(), "came_with": msgspec.json.decode(view.rest)["seen"],
    }  # fmt: skip


def _ago(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{duration(max(timedelta(0), now - moment))} ago"
