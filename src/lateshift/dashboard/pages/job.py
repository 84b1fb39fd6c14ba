"""One job, with all that is known of it: its life, its family, why it waits, what it was given and gave."""

from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.api.route import Asked, Done, Reach
from lateshift.api.routes import jobs
from lateshift.api.steps import own_logs
from lateshift.dashboard.page import Action, Context, Form, Page, says_done
from lateshift.dashboard.pages.dead_letters import PREVIEW_DISCARD
from lateshift.dashboard.steps import STEPS_SHOWN
from lateshift.dashboard.telling import life_of
from lateshift.dashboard.typed import object_in
from lateshift.model.access import Scope, standing
from lateshift.model.job import JobView, State
from lateshift.model.sealed import MASK
from lateshift.model.workflow.run import GOES_ON
from lateshift.model.workflow.step import StepState, shown_path
from lateshift.operating.since import HELD_LOOKED_AT

KIN_SHOWN = 50  # descendants of a job
AUDIT_SHOWN = 20  # lines of the audit about it


def job_page(asked: Asked) -> Context:
    """One job: read by its id, as are its logs, its audit, and each of KIN_SHOWN relatives; and what explains it, in bounded parts."""
    document = jobs.shown(asked)
    view = asked.job()
    members = asked.store.reports.members() if asked.sees_all else []  # they are of no one queue
    names = {member.id: member.name for member in members}
    return {
        "job": document, "view": view, "explanation": None if view.state.settled else jobs.explain_job(asked),
        "life": life_of(view, own_logs(asked, view), names), "family": _family(asked, view),
        "audit": _audit(asked, view.id), "arguments": document.arguments,
        "sealed": document.arguments == MASK, "of_step": _part_of(asked, view) if document.workflow is not None else None,
    }  # fmt: skip


class Part(Struct, frozen=True, kw_only=True):
    """Which step of its run a job that died was, None if that is not among the first. `holds`: it holds its run. `undoing`: it was to undo it; then
    whether the run can be told to try that again."""

    run: UUID
    workflow: str
    step: str | None = None
    name: str = ""
    holds: bool = False
    undoing: bool = False
    again: bool = False


def _part_of(asked: Asked, view: JobView) -> Part | None:
    """Where the dead job of a step is mended, and why it is not here. Looks at the held steps of its run and at the first STEPS_SHOWN, without what they hold."""
    if not view.state.uncompleted or view.batch is None:
        return None
    workflows = asked.store.workflows
    if (first := workflows.look(view.batch, limit=0)) is None:
        return None
    run = first.run
    if not asked.shows(first.queue):
        return Part(run=run.id, workflow="another queue")
    held = workflows.outline(run.id, limit=HELD_LOOKED_AT, state=StepState.HELD)
    steps = [
        step
        for step in (*held, *workflows.outline(run.id, limit=STEPS_SHOWN))
        if view.id in (step.job, step.undo_job)
    ]
    if not steps:
        return Part(run=run.id, workflow=run.name)
    step, undoing = steps[0], steps[0].undo_job == view.id
    return Part(
        run=run.id, workflow=run.name, step=shown_path(step.path), name=step.name, undoing=undoing, again=first.reason in GOES_ON,
        holds=not undoing and step.state is StepState.HELD and not first.state.settled,
    )  # fmt: skip


def _family(asked: Asked, view: JobView) -> dict[str, Any]:
    """Those of queues that the token is not for are left out; those that are gone from the store are named alone."""
    kin = asked.store.reports.kin(view.id, KIN_SHOWN)
    ids = [*kin.ancestors, *[each.id for each in kin.descendants]]
    there = dict(zip(ids, asked.store.reports.named(ids, whole=False), strict=True))
    hidden = {id for id, found in there.items() if found is not None and not asked.shows(found.queue)}
    return {
        "ancestors": [(id, there[id]) for id in reversed(kin.ancestors) if id not in hidden],
        "descendants": [
            (each, there[each.id]) for each in _in_tree(kin.descendants, view.id) if each.id not in hidden
        ],
        "cut": kin.cut,
    }


def _in_tree(descendants: list[Any], root: UUID) -> list[Any]:
    """Each after its parent, and before its parent's next child."""
    children: dict[UUID, list[Any]] = {}
    for each in descendants:
        children.setdefault(each.parent, []).append(each)
    ordered: list[Any] = []
    left = children.get(root, [])[::-1]
    while left:
        each = left.pop()
        ordered.append(each)
        left += children.get(each.id, [])[::-1]
    return ordered


def _audit(asked: Asked, id: UUID) -> list[Any]:
    """Who may read the audit sees what was done to this job."""
    if asked.token is None or standing(asked.token, Scope.ADMIN, asked.store.clock.now()) is not None:
        return []
    return list(asked.store.audit.list(limit=AUDIT_SHOWN, subject=str(id)))


def _cancelled(done: Done) -> str:
    """One that runs goes on until its worker stops it, and the run of a workflow until what it did is undone."""
    if done.state in (None, State.CANCELLED.label):
        return says_done(done)
    if State[done.state.upper()].settled:
        return f"{done.subject}: {done.state} already."
    return f"{done.subject}: told to stop{'' if done.changed else ' before'}."


def edited(form: Form) -> Any:
    """The arguments as they were typed."""
    return {"change": object_in(form, "arguments")}


PAGES = (
    Page(path="/jobs/{id}", title="Job", section="Jobs", template="job.html", handler=job_page, scope=Scope.READ, reach=Reach.ONE,
         actions={
             "cancel": Action(jobs.cancel_job, says=_cancelled),
             "resubmit": Action(jobs.resubmit_job, body=lambda form: {}),
             "edit": Action(jobs.resubmit_job, body=edited, place="edit"),
             "discard-preview": PREVIEW_DISCARD,
         }),
)  # fmt: skip
