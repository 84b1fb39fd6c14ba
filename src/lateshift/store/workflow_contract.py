"""What every store does about workflows. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Protocol

import msgspec
from msgspec import Struct

from lateshift.model.depth import JSON_DEPTH, depth_of
from lateshift.model.ids import JobId
from lateshift.model.pipeline.progress import Tally
from lateshift.model.workflow.run import Advance, Advanced, Loaded, Phase, RunRow, RunView, Signal
from lateshift.model.workflow.step import Kind, StepOutline, StepState, StepView

STEPS_LOOKED_AT = 100_000  # of runs that are held or dead, where those are counted at which they are


class Told(Enum):
    """What became of a signal."""

    KEPT = "kept"
    REPEATED = "repeated"  # its key was used before, for the same
    CONFLICT = "conflict"  # its key was used before, for another name or other data
    ENDED = "ended"
    UNKNOWN = "unknown"
    NO_RUN = "no run"  # a job, but no workflow
    FULL = "full"


class LateStep(Struct, frozen=True):
    """A step that was not done by its complete-by, and the job that it was."""

    run: JobId
    path: str
    name: str
    job: JobId


class ToUndo(Struct, frozen=True):
    """Steps of one run that would be undone in one way: by `undo`, or as it was tried, by `job`. None of both: those that would not. `path`: of
    the first of them. `steps`: how many they are."""

    run: JobId
    path: str
    undo: str | None
    job: JobId | None
    steps: int


class Child(Struct, frozen=True):
    """A step that is a run of its own and under way."""

    run: JobId
    path: str
    name: str
    job: JobId


class Kept(Struct, frozen=True):
    """What the newest item of a pipeline keeps of it."""

    name: str
    queue: str
    shape: bytes


class Workflows(Protocol):
    """A run is a job; its steps stand beside it. The job of a step, or of an undo, names the run as its batch: whoever settles
    that job writes its end into the step, and wakes the run."""

    def advance(self, advances: Sequence[Advance]) -> list[Advanced]:
        """Write what these runs want written, in one commit; each only if its lease holds. A step that has completed stays as
        it is, and that a run is to be undone is not forgotten because it is held. One that wants to sleep gives its lease up, unless there is news.
        Nothing is written of one that goes forward and is cancelled or undone: it is `stopped`."""

    def load(self, ids: Sequence[JobId]) -> list[Loaded]:
        """Runs of which something was written, in the order of their ids."""

    def overdue(self, *, term: int, limit: int) -> list[LateStep]:
        """Steps that are jobs and have not ended by their complete-by have failed; what their jobs say later is not heard. Their
        runs are woken. Refused (empty) unless `term` is the supervisor's present one."""

    def signal(self, id: JobId, name: str, data: bytes | None, *, key: str | None, by: str) -> Told:
        """Keep a signal for a run that has not ended, and wake it. One with a key that was used is not kept again, and is told
        whether it is what was kept then; also after the run has ended. A job that has not begun is known to be a run by its attempts, STRETCHES."""

    def told(self, id: JobId, limit: int, *, after: int = 0, most: int | None = None) -> list[Signal]:
        """What a run was told and has not taken yet, the first of it; behind the one of this number. `most`: so many bytes of data, but
        the first one in any case."""

    def begun(self, ids: Sequence[JobId]) -> dict[JobId, RunRow]:
        """Those of these that are runs of which something was written, as they stand."""

    def late_steps(self, limit: int) -> list[LateStep]:
        """Steps that are jobs and have not ended by their complete-by, which `overdue` has not come by yet; the latest first."""

    def view(self, id: JobId) -> RunView | None:
        """A run with all that its steps hold, which may be more than fits into a process: for a command, which is one of its own."""

    def look(
        self,
        id: JobId,
        *,
        after: str = "",
        limit: int,
        state: StepState | None = None,
        most: int | None = None,
    ) -> RunView | None:
        """A run with up to so many of its steps, in their order: those after a path, and of one state if that is named. `most`: so many
        bytes of what they hold, but the first one in any case."""

    def outline(
        self,
        id: JobId,
        *,
        after: str = "",
        limit: int,
        state: StepState | None = None,
        kind: Kind | None = None,
        job: JobId | None = None,
    ) -> list[StepOutline]:
        """The same steps without what they hold, also of one kind, or those of one job, that they were or that was to undo them; of all that
        a run has, see outlines.py."""

    def to_undo(self, ids: Sequence[JobId], *, limit: int) -> list[ToUndo]:
        """What would be undone if these runs ended now. So many of their steps are looked at: where those that are given are as many, there may
        be more. One that is under way may be done by then; one that has failed with nothing done, and one that is undone, are not undone."""

    def children(self, ids: Sequence[JobId], *, limit: int) -> list[Child]:
        """Up to so many steps of these runs that are runs of their own and have not ended, by their paths."""

    def step(self, id: JobId, path: str) -> StepView | None:
        """One step of a run, with all that it holds."""

    def queues_of(self, jobs: Sequence[JobId]) -> dict[JobId, str]:
        """In which queue each of these jobs stands, of those that are there."""

    def newest(
        self, before: JobId | None, limit: int, *, name: str | None = None, phase: Phase | None = None
    ) -> list[RunView]:
        """Runs without their steps, the newest first."""

    def direct(self, id: JobId, phase: Phase, *, why: str, by: str) -> bool:
        """An operator says how a run goes on that has not ended, or is held: its phase is this now; one that was to be undone when it was
        held goes on with that, for the reason that it had. Held steps begin anew if it goes forward, as by `mend`. False if it has ended, or was never
        begun."""

    def mend(self, id: JobId, path: str, payload: bytes | None, *, by: str) -> bool:
        """A step that is held begins anew, with other arguments if some are given; and the run goes on. Of several held steps, each
        is mended for itself. The job that it had is a dead letter no more, but cancelled, and holds no session. False if no such step is held, or the run is being undone or has ended."""

    def tally(self, name: str, queue: str, limit: int | None = None) -> Tally:
        """How many runs of this name wait in the queue, are under way, are held and have ended, and what stands at each of their
        steps. Of those that have begun the newest COUNT_LIMIT are looked at, or so many as are said, and whatever is held."""

    def pipelines(self, name: str | None = None, *, limit: int, after: str = "") -> list[Kept]:
        """What pipelines there are, by name, behind one, as their newest items keep them: those of which one has begun and is still here."""


def is_ready(one: Advance) -> bool:
    """Whether it gives its lease up for another to go on at once."""
    return one.sleep is not None and one.sleep.wait <= timedelta(0)


def step_resubmitted(by: str) -> str:
    """Why the job of a step that begins anew is no dead letter any more."""
    return f"its step was resubmitted by {by}"


def known_by_key(kept: Sequence[tuple[str, bytes | None]], name: str, data: bytes | None) -> Told | None:
    """What a signal is told whose key was used for these; None if it was for none. Data is the same in whatever order its objects
    have their keys, as arguments are."""
    if not kept:
        return None
    [(kept_name, kept_data)] = kept
    same = kept_name == name and (kept_data == data or _in_order(kept_data) == _in_order(data))
    return Told.REPEATED if same else Told.CONFLICT


def _in_order(data: bytes | None) -> bytes | None:
    if data is None or depth_of(data) > JSON_DEPTH:
        return data
    return msgspec.json.encode(msgspec.json.decode(data), order="deterministic")


def refused(waiting: Sequence[tuple[bool]], ended: Sequence[tuple[bool]]) -> Told | None:
    """Why a signal is not kept: of a job that has not ended, or has, each with whether it is a run."""
    if not waiting and not ended:
        return Told.UNKNOWN
    if not (waiting or ended)[0][0]:
        return Told.NO_RUN
    return None if waiting else Told.ENDED
