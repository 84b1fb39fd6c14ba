"""One reason, and the whole answer."""

from datetime import datetime, tzinfo
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.model.explaining.words import Words
from lateshift.model.ids import JobId
from lateshift.model.job import State
from lateshift.model.words import counted


class Reason(Struct, frozen=True, kw_only=True):
    """`code` is for programs and stays the same; `says` is for people. `holds`: it keeps the job from starting; else it
    is good to know. It clears at an instant, or when something happens; `estimated` if the instant is a guess. `do` is
    a command that helps."""

    code: str
    says: str
    holds: bool = True
    jobs: list[JobId] = []
    by: str | None = None
    since: datetime | None = None
    clears_at: datetime | None = None
    clears_when: str | None = None
    estimated: bool = False
    do: str | None = None


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a job is not running, or what becomes of it if it is. `at` is the store's time, when this was true."""

    id: JobId
    task: str
    queue: str
    state: State
    at: datetime
    reasons: list[Reason]
    zone: tzinfo | None = None

    @property
    def holding(self) -> list[Reason]:
        """The reasons that keep it from starting."""
        return [reason for reason in self.reasons if reason.holds]

    @property
    def clears_at(self) -> datetime | None:
        """When the last of them clears; None if nothing holds it, or one of them waits for something without a time."""
        times = [reason.clears_at for reason in self.holding]
        known = [time for time in times if time is not None]
        return max(known, default=None) if len(known) == len(times) else None

    @property
    def estimated(self) -> bool:
        return any(reason.estimated for reason in self.holding)

    @property
    def headline(self) -> str:
        held = len(self.holding)
        if self.state.settled or self.state is State.RUNNING:
            return ""
        if not held:
            return "Nothing holds it back."
        things = "1 thing holds" if held == 1 else f"{counted(held, 'thing')} hold"
        return f"{things} it back."

    @property
    def not_before(self) -> datetime | None:
        """The latest of the times at which they clear, as far as those are known."""
        return max(
            (reason.clears_at for reason in self.holding if reason.clears_at is not None), default=None
        )

    @property
    def outlook(self) -> str:
        """What several reasons come to."""
        if len(self.holding) < 2 or self.not_before is None:
            return ""
        words, about = Words(self.at, self.zone), "about " if self.estimated else ""
        return (
            f"It can start when all of this has cleared, not before {about}{words.coming(self.not_before)}."
        )

    def document(self) -> dict[str, Any]:
        """For programs, as `lateshift jobs explain --json` prints it."""
        return {
            "id": str(self.id),
            "task": self.task,
            "queue": self.queue,
            "state": self.state.label,
            "at": self.at,
            "clears_at": self.clears_at,
            "not_before": self.not_before,
            "estimated": self.estimated,
            "reasons": [msgspec.to_builtins(reason, builtin_types=(datetime,)) for reason in self.reasons],
        }

    def __str__(self) -> str:
        words = Words(self.at, self.zone)
        lines = [
            f"{self.task} ({self.id}) is {self.state.label}." + (f" {self.headline}" if self.headline else "")
        ]
        for reason in self.reasons:
            lines += ["", f"{'-' if reason.holds else 'i'} {reason.says}"]
            lines += [f"  {name}: {text}" for name, text in details(reason, words)]
        if self.outlook:
            lines += ["", self.outlook]
        return "\n".join(lines)


def details(reason: Reason, words: Words) -> list[tuple[str, str]]:
    """What stands below a reason."""
    clears = reason.clears_when or ""
    if reason.clears_at is not None:
        about = "about " if reason.estimated else ""
        clears = f"at {about}{words.coming(reason.clears_at)}" + (f", {clears}" if clears else "")
    pairs = [("clears", clears), ("do", reason.do or "")]
    return [(name, text) for name, text in pairs if text]
