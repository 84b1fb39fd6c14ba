"""Schedules: when each fires, pause, resume, fire now."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import PAGE_MOST
from lateshift.api.paging import Paging, Weight, paged
from lateshift.api.route import Done, Reach, Route
from lateshift.documents.schedules import ComingSchedule, ScheduleDocument, coming_document, schedule_document
from lateshift.model.access import Scope
from lateshift.model.job import PAYLOAD_LIMIT
from lateshift.model.scheduling.schedule import ScheduleView

SCHEDULE = Weight[ScheduleView](lambda view: len(view.job.payload), PAYLOAD_LIMIT)


class ComingQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    count: Annotated[int, Meta(ge=1, le=PAGE_MOST)] = 5


class SchedulesPage(Struct, frozen=True, kw_only=True):
    """By name. `next`: the cursor of the next page, if there may be one; a page may hold fewer than asked for."""

    schedules: list[ScheduleDocument]
    next: str | None


class Fired(Struct, frozen=True, kw_only=True):
    """A job that a schedule made by hand."""

    schedule: str
    job: UUID


def list_schedules(asked: Asked) -> SchedulesPage:
    """Schedules by name, when each fires next and what became of its last ticks."""
    views, more = paged(asked, str, asked.store.schedules.list, lambda view: view.name, SCHEDULE)
    hidden = asked.store.queues.concealed()
    shown = [schedule_document(view, hidden) for view in views if asked.shows(view.job.spec.queue)]
    return SchedulesPage(schedules=shown, next=more)


def show_schedule(asked: Asked) -> ComingSchedule:
    """One schedule: its plan, its next ticks, and what became of the last ones."""
    schedule = asked.schedule()
    query = asked.query if isinstance(asked.query, ComingQuery) else ComingQuery()
    return coming_document(schedule.view(), schedule.upcoming(query.count), asked.store.queues.concealed())


def pause_schedule(asked: Asked) -> Done:
    """No tick fires until it is resumed. What it misses is recorded, not caught up."""
    changed = asked.schedule().pause(by=asked.by)
    return Done(subject=f"schedule {asked.name}", action="paused", changed=changed)


def resume_schedule(asked: Asked) -> Done:
    """Fire again, from the next tick on."""
    changed = asked.schedule().resume(by=asked.by)
    return Done(subject=f"schedule {asked.name}", action="resumed", changed=changed)


def fire_schedule(asked: Asked) -> Fired:
    """Make one job of a schedule now, besides its ticks. Each request makes one, but for those with the same Idempotency-Key."""
    schedule = asked.schedule()
    return Fired(schedule=asked.name, job=schedule.fire(by=asked.by))


ROUTES = (
    Route(method="GET", path="/v1/schedules", handler=list_schedules, asks=Paging, gives=SchedulesPage, dear=True, scope=Scope.READ,
          reach=Reach.OWN,
          links={"show_schedule": "schedules/0/name", "fire_schedule": "schedules/0/name"}),
    Route(method="GET", path="/v1/schedules/{name:path}", handler=show_schedule, asks=ComingQuery, gives=ComingSchedule, scope=Scope.READ,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/schedules/{name:path}/pause", handler=pause_schedule, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/schedules/{name:path}/resume", handler=resume_schedule, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/schedules/{name:path}/fire", handler=fire_schedule, gives=Fired, scope=Scope.OPERATE,
          reach=Reach.ONE,
          links={"show_job": "job"}),
)  # fmt: skip
