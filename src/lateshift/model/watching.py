"""What has become of a job, seen from how it stands now: its events so far, each at a place that is always the same, so that whoever
has seen some can go on after them, whoever asks and however often."""

import re
from datetime import datetime, timedelta
from typing import TypeAlias

from msgspec import structs

from lateshift.errors import OptionInvalid
from lateshift.model.events import RESULT_TOLD, JobEvent, Kind, error_of, result_told
from lateshift.model.history import attempts
from lateshift.model.instants import to_number
from lateshift.model.job import AttemptRecord, JobView, State
from lateshift.model.sealed import HEAD_LIMIT, is_sealed, masked_view

Position: TypeAlias = tuple[int, int, int]
"""The fence under which it happened, which step of that lease it was; of progress which word of that lease, and of the end when it was, for one
that is resubmitted and cancelled before its next lease ends twice under one fence, and the clock may have gone back in between."""

BEGINNING: Position = (0, 0, 0)
_RECEIVED, _STARTED, _PROGRESS, _RETRYING, _ENDED = range(1, 6)
_WRITTEN = re.compile(r"([0-9]{1,18})\.(?:([0-5])|([35])\.([1-9][0-9]{0,17}))")


def written(position: Position) -> str:
    fence, step, word = position
    return f"{fence}.{step}.{word}" if word else f"{fence}.{step}"


def read(text: str) -> Position:
    """Also of an older release, which did not number progress and ends: then what has a number comes after. Raises OptionInvalid for
    what `written` never gave."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise OptionInvalid(
            f"{text[:50]!r} is no id of an event of a job: give the last one you got, such as 1.1."
        )
    fence, alone, step, word = found.groups()
    return int(fence), int(step or alone), int(word or 0)


def bare(view: JobView) -> JobView:
    """The same for its events, without what none of them tells: of a result that is too large for one, as much as shows that. Whoever watches
    many jobs keeps these."""
    return structs.replace(
        view, payload=view.payload[:HEAD_LIMIT] if is_sealed(view.payload) else b"null", checkpoint=None,
        result=None if view.result is None else view.result[: RESULT_TOLD + 1],
        history=[structs.replace(record, traceback=None) for record in attempts(view.history)],
    )  # fmt: skip


def events(view: JobView) -> list[tuple[Position, JobEvent]]:
    """In their order, in which no time goes back. Of progress, the newest. A run of a workflow starts once, and its stretches are not
    told."""
    view = structs.replace(masked_view(view), result=view.result)
    told = [_event(view, (0, _RECEIVED, 0), Kind.RECEIVED)]
    failed = [] if view.is_run else attempts(view.history)
    for record in failed:
        told.append(_event(view, (record.fence, _STARTED, 0), Kind.STARTED, record))
        if not (view.state.settled and record.fence == view.fence):
            told.append(_event(view, (record.fence, _RETRYING, 0), Kind.RETRYING, record))
    runs = view.state is State.RUNNING or (view.state.settled and view.started_at is not None)
    if runs and view.fence not in {record.fence for record in failed}:
        told.append(_event(view, (1 if view.is_run else view.fence, _STARTED, 0), Kind.STARTED))
    if view.said is not None and view.said.number:
        of = next((record for record in failed if record.fence == view.said.fence), None)
        told.append(_event(view, (view.said.fence, _PROGRESS, view.said.number), Kind.PROGRESS, of))
    elif runs and view.progress is not None:
        told.append(_event(view, (view.fence, _PROGRESS, 0), Kind.PROGRESS))
    if view.state.settled:
        when = 0 if view.settled_at is None else to_number(view.settled_at)
        told.append(
            _event(view, (view.fence, _ENDED, when), Kind(view.state), failed[-1] if failed else None)
        )
    return _in_order(sorted(told, key=lambda each: each[0]), view.settled_at)


def _in_order(told: list[tuple[Position, JobEvent]], end: datetime | None) -> list[tuple[Position, JobEvent]]:
    """The clocks of workers, by which attempts fail, may differ from the store's."""
    ordered: list[tuple[Position, JobEvent]] = []
    for place, event in told:
        at = event.at if end is None else min(event.at, end)
        at = max(at, ordered[-1][1].at) if ordered else at
        ordered.append((place, event if at == event.at else structs.replace(event, at=at)))
    return ordered


def news(before: JobView | None, after: Position, now: JobView) -> list[tuple[Position, JobEvent]]:
    """What is to be told to somebody who has seen all up to `after`, and of the last view its progress."""
    fresh = [each for each in events(now) if each[0] > after or _is_another_end(each[0], after)]
    moved = before is not None and before.progress != now.progress and before.fence == now.fence
    if moved and not now.state.settled and after == (now.fence, _PROGRESS, 0):
        return [each for each in events(now) if each[0] == after] + fresh
    return fresh


def _is_another_end(place: Position, after: Position) -> bool:
    """How it stands has its last end alone: one with another time than the one that was heard came later, whatever the clock said."""
    return place != after and place[:2] == after[:2] and place[1] == _ENDED


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
    if kind is Kind.PROGRESS and view.said is not None and view.said.at is not None:
        return view.said.at
    if record is not None:
        return record.at - timedelta(seconds=record.ran_for or 0) if kind is Kind.STARTED else record.at
    return view.started_at or view.created_at
