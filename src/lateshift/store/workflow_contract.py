"""What every store does about workflows. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Protocol

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.workflow.run import Advance, Advanced, Loaded, Phase, RunView


class Told(Enum):
    """What became of a signal."""

    KEPT = "kept"
    REPEATED = "repeated"  # its key was used before
    ENDED = "ended"
    UNKNOWN = "unknown"
    FULL = "full"


class LateStep(Struct, frozen=True):
    """A step that was not done by its complete-by, and the job that it was."""

    run: JobId
    path: str
    name: str
    job: JobId


class Workflows(Protocol):
    """A run is a job; its steps stand beside it. The job of a step, or of an undo, names the run as its batch: whoever settles
    that job writes its end into the step, and wakes the run."""

    def advance(self, advances: Sequence[Advance]) -> list[Advanced]:
        """Write what these runs want written, in one commit; each only if its lease holds. A step that has completed stays as
        it is. One that wants to sleep gives its lease up, unless there is news."""

    def load(self, ids: Sequence[JobId]) -> list[Loaded]:
        """Runs of which something was written, in the order of their ids."""

    def overdue(self, *, term: int, limit: int) -> list[LateStep]:
        """Steps that are jobs and have not ended by their complete-by have failed; what their jobs say later is not heard. Their
        runs are woken. Refused (empty) unless `term` is the supervisor's present one."""

    def signal(self, id: JobId, name: str, data: bytes | None, *, key: str | None, by: str) -> Told:
        """Keep a signal for a run that has not ended, and wake it. One with a key that was used is not kept again."""

    def view(self, id: JobId) -> RunView | None: ...

    def newest(
        self, before: JobId | None, limit: int, *, name: str | None = None, phase: Phase | None = None
    ) -> list[RunView]:
        """Runs without their steps, the newest first."""

    def direct(self, id: JobId, phase: Phase, *, why: str, by: str) -> bool:
        """An operator says how a run goes on that has not ended, or is held: its phase is this now. False if it has ended, or
        was never begun."""

    def mend(self, id: JobId, path: str, payload: bytes | None, *, by: str) -> bool:
        """A step that is held begins anew, with other arguments if some are given; and the run goes on. Of several held steps, each
        is mended for itself. False if no such step is held, or the run is being undone or has ended."""


def is_ready(one: Advance) -> bool:
    """Whether it gives its lease up for another to go on at once."""
    return one.sleep is not None and one.sleep.wait <= timedelta(0)
