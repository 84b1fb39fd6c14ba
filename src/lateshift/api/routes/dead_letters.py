"""Dead letters: what they died of, and running them again, seen first."""

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct

from lateshift.api.bounds import DEAD_MOST, GROUPS_MOST, PAGE, PAGE_MOST, RESUBMIT_MOST, Text
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Reach, Route
from lateshift.dead_letters import DeadLetters, refuse_problems
from lateshift.documents.dead_letters import GroupsDocument, PlanDocument, groups_document, plan_document
from lateshift.errors import UsageError
from lateshift.model.access import Scope
from lateshift.operating.changing import change_of


class GroupQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: Text | None = None
    task: Text | None = None
    reason: Text | None = None
    like: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=GROUPS_MOST)] = PAGE


class OneGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: Text | None = None


class Chosen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: of a queue, a task, a reason, a fingerprint (`like`), or `all` of them; `limit` of them at most. `change`:
    new values for some of their arguments. `unset`: those that are left out."""

    queue: Text | None = None
    task: Text | None = None
    reason: Text | None = None
    like: Text | None = None
    all: bool = False
    change: dict[str, Any] | None = None
    unset: Annotated[list[Text], Meta(max_length=PAGE_MOST)] | None = None
    limit: Annotated[int, Meta(ge=1, le=RESUBMIT_MOST)] = RESUBMIT_MOST


class ResubmittedDocument(Struct, frozen=True, kw_only=True):
    """Which are ready again, how many of them with other arguments, and which had changed meanwhile and were left."""

    resubmitted: list[UUID]
    edited: int
    skipped: list[UUID]


def list_dead_letters(asked: Asked) -> GroupsDocument:
    """Dead letters in groups of those that died of the same, the largest first.

    The newest 10,000 are looked at; if there are more, `cut` is true, and there are at least as many of each group as it says."""
    query: GroupQuery = asked.query
    asked.allow(query.queue)
    letters = asked.app.dead_letters(queue=query.queue, task=query.task, reason=query.reason, like=query.like)
    letters.most = DEAD_MOST
    return groups_document(letters.groups(), query.limit)


def preview_dead_letters(asked: Asked) -> PlanDocument:
    """What a resubmission with the same body would do; nothing is written."""
    chosen: Chosen = asked.body
    plan = _letters(asked).plan(change_of(chosen.change, chosen.unset), limit=chosen.limit)
    refuse_problems(plan)
    return plan_document(plan)


def resubmit_dead_letters(asked: Asked) -> ResubmittedDocument:
    """Make dead letters ready again, with fresh attempts; all are checked first by the types of their tasks.

    Those that are ready again are no dead letters: the same request again takes those that are left. Other arguments ask for the scope
    `enqueue` too."""
    chosen: Chosen = asked.body
    change = change_of(chosen.change, chosen.unset)
    done = _letters(asked).resubmit(change, by=asked.by, limit=chosen.limit)
    return ResubmittedDocument(resubmitted=done.ids, edited=done.edited, skipped=done.skipped)


def _letters(asked: Asked) -> DeadLetters:
    chosen: Chosen = asked.body
    asked.allow(chosen.queue)
    narrowed = any(each is not None for each in (chosen.queue, chosen.task, chosen.reason, chosen.like))
    if narrowed == chosen.all:
        raise Refused(
            422,
            "body-invalid",
            'Name which dead letters: queue, task, reason or like; or say "all": true.',
            field="all",
        )
    own = {
        name: task for name, task in asked.app.tasks.items() if asked.shows(task.limits.queue)
    }  # to be changed
    try:
        return DeadLetters(
            asked.store, own, asked.store.clock, queue=chosen.queue, task=chosen.task, reason=chosen.reason, like=chosen.like
        )  # fmt: skip
    except UsageError as error:
        raise Refused(422, "body-invalid", str(error), field="like") from None


ROUTES = (
    Route(method="GET", path="/v1/dead-letters", handler=list_dead_letters, asks=GroupQuery, gives=GroupsDocument,
          scope=Scope.READ, reach=Reach.ONE),
    Route(method="POST", path="/v1/dead-letters/preview", handler=preview_dead_letters, takes=Chosen, gives=PlanDocument,
          scope=Scope.OPERATE, besides=Scope.ENQUEUE, besides_for=("change", "unset"), reach=Reach.ONE, forgets=True),
    Route(method="POST", path="/v1/dead-letters/resubmit", handler=resubmit_dead_letters, takes=Chosen,
          gives=ResubmittedDocument, scope=Scope.OPERATE, besides=Scope.ENQUEUE, besides_for=("change", "unset"),
          reach=Reach.ONE),
)  # fmt: skip
