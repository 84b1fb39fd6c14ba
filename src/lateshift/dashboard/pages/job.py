"""One job, with all that is known of it: its life, its family, why it waits, what it was given and gave."""

from typing import Any
from uuid import UUID

import msgspec

from lateshift.api.bounds import JSON_DEPTH
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Reach
from lateshift.api.routes import jobs
from lateshift.api.steps import own_logs
from lateshift.dashboard.page import Action, Context, Form, Page
from lateshift.dashboard.pages.dead_letters import PREVIEW_DISCARD
from lateshift.dashboard.telling import life_of
from lateshift.model.access import Scope, standing
from lateshift.model.depth import depth_of
from lateshift.model.job import JobView, State
from lateshift.model.sealed import MASK
from lateshift.model.workflow.step import StepState
from lateshift.operating.since import HELD_LOOKED_AT

KIN_SHOWN = 50  # descendants of a job
AUDIT_SHOWN = 20  # lines of the audit about it

_ROUTES = {route.handler: route for route in jobs.ROUTES}


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
        "sealed": document.arguments == MASK, "held_by": _held_by(asked, view),
    }  # fmt: skip


def _held_by(asked: Asked, view: JobView) -> UUID | None:
    """The run that the dead job of its step holds: there it is mended. One look at the held steps of that run, without what they hold."""
    if view.state is not State.DEAD or view.batch is None:
        return None
    steps = asked.store.workflows.outline(view.batch, limit=HELD_LOOKED_AT, state=StepState.HELD)
    if not any(step.job == view.id for step in steps):
        return None
    run = asked.store.workflows.look(view.batch, limit=0)
    return None if run is None or run.state.settled else view.batch


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


def edited(form: Form) -> Any:
    """The arguments as they were typed. Raises Refused if that is no JSON object."""
    typed = form.get("arguments", "")
    try:
        if depth_of(typed.encode()) > JSON_DEPTH:
            raise ValueError(f"more than {JSON_DEPTH} objects and lists inside one another")
        return {"change": msgspec.json.decode(typed, type=dict[str, Any])}
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(
            422, "arguments-invalid", f"The arguments are a JSON object, by name: {error}.", field="arguments"
        ) from None


PAGES = (
    Page(path="/jobs/{id}", title="Job", section="Jobs", template="job.html", handler=job_page, scope=Scope.READ, reach=Reach.ONE,
         actions={
             "cancel": Action(route=_ROUTES[jobs.cancel_job]),
             "resubmit": Action(route=_ROUTES[jobs.resubmit_job], body=lambda form: {}),
             "edit": Action(route=_ROUTES[jobs.resubmit_job], body=edited, place="edit"),
             "discard-preview": PREVIEW_DISCARD,
         }),
)  # fmt: skip
