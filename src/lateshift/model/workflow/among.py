"""Runs of workflows among jobs that are cancelled or resubmitted: with a run goes what it has done, and that is said before."""

from collections.abc import Container, Iterable

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.workflow.run import ANEW


class RunsAmong(Struct, frozen=True, kw_only=True):
    """How many of the jobs are runs; of those that are cancelled, how many have begun, so that what they did is undone; of those that are
    resubmitted, how many begin from nothing: the others go on where they stood. `says`: the same for people, empty if there are none."""

    count: int = 0
    undone: int = 0
    anew: int = 0
    says: str = ""


def cancelled(views: Iterable[JobView], begun: Container[JobId]) -> RunsAmong:
    """`begun`: the runs of which something was written."""
    runs = [view for view in views if view.is_run]
    undone = sum(view.id in begun for view in runs)
    said = ""
    if undone:
        verb, what = ("have", "they") if undone > 1 else ("has", "it")
        said = (
            f" {_of(undone, len(runs))} {verb} begun: what {what} did is undone first, the last step first."
        )
    return RunsAmong(count=len(runs), undone=undone, says=_counted(len(runs)) + said)


def resubmitted(views: Iterable[JobView]) -> RunsAmong:
    tally = Resubmitted()
    for view in views:
        tally.add(view)
    return tally.told


class Resubmitted:
    """Added up one by one, where there may be very many."""

    def __init__(self) -> None:
        self.count = 0
        self.anew = 0

    def add(self, view: JobView) -> None:
        self.count += view.is_run
        self.anew += view.is_run and (view.state is State.CANCELLED or view.reason in ANEW)

    @property
    def told(self) -> RunsAmong:
        said = _counted(self.count)
        if self.anew:
            verb, steps = ("begin", "their") if self.anew > 1 else ("begins", "its")
            said += f" {_of(self.anew, self.count)} {verb} from nothing: all of {steps} steps run again."
        if left := self.count - self.anew:
            said += f" {_of(left, self.count)} {'go' if left > 1 else 'goes'} on where {'they' if left > 1 else 'it'} stood."
        return RunsAmong(count=self.count, anew=self.anew, says=said)


def _counted(runs: int) -> str:
    if not runs:
        return ""
    return "1 of these is a run of a workflow." if runs == 1 else f"{runs:,} of these are runs of workflows."


def _of(some: int, runs: int) -> str:
    if some == runs:
        return "It" if runs == 1 else "They"
    return f"{some:,} of them"
