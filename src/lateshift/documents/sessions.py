"""A session, and what limits jobs."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.documents.reading import as_kept
from lateshift.model.guard import Rule
from lateshift.model.sealed import hidden as hidden_value
from lateshift.store.contract import SessionView


class SessionDocument(Struct, frozen=True, kw_only=True):
    """What a session keeps, and what holds it."""

    queue: str
    session: str
    held_by: UUID | None
    held_why: str | None
    expects: int | None
    state: Any


class LimitDocument(Struct, frozen=True, kw_only=True):
    """How many jobs may run at once and start in a time."""

    scope: str
    name: str
    concurrency: int | None
    rate: int | None
    per_seconds: float | None
    burst: int | None


def session_document(view: SessionView, hidden: Collection[str]) -> SessionDocument:
    """`hidden`: the queues that are sensitive."""
    return SessionDocument(
        queue=view.queue, session=view.name, held_by=view.held_by, held_why=view.held_why, expects=view.expects,
        state=as_kept(hidden_value(view.state) if view.queue in hidden else view.state),
    )  # fmt: skip


def limit_document(rule: Rule) -> LimitDocument:
    rated = rule.rate is not None
    return LimitDocument(
        scope=rule.scope, name=rule.name, concurrency=rule.concurrency, rate=rule.rate,
        per_seconds=rule.per.total_seconds() if rated else None, burst=rule.burst if rated else None,
    )  # fmt: skip
