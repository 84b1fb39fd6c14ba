"""What both stores do alike about schedules: what a new or changed one is to be, and what a row says."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, get_args

from msgspec import Struct, structs

from lateshift.model.ids import JobId, new_job_id
from lateshift.model.instants import to_number
from lateshift.model.job import NewJob
from lateshift.model.scheduling.plan import Outcome, Overlap, paused_for
from lateshift.model.scheduling.schedule import (
    Kept,
    NewSchedule,
    Reader,
    ScheduleView,
    TickView,
    keep,
    record,
    remembered,
)
from lateshift.model.scheduling.timing import next_tick
from lateshift.store.firing import TickRow, remember, with_tick

OVERLAPS = get_args(Overlap)
NO_GENERATION = 0  # of what is no tick: a schedule's own begin with the instant at which it was made
_MOMENT = timedelta(microseconds=1)
VIEW = """name, plan, spec, payload, guards, app, generation, cursor, next_at, recent, paused_at, paused_by,
 created_at, changed_at, changed_by"""


class Had(Struct, frozen=True):
    """Of a schedule that is there, what decides how it goes on."""

    plan: bytes
    generation: int
    cursor: datetime


class Put(Struct, frozen=True):
    """How it is from now on."""

    kept: Kept
    overlap: int
    generation: int
    cursor: datetime
    next_at: datetime | None


def put(new: NewSchedule, now: datetime, had: Had | None) -> Put:
    """A new one begins now. One whose timing is as it was goes on where it stood, so that a release loses no tick; with
    another timing it begins anew, and its ticks are of another generation."""
    kept = keep(new)
    timing = new.plan.timing
    if had is None:
        generation, cursor = to_number(now), now
    elif Reader().plan(had.plan).timing == timing:
        generation, cursor = had.generation, had.cursor
    else:
        generation, cursor = had.generation + 1, max(had.cursor, now)
    overlap = OVERLAPS.index(new.plan.overlap)
    return Put(kept, overlap, generation, cursor, next_tick(timing, cursor))


class News(Struct, frozen=True):
    """What a declaration is to change."""

    write: list[NewSchedule]
    added: list[str]
    changed: list[str]
    removed: list[str]


def digests(schedules: Iterable[NewSchedule]) -> dict[str, bytes]:
    """What tells whether the code has changed one, by name. Made before a transaction begins: there may be thousands."""
    return {new.name: keep(new).digest for new in schedules}


def news(
    schedules: Sequence[NewSchedule], wanted: Mapping[str, bytes], declared: Mapping[str, bytes | None], others: Iterable[str]
) -> News:  # fmt: skip
    """`wanted`: their digests. `declared`: those of what the app's code said before. `others`: names that are in the store and
    not the app's: one that an operator has made, or another app, is taken over."""
    there = set(others)
    write = [new for new in schedules if wanted[new.name] != declared.get(new.name)]
    return News(
        write=write, added=[new.name for new in write if new.name not in declared and new.name not in there],
        changed=[new.name for new in write if new.name in declared or new.name in there],
        removed=[name for name in declared if name not in wanted],
    )  # fmt: skip


class Step(Struct, frozen=True):
    """What an operator's word does to a schedule: how it goes on, and the tick that is written with it."""

    cursor: datetime
    next_at: datetime | None
    recent: bytes
    tick: TickRow | None


def resumed(view: ScheduleView, now: datetime) -> Step:
    """After a pause: the ticks of it are skipped."""
    skip = paused_for(view.plan, view.cursor, now)
    cursor = max(view.cursor, now)
    upcoming = next_tick(view.plan.timing, cursor)
    if skip is None:
        return Step(cursor, upcoming, _recent(view), None)
    row = (
        to_number(skip.first),
        view.name,
        view.generation,
        to_number(skip.last),
        skip.count,
        skip.why,
        None,
    )
    return Step(cursor, upcoming, remember(_recent(view), [row]), row)


def job_by_hand(view: ScheduleView, now: datetime) -> NewJob:
    """Its job, besides its ticks."""
    return structs.replace(view.job, payload=with_tick(view.job.payload, view.plan, now))


def fired(view: ScheduleView, now: datetime, job: JobId) -> Step:
    """By hand. It is of no generation, so that it takes no tick's place, and never at the instant of another: a test's clock
    stands still."""
    by_hand = [tick.at for tick in view.recent if tick.outcome is Outcome.BY_HAND]
    at = to_number(max(now, max(by_hand) + _MOMENT) if by_hand else now)
    row = (at, view.name, NO_GENERATION, at, 1, Outcome.BY_HAND, job.bytes)
    return Step(view.cursor, view.next_at, remember(_recent(view), [row]), row)


def _recent(view: ScheduleView) -> bytes:
    ticks = (
        record(to_number(tick.at), tick.count, tick.outcome, None if tick.job is None else tick.job.bytes)
        for tick in view.recent
    )
    return b"".join(ticks)


def seen(reader: Reader, row: Sequence[Any]) -> ScheduleView:
    """Of a row of VIEW, with its times as datetimes."""
    name, plan, spec, payload, guards, app, generation, cursor, next_at, recent, *rest = row
    paused_at, paused_by, created_at, changed_at, changed_by = rest
    return ScheduleView(
        name=name, plan=reader.plan(plan), job=reader.job(new_job_id(), spec, payload, guards), app=app,
        generation=generation, cursor=cursor, next_at=next_at, recent=remembered(recent), paused_at=paused_at,
        paused_by=paused_by, created_at=created_at, changed_at=changed_at, changed_by=changed_by,
    )  # fmt: skip


def tick_view(row: Sequence[Any]) -> TickView:
    """Of at, schedule, generation, until, count, outcome, job."""
    at, schedule, generation, until, count, outcome, job = row
    return TickView(
        at=at, schedule=schedule, generation=generation, until=until, count=count, outcome=Outcome(outcome), job=job,
    )  # fmt: skip
