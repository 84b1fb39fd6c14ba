"""Sessions and limits: what keeps jobs from running; and pipelines, by what stands at each filter."""

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import Text
from lateshift.api.paging import Paging, Weight, paged
from lateshift.api.route import Done, Reach, Route
from lateshift.documents.pipelines import PipelineDocument, pipeline_document
from lateshift.documents.sessions import LimitDocument, SessionDocument, limit_document, session_document
from lateshift.model.access import Scope
from lateshift.model.guard import Rule
from lateshift.model.job import RESULT_LIMIT
from lateshift.operating.pipelines import Looked, all_pipelines, one_pipeline
from lateshift.store.contract import COUNT_LIMIT, SessionView

SESSION = Weight[SessionView](lambda view: len(view.state or b""), RESULT_LIMIT)


class SessionQuery(Paging, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`held`: only those that wait for somebody."""

    held: bool = False


class SessionList(Struct, frozen=True, kw_only=True):
    """By queue and name. Of a token that is for some queues there may be fewer than asked for. `next`: the cursor of the next page, if
    there may be one."""

    sessions: list[SessionDocument]
    next: str | None


class ReleaseBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session of a queue."""

    session: Text
    queue: Text = "default"


class LimitList(Struct, frozen=True, kw_only=True):
    """By what they limit and its name. `next`: the cursor of the next page, if there may be one."""

    limits: list[LimitDocument]
    next: str | None


class PipelineList(Struct, frozen=True, kw_only=True):
    """By name. A count stops at `count_limit`. `next`: the cursor of the next page, if there may be one."""

    pipelines: list[PipelineDocument]
    count_limit: int
    next: str | None


def list_sessions(asked: Asked) -> SessionList:
    """Sessions that keep state, number their jobs, or are held; or only those that are held."""

    def read(after: tuple[str, str] | None, limit: int) -> list[SessionView]:
        return asked.store.sessions.list(held=asked.query.held, limit=limit, after=after)

    views, more = paged(asked, tuple[str, str], read, lambda view: (view.queue, view.name), SESSION)
    hidden = asked.store.queues.concealed()
    shown = [session_document(view, hidden) for view in views if asked.shows(view.queue)]
    return SessionList(sessions=shown, next=more)


def release_session(asked: Asked) -> Done:
    """Let a held session go on without its dead letter, or without the number that is missing."""
    body: ReleaseBody = asked.body
    asked.allow(body.queue)
    changed = asked.store.sessions.release(body.queue, body.session, by=asked.by)
    return Done(subject=f"session {body.session} of queue {body.queue}", action="released", changed=changed)


def list_limits(asked: Asked) -> LimitList:
    """How many jobs may run at once and start in a time, as the workers' code says."""

    def read(after: tuple[str, str] | None, limit: int) -> list[Rule]:
        # All are read with every job that is leased: there are as few as code declares.
        found = asked.store.rules.list()
        return [rule for rule in found if after is None or (rule.scope, rule.name) > after][:limit]

    rules, more = paged(asked, tuple[str, str], read, lambda rule: (rule.scope, rule.name))
    return LimitList(limits=[limit_document(rule) for rule in rules], next=more)


def list_pipelines(asked: Asked) -> PipelineList:
    """Every pipeline of which an item has begun and is still kept."""

    def read(after: str | None, limit: int) -> list[Looked]:
        return all_pipelines(asked.store, after or "", limit)

    found, more = paged(asked, str, read, lambda looked: looked[1].name)
    shown = [pipeline_document(*looked) for looked in found]
    return PipelineList(pipelines=shown, count_limit=COUNT_LIMIT, next=more)


def show_pipeline(asked: Asked) -> PipelineDocument:
    """One pipeline: its items, and what waits, runs, is held and has failed at each of its filters."""
    return pipeline_document(*one_pipeline(asked.store, asked.name))


ROUTES = (
    Route(method="GET", path="/v1/sessions", handler=list_sessions, asks=SessionQuery, gives=SessionList, dear=True, scope=Scope.READ,
          reach=Reach.OWN),
    Route(method="POST", path="/v1/sessions/release", handler=release_session, takes=ReleaseBody, gives=Done,
          scope=Scope.OPERATE, reach=Reach.ONE),
    Route(method="GET", path="/v1/limits", handler=list_limits, asks=Paging, gives=LimitList, scope=Scope.READ, reach=Reach.ALL),
    Route(method="GET", path="/v1/pipelines", handler=list_pipelines, asks=Paging, gives=PipelineList, dear=True, scope=Scope.READ,
          reach=Reach.ALL, links={"show_pipeline": "pipelines/0/name"}),
    Route(method="GET", path="/v1/pipelines/{name:path}", handler=show_pipeline, gives=PipelineDocument, scope=Scope.READ,
          reach=Reach.ALL),
)  # fmt: skip
