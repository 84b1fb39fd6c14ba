"""Jobs: started, looked at, cancelled, run again."""

import asyncio
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct, structs

from lateshift.api.arguments import arguments_at
from lateshift.api.asked import Asked
from lateshift.api.bounds import PAGE, PAGE_MOST, WAIT_MOST, Cursor, PageSize, Text
from lateshift.api.owning import owned
from lateshift.api.paging import Paging, paged
from lateshift.api.problem import Refused
from lateshift.api.route import Answer, Done, Reach, Route
from lateshift.api.routes.narrowing import Narrowed, Tag, filter_of
from lateshift.api.steps import allow_sent, own_logs, sends_a_run
from lateshift.dead_letters.resubmission import Course, Resubmission
from lateshift.documents.explanations import ExplanationDocument, explanation_document
from lateshift.documents.jobs import JobBrief, JobDocument, job_brief, job_whole
from lateshift.documents.logs import LogDocument, log_document
from lateshift.errors import ArgumentsInvalid, KeyConflict, OptionInvalid, RunEnded, no_job
from lateshift.model import reply
from lateshift.model.access import Scope
from lateshift.model.explaining.explain import explain
from lateshift.model.explaining.narrowing import narrowed
from lateshift.model.ids import JobId
from lateshift.model.job import PRIORITIES, JobView
from lateshift.model.reply import CORRELATION_LIMIT, URL_LIMIT
from lateshift.model.retry import LONGEST_DELAY
from lateshift.model.search import Found
from lateshift.model.tags import TAGS_LIMIT
from lateshift.operating.changing import change_of
from lateshift.operating.step_jobs import why_step
from lateshift.replies.targets import no_such_task
from lateshift.runtime.aside import aside
from lateshift.task import Call

FIRST_LOOK = 0.01  # seconds
LAST_LOOK = 0.5

ReplyTo = Annotated[str, Meta(min_length=1, max_length=URL_LIMIT)]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_DELAY.total_seconds())]


class NewJobBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to start. `delay` is in seconds; `at` has a time zone. See docs/tasks.md for the options."""

    arguments: dict[str, Any] = {}
    queue: Text | None = None
    delay: Seconds | None = None
    at: Annotated[datetime, Meta(tz=True)] | None = None
    priority: Annotated[int, Meta(ge=PRIORITIES[0], le=PRIORITIES[-1])] | None = None
    session: Text | None = None
    sequence: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    tenant: Text | None = None
    limit_key: Text | None = None
    reply_to: ReplyTo | list[ReplyTo] | None = None
    correlation_id: Annotated[str, Meta(min_length=1, max_length=CORRELATION_LIMIT)] | None = None
    reply_on: (
        list[Literal["received", "started", "progress", "retrying", "completed", "cancelled", "failed"]]
        | None
    ) = None
    tags: Annotated[list[Tag], Meta(max_length=TAGS_LIMIT)] | None = None


class Accepted(Struct, frozen=True, kw_only=True):
    """A job that will run. `created`: false if an earlier request with the same key, or a duplicate of it, made it."""

    id: UUID
    task: str
    created: bool
    status: str


class JobQuery(Narrowed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: PageSize = PAGE
    cursor: Cursor | None = None


class JobsPage(Struct, frozen=True, kw_only=True):
    """The newest first. `next`: the cursor of the next page, if there may be one. `cut`: fewer than asked for, as so many jobs were
    looked at that the rest is for the next page."""

    jobs: list[JobBrief]
    next: str | None
    cut: bool


class Waiting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    wait: Annotated[float, Meta(ge=0, le=WAIT_MOST)] = 0


class Change(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`change`: new values for some of the arguments. `unset`: those that are left out. The others stay."""

    change: dict[str, Any] | None = None
    unset: Annotated[list[Text], Meta(max_length=PAGE_MOST)] | None = None


class LogQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    attempt: Annotated[int, Meta(ge=1, le=2**31)] | None = None


class LogsDocument(Struct, frozen=True, kw_only=True):
    """What each attempt has logged, the oldest attempt first."""

    job: UUID
    logs: list[LogDocument]


class JobsToCome(Struct, frozen=True, kw_only=True):
    """The next first; of a token that is for some queues there may be fewer than asked for. `next`: the cursor of the next page, if
    there may be one."""

    jobs: list[JobBrief]
    next: str | None


async def start_job(asked: Asked) -> Answer:
    """Start a job of a task.

    Durably accepted when it is answered; requests that come together share a commit. The arguments are checked by the task's own
    types. `Idempotency-Key` is the key of the job."""
    body: NewJobBody = asked.body
    task = asked.task_to_run(body.queue)
    _refuse_unknown(asked, body.reply_to)
    try:
        bound = task if asked.key is None and body == NewJobBody(arguments=body.arguments) else task.options(
            queue=body.queue, delay=None if body.delay is None else timedelta(seconds=body.delay), at=body.at,
            priority=body.priority, key=asked.key, session=body.session, sequence=body.sequence, tenant=body.tenant,
            limit_key=body.limit_key, reply_to=body.reply_to, correlation_id=body.correlation_id, reply_on=body.reply_on,
            tags=body.tags,
        )  # fmt: skip
        named = None if body.reply_to is None else bound.spec.reply  # else it is the app's own word
        for route in reply.read(named or "[]"):
            if route.target.to.startswith(reply.TASK) and route.target.spec is not None:
                asked.allow(route.target.spec.queue)  # each event is a job in it
        with arguments_at():
            given = bound.call_of(msgspec.json.encode(body.arguments))
        call = owned(_keyed(given, body), asked.token)
    except OverflowError as error:
        raise Refused(422, "option-invalid", "at is no time that can be kept.", field="at") from error
    call.job = structs.replace(call.job, by=asked.by)
    return await _enqueued(asked, call)


def _refuse_unknown(asked: Asked, reply_to: str | list[str] | None) -> None:
    """A task of a queue that the token is not for is to it as one that is not there. Raises OptionInvalid."""
    for each in [reply_to] if isinstance(reply_to, str) else reply_to or ():
        name = each.removeprefix(reply.TASK)
        if name != each and not asked.knows_task(name):
            raise no_such_task(name)


def _keyed(call: Call[Any], body: NewJobBody) -> Call[Any]:
    """A key is for all that the body says. Where that is arguments alone, it is as in code, where only they count."""
    key = call.job.key
    if key is not None and (rest := structs.replace(body, arguments={})) != NewJobBody():
        whole = blake2b(key.digest + msgspec.json.encode(rest), digest_size=len(key.digest)).digest()
        call.job = structs.replace(call.job, key=structs.replace(key, digest=whole))
    return call


async def _enqueued(asked: Asked, call: Call[Any]) -> Answer:
    try:
        job = await asked.app.client.asend(call, None)
    except KeyConflict as error:
        raise Refused(
            409, "key-conflict", f"This key was used for {call.task.name} with another body. Another request has another key.",
            field="Idempotency-Key",
        ) from error  # fmt: skip
    if job.shed:
        raise Refused(
            429, "queue-full", f"The queue {call.job.spec.queue} is full, and is set to shed what comes then."
        )  # fmt: skip
    url = asked.link("jobs", str(job.id))
    return Answer(
        Accepted(id=job.id, task=call.task.name, created=job.created, status=url),
        headers={"Retry-After": str(job.look_after)},
        location=url,
    )


async def show_job(asked: Asked) -> JobDocument:
    """All there is to know about a job: its state, progress, result, attempts.

    `wait`: so many seconds, the answer waits for the job to end; then it is given as it is."""
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + asked.query.wait, FIRST_LOOK
    # Those who wait keep nothing meanwhile: the jobs may be many and large.
    while (left := end - loop.time()) > 0 and not (await asked.ajob(whole=False)).state.settled:
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, LAST_LOOK)
    view = await asked.ajob()
    of_run = view.batch is not None and bool(await aside(asked.store.workflows.begun, [view.batch]))
    return job_whole(view, of_run=of_run)


def shown(asked: Asked) -> JobDocument:
    """As it is now."""
    view = asked.job()
    of_run = view.batch is not None and bool(asked.store.workflows.begun([view.batch]))
    return job_whole(view, of_run=of_run)


def list_jobs(asked: Asked) -> JobsPage:
    """Jobs, the newest first, page by page.

    Filters go together. `argument`: a text in the arguments, or name=value. `error`: a text in what went wrong. `since`, `until`:
    how long ago (`2h`), or when. A search that looks at many jobs and finds few says so (`cut`), and the next page goes on. A token that is for some queues names one of them."""
    page = searched(asked)
    return JobsPage(
        jobs=[job_brief(view) for view in page.jobs], next=asked.cursors.write(page.before), cut=page.cut
    )


def searched(asked: Asked) -> Found:
    """The page that a query asks for, of slim jobs, if the token is for its queue."""
    query: JobQuery = asked.query
    asked.allow(query.queue)
    wanted = structs.replace(filter_of(query, asked), before=asked.cursors.read(query.cursor, UUID))
    return asked.store.reports.search(wanted, query.limit, whole=False)


def explain_job(asked: Asked) -> ExplanationDocument:
    """Why a job is not running: every reason, and when each clears.

    A token that is for some queues is told no names of what is of others, and none of workers."""
    view = asked.job()
    facts = asked.store.reports.facts(view.id)
    if facts is None:
        raise no_job(view.id)
    return explanation_document(explain(facts if asked.sees_all else narrowed(facts, asked.shows)))


def show_logs(asked: Asked) -> LogsDocument:
    """What the attempts of a job have logged, the newest lines of each."""
    view, attempt = asked.job(), asked.query.attempt
    found = [log for log in own_logs(asked, view) if attempt is None or log.attempt == attempt]
    return LogsDocument(job=view.id, logs=[log_document(log) for log in found])


def list_upcoming(asked: Asked) -> JobsToCome:
    """Jobs that wait for their time to start, the next first."""

    def read(after: tuple[datetime, UUID] | None, limit: int) -> list[JobView]:
        return asked.store.reports.upcoming(limit, after)

    views, more = paged(asked, tuple[datetime, UUID], read, lambda view: (view.due_at, view.id))
    return JobsToCome(jobs=[job_brief(view) for view in views if asked.shows(view.queue)], next=more)


def cancel_job(asked: Asked) -> Done:
    """Cancel a job: a waiting one at once, a running one is told within a second."""
    view = asked.job()
    if not view.state.settled:
        allow_sent(asked, view)
    done = bool(asked.store.jobs.cancel([view.id], by=asked.by))
    return Done(subject=f"job {view.id}", action="cancelled", changed=done, state=_state(asked, view.id))


def resubmit_job(asked: Asked) -> Done:
    """Make a dead or cancelled job ready again, with fresh attempts; with other arguments, if some are given.

    Other arguments are new work: they ask for the scope `enqueue` too."""
    view = asked.job()
    if view.state.uncompleted and (why := why_step(asked.store, str(view.id))) is not None:
        raise RunEnded(f"The {why}")
    allow_sent(asked, view)
    change = change_of(asked.body.change, asked.body.unset)
    if change is not None:
        asked.allow_task(view.task)
    resubmission = Resubmission(
        asked.store, by=asked.by, change=change, tasks=asked.app.tasks if change is not None else None
    )
    ended = [view] if view.state.uncompleted else []
    if change is not None and not ended:
        raise OptionInvalid(
            f"The job {view.id} is {view.state.label}: only arguments of dead and cancelled ones are changed.",
            "change",
        )
    if problems := resubmission.plan(ended).problems:
        raise ArgumentsInvalid(next(iter(problems)), "change")
    done = resubmission.carry_out(ended, Course(), asked.store.clock)
    return Done(
        subject=f"job {view.id}", action="resubmitted", changed=bool(done.ids), state=_state(asked, view.id)
    )


def _state(asked: Asked, id: JobId) -> str | None:
    view = asked.store.reports.job(id)
    return None if view is None else view.state.label


ROUTES = (
    Route(method="POST", path="/v1/tasks/{name}/jobs", handler=start_job, takes=NewJobBody, gives=Accepted, status=202,
          scope=Scope.ENQUEUE, reach=Reach.ONE, keyed=True, locates=True,
          links={"show_job": "id", "explain_job": "id", "show_logs": "id", "cancel_job": "id", "resubmit_job": "id",
                 "discard_job": "id"}),
    Route(method="GET", path="/v1/jobs/{id}", handler=show_job, asks=Waiting, gives=JobDocument, scope=Scope.READ,
          reach=Reach.ONE),
    Route(method="GET", path="/v1/jobs", handler=list_jobs, asks=JobQuery, gives=JobsPage, dear=True, scope=Scope.READ, reach=Reach.ONE,
          links={"show_job": "jobs/0/id"}),
    Route(method="GET", path="/v1/jobs/{id}/explain", handler=explain_job, gives=ExplanationDocument, scope=Scope.READ,
          reach=Reach.ONE),
    Route(method="GET", path="/v1/jobs/{id}/logs", handler=show_logs, asks=LogQuery, gives=LogsDocument, scope=Scope.READ,
          reach=Reach.ONE),
    Route(method="GET", path="/v1/upcoming", handler=list_upcoming, asks=Paging, gives=JobsToCome, dear=True, scope=Scope.READ,
          reach=Reach.OWN),
    Route(method="POST", path="/v1/jobs/{id}/cancel", handler=cancel_job, gives=Done, judges=sends_a_run, scope=Scope.OPERATE, reach=Reach.ONE),
    Route(method="POST", path="/v1/jobs/{id}/resubmit", handler=resubmit_job, takes=Change, gives=Done, judges=sends_a_run, scope=Scope.OPERATE,
          besides=Scope.ENQUEUE, besides_for=("change", "unset"), reach=Reach.ONE),
)  # fmt: skip
