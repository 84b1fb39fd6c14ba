"""How runs of workflows are shown: in a table, and with their steps as a tree."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import Any
from uuid import UUID

import msgspec

from lateshift.cli.output import counted, duration, instant, short
from lateshift.documents.reading import in_one_line, readable
from lateshift.documents.workflows import in_words, next_look, state_of, waits_for
from lateshift.model.depth import shown
from lateshift.model.explaining.words import one_line
from lateshift.model.job import JobView
from lateshift.model.workflow import holding
from lateshift.model.workflow.holding import holds
from lateshift.model.workflow.run import RunRow, RunView, Signal
from lateshift.model.workflow.step import Kind, StepState, StepView, Undo, shown_path
from lateshift.operating.runs import goes_on

COLUMNS = ("run", "workflow", "state", ">begun", "what")
_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def short_ids(text: str) -> str:
    return _ID.sub(lambda found: short(UUID(found.group())), text)


def run_row(view: RunView, now: datetime) -> list[str]:
    run, begun = view.run, duration(max(timedelta(0), now - view.run.started_at))
    return [short(run.id), run.name, in_words(state_of(view)), f"{begun} ago", _what(view)]


def _what(view: RunView) -> str:
    """What it says of itself; then what keeps it, or how that came."""
    waits = waits_for(view)
    if view.run.phase.is_held and not view.state.settled:
        why = view.run.why or "an operator wants it so"
    else:
        why = f"waits for {short_ids(waits)}" if waits else view.run.why or ""
    return "; ".join(one_line(part) for part in (_status(view), why) if part)


def _status(view: RunView) -> str:
    """Of one that has ended it would tell what it was at before."""
    return "" if view.state.settled else view.run.status or ""


# -- one run ---------------------------------------------------------------------------------------------------------


def facts(
    view: RunView, job: JobView, signals: Sequence[Signal], now: datetime, *, of_batch: bool
) -> Iterator[tuple[str, str]]:
    run = view.run
    yield "run", str(run.id)
    yield "status", _status(view)
    yield "why", run.why or ""
    yield "cancel", _cancel(view)
    yield "waits for", waits_for(view) or ""
    yield "next look", instant(next_look(view, now))
    yield "told", _told(signals)
    yield "version", run.version
    yield "queue", view.queue
    yield "batch" if of_batch else "parent", str(view.parent or "")
    yield "arguments", in_one_line(job.payload)
    yield "result", "" if readable(job.result) is None else in_one_line(job.result)
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
        if view.run.phase.is_undone or view.run.cancel_by is not None:
            yield f"Undo it, with code that fits: lateshift workflows resume {id}"
            return
        found = holding.held(view.run.phase, view.run.why)
        if found is not None and found.cause is holding.Cause.SIGNAL:
            yield f"Tell it once more: lateshift workflows signal {id} {quote(found.signal)} --data JSON"
        yield f"Go on{', then' if found is not None and found.cause is holding.Cause.SIGNAL else ''}: lateshift workflows resume {id}"
        mendable = [step for step in held if step.kind is not Kind.FIXED]
        if mendable:
            step, path = mendable[0], shown_path(mendable[0].path)
            what, form = (
                ("another list", "'[…]'")
                if step.kind is Kind.GATHER
                else ("other arguments, checked first", "JSON --app PROGRAM")
            )
            yield f"Go on with {what}: lateshift workflows resubmit-step {id} {path} --args {form}"
        yield f"Undo what was done: lateshift workflows undo {id} --why TEXT"
    elif goes_on(view):
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
    Kind.EMIT: "emit {}", Kind.FIXED: "{}",
}  # fmt: skip


def step_state(step: StepView, run: RunRow) -> str:
    if holds(run, step):
        return StepState.HELD.label
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
    found = shown(step.payload)
    if step.kind is Kind.CALL and not step.mended and isinstance(found, dict):
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
        parts += [f"complete by {_time(step.complete_by, began)}"] if step.complete_by is not None else []
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


def _plain(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
