"""Queues, the members that serve them, and the breakers that park their jobs."""

from datetime import datetime

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.paging import Paging, paged
from lateshift.api.route import Done, Reach, Route
from lateshift.documents.breakers import BreakerDocument, breaker_document
from lateshift.documents.members import MemberDocument, member_document
from lateshift.documents.queues import QueueDocument, queue_document
from lateshift.model.access import Scope
from lateshift.model.breaker import CircuitView
from lateshift.model.ids import MemberId
from lateshift.operating.names import check_queue, require_breaker
from lateshift.operating.queues import queue_names
from lateshift.store.contract import COUNT_LIMIT


class QueueList(Struct, frozen=True, kw_only=True):
    """By name. A count stops at `count_limit`. `next`: the cursor of the next page, if there may be one."""

    queues: list[QueueDocument]
    count_limit: int
    next: str | None


class MemberList(Struct, frozen=True, kw_only=True):
    """The first that started first. `next`: the cursor of the next page, if there may be one."""

    members: list[MemberDocument]
    next: str | None


class BreakerList(Struct, frozen=True, kw_only=True):
    """By name. `next`: the cursor of the next page, if there may be one."""

    breakers: list[BreakerDocument]
    next: str | None


def list_queues(asked: Asked) -> QueueList:
    """Every queue that has jobs, is paused or ran something in the last day, that a living worker serves by name, or that its code or the
    server's own declares. One without jobs has zeros."""

    def read(after: str | None, limit: int) -> list[str]:
        there = queue_names(asked.store, asked.app.declared_queues())
        return [name for name in there if name > (after or "") and asked.shows(name)][:limit]

    names, more = paged(asked, str, read, lambda name: name)
    shown = [queue_document(view) for view in asked.store.queues.list(of=names)]
    return QueueList(queues=shown, count_limit=COUNT_LIMIT, next=more)


class QueuePaused(Done, frozen=True, kw_only=True):
    """`unknown`: no job was in the queue, and no code declares or serves it: its name may be misspelt. It is paused all the same."""

    unknown: bool


def pause_queue(asked: Asked) -> QueuePaused:
    """Lease nothing more from a queue. What runs goes on; new jobs are accepted and wait."""
    name = _queue(asked)
    unknown = name not in queue_names(asked.store, asked.app.declared_queues())
    changed = asked.store.queues.pause(name, by=asked.by)
    return QueuePaused(subject=f"queue {name}", action="paused", changed=changed, unknown=unknown)


def resume_queue(asked: Asked) -> Done:
    """Let a paused queue go on."""
    name = _queue(asked)
    return Done(
        subject=f"queue {name}", action="resumed", changed=asked.store.queues.resume(name, by=asked.by)
    )


def _queue(asked: Asked) -> str:
    asked.allow(asked.name)
    return check_queue(asked.name)


def list_members(asked: Asked) -> MemberList:
    """Every process that beats, and for ten minutes those that have died."""
    views, more = paged(
        asked, tuple[datetime, MemberId], asked.store.reports.members_after, lambda view: (view.started_at, view.id)
    )  # fmt: skip
    return MemberList(members=[member_document(view) for view in views], next=more)


def list_breakers(asked: Asked) -> BreakerList:
    """Every circuit breaker that the workers' code declares."""

    def read(after: str | None, limit: int) -> list[CircuitView]:
        return asked.store.breakers.list(limit, after=after or "")

    views, more = paged(asked, str, read, lambda view: view.name)
    return BreakerList(breakers=[breaker_document(view) for view in views], next=more)


def open_breaker(asked: Asked) -> Done:
    """Park what comes to a breaker until it is closed by hand. What runs goes on."""
    require_breaker(asked.store, asked.name)
    changed = asked.store.breakers.open(asked.name, by=asked.by)
    return Done(subject=f"breaker {asked.name}", action="opened", changed=changed)


def close_breaker(asked: Asked) -> Done:
    """Let everything through a breaker again."""
    require_breaker(asked.store, asked.name)
    changed = asked.store.breakers.close(asked.name, by=asked.by)
    return Done(subject=f"breaker {asked.name}", action="closed", changed=changed)


ROUTES = (
    Route(method="GET", path="/v1/queues", handler=list_queues, asks=Paging, gives=QueueList, dear=True, scope=Scope.READ, reach=Reach.OWN,
          links={"pause_queue": "queues/0/name", "resume_queue": "queues/0/name"}),
    Route(method="POST", path="/v1/queues/{name}/pause", handler=pause_queue, gives=QueuePaused, scope=Scope.OPERATE, reach=Reach.ONE),
    Route(method="POST", path="/v1/queues/{name}/resume", handler=resume_queue, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="GET", path="/v1/members", handler=list_members, asks=Paging, gives=MemberList, scope=Scope.READ,
          reach=Reach.ALL),
    Route(method="GET", path="/v1/breakers", handler=list_breakers, asks=Paging, gives=BreakerList, scope=Scope.READ,
          reach=Reach.ALL, links={"open_breaker": "breakers/0/name", "close_breaker": "breakers/0/name"}),
    Route(method="POST", path="/v1/breakers/{name:path}/open", handler=open_breaker, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/breakers/{name:path}/close", handler=close_breaker, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
)  # fmt: skip
