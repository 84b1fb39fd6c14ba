"""A step of a workflow: where it stands in the run, what became of it, and how it is undone."""

from datetime import datetime, timedelta
from enum import IntEnum

import msgspec
from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import AttemptRecord, State

DIGITS = 5  # of a number in a path, so that paths sort as the steps follow one another
STEPS_MOST = 10_000  # in one run, and branches of one gather


class Kind(IntEnum):
    """What a step does."""

    CALL = 0  # a function, run by the workflow's own worker
    JOB = 1  # a task: a job of its own on its queue
    CHILD = 2  # another workflow: a run of its own
    SLEEP = 3
    SIGNAL = 4
    NOW = 5
    PATCH = 6
    EMIT = 7
    GATHER = 8  # so many branches at once
    FIXED = 9  # something that stays as it was when the code first came by

    @property
    def label(self) -> str:
        return self.name.lower()


class StepState(IntEnum):
    """Of a step that has begun; one that has not is not there."""

    RUNNING = 1
    COMPLETED = 2
    FAILED = 3
    HELD = 4  # it has failed, and waits for an operator

    @property
    def label(self) -> str:
        return self.name.lower()


class Undo(IntEnum):
    """How far a step is undone. Only of one that was done and says how."""

    NOT_BEGUN = 0
    RUNNING = 1
    DONE = 2
    FAILED = 3

    @property
    def label(self) -> str:
        return ("", "undoing", "undone", "undo failed")[self]


class StepError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a step failed, or an undo."""

    error: str
    message: str = ""
    traceback: str | None = None
    reason: str | None = None  # of a job: why it ended so

    def __str__(self) -> str:
        return f"{self.error}: {self.message}" if self.message else self.error


class StepRow(Struct, frozen=True, kw_only=True):
    """A step as the one who runs the workflow writes it, whole. `place`: its number among those that were done.
    `wait`: how long until it is due, from now, as of a sleep; None leaves that as it is. `limit`: likewise its complete-by."""

    path: str
    kind: Kind
    name: str
    state: StepState
    payload: bytes | None = None
    result: bytes | None = None
    error: bytes | None = None
    place: int | None = None
    failures: int = 0
    job: JobId | None = None
    wait: timedelta | None = None
    limit: timedelta | None = None
    undo: str | None = None
    undo_state: Undo = Undo.NOT_BEGUN
    undo_failures: int = 0
    undo_error: bytes | None = None
    undo_job: JobId | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is something to undo: it has completed, or was done and its result could not be kept."""
        return self.state is StepState.COMPLETED or (
            self.state in (StepState.FAILED, StepState.HELD) and bool(self.place)
        )


class StepOutline(Struct, frozen=True, kw_only=True):
    """A step as it stands in the store, without what it holds: what it was given, gave and raised may be large."""

    path: str
    kind: Kind
    name: str
    state: StepState
    place: int | None
    failures: int
    job: JobId | None
    due_at: datetime | None
    complete_by: datetime | None
    started_at: datetime
    ended_at: datetime | None
    undo: str | None
    undo_state: Undo
    undo_failures: int
    undo_job: JobId | None
    undone_at: datetime | None
    mended: bool  # an operator gave it other arguments than the code has


class StepView(StepOutline, frozen=True, kw_only=True):
    """The same with all that it holds."""

    payload: bytes | None
    result: bytes | None
    error: bytes | None
    undo_error: bytes | None


def is_refused(step: StepRow | StepOutline) -> bool:
    """Whether it stands for what an item of a pipeline could not go on with: a list for a fan_out, or the result. The step of a gather has the
    number of its branches for a name."""
    if step.kind is Kind.GATHER:
        return not step.name.isdigit()
    return step.kind is Kind.FIXED and step.state in (StepState.HELD, StepState.FAILED)


_errors = msgspec.json.Decoder(StepError)


def path_of(prefix: str, number: int) -> str:
    """The path of the step of this number, at the top or in a branch."""
    return f"{prefix}.{number:0{DIGITS}}" if prefix else f"{number:0{DIGITS}}"


def shown_path(path: str) -> str:
    """As people read it: 3, or 3.1.2."""
    return ".".join(str(int(part)) for part in path.split("."))


def path_from(shown: str) -> str:
    """The other way round. Raises ValueError."""
    return ".".join(f"{int(part):0{DIGITS}}" for part in shown.split("."))


def error_of(error: bytes | None) -> StepError | None:
    return None if error is None else _errors.decode(error)


def written_error(error: StepError) -> bytes:
    return msgspec.json.encode(error)


def error_of_job(state: State, reason: str | None, history: list[AttemptRecord]) -> StepError:
    """Why the job of a step did not complete. Of one that was cancelled, that: what it failed of before is another matter."""
    last = history[-1] if history else None
    if state is State.CANCELLED and last is not None and last.error is not None:
        last = None
    if last is None or last.error is None:
        return StepError(
            error=reason or "failed", message=(last.message or "") if last else "", reason=reason
        )
    return StepError(error=last.error, message=last.message or "", traceback=last.traceback, reason=reason)


LATE = written_error(
    StepError(error="complete_by", message="it was not done by its complete-by", reason="complete_by")
)
