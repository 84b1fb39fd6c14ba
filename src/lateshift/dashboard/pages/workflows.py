"""Workflows: the runs of them, and one with its graph, its steps, and what can be done about it."""

from typing import Any

from msgspec import Struct

from lateshift.api.bounds import PAGE_BYTES, Cursor
from lateshift.api.route import Asked, Done, Reach
from lateshift.api.routes import workflows
from lateshift.api.steps import elsewhere, has_button, own_runs, own_view
from lateshift.dashboard.page import Action, Context, Form, Page
from lateshift.dashboard.steps import STEPS_SHOWN, drawn, lines_of
from lateshift.dashboard.typed import json_in
from lateshift.documents.hiding import shown_run
from lateshift.documents.reading import readable
from lateshift.documents.workflows import (
    STATES,
    run_document,
    signal_document,
    step_document,
)
from lateshift.errors import RunUnknown
from lateshift.model.access import Scope
from lateshift.model.sealed import masked_view
from lateshift.model.workflow import holding
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import Kind, StepState, shown_path
from lateshift.operating import runs
from lateshift.operating.signals import awaited, unasked

LATE = "late"  # which is no state of a run, but what somebody looks for
LATE_MOST = 100  # late steps whose runs are listed
HELD_SHOWN = 20  # held steps with a form each
SIGNALS_SHOWN = 20  # that wait for a run


class RunPageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`cursor`: after which step."""

    cursor: Cursor | None = None


def list_page(asked: Asked) -> Context:
    """Runs, the newest first, or those with late steps. By `workflows.newest`, a page of an index; a state is looked for among the
    newest RUNS_LOOKED_AT of its phase. Late ones by `workflows.late_steps`, an index of those alone."""
    query: workflows.RunQuery = asked.query
    found = _late(asked) if query.state == LATE else workflows.list_workflows(asked)
    return {"found": found, "query": query, "states": (LATE, *STATES)}


def _late(asked: Asked) -> workflows.RunsPage:
    store = asked.store
    ids = dict.fromkeys(step.run for step in store.workflows.late_steps(LATE_MOST))
    views = [view for id in ids if (view := store.workflows.look(id, limit=0)) is not None]
    named = [view for view in views if asked.query.name in (None, view.run.name)]
    return workflows.RunsPage(runs=own_runs(asked, named, store.clock.now()), next=None)


def run_page(asked: Asked) -> Context:
    """One run. Reads the run, its job, STEPS_SHOWN of its steps, HELD_SHOWN of those that are held, UNDER_WAY of those that are, SIGNALS_SHOWN
    signals, of each no more than PAGE_BYTES, and the jobs of up to 20 steps under way: all by primary keys. For a token that is for some queues, up to
    JUDGED_ON_PAGE steps besides, of the run and of those below it, without what they hold."""
    job, store, now = asked.run_job(), asked.store, asked.store.clock.now()
    after = asked.cursors.read(asked.query.cursor, str) or ""
    view = store.workflows.look(job.id, after=after, limit=STEPS_SHOWN, most=PAGE_BYTES)
    held = store.workflows.look(job.id, limit=HELD_SHOWN, state=StepState.HELD, most=PAGE_BYTES)
    if view is None or held is None:
        raise RunUnknown(runs.without_run(job))
    last = view.steps[-1].path if view.steps else after
    more = last if store.workflows.outline(job.id, after=last, limit=1) else None
    resumable = runs.can_resume(store, view)
    advice = _advice(view, alone=not held.steps) if resumable else None
    view, held, job = shown_run(store, view), shown_run(store, held), masked_view(job)
    first = not after
    over = view.state.settled
    back = not over and has_button(asked, view, held, forth=False)
    forth = resumable and has_button(asked, view, held, forth=True)
    view, others = own_view(asked, view, whole=first and more is None), elsewhere(asked, held)
    return {
        "run": run_document(view, now), "arguments": readable(job.payload), "result": readable(job.result),
        "lines": lines_of(store, view, job, now), "graph": drawn(view, now, cut=more is not None) if first else None,
        "held": [] if over or not resumable else [step_document(step) for step in own_view(asked, held).steps],
        "others": {shown_path(path) for path in others},
        "mendable": {kind.label for kind in Kind if kind is not Kind.FIXED},
        "signals": [signal_document(each, hide=job.sensitive) for each in store.workflows.told(job.id, SIGNALS_SHOWN, most=PAGE_BYTES)],
        "awaited": [] if over else awaited(store, job.id), "next": asked.cursors.write(more), "first": first, "over": over,
        "advice": advice, "may_resume": forth,
        "may_undo": runs.can_undo(view) and back, "may_cancel": view.run.cancel_by is None and back,
    }  # fmt: skip


def _advice(view: RunView, *, alone: bool) -> str | None:
    """What to do about one that goes on if somebody says so. `alone`: no step of it is held, each of which says that for itself."""
    if view.state.settled:
        how = (
            "tries again what could not be undone"
            if view.run.phase.is_undone
            else "lets it go on where it stood"
        )
        return f"Resume {how}. Mend its cause first."
    found = holding.held(view.run.phase, view.run.why)
    return None if found is None or not (alone or found.cause is not holding.Cause.STEP) else found.advice


def _signal(form: Form) -> Any:
    """The name that was typed, else the one that was chosen."""
    return {"name": form.get("other", "").strip() or form.get("name", ""), "data": json_in(form, "data")}


def _arguments(form: Form) -> Any:
    """Those of the step that the form is of."""
    return {"arguments": json_in(form, "arguments")}


def _told(result: workflows.Signalled) -> str:
    if not result.changed:
        return "The run was told this before."
    held = "It is held, and takes it when you resume it." if result.state == "held" else ""
    return " ".join(
        said
        for said in (f"The run is told {result.name}.", unasked(result.name, result.awaited), held)
        if said
    )


def _undone(result: Done) -> str:
    return (
        "The run is being undone, the last step first." if result.changed else "It is being undone already."
    )


def _resubmitted(result: Done) -> str:
    subject = result.subject.partition(" of run ")[0]
    return f"{subject.capitalize()} begins anew, and the run goes on."


def _cancelled(result: Done) -> str:
    return (
        "The run is told to end: what it has done is undone first."
        if result.changed
        else "It was told before."
    )


PAGES = (
    Page(path="/workflows", title="Workflows", section="Workflows", template="workflows.html", handler=list_page,
         dear=True, scope=Scope.READ, reach=Reach.OWN, asks=workflows.RunQuery),
    Page(path="/workflows/{id}", title="Run", section="Workflows", template="run.html", handler=run_page, dear=True, scope=Scope.READ,
         reach=Reach.ONE, asks=RunPageQuery,
         actions={
             "signal": Action(workflows.signal_workflow, body=_signal, says=_told, place="signal"),
             "resume": Action(workflows.resume_workflow, says=lambda result: "The run goes on."),
             "undo": Action(workflows.undo_workflow, says=_undone, place="undo"),
             "cancel": Action(workflows.cancel_workflow, says=_cancelled),
             "steps/{step}/resubmit": Action(workflows.resubmit_step, body=_arguments, says=_resubmitted, place="step"),
         }),
)  # fmt: skip
