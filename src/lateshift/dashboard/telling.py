"""What the pages say of a job in a few words, and its life in the order of time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lateshift.documents.reading import readable
from lateshift.documents.workflows import at_what
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.fingerprint import last_failure
from lateshift.model.job import RESUBMITTED, WITH_OTHERS, AttemptRecord, JobView, Progress, State
from lateshift.model.sealed import masked_log, masked_view
from lateshift.model.words import short
from lateshift.model.workflow.run import RunRow
from lateshift.store.contract import Store

SOON = timedelta(seconds=1)  # what was due so soon after it was made was due at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A job in a table: `what` is the one thing to know about it in its state, else what it was asked to do. `ran`: how
    long its last attempt did, of one that has ended by it; nobody counts the stretches of a run."""

    view: JobView
    what: str
    arguments: Any
    ran: float | None

    @classmethod
    def of(cls, view: JobView, run: RunRow | None = None) -> "Row":
        """`run`: its row, if it is a run of a workflow that has begun."""
        view = masked_view(view)
        what = at_what(run, view.state) if view.is_run and not view.state.settled else _what(view)
        return cls(view=view, what=" ".join(what.split()), arguments=readable(view.payload), ran=_ran(view))


def rows_of(store: Store, views: Sequence[JobView]) -> list[Row]:
    """Each with what it is at, if it is a run that has not ended: one look at the rows of these, by their ids."""
    ids = [view.id for view in views if view.is_run and not view.state.settled]
    runs = store.workflows.begun(ids) if ids else {}
    return [Row.of(view, runs.get(view.id)) for view in views]


def _ran(view: JobView) -> float | None:
    if view.is_run:
        return None
    if view.state is State.COMPLETED and view.started_at is not None and view.settled_at is not None:
        return (view.settled_at - view.started_at).total_seconds()
    died = view.state is State.DEAD and bool(view.history) and view.history[-1].reason != RESUBMITTED
    return view.history[-1].ran_for if died else None


def _what(view: JobView) -> str:
    failure = last_failure(view)
    said = f"{failure.error or failure.reason}: {failure.message or ''}" if failure else ""
    if view.state is State.DEAD:
        same = failure is not None and (failure.error or "").lower() == view.reason
        return said if same else f"{view.reason}; {said}" if said else view.reason or ""
    if view.state is State.CANCELLED:
        return view.reason or ""
    if view.state is State.RUNNING and view.progress is not None:
        return progress_in_words(view.progress)
    return f"after {said}" if said and not view.state.settled else ""


def progress_in_words(progress: Progress) -> str:
    total = f" of {progress.total:g}" if progress.total else ""
    return f"{progress.done:g}{total} {progress.note or ''}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened to a job, or will. `kind`: good, bad or busy, else nothing of the kind. Of an attempt, `began`: when;
    `waited`: how long nothing of the job ran before it."""

    at: datetime
    title: str
    kind: str = ""
    began: datetime | None = None
    waited: float | None = None
    lasted: float | None = None
    error: str | None = None
    message: str | None = None
    traceback: str | None = None
    was: Mapping[str, Any] | None = None
    member: str | None = None
    complete_by: datetime | None = None
    progress: str | None = None
    log: AttemptLog | None = None


def life_of(view: JobView, logs: Sequence[AttemptLog], members: Mapping[UUID, str]) -> list[Moment]:
    """From when it was made, the oldest first. Each attempt has what it logged."""
    view = masked_view(view)
    by_fence = {log.fence: masked_log(log, hide=view.sensitive) for log in logs}
    moments = [Moment(at=view.created_at, title="Made")]
    if view.state is State.SCHEDULED or (not view.history and view.due_at > view.created_at + SOON):
        moments.append(Moment(at=view.due_at, title="Due"))
    moments += [
        _resubmitted(record)
        if record.reason == RESUBMITTED
        else _attempt(record, by_fence.pop(record.fence, None), view, members)
        for record in view.history
    ]
    moments += _last(view, by_fence.pop(view.fence, None), members)
    moments += [
        Moment(at=log.lines[0].at, title=f"Attempt {log.attempt}", log=log)
        for log in by_fence.values()
        if log.lines
    ]
    return list(_with_waits(sorted(moments, key=lambda moment: moment.at)))


def _with_waits(moments: Sequence[Moment]) -> Iterator[Moment]:
    """In the order of time. The attempts of a job do not overlap: the wait of one began with what happened last."""
    last: datetime | None = None
    for moment in moments:
        if moment.began is None or last is None:
            yield moment
        else:
            yield replace(moment, waited=max(0.0, (moment.began - last).total_seconds()))
        last = moment.at


def _resubmitted(record: AttemptRecord) -> Moment:
    others = WITH_OTHERS in (record.message or "")
    return Moment(
        at=record.at, title=f"Resubmitted{' with other arguments' if others else ''}", message=record.message, was=record.was
    )  # fmt: skip


def _attempt(
    record: AttemptRecord, log: AttemptLog | None, view: JobView, members: Mapping[UUID, str]
) -> Moment:
    which = "Stretch" if view.is_run else f"Attempt {record.attempt}"
    return Moment(
        at=record.at, title=f"{which}: {record.reason.replace('_', ' ')}", kind="bad", error=record.error, lasted=record.ran_for,
        began=None if record.ran_for is None else record.at - timedelta(seconds=record.ran_for), message=record.message, traceback=record.traceback, log=log,
        member=None if record.member is None else _told(record.member, members),
    )  # fmt: skip


def _last(view: JobView, log: AttemptLog | None, members: Mapping[UUID, str]) -> Iterator[Moment]:
    """The attempt that runs, or how it ended."""
    holder = None if view.holder is None else _named(view.holder, members)
    if view.state is State.RUNNING and view.started_at is not None:
        yield Moment(
            at=view.started_at, title="Goes on" if view.is_run else f"Attempt {view.attempt} runs", kind="busy", member=holder,
            began=view.started_at, complete_by=view.complete_by, log=log, progress=None if view.progress is None else progress_in_words(view.progress),
        )  # fmt: skip
    elif view.settled_at is not None:
        done = view.state is State.COMPLETED
        started = view.started_at if done else None
        yield Moment(
            at=view.settled_at, title=view.state.label.capitalize() + (f": {view.reason}" if view.reason else ""),
            kind="good" if done else "bad" if view.state is State.DEAD else "", log=log, member=holder if done else None,
            began=started, lasted=None if started is None else (view.settled_at - started).total_seconds(),
        )  # fmt: skip


def _named(member: UUID, members: Mapping[UUID, str]) -> str:
    """By its name, while it is known."""
    return members.get(member, f"member {short(member)}")


def _told(member: str, members: Mapping[UUID, str]) -> str:
    """As a record of an attempt has it, which may be any text."""
    try:
        return _named(UUID(member), members)
    except ValueError:
        return member
