"""How runs of workflows are shown: in a table, with their steps as a tree, and as JSON."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from lateshift.cli.output import counted, duration, instant, readable, short
from lateshift.model.explaining.words import one_line
from lateshift.model.job import JobView, State
from lateshift.model.workflow.run import NEVER, Phase, RunView, Signal
from lateshift.model.workflow.step import Kind, StepError, StepState, StepView, Undo, error_of, shown_path

COLUMNS = ("run", "workflow", "state", ">begun", "what")
STATES = (
    "ready", "running", "waiting", "blocked", "held", "cancelling", "undoing", "completed", "cancelled", "undone", "failed",
    "compensation_failed", "worker_lost", "undecodable",
)  # fmt: skip
_WAITING = {
    State.SCHEDULED: "waiting",
    State.READY: "ready",
    State.RUNNING: "running",
    State.BLOCKED: "blocked",
}
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def state_of(view: RunView) -> str:
    """What becomes of it, or how it ended: one of STATES, or the reason of a dead letter."""
    if view.state is State.DEAD:
        return view.reason or "dead"
    if view.state.settled:
        return view.state.label
    if view.run.phase is Phase.UNDOING:
        return "undoing"
    if view.run.cancel_by is not None:
        return "cancelling"
    return "held" if view.run.phase is Phase.HELD else _WAITING[view.state]


def in_words(state: str) -> str:
    return state.replace("_", " ")


def waits_for(view: RunView) -> str | None:
    """Only one that sleeps waits for anything; what is noted of another is past."""
    return (view.run.waits_for or None) if view.state is State.SCHEDULED else None


def next_look(view: RunView, now: datetime) -> datetime | None:
    """None if it has ended, or waits for somebody: that it is looked at in ten years all the same is no time to tell."""
    return view.due_at if view.state is State.SCHEDULED and view.due_at - now < NEVER / 2 else None


def short_ids(text: str) -> str:
    return _ID.sub(lambda found: short(UUID(found.group())), text)


def run_row(view: RunView, now: datetime) -> list[str]:
    run, begun = view.run, duration(max(timedelta(0), now - view.run.started_at))
    return [short(run.id), run.name, in_words(state_of(view)), f"{begun} ago", _what(view)]


def _what(view: RunView) -> str:
    """What it says of itself; then what keeps it, or how that came."""
    waits = waits_for(view)
    if view.run.phase is Phase.HELD and not view.state.settled:
        why = view.run.why or "an operator wants it so"
    else:
        why = f"waits for {short_ids(waits)}" if waits else view.run.why or ""
    return "; ".join(one_line(part) for part in (view.run.status, why) if part)


# -- for programs ----------------------------------------------------------------------------------------------------


def run_document(view: RunView, now: datetime) -> dict[str, Any]:
    run = view.run
    return {
        "id": str(run.id), "workflow": run.name, "version": run.version, "state": state_of(view), "phase": run.phase.label,
        "status": run.status, "why": run.why or None, "waits_for": waits_for(view), "queue": view.queue,
        "parent": None if view.parent is None else str(view.parent), "cancelled_by": run.cancel_by,
        "began_at": run.started_at, "next_look_at": next_look(view, now), "ended_at": view.settled_at,
    }  # fmt: skip


def whole_document(view: RunView, job: JobView, signals: Sequence[Signal], now: datetime) -> dict[str, Any]:
    return run_document(view, now) | {
        "arguments": readable(job.payload), "result": readable(job.result),
        "signals": [{"name": signal.name, "data": readable(signal.data)} for signal in signals],
        "steps": [step_document(step) for step in view.steps],
    }  # fmt: skip


def step_document(step: StepView) -> dict[str, Any]:
    return {
        "step": shown_path(step.path), "kind": step.kind.label, "name": step.name, "state": step.state.label,
        "arguments": readable(step.payload), "mended": step.mended, "result": readable(step.result),
        "error": _error_document(error_of(step.error)), "failures": step.failures, "place": step.place,
        "job": None if step.job is None else str(step.job), "began_at": step.started_at, "ended_at": step.ended_at,
        "due_at": step.due_at, "complete_by": step.complete_by, "undo": step.undo, "undo_state": step.undo_state.label or None,
        "undo_error": _error_document(error_of(step.undo_error)), "undo_failures": step.undo_failures,
        "undo_job": None if step.undo_job is None else str(step.undo_job), "undone_at": step.undone_at,
    }  # fmt: skip


def _error_document(error: StepError | None) -> dict[str, Any] | None:
    return None if error is None else {name: getattr(error, name) for name in error.__struct_fields__}


# -- one run ---------------------------------------------------------------------------------------------------------


def facts(
    view: RunView, job: JobView, signals: Sequence[Signal], now: datetime, *, of_batch: bool
) -> Iterator[tuple[str, str]]:
    run = view.run
    yield "run", str(run.id)
    yield "status", run.status or ""
    yield "why", run.why or ""
    yield "cancel", _cancel(view)
    yield "waits for", waits_for(view) or ""
    yield "next look", instant(next_look(view, now))
    yield "told", _told(signals)
    yield "version", run.version
    yield "queue", view.queue
    yield "batch" if of_batch else "parent", str(view.parent or "")
    yield "arguments", _as_json(job.payload)
    yield "result", "" if readable(job.result) is None else _as_json(job.result)
    yield "began", instant(run.started_at)
    ended = view.settled_at
    yield "ended", "" if ended is None else f"{instant(ended)}, after {duration(ended - run.started_at)}"


def _cancel(view: RunView) -> str:
    by = view.run.cancel_by
    return "" if by is None or view.state.settled else f"asked for by {by}; what was done is undone first"


def _told(signals: Sequence[Signal]) -> str:
    names = list(dict.fromkeys(signal.name for signal in signals))
    return f"{', '.join(names)}: not taken yet" if names else ""


def remedies(view: RunView) -> Iterator[str]:
    """Commands for a run that waits for an operator."""
    id, state = short(view.run.id), state_of(view)
    held = [step for step in view.steps if step.state is StepState.HELD]
    if state == "held" or (held and state == "waiting"):
        yield f"Go on: lateshift workflows resume {id}"
        if held:
            path = shown_path(held[0].path)
            yield f"Go on with other arguments: lateshift workflows resubmit-step {id} {path} --args JSON"
        yield f"Undo what was done: lateshift workflows undo {id} --why TEXT"
    elif state in ("compensation_failed", "worker_lost"):
        yield f"Try again: lateshift workflows resume {id}"


# -- a step ----------------------------------------------------------------------------------------------------------

MARKS = {StepState.RUNNING: "▸", StepState.COMPLETED: "✓", StepState.FAILED: "✗", StepState.HELD: "!"}
STEP_STYLES = {
    StepState.RUNNING: "cyan", StepState.COMPLETED: "green", StepState.FAILED: "bold red", StepState.HELD: "bold yellow",
}  # fmt: skip
UNDO_STYLES = {Undo.RUNNING: "cyan", Undo.DONE: "green", Undo.FAILED: "bold red"}
ARGUMENTS_SHOWN = 40  # characters
_CALLED = {
    Kind.CHILD: "child {}", Kind.SLEEP: "sleep", Kind.SIGNAL: "wait for {}", Kind.NOW: "now", Kind.PATCH: "patch {}",
    Kind.EMIT: "emit {}",
}  # fmt: skip


def step_state(step: StepView) -> str:
    waits = step.state is StepState.RUNNING and step.kind in (Kind.SLEEP, Kind.SIGNAL)
    return "waiting" if waits else step.state.label


def called(step: StepView) -> str:
    """What it does, with its arguments, as far as there is room."""
    name = _CALLED.get(step.kind, "{}").format(step.name)
    if step.kind not in (Kind.CALL, Kind.JOB, Kind.CHILD):
        return name
    return f"{name}({_clipped(arguments_in_words(step), ARGUMENTS_SHOWN)})"


def arguments_in_words(step: StepView) -> str:
    """As in a call: 7, "EU", card="new"."""
    if step.payload is None:
        return "…"
    found = msgspec.json.decode(step.payload)
    if step.kind is Kind.CALL and not step.mended:
        parts = [_plain(value) for value in found["args"]]
        found = found.get("kwargs", {})
    else:
        parts = []
    if not isinstance(found, dict):
        return _plain(found)
    return ", ".join(parts + [f"{name}={_plain(value)}" for name, value in found.items()])


def went(step: StepView, began: datetime, *, over: bool) -> str:
    """When it began, how long it took, and what else there is to know."""
    parts = [_time(step.started_at, began)]
    if step.ended_at is not None:
        parts.append(duration(step.ended_at - step.started_at))
    elif step.state is StepState.RUNNING and not over:
        parts += [f"until {_time(step.due_at, began)}"] if step.due_at is not None else []
        here = step.complete_by is not None and step.kind is Kind.CALL  # a job has a complete-by of its own
        parts += [f"complete by {_time(step.complete_by, began)}"] if here and step.complete_by else []
    parts += [counted(step.failures, "failure")] if step.failures else []
    parts += ["arguments of an operator"] if step.mended else []
    parts += [f"job {short(step.job)}"] if step.job is not None else []
    return ", ".join(parts)


def undone(step: StepView, began: datetime) -> str:
    """How far it is undone; empty if nobody has begun."""
    if step.undo_state is Undo.NOT_BEGUN:
        return ""
    said = f"{step.undo_state.label} by {step.undo}"
    said += f" at {_time(step.undone_at, began)}" if step.undone_at is not None else ""
    said += f", {counted(step.undo_failures, 'failure')}" if step.undo_failures else ""
    return said + (f", job {short(step.undo_job)}" if step.undo_job is not None else "")


def _time(moment: datetime, began: datetime) -> str:
    """With the day if that is another than that on which the run began."""
    there = moment.astimezone()
    same = there.date() == began.astimezone().date()
    return there.strftime("%H:%M:%S" if same else "%Y-%m-%d %H:%M:%S")


def _as_json(encoded: bytes | None) -> str:
    return "" if encoded is None else msgspec.json.format(encoded, indent=0).decode()


def _plain(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
