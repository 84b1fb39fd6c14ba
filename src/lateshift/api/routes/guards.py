"""Sessions and limits: what keeps jobs from running; and pipelines, by what stands at each filter."""

from msgspec import Struct

from lateshift.api.bounds import PAGE, PageSize, Text
from lateshift.api.route import Asked, Done, Reach, Route
from lateshift.documents.pipelines import PipelineDocument, pipeline_document
from lateshift.documents.sessions import LimitDocument, SessionDocument, limit_document, session_document
from lateshift.model.access import Scope
from lateshift.operating.pipelines import all_pipelines, one_pipeline
from lateshift.store.contract import COUNT_LIMIT


class SessionQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    held: bool = False
    limit: PageSize = PAGE


class SessionList(Struct, frozen=True, kw_only=True):
    """Of a token that is for some queues there may be fewer than asked for."""

    sessions: list[SessionDocument]


class ReleaseBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session of a queue."""

    session: Text
    queue: Text = "default"


class LimitList(Struct, frozen=True, kw_only=True):
    limits: list[LimitDocument]


class PipelineList(Struct, frozen=True, kw_only=True):
    """By name. A count stops at `count_limit`."""

    pipelines: list[PipelineDocument]
    count_limit: int


def list_sessions(asked: Asked) -> SessionList:
    """Sessions that keep state, number their jobs, or are held; or only those that are held."""
    views = asked.store.sessions.list(held=asked.query.held, limit=asked.query.limit)
    hidden = asked.store.queues.concealed()
    return SessionList(sessions=[session_document(view, hidden) for view in views if asked.shows(view.queue)])


def release_session(asked: Asked) -> Done:
    """Let a held session go on without its dead letter, or without the number that is missing."""
    body: ReleaseBody = asked.body
    asked.allow(body.queue)
    changed = asked.store.sessions.release(body.queue, body.session, by=asked.by)
    return Done(subject=f"session {body.session} of queue {body.queue}", action="released", changed=changed)


def list_limits(asked: Asked) -> LimitList:
    """How many jobs may run at once and start in a time, as the workers' code says."""
    return LimitList(limits=[limit_document(rule) for rule in asked.store.rules.list()])


def list_pipelines(asked: Asked) -> PipelineList:
    """Every pipeline of which an item has begun and is still kept."""
    found = [pipeline_document(*looked) for looked in all_pipelines(asked.store)]
    return PipelineList(pipelines=found, count_limit=COUNT_LIMIT)


def show_pipeline(asked: Asked) -> PipelineDocument:
    """One pipeline: its items, and what waits, runs, is held and has failed at each of its filters."""
    return pipeline_document(*one_pipeline(asked.store, asked.name))


ROUTES = (
    Route(method="GET", path="/v1/sessions", handler=list_sessions, asks=SessionQuery, gives=SessionList, scope=Scope.READ,
          reach=Reach.OWN),
    Route(method="POST", path="/v1/sessions/release", handler=release_session, takes=ReleaseBody, gives=Done,
          scope=Scope.OPERATE, reach=Reach.ONE),
    Route(method="GET", path="/v1/limits", handler=list_limits, gives=LimitList, scope=Scope.READ, reach=Reach.ALL),
    Route(method="GET", path="/v1/pipelines", handler=list_pipelines, gives=PipelineList, scope=Scope.READ, reach=Reach.ALL),
    Route(method="GET", path="/v1/pipelines/{name:path}", handler=show_pipeline, gives=PipelineDocument, scope=Scope.READ,
          reach=Reach.ALL),
)  # fmt: skip
