"""The shop's own tables. They stand in the database that is Lateshift's store too, so that one transaction can write to both."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg

from examples.orders.application import app
from examples.orders.remote import Mode, Service

Connection: TypeAlias = sqlite3.Connection | psycopg.Connection

TABLES = [
    """CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, price INTEGER NOT NULL, mode TEXT NOT NULL,
    service TEXT NOT NULL, run TEXT NOT NULL UNIQUE)""",
    """CREATE TABLE IF NOT EXISTS replies (id TEXT PRIMARY KEY, order_id INTEGER NOT NULL, place INTEGER NOT NULL,
    status TEXT NOT NULL, detail TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, order_id INTEGER NOT NULL, what TEXT NOT NULL,
    why TEXT NOT NULL)""",
]
BUSY_SECONDS = 30  # that a SQLite file may be written to by others


@dataclass(frozen=True)
class Order:
    """What the shop posts. `mode`: how the remote `service` will treat it, so that there is something to see."""

    id: int
    item: str = "lamp"
    price: int = 39
    mode: Mode = "work"
    service: Service = "charge"


@app.on_start
def prepare() -> None:
    with app.lock("the tables of the orders"), transaction() as connection:
        for table in TABLES:
            execute(connection, table)


@contextmanager
def transaction() -> Iterator[Connection]:
    """All that is done in the block, or nothing of it; jobs included that are enqueued with `connection=`."""
    with connected() as connection:
        if not isinstance(
            connection, sqlite3.Connection
        ):  # psycopg begins by itself, and commits when it is closed
            yield connection
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def query(sql: str, *values: object) -> list[tuple[Any, ...]]:
    with connected() as connection:
        return execute(connection, sql, *values)


@contextmanager
def connected() -> Iterator[Connection]:
    url = app.settings.store
    if not url.startswith("sqlite:"):
        with psycopg.connect(url) as connection:
            yield connection
        return
    path = url.removeprefix("sqlite:///").partition("?")[0]
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as file:
        file.execute("PRAGMA wal_autocheckpoint = 0")  # Lateshift sees to that
        yield file


def execute(connection: Connection, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """On either database: where SQLite writes `?`, psycopg writes `%s`."""
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(sql, values).fetchall()
    cursor = connection.execute(sql.replace("?", "%s"), values)
    return cursor.fetchall() if cursor.description else []
