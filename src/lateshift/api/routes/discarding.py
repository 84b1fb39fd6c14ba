"""Dead letters that nobody wants any more: discarded, seen first."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, field

from lateshift.api.bounds import DEAD_MOST
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Done, Reach, Route
from lateshift.api.routes.dead_letters import Which, letters_of, refuse_unless_named
from lateshift.dead_letters.dead_letters import DeadLetters
from lateshift.dead_letters.discarding import DISCARD_MOST, DiscardPlan, plan_these
from lateshift.documents.dead_letters import (
    DiscardedDocument,
    DiscardPlanDocument,
    discard_plan_document,
    discarded_document,
)
from lateshift.model.access import Scope
from lateshift.model.discard import Kept


class Unwanted(Which, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: `ids`; or those of a queue, a task, a reason, a fingerprint (`like`); or `all` of them; the newest `limit`."""

    ids: Annotated[list[UUID], Meta(max_length=DISCARD_MOST)] = field(default_factory=list)
    limit: Annotated[int, Meta(ge=1, le=DISCARD_MOST)] = DISCARD_MOST


def preview_discard(asked: Asked) -> DiscardPlanDocument:
    """What a discard with the same body would do; nothing is written."""
    letters = _letters(asked)
    return discard_plan_document(
        _named(asked) if letters is None else letters.plan_discard(limit=asked.body.limit)
    )


def discard_dead_letters(asked: Asked) -> DiscardedDocument:
    """Delete dead letters with their logs and tags, in one transaction; each is audited.

    What something still needs stays, and is told with what to do about it. A key stays for its window, and starts nothing. The same request
    again takes those that are left."""
    letters = _letters(asked)
    if letters is not None:
        return discarded_document(letters.discard(by=asked.by, limit=asked.body.limit))
    asked.jobs(asked.body.ids)
    return discarded_document(asked.store.jobs.discard(list(dict.fromkeys(asked.body.ids)), by=asked.by))


def discard_job(asked: Asked) -> Done:
    """Delete a dead letter with its logs and tags. One that something still needs is refused, with what to do about it."""
    view = asked.job()
    done = asked.store.jobs.discard([view.id], by=asked.by)
    why = done.kept.get(view.id)
    if why not in (None, Kept.OTHER):
        raise Refused(409, "still-needed", f"The job {view.id} {why.says}.")
    left = asked.store.reports.job(view.id)
    return Done(
        subject=f"job {view.id}", action="discarded", changed=bool(done.ids), state=None if left is None else left.state.label
    )  # fmt: skip


def _letters(asked: Asked) -> DeadLetters | None:
    """None if they are named by their ids."""
    body: Unwanted = asked.body
    refuse_unless_named(body, bool(body.ids))
    if body.ids:
        return None
    letters = letters_of(asked)
    letters.most = DEAD_MOST
    return letters


def _named(asked: Asked) -> DiscardPlan:
    named = asked.jobs(asked.body.ids)
    kept = asked.store.reports.kept(list(dict.fromkeys(asked.body.ids)))
    return plan_these(asked.store, named, kept)


ROUTES = (
    Route(method="POST", path="/v1/dead-letters/discard/preview", handler=preview_discard, takes=Unwanted,
          gives=DiscardPlanDocument, dear=True, scope=Scope.OPERATE, reach=Reach.ONE, previews=True),
    Route(method="POST", path="/v1/dead-letters/discard", handler=discard_dead_letters, takes=Unwanted,
          gives=DiscardedDocument, dear=True, scope=Scope.OPERATE, reach=Reach.ONE),
    Route(method="POST", path="/v1/jobs/{id}/discard", handler=discard_job, gives=Done, scope=Scope.OPERATE, reach=Reach.ONE),
)  # fmt: skip
