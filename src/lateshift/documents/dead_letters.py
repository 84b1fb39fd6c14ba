"""Dead letters in groups, and what a resubmission of them would do."""

from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.documents.reading import readable
from lateshift.model.groups import Group, Groups
from lateshift.model.sealed import shown_payload
from lateshift.resubmission import Plan


class GroupsDocument(Struct, frozen=True, kw_only=True):
    """The largest groups of dead letters. `left_out`: dead letters of still other groups. `cut`: there are more than were looked at."""

    groups: list[Group]
    looked_at: int
    left_out: int
    cut: bool


class PlannedDocument(Struct, frozen=True, kw_only=True):
    """One of those that would run again, with its arguments."""

    id: UUID
    task: str
    before: Any
    after: Any


class PlanDocument(Struct, frozen=True, kw_only=True):
    """What would be resubmitted; nothing was."""

    would_resubmit: int
    would_edit: int
    examples: list[PlannedDocument]


def groups_document(groups: Groups, limit: int) -> GroupsDocument:
    return GroupsDocument(
        groups=groups.largest_first[:limit],
        looked_at=groups.looked_at,
        left_out=groups.left_out,
        cut=groups.cut,
    )


def plan_document(plan: Plan) -> PlanDocument:
    examples = [
        PlannedDocument(
            id=each.view.id, task=each.view.task, before=readable(shown_payload(each.view, each.view.payload)),
            after=readable(shown_payload(each.view, each.edit.after if each.edit else each.view.payload)),
        )
        for each in plan.examples
    ]  # fmt: skip
    return PlanDocument(would_resubmit=plan.count, would_edit=plan.edited, examples=examples)
