"""Dead letters in groups, each of those that died of the same. Bounded, whatever is added."""

from datetime import datetime

from msgspec import Struct

from lateshift.model.fingerprint import fingerprint, last_failure
from lateshift.model.ids import JobId
from lateshift.model.job import JobView
from lateshift.model.sealed import masked_view

GROUPS_KEPT = 1_000  # different fingerprints; what comes after them is only counted


class Group(Struct, kw_only=True):
    """Dead letters with one fingerprint. The message and the example are of the newest. `steps`: how many were steps of workflows, which
    are not resubmitted by themselves; `over`: how many of those of runs that have ended, which nothing runs again."""

    fingerprint: str
    task: str
    reason: str
    error: str | None
    message: str
    count: int
    first: datetime
    last: datetime
    example: JobId
    steps: int = 0
    over: int = 0


class Groups:
    """Filled one dead letter at a time, the newest first."""

    def __init__(self) -> None:
        self.looked_at = 0
        self.left_out = 0  # dead letters of more groups than are kept
        self.undone = 0  # runs that were undone, if they were left out: they need nobody
        self.cut = False  # there are more dead letters than were looked at
        self.last: JobId | None = None  # that was looked at, the oldest of them
        self._groups: dict[str, Group] = {}

    def add(self, view: JobView, *, step: bool = False, over: bool = False) -> None:
        self.looked_at += 1
        at = view.settled_at or view.created_at
        print = fingerprint(view)
        group = self._groups.get(print)
        if group is not None:
            group.count += 1
            group.steps += step
            group.over += step and over
            group.first, group.last = min(group.first, at), max(group.last, at)
        elif len(self._groups) < GROUPS_KEPT:
            self._groups[print] = _begun(print, view, at, step, over)
        else:
            self.left_out += 1

    @property
    def largest_first(self) -> list[Group]:
        return sorted(self._groups.values(), key=place_of)


def place_of(group: Group) -> tuple[int, str]:
    """By which groups are in order."""
    return -group.count, group.fingerprint


def _begun(print: str, view: JobView, at: datetime, step: bool, over: bool) -> Group:
    record = last_failure(masked_view(view))
    message = " ".join((record.message or "").split()) if record else ""
    return Group(
        fingerprint=print, task=view.task, reason=view.reason or "", error=record.error if record else None,
        message=message, count=1, first=at, last=at, example=view.id, steps=int(step),
        over=int(step and over),
    )  # fmt: skip
