"""What a task's own code may ask and tell while it runs: progress, checkpoints, who it is, and whether to stop."""

import math
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from lateshift.errors import Cancel, LateshiftError, LeaseLost, OptionInvalid, PayloadTooLarge, StateInvalid
from lateshift.model import mismatch
from lateshift.model.batch import BatchId
from lateshift.model.depth import refuse_deep, too_deep
from lateshift.model.ids import JobId
from lateshift.model.job import PAYLOAD_LIMIT, Lease, Progress
from lateshift.model.outcome import clip
from lateshift.telemetry.context import Running, running

T = TypeVar("T")

NOTE_LIMIT = 200  # characters of a progress note


class Desk(Protocol):
    """Where a running attempt leaves what must be kept."""

    def save_checkpoint(self, lease: Lease, state: bytes) -> bool: ...
    async def asave_checkpoint(self, lease: Lease, state: bytes) -> bool: ...
    def now(self) -> float: ...


class Current:
    """The attempt that is running this code."""

    def __init__(self, attempt: Running) -> None:
        self._attempt = attempt

    @property
    def job_id(self) -> JobId:
        """The same for every attempt: an idempotency token for calls to others."""
        return self._attempt.lease.id

    @property
    def batch(self) -> BatchId | None:
        """The batch that this job belongs to."""
        return self._attempt.lease.batch

    @property
    def attempt(self) -> int:
        """Numbered from 1."""
        return self._attempt.lease.attempt

    @property
    def fence(self) -> int:
        """Higher at every lease of this job. Send it with your own writes, and refuse a lower one there."""
        return self._attempt.lease.fence

    @property
    def time_left(self) -> timedelta | None:
        """Until the complete-by; None where the task has no time limit."""
        deadline = self._attempt.deadline
        return None if deadline is None else timedelta(seconds=deadline - self._attempt.desk.now())

    @property
    def should_stop(self) -> bool:
        """The job was cancelled, its lease is lost, or its worker is stopping: save a checkpoint and return soon."""
        attempt = self._attempt
        return attempt.cancelled_by is not None or attempt.lost or attempt.stopping


def current() -> Current:
    """The running attempt. Raises where no task is running."""
    return Current(_running())


def progress(done: float, total: float | None = None, note: str | None = None) -> None:
    """Say how far the job is; shown within a second. Cheap enough to call in a loop. Raises in a thread or process if
    the job was cancelled, so that a loop that reports also stops."""
    attempt = _running()
    _stop_if_told(attempt)
    attempt.progress = Progress(
        _number("done", done),
        None if total is None else _number("total", total),
        None if note is None else clip(str(note), NOTE_LIMIT),
    )


def checkpoint(state: Any) -> None:
    """Keep `state`, durably when this returns, for the next attempt if there is one (`last_checkpoint`)."""
    attempt = _running()
    _stop_if_told(attempt)
    encoded = _encode(state)
    if not attempt.desk.save_checkpoint(attempt.lease, encoded):
        _lose(attempt)
    attempt.checkpoint = encoded


async def acheckpoint(state: Any) -> None:
    """The same in an async task."""
    attempt = _running()
    encoded = _encode(state)
    if not await attempt.desk.asave_checkpoint(attempt.lease, encoded):
        _lose(attempt)
    attempt.checkpoint = encoded


def last_checkpoint(default: T = None, type: Any = Any) -> T:  # type: ignore[assignment]
    """What this job saved last, in this attempt or an earlier one; `type` to have it read as."""
    attempt = _running()
    if attempt.checkpoint is None:
        return default
    saved: T = _decode(attempt.checkpoint, type, "checkpoint")
    return saved


class SessionHere:
    """The session of the job that runs this code."""

    @property
    def name(self) -> str:
        return _in_session().lease.session or ""

    def get_state(self, default: T = None, type: Any = Any) -> T:  # type: ignore[assignment]
        """What the session keeps: as this attempt has set it, else as the last job that completed has; `type` to have it
        read as."""
        attempt = _in_session()
        kept = attempt.lease.session_state if attempt.session_state is None else attempt.session_state
        if kept is None:
            return default
        state: T = _decode(kept, type, f"state of the session {attempt.lease.session!r}")
        return state

    def set_state(self, state: Any) -> None:
        """Written in one commit with the completion of this job; never, if this attempt does not complete."""
        _in_session().session_state = _encode(state, "state of the session")


session = SessionHere()


def _in_session() -> Running:
    attempt = _running()
    if attempt.lease.session is None:
        raise LateshiftError(
            "This job is in no session, so it has no state to keep: enqueue it with options(session=…)."
        )
    return attempt


def _number(name: str, value: float) -> float:
    """Any number, numpy's too, as one that JSON has."""
    number = float(value)
    if not math.isfinite(number):
        raise OptionInvalid(f"progress: {name} must be a finite number, not {value}.")
    return int(number) if number.is_integer() else number


def _running() -> Running:
    try:
        return running.get()
    except LookupError:
        raise LateshiftError(
            "No task is running here: progress, checkpoints and current() belong inside one."
        ) from None


def _stop_if_told(attempt: Running) -> None:
    if attempt.lost:
        _lose(attempt)
    if attempt.cancelled_by is not None:
        raise Cancel(f"cancelled by {attempt.cancelled_by}")


def _lose(attempt: Running) -> None:
    attempt.lost = True
    raise LeaseLost(
        "This attempt no longer holds its job; another may be running it. Nothing it writes is kept."
    )


def _encode(state: Any, what: str = "checkpoint") -> bytes:
    try:
        encoded = msgspec.json.encode(state)
    except RecursionError as error:
        raise too_deep(f"The {what} has") from error
    if len(encoded) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(f"The {what} is {len(encoded):,} bytes, over the limit of {PAYLOAD_LIMIT:,}.")
    refuse_deep(encoded, f"The {what} has")
    return encoded


def _decode(kept: bytes, type: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(kept, type=type)
    except msgspec.DecodeError as error:
        where, wrong = mismatch.told(error)
        at = f"at {where!r}, " if where else ""
        raise StateInvalid(
            f"The {what} does not fit the type that it is to be read as: {at}{wrong}. Give a type that takes what is kept, or "
            "leave it out."
        ) from error
