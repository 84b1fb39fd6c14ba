"""How triggers, and what they refused, are shown: in a table, and whole."""

from datetime import datetime, timedelta

from lateshift.cli.output import amount, duration, print_facts, short
from lateshift.documents.trigger_words import (
    as_json,
    clipped,
    is_uncounted,
    position_in_words,
    refused_in_words,
    state_in_words,
)
from lateshift.model.triggering.trigger import RefusedView, TriggerView

COLUMNS = (
    "trigger", "kind", "position", ">jobs", ">a minute", ">waiting", ">refused", "last", "state",
)  # fmt: skip
REFUSED_COLUMNS = ("id", "trigger", ">bytes", "when", "why")
POSITION_SHOWN = 60  # characters


def trigger_row(view: TriggerView, now: datetime) -> list[str]:
    counts = ["", "", ""] if is_uncounted(view) else [
        amount(view.made), f"{view.rate * 60:,.1f}", "" if view.lag is None else amount(view.lag),
    ]  # fmt: skip
    refused = "" if view.kind == "event" else refused_in_words(view)
    last = "" if is_uncounted(view) else _ago(view.last_at, now)
    return [
        view.name, view.kind, position_in_words(view), *counts, refused, last, state_in_words(view, now),
    ]  # fmt: skip


def print_trigger(view: TriggerView, now: datetime) -> None:
    print_facts(view.name, f"{view.kind}, {view.about}", _facts(view, now))


def _facts(view: TriggerView, now: datetime) -> list[tuple[str, str]]:
    counted = not is_uncounted(view)
    state = state_in_words(view, now)
    return [
        ("state", "trying again" if state == view.error else state), ("task", view.task), ("app", view.app),
        ("position", "" if view.position is None else clipped(as_json(view.position), POSITION_SHOWN)),
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
        since = (
            f"; for {duration(now - view.failing_since)}"
            if view.failing_since is not None and view.failing_since != view.error_at
            else ""
        )
        return [("error", f"{view.error.rstrip('.')}, {when}{since}")]
    return [("last error", f"{view.last_error.rstrip('.')}, {when}; all was well since")]


def refused_row(view: RefusedView, now: datetime) -> list[str]:
    return [short(view.id), view.trigger, amount(len(view.raw)), _ago(view.at, now), view.reason]


def _ago(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{duration(max(timedelta(0), now - moment))} ago"
