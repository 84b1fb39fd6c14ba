"""Dead letters: what they died of, and running them again, seen first."""

from functools import partial
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct, field, structs

from lateshift.api.bounds import (
    DEAD_MOST,
    GROUPS_MOST,
    PAGE,
    PAGE_MOST,
    RESUBMIT_MOST,
    Cursor,
    RateText,
    Text,
)  # fmt: skip
from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Reach, Route
from lateshift.api.steps import sent_elsewhere
from lateshift.dead_letters.dead_letters import DeadLetters, refuse_problems
from lateshift.dead_letters.resubmission import Tasks
from lateshift.documents.dead_letters import GroupPage, PlanDocument, plan_document
from lateshift.errors import UsageError
from lateshift.model.access import Scope
from lateshift.model.groups import place_of
from lateshift.model.rate import Rate
from lateshift.operating.changing import change_of


class GroupQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: Text | None = None
    task: Text | None = None
    reason: Text | None = None
    like: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=GROUPS_MOST)] = PAGE
    cursor: Cursor | None = None


class GroupPlace(Struct, frozen=True, kw_only=True):
    """Among the dead letters older than `before`, those groups that come after this one."""

    before: UUID | None
    after: tuple[int, str] | None


class OneGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: Text | None = None


class Which(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: of a queue, a task, a reason, a fingerprint (`like`), or `all` of them."""

    queue: Text | None = None
    task: Text | None = None
    reason: Text | None = None
    like: Text | None = None
    all: bool = False


class Chosen(Which, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: `ids`, such as those of a preview; or those of a queue, a task, a reason, a fingerprint (`like`), or `all` of
    them; `limit` of them at most. `change`: new values for some of their arguments. `unset`: those that are left out. `rate`: how fast they go, such as `10/s`: each is scheduled
    for its time."""

    ids: Annotated[list[UUID], Meta(max_length=RESUBMIT_MOST)] = field(default_factory=list)
    change: dict[str, Any] | None = None
    unset: Annotated[list[Text], Meta(max_length=PAGE_MOST)] | None = None
    limit: Annotated[int, Meta(ge=1, le=RESUBMIT_MOST)] = RESUBMIT_MOST
    rate: RateText | None = None


class ResubmittedDocument(Struct, frozen=True, kw_only=True):
    """Which are ready again, how many of them with other arguments, and which had changed meanwhile and were left. `spread`: seconds
    until the last of them is due, by the rate."""

    resubmitted: list[UUID]
    edited: int
    skipped: list[UUID]
    spread: float


def list_dead_letters(asked: Asked) -> GroupPage:
    """Dead letters in groups of those that died of the same, the largest first.

    The newest 10,000 are looked at; if there are more, `cut` is true, and behind the last of these groups the cursor leads to those of
    the next 10,000: a group of both comes twice, each time with how many there are among those."""
    query: GroupQuery = asked.query
    asked.allow(query.queue)
    place = asked.cursors.read(query.cursor, GroupPlace) or GroupPlace(before=None, after=None)
    letters = asked.app.dead_letters(queue=query.queue, task=query.task, reason=query.reason, like=query.like)
    letters.most, letters.bounded, letters.whole = DEAD_MOST, True, False
    letters.wanted = structs.replace(letters.wanted, before=place.before)
    groups = letters.groups()
    left = [group for group in groups.largest_first if place.after is None or place_of(group) > place.after]
    shown, more = left[: query.limit], None
    if len(left) > query.limit:
        more = GroupPlace(before=place.before, after=place_of(shown[-1]))
    elif groups.cut:
        more = GroupPlace(before=groups.last, after=None)
    return GroupPage(
        groups=shown, looked_at=groups.looked_at, left_out=groups.left_out, cut=groups.cut, next=asked.cursors.write(more)
    )  # fmt: skip


def preview_dead_letters(asked: Asked) -> PlanDocument:
    """What a resubmission would do; nothing is written. Send the `ids` of the answer then, with the same `change`, `unset` and `rate`: the
    same filter may mean others by then."""
    chosen: Chosen = asked.body
    if chosen.rate is not None:
        Rate.read(chosen.rate)
    plan = _chosen(asked).plan(change_of(chosen.change, chosen.unset), limit=chosen.limit)
    refuse_problems(plan)
    return plan_document(plan)


def resubmit_dead_letters(asked: Asked) -> ResubmittedDocument:
    """Make dead letters ready again, with fresh attempts; all are checked first by the types of their tasks.

    With `ids` exactly those, as far as they still are dead letters and no runs that would have jobs made in queues that the token is not for:
    `skipped` names the others. With a filter, those that it means now; those that
    are ready again are no dead letters, and the same request again takes those that are left. With a rate, they are scheduled, the
    first for now and each other for its time: nothing has to stay open for that. Other arguments ask for the scope `enqueue` too."""
    chosen: Chosen = asked.body
    change = change_of(chosen.change, chosen.unset)
    done = _chosen(asked).resubmit(change, by=asked.by, limit=chosen.limit, rate=chosen.rate)
    return ResubmittedDocument(
        resubmitted=done.ids, edited=done.edited, skipped=done.skipped, spread=done.spread.total_seconds()
    )


def _chosen(asked: Asked) -> DeadLetters:
    ids = asked.body.ids
    refuse_unless_named(asked.body, bool(ids))
    if not ids:
        return letters_of(asked)
    asked.jobs(ids)
    return _letters(asked).these(ids)


def refuse_unless_named(which: Which, ids: bool) -> None:
    """Raises Refused unless it is said in one way. `ids`: whether it is by ids."""
    narrowed = any(each is not None for each in (which.queue, which.task, which.reason, which.like))
    if [narrowed, which.all, ids].count(True) != 1:
        said = 'Name which dead letters, in one way: ids; or queue, task, reason or like; or say "all": true.'
        raise Refused(422, "body-invalid", said, field="all")


def letters_of(asked: Asked) -> DeadLetters:
    """Those that a body means, if the token is for their queue."""
    chosen: Which = asked.body
    asked.allow(chosen.queue)
    try:
        return _letters(asked, queue=chosen.queue, task=chosen.task, reason=chosen.reason, like=chosen.like)
    except UsageError as error:
        raise Refused(422, "body-invalid", str(error), field="like") from None


def _letters(asked: Asked, **narrowed: str | None) -> DeadLetters:
    """However they are named, without those runs that would have jobs made in queues that the token is not for."""
    letters = DeadLetters(asked.store, _own_tasks(asked), asked.store.clock, **narrowed)
    letters.leaves, letters.whole = partial(sent_elsewhere, asked), False
    return letters


def _own_tasks(asked: Asked) -> Tasks:
    """Whose jobs the token may have changed."""
    return {name: task for name, task in asked.app.tasks.items() if asked.shows(task.limits.queue)}


ROUTES = (
    Route(method="GET", path="/v1/dead-letters", handler=list_dead_letters, asks=GroupQuery, gives=GroupPage,
          dear=True, scope=Scope.READ, reach=Reach.ONE),
    Route(method="POST", path="/v1/dead-letters/preview", handler=preview_dead_letters, takes=Chosen, gives=PlanDocument,
          dear=True, scope=Scope.OPERATE, besides=Scope.ENQUEUE, besides_for=("change", "unset"), reach=Reach.ONE, previews=True),
    Route(method="POST", path="/v1/dead-letters/resubmit", handler=resubmit_dead_letters, takes=Chosen,
          gives=ResubmittedDocument, dear=True, scope=Scope.OPERATE, besides=Scope.ENQUEUE, besides_for=("change", "unset"),
          reach=Reach.ONE),
)  # fmt: skip
