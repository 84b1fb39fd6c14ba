"""Runs of workflows: looked at, told things, and how those go on that wait for an operator."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct, structs

from lateshift.api.bounds import PAGE, PAGE_BYTES, PAGE_MOST, RUNS_LOOKED_AT, Cursor, PageSize, Text
from lateshift.api.owning import owned_key
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Done, Reach, Route
from lateshift.api.steps import allow_again, allow_step, allow_undone, looks_at_steps, own_runs, own_view
from lateshift.app.workflows import tell
from lateshift.documents.hiding import shown_run
from lateshift.documents.reading import readable
from lateshift.documents.workflows import (
    STATES,
    RunDocument,
    WholeRun,
    state_of,
    whole_document,
)
from lateshift.errors import KeyConflict, RunUnknown, TaskUnknown
from lateshift.model.access import Scope
from lateshift.model.job import JobView
from lateshift.model.outcome import MESSAGE_LIMIT
from lateshift.model.sealed import hidden
from lateshift.model.workflow.run import RunView, Signal
from lateshift.model.workflow.step import StepView, shown_path
from lateshift.operating import runs
from lateshift.operating.resuming import RESUMED_AT_ONCE, resume_all
from lateshift.operating.signals import awaited
from lateshift.operating.steps import refuse_misfit
from lateshift.store.contract import Store


class RunQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Text | None = None
    state: Text | None = None
    limit: PageSize = PAGE
    cursor: Cursor | None = None


class RunsPage(Struct, frozen=True, kw_only=True):
    """The newest first. `next`: the cursor of the next page, if there may be one; a page may hold fewer than asked for."""

    runs: list[RunDocument]
    next: str | None


class StepsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: PageSize = PAGE_MOST
    cursor: Cursor | None = None


class StepsPlace(Struct, frozen=True, array_like=True):
    """Where a page of a run begins: after this step, and after the signal of this number."""

    step: str = ""
    signal: int = 0


class SignalBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run is told: its `flow.wait_for(name)` gives the data."""

    name: Text
    data: Any = None


class Why(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What others read as the reason."""

    why: Annotated[str, Meta(min_length=1, max_length=MESSAGE_LIMIT, pattern=r"^[^\x00]*$")]


class StepArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other arguments for a step, by name, all of them; of a fan_out another list. Without, it has those it had. `preview`: say what it would
    have, and write nothing."""

    arguments: dict[str, Any] | list[Any] | None = None
    preview: bool = False


class StepDone(Done, frozen=True, kw_only=True):
    """With the arguments that it had, and those that it has now, or would have."""

    before: Any
    after: Any


class HeldRuns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All runs of a workflow or pipeline that are held, the newest first. `why_like`: only those of which `why` has this text in it. `preview`:
    say which would go on, and write nothing. `before`: only those older than this one."""

    name: Text
    why_like: Text | None = None
    before: UUID | None = None
    preview: bool = False
    limit: Annotated[int, Meta(ge=1, le=RESUMED_AT_ONCE)] = RESUMED_AT_ONCE


class ResumedRuns(Struct, frozen=True, kw_only=True):
    """Which go on, or would. `next_before`: for the next request, if there may be more."""

    runs: list[UUID]
    resumed: bool
    next_before: UUID | None


def list_workflows(asked: Asked) -> RunsPage:
    """Runs of workflows, the newest first, page by page."""
    query: RunQuery = asked.query
    if query.state is not None and query.state not in STATES:
        raise Refused(422, "query-invalid", f"A run's state is one of {', '.join(STATES)}.", field="state")
    start = asked.cursors.read(query.cursor, UUID)
    found, last = runs.newest(asked.store, start, query.limit, query.name, query.state, most=RUNS_LOOKED_AT)
    shown = own_runs(asked, found, asked.store.clock.now())
    return RunsPage(runs=shown, next=asked.cursors.write(last))


def show_workflow(asked: Asked) -> WholeRun:
    """One run with its steps, and with what it was told and has not taken: all of them, or page by page if they are many or large.

    A token that is for some queues sees nothing of what steps hold that are jobs of others."""
    job, start, store = asked.run_job(), asked.cursors.read(asked.query.cursor, StepsPlace), asked.store
    place = start or StepsPlace()
    signals = store.workflows.told(job.id, asked.query.limit, after=place.signal, most=PAGE_BYTES)
    left = max(0, PAGE_BYTES - sum(len(signal.data or b"") for signal in signals))
    view = store.workflows.look(job.id, after=place.step, limit=asked.query.limit, most=left)
    if view is None:
        raise RunUnknown(runs.without_run(job))
    more = _behind(store, view, signals, place)
    seen = own_view(asked, view, whole=start is None and more is None)
    return whole_document(shown_run(store, seen), job, signals, store.clock.now(), asked.cursors.write(more))


def _behind(store: Store, view: RunView, signals: Sequence[Signal], place: StepsPlace) -> StepsPlace | None:
    """Where the next page begins; None if there is nothing more."""
    last = StepsPlace(
        view.steps[-1].path if view.steps else place.step, signals[-1].number if signals else place.signal
    )
    id, workflows = view.run.id, store.workflows
    more = workflows.outline(id, after=last.step, limit=1) or workflows.told(id, 1, after=last.signal)
    return last if more else None


class Signalled(Done, frozen=True, kw_only=True):
    """`awaited`: what the run waited for when it was told. Another `name` is kept until its code waits for that."""

    name: str
    awaited: list[str]


def signal_workflow(asked: Asked) -> Signalled:
    """Tell a run something. One that comes before the run waits for it is kept.

    One that is held takes it when it is resumed: then `state` is `held`. `Idempotency-Key` is the key of the signal: the same key again is the same signal, and with another body a conflict."""
    job = asked.run_job()
    if not job.is_run:
        raise RunUnknown(runs.without_run(job))
    waits = awaited(asked.store, job.id)  # before it goes on
    try:
        key = owned_key(asked.key, asked.token, sensitive=job.sensitive)
        kept = tell(asked.store, job.id, asked.body.name, asked.body.data, key=key, by=asked.by)
    except KeyConflict as error:
        raise Refused(
            409, "key-conflict", "This key was used for a signal to this run with another body. Another request has another key.",
            field="Idempotency-Key",
        ) from error  # fmt: skip
    view = asked.store.workflows.look(job.id, limit=0)
    held = view is not None and state_of(view) == "held"
    return Signalled(
        subject=f"run {job.id}", action="signalled", changed=kept, name=asked.body.name, awaited=waits,
        state="held" if held else None,
    )  # fmt: skip


def resume_workflow(asked: Asked) -> Done:
    """Let a run go on that is held, or try again what could not be undone.

    A token that is for some queues does so only if no job is made by that in another one."""
    view, _ = _found(asked)
    allow_again(asked, view)
    runs.resume(asked.store, view, by=asked.by)
    return Done(subject=f"run {view.run.id}", action="resumed", changed=True)


def resume_workflows(asked: Asked) -> ResumedRuns:
    """Let all runs of a workflow go on that are held."""
    body: HeldRuns = asked.body
    told = resume_all(
        asked.store, body.name, why=body.why_like, limit=body.limit, before=body.before, preview=body.preview, by=asked.by
    )  # fmt: skip
    return ResumedRuns(runs=told.done, resumed=not body.preview, next_before=told.last)


def undo_workflow(asked: Asked) -> Done:
    """Undo what a run has done, the last step first. Its code begins nothing more.

    A token that is for some queues does so only if no job is made by that in another one."""
    view, _ = _found(asked)
    if not view.state.settled:
        allow_undone(asked, view)
    if state_of(view) == "undoing":
        return Done(subject=f"run {view.run.id}", action="undone", changed=False, state="undoing")
    runs.undo(asked.store, view, asked.body.why, by=asked.by)
    return Done(subject=f"run {view.run.id}", action="undone", changed=True, state="undoing")


def cancel_workflow(asked: Asked) -> Done:
    """End a run: what it has done is undone first.

    A token that is for some queues does so only if no job is made by that in another one."""
    view, _ = _found(asked)
    if not view.state.settled:
        allow_undone(asked, view)
    done = bool(asked.store.jobs.cancel([view.run.id], by=asked.by))
    after = asked.store.workflows.look(view.run.id, limit=0)
    return Done(
        subject=f"run {view.run.id}", action="cancelled", changed=done and view.run.cancel_by is None,
        state=None if after is None else state_of(after),
    )  # fmt: skip


def resubmit_step(asked: Asked) -> StepDone:
    """Run a step again that has failed and holds its run, with other arguments if need be; and the run goes on.

    Other arguments ask for the scope `enqueue` too."""
    view, _ = _found(asked)
    step = runs.held_step(asked.store, view, asked.step)
    allow_step(asked, view, step, changed=asked.body.arguments is not None)
    payload = runs.new_arguments(step, asked.body.arguments)
    _refuse_misfit(asked, view, step, payload)
    if not asked.body.preview:
        runs.resubmit_step(asked.store, view, step, payload, by=asked.by)
    alone = structs.replace(view, steps=[step])
    [shown] = shown_run(asked.store, own_view(asked, alone, whole=False)).steps
    given = shown.payload if payload is None else payload if shown == step else hidden(payload)
    subject = f"step {shown_path(step.path)} of run {view.run.id}"
    return StepDone(
        subject=subject, action="resubmitted", changed=not asked.body.preview, before=readable(shown.payload), after=readable(given)
    )  # fmt: skip


def _refuse_misfit(asked: Asked, view: RunView, step: StepView, payload: bytes | None) -> None:
    """The names of other tasks are told to those who may see all."""
    try:
        refuse_misfit(asked.store, asked.app, view.run.id, step, payload)
    except TaskUnknown:
        if asked.sees_all:
            raise
        raise TaskUnknown(f"The app {asked.app.name} has no task for step {asked.step}.") from None


def _found(asked: Asked) -> tuple[RunView, JobView]:
    """Without its steps."""
    asked.run_job()
    return runs.found(asked.store, asked.id)


ROUTES = (
    Route(method="GET", path="/v1/workflows", handler=list_workflows, asks=RunQuery, gives=RunsPage, dear=True, scope=Scope.READ,
          reach=Reach.OWN,
          links={"show_workflow": "runs/0/id", "signal_workflow": "runs/0/id", "undo_workflow": "runs/0/id", "cancel_workflow": "runs/0/id", "draw_run": "runs/0/id"}),
    Route(method="GET", path="/v1/workflows/{id}", handler=show_workflow, asks=StepsQuery, gives=WholeRun, scope=Scope.READ,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/workflows/{id}/signal", handler=signal_workflow, takes=SignalBody, gives=Signalled,
          scope=Scope.OPERATE, reach=Reach.ONE, keyed=True),
    Route(method="POST", path="/v1/workflows/{id}/resume", handler=resume_workflow, gives=Done, judges=looks_at_steps, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/workflows/resume", handler=resume_workflows, takes=HeldRuns, gives=ResumedRuns,
          dear=True, scope=Scope.OPERATE, reach=Reach.ALL),
    Route(method="POST", path="/v1/workflows/{id}/undo", handler=undo_workflow, takes=Why, gives=Done, judges=looks_at_steps, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/workflows/{id}/cancel", handler=cancel_workflow, gives=Done, judges=looks_at_steps, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/workflows/{id}/steps/{step}/resubmit", handler=resubmit_step, takes=StepArguments, gives=StepDone, judges=looks_at_steps,
          scope=Scope.OPERATE, besides=Scope.ENQUEUE, besides_for=("arguments",), reach=Reach.ONE),
)  # fmt: skip
