"""What has become of a job, seen from how it stands now: its events so far, each at a place that is always the same, so that whoever
has seen some can go on after them, whoever asks and however often."""

from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec import structs

from lateshift.errors import OptionInvalid
from lateshift.model.events import JobEvent, Kind, error_of, result_told
from lateshift.model.job import AttemptRecord, JobView, State
from lateshift.model.sealed import masked_view

Position: TypeAlias = tuple[int, int]
"""The fence under which it happened, and which step of that lease it was."""

BEGINNING: Position = (0, 0)
_RECEIVED, _STARTED, _PROGRESS, _RETRYING, _ENDED = range(1, 6)


def written(position: Position) -> str:
    return f"{position[0]}.{position[1]}"


def read(text: str) -> Position:
    """Raises OptionInvalid for what `written` never gave."""
    fence, dot, step = text.partition(".")
    if not (
        dot
        and fence.isascii()
        and fence.isdigit()
        and len(fence) < 19
        and step in "012345"
        and len(step) == 1
    ):
        raise OptionInvalid(
            f"{text[:50]!r} is no id of an event of a job: give the last one you got, such as 1.1."
        )
    return int(fence), int(step)


def events(view: JobView) -> list[tuple[Position, JobEvent]]:
    """In their order. Of progress, the newest. A run of a workflow starts once, and its stretches are not told."""
    view = structs.replace(masked_view(view), result=view.result)
    told = [_event(view, (0, _RECEIVED), Kind.RECEIVED)]
    failed = [] if view.is_run else [record for record in view.history if record.was is None]
    for record in failed:
        told.append(_event(view, (record.fence, _STARTED), Kind.STARTED, record))
        if not (view.state.settled and record.fence == view.fence):
            told.append(_event(view, (record.fence, _RETRYING), Kind.RETRYING, record))
    runs = view.state is State.RUNNING or (view.state.settled and view.started_at is not None)
    if runs and view.fence not in {record.fence for record in failed}:
        told.append(_event(view, (1 if view.is_run else view.fence, _STARTED), Kind.STARTED))
    if runs and view.progress is not None:
        told.append(_event(view, (view.fence, _PROGRESS), Kind.PROGRESS))
    if view.state.settled:
        told.append(_event(view, (view.fence, _ENDED), Kind(view.state), failed[-1] if failed else None))
    return sorted(told, key=lambda each: each[0])


def news(before: JobView | None, after: Position, now: JobView) -> list[tuple[Position, JobEvent]]:
    """What is to be told to somebody who has seen all up to `after`, and of the last view its progress."""
    fresh = [each for each in events(now) if each[0] > after]
    moved = before is not None and before.progress != now.progress and before.fence == now.fence
    if moved and not now.state.settled and after == (now.fence, _PROGRESS):
        return [each for each in events(now) if each[0] == after] + fresh
    return fresh


def _event(
    view: JobView, at: Position, kind: Kind, record: AttemptRecord | None = None
) -> tuple[Position, JobEvent]:
    fails = kind in (Kind.RETRYING, Kind.FAILED)
    result, left_out = (
        result_told(view.result, hide=view.sensitive) if kind is Kind.COMPLETED else (None, False)
    )
    reason = record.reason if record is not None and fails else None
    return at, JobEvent(
        id=f"{view.id.hex}-{written(at)}", kind=kind.label, job_id=view.id, task=view.task, queue=view.queue,
        at=_time(view, kind, record), attempt=_attempt(view, kind, record),
        progress=view.progress if kind is Kind.PROGRESS else None, result=result, result_left_out=left_out,
        reason=view.reason if kind.last else reason, error=error_of(record) if fails else None,
    )  # fmt: skip


def _attempt(view: JobView, kind: Kind, record: AttemptRecord | None) -> int:
    if kind is Kind.RECEIVED:
        return 0
    return record.attempt if record is not None and not kind.last else view.attempt


def _time(view: JobView, kind: Kind, record: AttemptRecord | None) -> datetime:
    if kind is Kind.RECEIVED:
        return view.created_at
    if kind.last:
        return view.settled_at or view.created_at
    if record is not None:
        return record.at - timedelta(seconds=record.ran_for or 0) if kind is Kind.STARTED else record.at
    return view.started_at or view.created_at
