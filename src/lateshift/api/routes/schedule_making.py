"""Schedules: added, changed, removed, tried, and their past filled."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from lateshift.api.arguments import arguments_at
from lateshift.api.asked import Asked
from lateshift.api.bounds import BACKFILL_MOST, PAGE, PAGE_MOST, Text
from lateshift.api.problem import Refused
from lateshift.api.route import Answer, Done, Reach, Route
from lateshift.batches.handle import Batch
from lateshift.documents.batches import BatchDocument, batch_document
from lateshift.documents.schedules import ScheduleDocument, schedule_document
from lateshift.model.access import Scope
from lateshift.model.job import PRIORITIES
from lateshift.model.retry import LONGEST_DELAY
from lateshift.model.scheduling.plan import CATCH_UP_MOST
from lateshift.model.scheduling.timing import in_zone, timing_of, upcoming
from lateshift.operating import schedule_making as operating

Span = Annotated[float, Meta(ge=0, le=LONGEST_DELAY.total_seconds())]
Instant = Annotated[datetime, Meta(tz=True)]


class Timings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When it fires, and by which rules; see docs/schedules.md. Spans are in seconds."""

    cron: Text | None = None
    every: Span | None = None
    at: Instant | None = None
    timezone: Text | None = None
    start: Instant | None = None
    end: Instant | None = None
    overlap: Literal["skip", "queue", "cancel", "allow"] | None = None
    catch_up: Literal["none", "last", "all"] | None = None
    most: Annotated[int, Meta(ge=1, le=CATCH_UP_MOST)] | None = None
    grace: Span | None = None
    jitter: Span | None = None
    tick_as: Text | None = None


class NewScheduleBody(Timings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule of a task, with the arguments of its jobs."""

    name: Text
    arguments: dict[str, Any] = {}
    queue: Text | None = None
    priority: Annotated[int, Meta(ge=PRIORITIES[0], le=PRIORITIES[-1])] | None = None


class ScheduleChange(Timings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be otherwise; what is not said stays. `arguments`: all of them. `clear`: what is to be none."""

    arguments: dict[str, Any] | None = None
    clear: Annotated[list[Literal["start", "end", "tick_as"]], Meta(max_length=3)] = []


class BackfillBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From the first moment to the last, both included, in the past."""

    start: Instant
    end: Instant


class TryQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cron: Text | None = None
    every: Span | None = None
    timezone: Text = "UTC"
    count: Annotated[int, Meta(ge=1, le=PAGE_MOST)] = PAGE


class Tried(Struct, frozen=True, kw_only=True):
    """What an expression means, and when it would fire next."""

    words: str
    timezone: str
    next: list[datetime]


def add_schedule(asked: Asked) -> Answer:
    """Add a schedule of a task, which makes jobs: so it asks for the scope `enqueue` too.

    The arguments are checked by the task's own types first."""
    body: NewScheduleBody = asked.body
    task = asked.task_to_run(body.queue)
    _refuse_taken(asked, body.name)
    bound = task.options(queue=body.queue, priority=body.priority)
    with arguments_at():
        view = operating.add(asked.store, bound, body.name, _given(body), body.arguments, by=asked.by)
    shown = schedule_document(view, asked.store.queues.concealed())
    return Answer(shown, location=asked.link("schedules", view.name))


def _refuse_taken(asked: Asked, name: str) -> None:
    """Raises Refused if a schedule of a queue that the token is not for has the name: it is not told of that, as where it asks for one."""
    view = None if asked.sees_all else asked.store.schedules.get(name)
    if view is not None and not asked.shows(view.job.spec.queue):
        raise Refused(
            403, "queue-forbidden", f"This token may not have a schedule named {name!r}. Give it another name.", field="name"
        )  # fmt: skip


def edit_schedule(asked: Asked) -> ScheduleDocument:
    """Change a schedule from now on; what is not said stays.

    Of one that code makes, the change lasts until that code is changed. Other arguments, and another argument that has the tick's time, ask for the scope `enqueue`
    too."""
    body: ScheduleChange = asked.body
    view = asked.schedule().view()
    given = _given(body)
    if both := given.keys() & set(body.clear):
        raise Refused(
            422, "body-invalid", f"{min(both)} is given, and is to be cleared: say one.", field=min(both)
        )
    if not given and not body.clear and body.arguments is None:
        raise Refused(422, "body-invalid", "Say what to change.")
    task = None
    if body.arguments is not None or "tick_as" in {*given, *body.clear}:  # it says what the jobs are given
        if "tick_as" in body.clear:
            asked.need_besides("clear")
        asked.allow_task(view.job.spec.task)
        task = asked.find_task(view.job.spec.task)
    with arguments_at():
        edited = operating.edit(asked.store, view, given, body.clear, task, body.arguments, by=asked.by)
    return schedule_document(edited, asked.store.queues.concealed())


def remove_schedule(asked: Asked) -> Done:
    """Remove a schedule; its jobs stay."""
    asked.schedule().remove(by=asked.by)
    return Done(subject=f"schedule {asked.name}", action="removed", changed=True)


def backfill_schedule(asked: Asked) -> BatchDocument:
    """A job for each tick of a range in the past, as a batch. Repeated, it makes none twice, and goes on where it was interrupted."""
    body: BackfillBody = asked.body
    schedule = asked.schedule()
    start, end = in_zone("start", body.start), in_zone("end", body.end)
    if schedule.count(start, end, BACKFILL_MOST + 1) > BACKFILL_MOST:
        raise Refused(
            422, "body-invalid", f"One request fills {BACKFILL_MOST:,} ticks: take several.", field="end"
        )
    store = asked.store
    batch: UUID = schedule.backfill(start, end, by=asked.by)
    return batch_document(Batch(batch, lambda: store, asked.app.tasks).progress())


def try_schedule(asked: Asked) -> Tried:
    """When a cron expression or an interval would fire, and in words what it means; nothing is written."""
    query: TryQuery = asked.query
    every = None if query.every is None else timedelta(seconds=query.every)
    timing = timing_of(cron=query.cron, every=every, at=None, timezone=query.timezone, start=None, end=None)
    found = upcoming(timing, asked.store.clock.now(), query.count)
    return Tried(words=timing.words, timezone=timing.timezone, next=found)


def _given(body: Timings) -> dict[str, Any]:
    """What was said, spans as spans."""
    said = {name: getattr(body, name) for name in (*operating.TIMING, *operating.RULES)}
    spans = {
        name: timedelta(seconds=said[name]) for name in ("every", "grace", "jitter") if said[name] is not None
    }
    return {name: value for name, value in (said | spans).items() if value is not None}


ROUTES = (
    Route(method="POST", path="/v1/tasks/{name}/schedules", handler=add_schedule, takes=NewScheduleBody, gives=ScheduleDocument,
          status=201, scope=Scope.OPERATE, besides=Scope.ENQUEUE, reach=Reach.ONE, locates=True,
          links={"show_schedule": "name", "edit_schedule": "name", "pause_schedule": "name", "fire_schedule": "name", "remove_schedule": "name", "backfill_schedule": "name"}),
    Route(method="GET", path="/v1/schedules-tried", handler=try_schedule, asks=TryQuery, gives=Tried, scope=Scope.READ,
          reach=Reach.OWN),
    Route(method="POST", path="/v1/schedules/{name:path}/edit", handler=edit_schedule, takes=ScheduleChange,
          gives=ScheduleDocument, scope=Scope.OPERATE, besides=Scope.ENQUEUE, besides_for=("arguments", "tick_as"), reach=Reach.ONE),
    Route(method="POST", path="/v1/schedules/{name:path}/remove", handler=remove_schedule, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="POST", path="/v1/schedules/{name:path}/backfill", handler=backfill_schedule, takes=BackfillBody,
          gives=BatchDocument, scope=Scope.OPERATE, reach=Reach.ONE,
          links={"show_batch": "id", "cancel_batch": "id", "resubmit_batch": "id", "seal_batch": "id"}),
)  # fmt: skip
