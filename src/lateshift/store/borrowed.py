"""Enqueue inside the caller's own transaction: the job is there if and only if that transaction commits.

The statements are the store's; here are the few lines that run them on each kind of connection. No library is imported
that the caller has not: a connection is known by where its class comes from.
"""

from collections.abc import Callable
from typing import Any

from lateshift.errors import ConnectionUnsupported
from lateshift.model.job import Enqueued

Rows = list[tuple[Any, ...]]

_DRIVERS = {"postgresql": ("psycopg", "psycopg_async"), "sqlite": ("pysqlite", "aiosqlite")}


def run(connection: object, statements: Any, dialect: str) -> list[Enqueued]:
    execute = _sync(connection, dialect)
    rows: Rows | None = None
    try:
        while True:
            sql, parameters = statements.send(rows)
            rows = []
            for row in parameters:
                rows = execute(sql.replace("%b", "%s"), row)  # not every driver knows binary parameters
    except StopIteration as stop:
        answers: list[Enqueued] = stop.value
        return answers


async def arun(connection: Any, statements: Any, dialect: str) -> list[Enqueued]:
    origin = _origin(connection)
    if origin in ("sqlalchemy.AsyncConnection", "sqlalchemy.AsyncSession"):
        inside: list[Enqueued] = await connection.run_sync(lambda inner: run(inner, statements, dialect))
        return inside
    if origin != "psycopg.AsyncConnection" or dialect != "postgresql":
        return run(connection, statements, dialect)
    rows: Rows | None = None
    try:
        while True:
            sql, parameters = statements.send(rows)
            rows = []
            for row in parameters:
                cursor = _plain_cursor(connection)
                await cursor.execute(sql, row)
                rows = await cursor.fetchall() if cursor.description else []
    except StopIteration as stop:
        answers: list[Enqueued] = stop.value
        return answers


def _sync(connection: Any, dialect: str) -> Callable[[str, Any], Rows]:
    origin = _origin(connection)
    match origin:
        case "psycopg.Connection" if dialect == "postgresql":
            return _through_cursor(lambda: _plain_cursor(connection))
        case "sqlite3.Connection" if dialect == "sqlite":
            return _through_cursor(lambda: _plain_cursor(connection))
        case "sqlalchemy.Connection" if connection.dialect.driver in _DRIVERS[dialect]:
            return _through_sqlalchemy(connection)
        case "sqlalchemy.Session":
            return _sync(connection.connection(), dialect)
        case "django.DatabaseWrapper" | "django.ConnectionProxy" if connection.vendor == dialect:
            connection.ensure_connection()
            return _sync(connection.connection, dialect)
        case "psycopg.AsyncConnection" | "sqlalchemy.AsyncConnection" | "sqlalchemy.AsyncSession":
            raise ConnectionUnsupported(
                "That is an async connection: use `await task.options(connection=…).aenqueue(…)`."
            )
        case _:
            raise ConnectionUnsupported(
                f"connection= got a {type(connection).__module__}.{type(connection).__qualname__}, and the store is "
                f"{dialect}. Give an open connection of psycopg 3 for PostgreSQL, or of sqlite3 on the same file for "
                "SQLite, itself or by way of SQLAlchemy or Django."
            )


def _origin(connection: object) -> str:
    """`psycopg.Connection` for psycopg's connection and whatever derives from it."""
    for kind in type(connection).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in ("psycopg", "sqlite3", "sqlalchemy", "django"):
            name = kind.__qualname__
            if name in (
                "Connection",
                "AsyncConnection",
                "Session",
                "AsyncSession",
                "DatabaseWrapper",
                "ConnectionProxy",
            ):
                return f"{package}.{name}"
    return ""


def _plain_cursor(connection: Any) -> Any:
    """One that gives rows as tuples, whatever rows the caller likes."""
    if _origin(connection) == "sqlite3.Connection":
        cursor = connection.cursor()
        cursor.row_factory = None
        return cursor
    from psycopg.rows import tuple_row

    return connection.cursor(row_factory=tuple_row)


def _through_cursor(make: Callable[[], Any]) -> Callable[[str, Any], Rows]:
    def execute(sql: str, parameters: Any) -> Rows:
        cursor = make()
        cursor.execute(sql, parameters)
        rows: Rows = cursor.fetchall() if cursor.description else []
        cursor.close()
        return rows

    return execute


def _through_sqlalchemy(connection: Any) -> Callable[[str, Any], Rows]:
    def execute(sql: str, parameters: Any) -> Rows:
        result = connection.exec_driver_sql(sql, tuple(parameters))
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []

    return execute
