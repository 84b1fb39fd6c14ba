"""Triggers, which start jobs from outside; and what they could make no job of."""

from functools import partial
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import RESUBMIT_MOST, Text
from lateshift.api.paging import Paging, Weight, paged
from lateshift.api.route import Done, Reach, Route
from lateshift.documents.triggers import (
    RefusedDocument,
    TriggerDocument,
    refused_document,
    trigger_document,
)
from lateshift.errors import TriggerUnknown
from lateshift.model.access import Scope
from lateshift.model.triggering.trigger import REFUSED_LIMIT, RefusedView, TriggerView
from lateshift.operating.names import pause_trigger, trigger
from lateshift.operating.refused import Retried, ids_of, retry

# Of an event, and of what came with it.
REFUSED = Weight[RefusedView](lambda view: len(view.raw) + len(view.rest), 2 * REFUSED_LIMIT)


class TriggerList(Struct, frozen=True, kw_only=True):
    """By name. `next`: the cursor of the next page, if there may be one."""

    triggers: list[TriggerDocument]
    next: str | None


class RefusedQuery(Paging, frozen=True, kw_only=True, forbid_unknown_fields=True):
    trigger: Text | None = None


class RefusedPage(Struct, frozen=True, kw_only=True):
    """The oldest first. `next`: the cursor of the next page, if there may be one."""

    refused: list[RefusedDocument]
    next: str | None


class RetryBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """So many of them, the oldest first."""

    limit: Annotated[int, Meta(ge=1, le=RESUBMIT_MOST)] = RESUBMIT_MOST


def list_triggers(asked: Asked) -> TriggerList:
    """Triggers by name: how far each has read, and what keeps one from reading."""

    def read(after: str | None, limit: int) -> list[TriggerView]:
        return asked.store.triggers.all(limit, after=after or "")

    views, more = paged(asked, str, read, lambda view: view.name)
    return TriggerList(triggers=[trigger_document(view) for view in views], next=more)


def show_trigger(asked: Asked) -> TriggerDocument:
    """One trigger, with its position and its last error."""
    return trigger_document(trigger(asked.store, asked.name))


def pause_a_trigger(asked: Asked) -> Done:
    """Read no more until it is resumed. What comes waits where it is."""
    changed = pause_trigger(asked.store, asked.name, by=asked.by)
    return Done(subject=f"trigger {asked.name}", action="paused", changed=changed)


def resume_a_trigger(asked: Asked) -> Done:
    """Read again, from where it stands."""
    trigger(asked.store, asked.name)
    changed = asked.store.triggers.resume(asked.name, by=asked.by)
    return Done(subject=f"trigger {asked.name}", action="resumed", changed=changed)


def list_refused(asked: Asked) -> RefusedPage:
    """Events that no job could be made of, of one trigger or of all, the oldest first, and why."""
    read = partial(asked.store.triggers.refused, asked.query.trigger)
    views, more = paged(asked, UUID, read, lambda view: view.id, REFUSED)
    hidden = asked.store.queues.concealed()
    return RefusedPage(refused=[refused_document(view, hidden) for view in views], next=more)


def show_refused(asked: Asked) -> RefusedDocument:
    """What was refused, byte for byte as it came, in base64."""
    found = asked.store.triggers.find_refused(asked.id)
    if found is None:
        raise _gone(asked.id)
    return refused_document(found, asked.store.queues.concealed())


def retry_refused(asked: Asked) -> Retried:
    """Make a job of what was refused, with the server's code as it is now; or say why that cannot be, still."""
    if asked.store.triggers.find_refused(asked.id) is None:
        raise _gone(asked.id)
    return retry(asked.app, [asked.id], by=asked.by)


def retry_all_refused(asked: Asked) -> Retried:
    """Make jobs of all that a trigger has refused, the oldest first, with the server's code as it is now."""
    ids = ids_of(asked.store, asked.name, asked.body.limit)
    if not ids:
        trigger(asked.store, asked.name)
    return retry(asked.app, ids, by=asked.by)


def discard_refused(asked: Asked) -> Done:
    """Let go of what was refused."""
    gone = asked.store.triggers.discard([asked.id], by=asked.by)
    return Done(subject=f"refused {asked.id}", action="discarded", changed=bool(gone))


def _gone(id: UUID) -> TriggerUnknown:
    return TriggerUnknown(f"Nothing that was refused has the id {id}; it may have been retried or discarded.")


ROUTES = (
    Route(method="GET", path="/v1/triggers", handler=list_triggers, asks=Paging, gives=TriggerList, scope=Scope.READ,
          reach=Reach.ALL, links={"show_trigger": "triggers/0/name"}),
    Route(method="GET", path="/v1/triggers/{name:path}", handler=show_trigger, gives=TriggerDocument, scope=Scope.READ,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/triggers/{name:path}/pause", handler=pause_a_trigger, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/triggers/{name:path}/resume", handler=resume_a_trigger, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/triggers/{name:path}/retry", handler=retry_all_refused, takes=RetryBody, gives=Retried,
          dear=True, scope=Scope.OPERATE, reach=Reach.ALL),
    Route(method="GET", path="/v1/refused", handler=list_refused, asks=RefusedQuery, gives=RefusedPage, dear=True, scope=Scope.READ,
          reach=Reach.ALL,
          links={"show_refused": "refused/0/id", "retry_refused": "refused/0/id", "discard_refused": "refused/0/id"}),
    Route(method="GET", path="/v1/refused/{id}", handler=show_refused, gives=RefusedDocument, scope=Scope.READ, reach=Reach.ALL),
    Route(method="POST", path="/v1/refused/{id}/retry", handler=retry_refused, gives=Retried, scope=Scope.OPERATE,
          reach=Reach.ALL),
    Route(method="POST", path="/v1/refused/{id}/discard", handler=discard_refused, gives=Done, scope=Scope.OPERATE,
          reach=Reach.ALL),
)  # fmt: skip
