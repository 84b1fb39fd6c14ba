"""Queues, the members that serve them, and the breakers that park their jobs."""

from msgspec import Struct

from lateshift.api.route import Asked, Done, Reach, Route
from lateshift.documents.breakers import BreakerDocument, breaker_document
from lateshift.documents.members import MemberDocument, member_document
from lateshift.documents.queues import QueueDocument, queue_document
from lateshift.model.access import Scope
from lateshift.operating.names import check_queue, require_breaker
from lateshift.store.contract import COUNT_LIMIT


class QueueList(Struct, frozen=True, kw_only=True):
    """By name. A count stops at `count_limit`."""

    queues: list[QueueDocument]
    count_limit: int


class MemberList(Struct, frozen=True, kw_only=True):
    members: list[MemberDocument]


class BreakerList(Struct, frozen=True, kw_only=True):
    breakers: list[BreakerDocument]


def list_queues(asked: Asked) -> QueueList:
    """Every queue that has jobs or was paused."""
    views = [view for view in asked.store.queues.list() if asked.shows(view.name)]
    return QueueList(queues=[queue_document(view) for view in views], count_limit=COUNT_LIMIT)


def pause_queue(asked: Asked) -> Done:
    """Lease nothing more from a queue. What runs goes on; new jobs are accepted and wait."""
    name = _queue(asked)
    return Done(subject=f"queue {name}", action="paused", changed=asked.store.queues.pause(name, by=asked.by))


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
    return MemberList(members=[member_document(view) for view in asked.store.reports.members()])


def list_breakers(asked: Asked) -> BreakerList:
    """Every circuit breaker that the workers' code declares."""
    return BreakerList(breakers=[breaker_document(view) for view in asked.store.breakers.list()])


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
    Route(method="GET", path="/v1/queues", handler=list_queues, gives=QueueList, scope=Scope.READ, reach=Reach.OWN,
          links={"pause_queue": "queues/0/name", "resume_queue": "queues/0/name"}),
    Route(method="POST", path="/v1/queues/{name}/pause", handler=pause_queue, gives=Done, scope=Scope.OPERATE, reach=Reach.ONE),
    Route(method="POST", path="/v1/queues/{name}/resume", handler=resume_queue, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ONE),
    Route(method="GET", path="/v1/members", handler=list_members, gives=MemberList, scope=Scope.READ, reach=Reach.ALL),
    Route(method="GET", path="/v1/breakers", handler=list_breakers, gives=BreakerList, scope=Scope.READ, reach=Reach.ALL),
    Route(method="POST", path="/v1/breakers/{name:path}/open", handler=open_breaker, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/breakers/{name:path}/close", handler=close_breaker, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
)  # fmt: skip
