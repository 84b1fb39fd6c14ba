"""What becomes of a job, as it is told to others: the kinds of events, and an event as a receiver gets it."""

from datetime import datetime
from enum import IntEnum
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lateshift.model import history, saying
from lateshift.model.depth import JSON_DEPTH, depth_of
from lateshift.model.job import AttemptRecord, Progress
from lateshift.model.sealed import MASK, hidden_record, hidden_text, is_sealed, masked_progress, masked_text

RESULT_TOLD = 8 * 1024  # bytes of a result; a larger one is left out of the event, and read with the job
ERROR_TOLD = 2 * 1024  # characters of what an attempt raised


class Kind(IntEnum):
    """The last three are a job's state; after them nothing follows, unless somebody resubmits the job."""

    RECEIVED = 0
    STARTED = 1
    PROGRESS = 2
    RETRYING = 3
    COMPLETED = 4
    CANCELLED = 5
    FAILED = 6

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def last(self) -> bool:
        return self >= Kind.COMPLETED


KINDS = {kind.label: kind for kind in Kind}


class JobEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that became of a job. `id`: the same however often it is delivered. `correlation_id`: what the caller gave.
    `result_left_out`: it was too large for an event; the job has it. `number`: of one that came by a channel, what to go on after."""

    id: str
    kind: str
    job_id: UUID
    task: str
    queue: str
    at: datetime
    attempt: int = 0
    correlation_id: str | None = None
    progress: Progress | None = None
    result: Any = None
    result_left_out: bool = False
    reason: str | None = None
    error: str | None = None

    number: int | None = None  # where it stands in its channel's log, if it came by one
    channel: str | None = None


class Told(Struct, frozen=True, kw_only=True):
    """An event as a store keeps it until it is sent on."""

    number: int
    job: UUID
    kind: Kind
    queue: str
    task: str
    attempt: int
    at: datetime | None
    progress: bytes | None
    history: bytes | None
    result: bytes | None
    reason: str | None
    reply: str


def event_of(told: Told, now: datetime, correlation_id: str | None, *, hide: bool = False) -> JobEvent:
    """`now`: for what was written without a time, and no event of the job that follows was before it. `hide`: its queue is sensitive."""
    last = _last(told)
    progress, said = saying.read(told.progress)
    if last is not None and hide:
        last = hidden_record(last)
    reason = told.reason or (None if last is None else last.reason)
    result, left_out = result_told(told.result, hide=hide) if told.kind is Kind.COMPLETED else (None, False)
    return JobEvent(
        id=f"{told.job.hex}-{told.number}", kind=told.kind.label, job_id=told.job, task=told.task, queue=told.queue,
        at=told.at or min(now, last.at if last is not None else said.at if said is not None and said.at is not None else now), attempt=told.attempt, correlation_id=correlation_id,
        progress=masked_progress(progress, hide=hide), result=result,
        result_left_out=left_out, reason=_reason(told.kind.label, reason, hide=hide), error=error_of(last),
    )  # fmt: skip


def hidden_event(event: JobEvent) -> JobEvent:
    """One that was told before its queue was sensitive, as it may be shown."""
    return replace(
        event, progress=masked_progress(event.progress, hide=True), result=None, error=None if event.error is None else MASK,
        result_left_out=event.result_left_out or event.result is not None, reason=_reason(event.kind, event.reason, hide=True),
    )  # fmt: skip


def _reason(kind: str, reason: str | None, *, hide: bool) -> str | None:
    """Of a cancel it is somebody's words; of a failure one of ours."""
    return hidden_text(reason) if hide and kind == Kind.CANCELLED.label else reason


def _last(told: Told) -> AttemptRecord | None:
    """The attempt that did not complete, of an event that tells of one."""
    if told.kind not in (Kind.RETRYING, Kind.FAILED):
        return None
    records = history.attempts(history.read(told.history))
    return records[-1] if records else None


def error_of(record: AttemptRecord | None) -> str | None:
    """What it raised, without the traceback: that stays with the job."""
    if record is None or not (record.error or record.message):
        return None
    message = masked_text(record.message)
    text = f"{record.error}: {message}" if record.error else message or ""
    return text[:ERROR_TOLD]


def result_told(kept: bytes | None, *, hide: bool) -> tuple[Any, bool]:
    """A sealed one, or one that is to be hidden, is for those who hold the key, and is read with the job."""
    if kept is None:
        return None, False
    if hide or len(kept) > RESULT_TOLD or is_sealed(kept) or depth_of(kept) > JSON_DEPTH:
        return None, True
    return msgspec.json.decode(kept), False
