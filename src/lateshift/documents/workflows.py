"""A run of a workflow, and its steps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.documents.reading import readable
from lateshift.model.job import JobView, State
from lateshift.model.sealed import hidden, masked_view
from lateshift.model.workflow.run import NEVER, Phase, RunRow, RunView, Signal
from lateshift.model.workflow.step import StepError, StepView, error_of, shown_path

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


class RunDocument(Struct, frozen=True, kw_only=True):
    """A run in a listing. `status`: what it says of itself, until it has ended."""

    id: UUID
    workflow: str
    version: str
    state: str
    phase: str
    status: str | None
    why: str | None
    waits_for: str | None
    queue: str
    parent: UUID | None
    cancelled_by: str | None
    began_at: datetime
    next_look_at: datetime | None
    ended_at: datetime | None


class StepErrorDocument(Struct, frozen=True, kw_only=True):
    """Why a step failed, or an undo."""

    error: str
    message: str
    traceback: str | None
    reason: str | None


class StepDocument(Struct, frozen=True, kw_only=True):
    """One step of a run."""

    step: str
    kind: str
    name: str
    state: str
    arguments: Any
    mended: bool
    result: Any
    error: StepErrorDocument | None
    failures: int
    place: int | None
    job: UUID | None
    began_at: datetime
    ended_at: datetime | None
    due_at: datetime | None
    complete_by: datetime | None
    undo: str | None
    undo_state: str | None
    undo_error: StepErrorDocument | None
    undo_failures: int
    undo_job: UUID | None
    undone_at: datetime | None


class SignalDocument(Struct, frozen=True, kw_only=True):
    """What a run was told, and has not taken yet."""

    name: str
    data: Any


class WholeRun(RunDocument, frozen=True, kw_only=True):
    """A run with its steps, or with those of one page, and with the signals of it. `next`: the cursor of the next page, if there are more of
    either."""

    arguments: Any
    result: Any
    signals: list[SignalDocument]
    steps: list[StepDocument]
    next: str | None


def state_of(view: RunView) -> str:
    """What becomes of it, or how it ended: one of STATES, or the reason of a dead letter."""
    if view.state is State.DEAD:
        return view.reason or "dead"
    return view.state.label if view.state.settled else _under_way(view.run, view.state)


def _under_way(run: RunRow, state: State) -> str:
    if run.phase is Phase.UNDOING:
        return "undoing"
    if run.phase.is_held and (run.cancel_by is None or state is State.SCHEDULED):
        return "held"  # also one that was cancelled, and then found no code that fits it
    return "cancelling" if run.cancel_by is not None else _WAITING[state]


def at_what(run: RunRow | None, state: State) -> str:
    """What a run that has not ended is at, where jobs are listed: `scheduled` says nothing of one that is held, or waits. Why it is held may
    tell of another queue, and is left to its own page. None: it has not begun."""
    if run is None:
        return "run, not begun"
    said = _under_way(run, state)
    waits = said == "waiting" and run.waits_for
    return f"run, waits for {run.waits_for}" if waits else f"run, {said}"


def in_words(state: str) -> str:
    return state.replace("_", " ")


def waits_for(view: RunView) -> str | None:
    """Only one that sleeps waits for anything; what is noted of another is past."""
    return (view.run.waits_for or None) if view.state is State.SCHEDULED else None


def next_look(view: RunView, now: datetime) -> datetime | None:
    """None if it has ended, or waits for somebody: that it is looked at in ten years all the same is no time to tell."""
    return view.due_at if view.state is State.SCHEDULED and view.due_at - now < NEVER / 2 else None


def run_document(view: RunView, now: datetime) -> RunDocument:
    return RunDocument(**_brief(view, now))


def whole_document(
    view: RunView, job: JobView, signals: Sequence[Signal], now: datetime, more: str | None = None
) -> WholeRun:
    """`view`: as everybody may see it."""
    shown = masked_view(job)
    return WholeRun(
        **_brief(view, now), arguments=readable(shown.payload), result=readable(shown.result),
        signals=[signal_document(signal, hide=job.sensitive) for signal in signals],
        steps=[step_document(step) for step in view.steps], next=more,
    )  # fmt: skip


def signal_document(signal: Signal, *, hide: bool) -> SignalDocument:
    """`hide`: its run is in a sensitive queue."""
    return SignalDocument(name=signal.name, data=readable(hidden(signal.data) if hide else signal.data))


def step_document(step: StepView) -> StepDocument:
    return StepDocument(
        step=shown_path(step.path), kind=step.kind.label, name=step.name, state=step.state.label,
        arguments=readable(step.payload), mended=step.mended, result=readable(step.result),
        error=_error_document(error_of(step.error)), failures=step.failures, place=step.place, job=step.job,
        began_at=step.started_at, ended_at=step.ended_at, due_at=step.due_at, complete_by=step.complete_by, undo=step.undo,
        undo_state=step.undo_state.label or None, undo_error=_error_document(error_of(step.undo_error)),
        undo_failures=step.undo_failures, undo_job=step.undo_job, undone_at=step.undone_at,
    )  # fmt: skip


def _brief(view: RunView, now: datetime) -> dict[str, Any]:
    run = view.run
    return {
        "id": run.id, "workflow": run.name, "version": run.version, "state": state_of(view), "phase": run.phase.label,
        "status": None if view.state.settled else run.status, "why": run.why or None, "waits_for": waits_for(view), "queue": view.queue,
        "parent": view.parent, "cancelled_by": run.cancel_by, "began_at": run.started_at,
        "next_look_at": next_look(view, now), "ended_at": view.settled_at,
    }  # fmt: skip


def _error_document(error: StepError | None) -> StepErrorDocument | None:
    if error is None:
        return None
    return StepErrorDocument(**{name: getattr(error, name) for name in StepErrorDocument.__struct_fields__})
