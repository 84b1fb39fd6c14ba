"""A schedule, and what became of its ticks."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.model.depth import passed_on, shown
from lateshift.model.edit import named
from lateshift.model.scheduling.plan import SKIPS_COUNTED, Outcome
from lateshift.model.scheduling.schedule import ScheduleView, Tick
from lateshift.model.scheduling.zones import zone
from lateshift.model.sealed import MASK


class TickDocument(Struct, frozen=True, kw_only=True):
    """What became of a tick, or of `count` in a row."""

    at: datetime
    outcome: str
    count: int
    job: UUID | None


class ScheduleDocument(Struct, frozen=True, kw_only=True):
    """A schedule: its plan, when it fires next, and its last ticks."""

    name: str
    task: str
    queue: str
    arguments: dict[str, Any]
    cron: str | None
    every_seconds: float | None
    at: datetime | None
    timezone: str
    start: datetime | None
    end: datetime | None
    words: str
    overlap: str
    catch_up: str
    most: int
    grace_seconds: float
    jitter_seconds: float
    tick_as: str | None
    app: str | None
    next_at: datetime | None
    paused: bool
    paused_by: str | None
    paused_at: datetime | None
    created_at: datetime
    changed_at: datetime
    changed_by: str
    recent: list[TickDocument]


class ComingSchedule(ScheduleDocument, frozen=True, kw_only=True):
    """A schedule with its next ticks."""

    upcoming: list[datetime]


def schedule_document(view: ScheduleView, hidden: Collection[str]) -> ScheduleDocument:
    """`hidden`: the queues that are sensitive."""
    return ScheduleDocument(**_fields(view, hidden, arguments_of(view, hidden, passed_on)))


def coming_document(view: ScheduleView, upcoming: list[datetime], hidden: Collection[str]) -> ComingSchedule:
    return ComingSchedule(**_fields(view, hidden, arguments_of(view, hidden)), upcoming=upcoming)


def arguments_of(
    view: ScheduleView, hidden: Collection[str], told: Callable[[bytes], Any] = shown
) -> dict[str, Any]:
    """Without the one that only holds the place of the tick's time. Of a schedule in a sensitive queue, no more than their names. `told`: how
    their values are given."""
    given = named(view.job.payload)
    hide = view.job.spec.queue in hidden
    return {name: MASK if hide else told(value) for name, value in given.items() if name != view.plan.tick_as}


def tick_document(tick: Tick) -> TickDocument:
    return TickDocument(at=tick.at, outcome=tick.outcome.label, count=tick.count, job=tick.job)


def outcome_in_words(outcome: Outcome, count: int) -> str:
    words = {
        Outcome.FIRED: "fired", Outcome.OVERLAP: "skipped: the last job had not ended",
        Outcome.TOO_LATE: "skipped: too late", Outcome.PAUSED: "skipped: paused", Outcome.DUPLICATE: "its job was there",
        Outcome.BY_HAND: "fired by hand",
    }[outcome]  # fmt: skip
    many = "at least " if count >= SKIPS_COUNTED else ""
    return words if count == 1 else f"{words} ({many}{count:,} ticks)"


def both(moment: datetime, timezone: str) -> tuple[str, str]:
    """In a schedule's zone, and in UTC."""
    local, utc = moment.astimezone(zone(timezone)), moment.astimezone(UTC)
    return f"{local:%a %Y-%m-%d %H:%M:%S %Z}", f"{utc:%Y-%m-%d %H:%M:%S}"


def _fields(view: ScheduleView, hidden: Collection[str], arguments: dict[str, Any]) -> dict[str, Any]:
    plan, timing = view.plan, view.plan.timing
    return {
        "name": view.name, "task": view.job.spec.task, "queue": view.job.spec.queue,
        "arguments": arguments, "cron": timing.cron,
        "every_seconds": None if timing.every is None else timing.every.total_seconds(), "at": timing.at,
        "timezone": timing.timezone, "start": timing.start, "end": timing.end, "words": timing.words,
        "overlap": plan.overlap, "catch_up": plan.catch_up, "most": plan.most,
        "grace_seconds": plan.grace.total_seconds(), "jitter_seconds": plan.jitter.total_seconds(),
        "tick_as": plan.tick_as, "app": view.app, "next_at": view.next_at, "paused": view.paused_at is not None,
        "paused_by": view.paused_by, "paused_at": view.paused_at, "created_at": view.created_at,
        "changed_at": view.changed_at, "changed_by": view.changed_by,
        "recent": [tick_document(tick) for tick in view.recent],
    }  # fmt: skip
