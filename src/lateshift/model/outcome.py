"""How an attempt ends is a value; `outcome_of` is the one place that decides what follows from it."""

import traceback
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec import Struct

from lateshift.errors import Cancel, Permanent, Snooze
from lateshift.model.history import append
from lateshift.model.job import AttemptRecord, Lease, Note
from lateshift.model.remote import is_a, name_of
from lateshift.model.retry import LONGEST_DELAY, Retry

TRACEBACK_LIMIT = 8 * 1024
MESSAGE_LIMIT = 2 * 1024
SINCE_ITS_LEASE = 1e9  # seconds: longer than any body ran, which leaves the time of the lease as its start
LATE = "the supervisor: past its complete-by"  # who cancels the job of a step that was not done in time
RESULT_NOT_KEPT = "result_not_kept"  # why a job is a dead letter: it was done, but cannot say so


class Completed(Struct, frozen=True, gc=False):
    """The body returned: `result` is what it returned, as JSON; `session_state` what it wants its session to keep. `ran`: for how many
    seconds it ran; a store keeps that as the time of its start."""

    result: bytes | None
    keep: timedelta
    session_state: bytes | None = None
    ran: float = SINCE_ITS_LEASE


class ResultNotKept(Permanent):
    """The body's work is done, but its result cannot be stored."""


class DeadLettered(Struct, frozen=True):
    """No further attempt will be made until somebody resubmits the job."""

    reason: str
    history: bytes
    keep: timedelta


class Cancelled(Struct, frozen=True):
    """Somebody, or the body itself, asked for the job to end."""

    reason: str
    keep: timedelta
    history: bytes | None = None


class Later(Struct, frozen=True):
    """Another attempt follows after `delay`. If this one does not count, its number is given out again."""

    delay: timedelta
    counts: bool
    history: bytes | None = None


Outcome: TypeAlias = Completed | DeadLettered | Cancelled | Later


class Settlement(Struct, frozen=True, eq=False, gc=False):
    """What a worker tells the store about a lease. `words`: how far it had come, if the store may not have heard that yet."""

    lease: Lease
    outcome: Outcome
    words: Note | None = None


def last_words(settlements: Sequence[Settlement]) -> list[Note]:
    """The progress that is kept before they end."""
    return [it.words for it in settlements if it.words is not None]


class Failed(Struct, frozen=True):
    """The body raised."""

    error: BaseException


class Killed(Struct, frozen=True):
    """The body was stopped from outside, or its process died: `complete_by`, `memory`, `process_died`."""

    reason: str
    message: str


class Stopped(Struct, frozen=True):
    """The worker is stopping and the body was interrupted: hand the job back."""


class Called(Struct, frozen=True):
    """The body was cancelled because an operator asked for it."""

    by: str


class Decided(Struct, frozen=True):
    """A workflow said itself how its attempt ends; None if it has given its lease up, and nothing is left to say. `what`: for the
    log."""

    outcome: Outcome | None
    what: str = ""


class Deciding(BaseException):
    """How a workflow says so."""

    def __init__(self, decided: Decided) -> None:
        super().__init__(decided)
        self.decided = decided


Ended: TypeAlias = Failed | Killed | Stopped | Called

HANDED_BACK = Later(timedelta(0), counts=False)


def outcome_of(
    ended: Ended, lease: Lease, retry: Retry, *, at: datetime, ran_for: float, keep: timedelta, member: str
) -> Outcome:
    """What follows when the body did not simply return."""

    def record(reason: str, error: BaseException | None = None, message: str | None = None) -> bytes:
        return append(
            lease.history,
            AttemptRecord(
                attempt=lease.attempt,
                fence=lease.fence,
                at=at,
                reason=reason,
                ran_for=round(ran_for, 6),
                error=None if error is None else plain(name_of(error)),
                message=clip(message or "" if error is None else said(error), MESSAGE_LIMIT),
                traceback=None if error is None else trace_of(error),
                member=member,
            ),
        )

    def cancelled(why: str) -> Cancelled:
        return Cancelled(why, keep, record("cancelled", message=why))

    def last(error: BaseException | None = None) -> bool:
        return retry.exhausted(lease.attempt, lease.attempts, error)

    match ended:
        case Stopped():
            return HANDED_BACK
        case Called(by):
            return cancelled(f"cancelled by {by}")
        case Failed(Snooze() as snooze):
            return Later(min(max(snooze.delay, timedelta(0)), LONGEST_DELAY), counts=False)
        case Failed(Cancel() as cancel):
            return cancelled(clip(said(cancel) or "cancelled by the task", MESSAGE_LIMIT))
        case Failed(error) if is_a(error, ResultNotKept):
            return DeadLettered(RESULT_NOT_KEPT, record(RESULT_NOT_KEPT, error), keep)
        case Failed(error) if is_a(error, Permanent) or retry.never_for(error):
            return DeadLettered("permanent", record("permanent", error), keep)
        case Failed(error) if lease.probe:
            return Later(retry.delay(lease.attempt, error), counts=False, history=record("failed", error))
        case Failed(error) if last(error):
            return DeadLettered("exhausted", record("failed", error), keep)
        case Failed(error):
            return Later(retry.delay(lease.attempt, error), counts=True, history=record("failed", error))
        case Killed(reason, message) if lease.probe:
            return Later(retry.delay(lease.attempt), counts=False, history=record(reason, message=message))
        case Killed(reason, message) if last():
            return DeadLettered(reason, record(reason, message=message), keep)
        case Killed(reason, message):
            return Later(retry.delay(lease.attempt), counts=True, history=record(reason, message=message))


def fault_of(ended: Ended) -> str | None:
    """The name of what went wrong, if anything did: a body may also ask for a pause, or be asked to stop."""
    match ended:
        case Failed(Snooze() | Cancel()) | Stopped() | Called():
            return None
        case Failed(error):
            return plain(name_of(error))
        case Killed(reason, _):
            return reason


def trace_of(error: BaseException) -> str:
    """Where it was raised, as much as is kept."""
    text = getattr(error, "remote_traceback", None) or "".join(traceback.format_exception(error))
    return clip_middle(text, TRACEBACK_LIMIT)


def said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # its own __str__ is user code too
        return f"[str() of this {name_of(error)} raised {name_of(failure)}]"


def plain(text: str) -> str:
    """As every store can keep it: file names that are no UTF-8 come as lone surrogates, and PostgreSQL knows no NUL."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def clip(text: str, limit: int) -> str:
    text = plain(text)
    return text if len(text) <= limit else text[: limit - 12] + " [truncated]"


def clip_middle(text: str, limit: int) -> str:
    """The head names where it began, the tail what was raised: keep both."""
    text = plain(text)
    half = limit // 2 - 8
    return text if len(text) <= limit else text[:half] + "\n[truncated]\n" + text[-half:]
