"""A run of a workflow: a job, with what is kept beside it."""

from collections.abc import Container, Sequence
from datetime import datetime, timedelta
from enum import IntEnum
from uuid import UUID

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import JobView, Lease, NewJob, State
from lateshift.model.workflow.step import StepRow, StepView

STATUS_LIMIT = 200  # characters of what a run says of itself
SIGNAL_NAME_LIMIT = 200
SIGNALS_MOST = 10_000  # that wait for one run
ITS_TIME = "its time"  # what a run that sleeps waits for
GOES_ON = ("compensation_failed", "worker_lost")  # why runs are dead letters that go on where they stood
ANEW = ("undone", "failed")  # why others are, which begin from nothing when they are resubmitted
NEVER = timedelta(days=3650)  # until a run that waits for somebody is looked at all the same


class Phase(IntEnum):
    """What a run is at. How it ended is told by its job."""

    FORWARD = 0
    UNDOING = 1
    HELD = 2  # until an operator says how it goes on
    UNDO_HELD = 3  # the same of one that is to be undone: it goes on with that

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def is_held(self) -> bool:
        return self in (Phase.HELD, Phase.UNDO_HELD)

    @property
    def is_undone(self) -> bool:
        """Whether what was done is undone, now or when somebody lets it go on."""
        return self in (Phase.UNDOING, Phase.UNDO_HELD)


class Signal(Struct, frozen=True):
    """What somebody told a run, and it has not taken yet."""

    number: int
    name: str
    data: bytes | None


class Asleep(Struct, frozen=True):
    """The run wants to wait without a worker: at most so long, and not after `until` by the store's clock; unless something came
    since `news` was read."""

    wait: timedelta
    until: datetime | None
    news: int
    waits_for: str


class Advance(Struct, frozen=True, kw_only=True):
    """What one run wants written in one commit: its steps, the jobs that they are, what it says of itself; and whether it
    sleeps after that. `begin`: its name and the version of its code, if nothing of it was ever written. `forward`: a step begins with it,
    which it must not once somebody wants the run stopped."""

    lease: Lease
    steps: Sequence[StepRow] = ()
    jobs: Sequence[NewJob] = ()
    taken: Sequence[tuple[int, str]] = ()  # signals, and the steps that took them
    begin: tuple[str, str] | None = None
    status: str | None = None
    phase: Phase | None = None
    why: str | None = None  # of the phase
    sleep: Asleep | None = None
    forward: bool = False


class Advanced(Struct, frozen=True):
    """The answer: nothing of it was written if it is lost, or `stopped`: it goes forward, and the run is cancelled or undone. `now`: by the
    store's clock, from which what was written has its times. `news`: how often something came from outside."""

    now: datetime | None = None
    lost: bool = False
    asleep: bool = False
    news: int = 0
    phase: Phase = Phase.FORWARD
    cancel_by: str | None = None
    stopped: bool = False


LOST = Advanced(lost=True)


def is_step(job: JobView, runs: Container[JobId]) -> bool:
    """Whether a dead letter was a step of one of these runs: to run it again by itself would be heard by nobody. A child may go on
    with what it has to undo."""
    return job.batch in runs and not (job.is_run and job.reason in GOES_ON)


def is_over(run: JobView) -> bool:
    """Whether none of its steps runs again: it has ended, and does not go on where it stood."""
    return run.state.settled and not (run.state is State.DEAD and run.reason in GOES_ON)


class RunRow(Struct, frozen=True, kw_only=True):
    """A run as it stands in the store, without its steps."""

    id: JobId
    name: str
    version: str
    phase: Phase
    why: str | None
    news: int
    status: str | None
    cancel_by: str | None
    waits_for: str | None
    started_at: datetime


class Loaded(Struct, frozen=True):
    """All that is needed to go on with a run: the steps in the order of their paths, and signals that it has not taken. `now`: by
    the store's clock."""

    run: RunRow
    steps: list[StepView]
    signals: list[Signal]
    now: datetime


class RunView(Struct, frozen=True, kw_only=True):
    """A run, as operators see it."""

    run: RunRow
    state: State
    reason: str | None
    queue: str
    parent: UUID | None
    due_at: datetime
    settled_at: datetime | None
    steps: list[StepView]
