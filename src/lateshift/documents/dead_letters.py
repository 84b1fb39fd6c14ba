"""Dead letters in groups, what a resubmission of them would do, and what a discard of them did."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.dead_letters.discarding import DiscardPlan
from lateshift.dead_letters.resubmission import Plan, Planned
from lateshift.documents.jobs import JobSeen, error_line, job_seen
from lateshift.documents.reading import readable
from lateshift.model.discard import Discarded, Kept
from lateshift.model.groups import Group, Groups
from lateshift.model.ids import JobId
from lateshift.model.sealed import masked_view, shown_payload
from lateshift.model.workflow.among import RunsAmong

KEPT_NAMED = 20  # dead letters of one reason that are named


class GroupsDocument(Struct, frozen=True, kw_only=True):
    """The largest groups of dead letters. `left_out`: dead letters of still other groups. `cut`: there are more than were looked at."""

    groups: list[Group]
    looked_at: int
    left_out: int
    cut: bool


class PlannedDocument(Struct, frozen=True, kw_only=True):
    """One of those that would run again, with what it died of and its arguments. Where these stay as they are, of large ones the beginning, as
    a text."""

    id: UUID
    task: str
    error: str | None
    before: Any
    after: Any


class PlanDocument(Struct, frozen=True, kw_only=True):
    """What would be resubmitted; nothing was. `ids`: which, and what to send then, so that no other goes with them. `runs`: those that are
    runs of workflows, and what becomes of these."""

    would_resubmit: int
    would_edit: int
    ids: list[UUID]
    runs: RunsAmong
    examples: list[PlannedDocument]


class KeptDocument(Struct, frozen=True, kw_only=True):
    """Dead letters that stay, and why: `says` goes on after the name of each. So many, of which the first are named. `until`: when all of them
    can be discarded, if that is known."""

    why: str
    says: str
    count: int
    ids: list[UUID]
    until: datetime | None = None


class DiscardPlanDocument(Struct, frozen=True, kw_only=True):
    """What would be discarded; nothing was. `ids`: which, and what to send then, so that no other goes with them."""

    would_discard: int
    ids: list[UUID]
    examples: list[JobSeen]
    kept: list[KeptDocument]


class DiscardedDocument(Struct, frozen=True, kw_only=True):
    """Which are gone, and why the others are not."""

    discarded: list[UUID]
    kept: list[KeptDocument]


class GroupPage(GroupsDocument, frozen=True, kw_only=True):
    """Groups of dead letters, the largest first. `left_out`: dead letters of still other groups. `cut`: there are older ones than were
    looked at, and they come, in groups of their own, when these are read. `next`: the cursor of the next page, if there may be one."""

    next: str | None


def groups_document(groups: Groups, limit: int) -> GroupsDocument:
    return GroupsDocument(
        groups=groups.largest_first[:limit],
        looked_at=groups.looked_at,
        left_out=groups.left_out,
        cut=groups.cut,
    )


def plan_document(plan: Plan) -> PlanDocument:
    return PlanDocument(
        would_resubmit=plan.count,
        would_edit=plan.edited,
        ids=plan.ids,
        runs=plan.runs.told,
        examples=[_planned(each) for each in plan.examples],
    )


def _planned(planned: Planned) -> PlannedDocument:
    view, edit = planned.view, planned.edit
    before = readable(shown_payload(view, view.payload))
    after = before if edit is None else readable(shown_payload(view, edit.after))
    error = error_line(masked_view(view))
    return PlannedDocument(id=view.id, task=view.task, error=error, before=before, after=after)


def discard_plan_document(plan: DiscardPlan) -> DiscardPlanDocument:
    examples = [job_seen(view) for view in plan.examples]
    return DiscardPlanDocument(
        would_discard=len(plan.ids),
        ids=plan.ids,
        examples=examples,
        kept=kept_documents(plan.kept, plan.until),
    )


def discarded_document(done: Discarded) -> DiscardedDocument:
    return DiscardedDocument(discarded=done.ids, kept=kept_documents(done.kept))


def kept_documents(kept: Mapping[JobId, Kept], until: datetime | None = None) -> list[KeptDocument]:
    """`until`: when those that are new are so no more."""
    by_reason = {why: [id for id, each in kept.items() if each is why] for why in Kept}
    return [
        KeptDocument(
            why=why.value,
            says=why.says,
            count=len(ids),
            ids=ids[:KEPT_NAMED],
            until=until if why is Kept.NEW else None,
        )
        for why, ids in by_reason.items()
        if ids
    ]
