"""A trigger, and an event that no job could be made of."""

from base64 import b64encode
from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from lateshift.documents.hiding import shown_refused
from lateshift.model.depth import passed_on
from lateshift.model.triggering.trigger import RefusedView, TriggerView


class TriggerDocument(Struct, frozen=True, kw_only=True):
    """How far a trigger has read, and what keeps it from reading."""

    name: str
    app: str
    kind: str
    about: str
    task: str
    position: Any
    jobs: int
    repeated: int
    refused: int
    refused_now: int
    jobs_per_second: float
    waiting: int | None
    last_at: datetime | None
    looked_at: datetime | None
    read_now: bool
    by_database: bool
    error: str | None
    last_error: str | None
    error_at: datetime | None
    failing_since: datetime | None
    paused: bool
    paused_at: datetime | None
    paused_by: str | None


class RefusedDocument(Struct, frozen=True, kw_only=True):
    """An event that was refused, as it came."""

    id: UUID
    trigger: str
    event: str
    at: datetime
    reason: str
    raw_base64: str
    came_with: Any


class _Rest(Struct):
    """What came with an event: as it is kept, which goes out as it is."""

    seen: Raw


def trigger_document(view: TriggerView) -> TriggerDocument:
    return TriggerDocument(
        name=view.name, app=view.app, kind=view.kind, about=view.about, task=view.task, position=view.position, jobs=view.made,
        repeated=view.repeated, refused=view.refused, refused_now=view.refused_now, jobs_per_second=view.rate,
        waiting=view.lag, last_at=view.last_at, looked_at=view.looked_at, read_now=view.read_now,
        by_database=view.by_database, error=view.error, last_error=view.last_error, error_at=view.error_at, failing_since=view.failing_since,
        paused=view.paused_at is not None, paused_at=view.paused_at, paused_by=view.paused_by,
    )  # fmt: skip


def refused_document(kept: RefusedView, hidden: Collection[str]) -> RefusedDocument:
    """`hidden`: the queues that are sensitive."""
    view = shown_refused(kept, hidden)
    return RefusedDocument(
        id=view.id, trigger=view.trigger, event=view.event, at=view.at, reason=view.reason,
        raw_base64=b64encode(view.raw).decode(), came_with=_came_with(view.rest),
    )  # fmt: skip


def _came_with(rest: bytes) -> Any:
    """As it goes out: what is in it is of no interest here."""
    told = passed_on(rest)
    return msgspec.json.decode(rest, type=_Rest).seen if isinstance(told, Raw) else told
