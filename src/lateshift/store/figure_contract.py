"""What every store does about figures. See contract.py for what holds of all verbs."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from lateshift.model.figures import Figures, Grain, Sample
from lateshift.model.ids import MemberId

if TYPE_CHECKING:
    from lateshift.store.contract import TakenBack


class FigureBook(Protocol):
    """How much went on in each minute, five minutes and hour. What is added is written to all three, and to the sum over all
    queues, in one commit: nothing is computed later, so nothing can be computed twice."""

    def add(self, member: MemberId, number: int, counted: Mapping[str, Figures], *, busy: float) -> bool:
        """What this member has counted since it last told, by queue, and how many seconds it had a job to run. `number`: one higher
        each time; a number that is in, or a member that is not known, adds nothing. False then."""

    def sample(self, *, term: int | None, backlog: Mapping[str, int], workers: int) -> bool:
        """What waits in each queue now, and how many workers there are, for the minute that is under way; once for each minute.
        False if it was told before, or `term` is not the supervisor's present one. None: of a server, which needs none."""

    def sampled(self, grain: Grain, since: datetime) -> set[datetime]:
        """The periods in which somebody has told what waits: of the others nobody knows."""

    def of(self, queue: str, grain: Grain, since: datetime) -> list[Sample]:
        """By time. ALL is all queues together."""

    def by_queue(self, grain: Grain, since: datetime, limit: int) -> dict[str, Figures]:
        """The sum for each queue since then, those that ran longest first."""


def lost_attempts(taken: Iterable["TakenBack"]) -> dict[str, Figures]:
    """Attempts that the supervisor ended, whose workers count nothing any more."""
    found: dict[str, Figures] = {}
    for job in taken:
        of_queue = found.setdefault(job.queue, Figures())
        if job.dead:
            of_queue.dead += 1
        else:
            of_queue.retried += 1
    return found
