"""Rows of sessions, limits and what blocks a job, written as the lease path leaves them."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.store.contract import Store
from lateshift.store.sqlite import SqliteStore
from lateshift.store.sqlite.times import MICROSECOND, to_number
from tests.store_contract.driving import query


def as_kept(store: Store, value: Any) -> Any:
    """As this store's columns hold it."""
    if not isinstance(store, SqliteStore):
        return value
    match value:
        case UUID():
            return value.bytes
        case datetime():
            return to_number(value)
        case timedelta():
            return value // MICROSECOND
        case _:
            return value


def write(store: Store, id: JobId, **columns: Any) -> None:
    """Change columns of a job."""
    changes = ", ".join(f"{name} = {{}}" for name in columns)
    values = [as_kept(store, value) for value in columns.values()]
    query(store, f"UPDATE {{job}} SET {changes} WHERE id = {{}}", *values, as_kept(store, id))


def insert(store: Store, table: str, **columns: Any) -> None:
    marks = ", ".join(["{}"] * len(columns))
    values = [as_kept(store, value) for value in columns.values()]
    query(store, f"INSERT INTO {{{table}}} ({', '.join(columns)}) VALUES ({marks})", *values)


def add_rule(store: Store, scope: str, name: str, **columns: Any) -> None:
    insert(store, "rule", scope=scope, name=name, set_by="ana", set_at=store.clock.now(), **columns)


def add_session(store: Store, name: str, **columns: Any) -> None:
    insert(store, "session", queue="default", name=name, touched_at=store.clock.now(), **columns)
