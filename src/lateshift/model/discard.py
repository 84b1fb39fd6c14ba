"""Discarding dead letters that nobody wants any more: what became of each, and why some must stay for now. Plain data."""

from enum import StrEnum

from msgspec import Struct, field

from lateshift.model.ids import JobId


class Kept(StrEnum):
    """Why one was not discarded."""

    NEW = "new"
    SESSION = "session"
    STEP = "step"
    RUN = "run"
    OTHER = "other"

    @property
    def says(self) -> str:
        """Of the job, and what to do."""
        return _SAYS[self]


_SAYS = {
    Kept.NEW: "was made less than five minutes ago: whoever enqueued it may have lost the answer and repeat that, which would make it anew; it can be "
    "discarded when they are over",
    Kept.SESSION: "holds its session: `lateshift sessions release` lets that go on, then discard it; or resubmit it",
    Kept.STEP: "is of a workflow that has not ended: `lateshift workflows resubmit-step` or `undo` helps that on; discard it when that has ended",
    Kept.RUN: "is a workflow whose jobs have not all ended: cancel them, or wait, then discard it",
    Kept.OTHER: "is no dead letter, or not any more: it stays as it is",
}


class Discarded(Struct, kw_only=True):
    """Which are gone, and why the others are not."""

    ids: list[JobId] = field(default_factory=list)
    kept: dict[JobId, Kept] = field(default_factory=dict)

    def add(self, more: "Discarded") -> None:
        self.ids += more.ids
        self.kept |= more.kept
