"""Enqueue inside the caller's own transaction: the job is there if and only if that transaction commits.

The statements are the store's; here are the few lines that run them on each kind of connection. No library is imported
that the caller has not: a connection is known by where its class comes from.
"""

from collections.abc import Callable, Sequence
from typing import Any

from lateshift.errors import ConnectionUnsupported
from lateshift.model.job import Enqueued, NewJob

Rows = list[tuple[Any, ...]]

_DRIVERS = {"postgresql": ("psycopg", "psycopg_async"), "sqlite": ("pysqlite", "aiosqlite")}
_OWN = {"postgresql": "psycopg.Connection", "sqlite": "sqlite3.Connection"}


def several(jobs: Sequence[NewJob]) -> bool:
    """Whether more is written than one row, which must stand or fall together."""
    return len(jobs) > 1 or any(
        job.key is not None or job.unique is not None or bool(job.tags) for job in jobs
    )


def run(connection: object, statements: Any, dialect: str, several: bool) -> list[Enqueued]:
    """`several` rows are written only where a transaction holds them together."""
    execute = _sync(connection, dialect, several)
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


async def arun(connection: Any, statements: Any, dialect: str, several: bool) -> list[Enqueued]:
    origin = origin_of(connection)
    if origin in ("sqlalchemy.AsyncConnection", "sqlalchemy.AsyncSession"):
        inside: list[Enqueued] = await connection.run_sync(
            lambda inner: run(inner, statements, dialect, several)
        )
        return inside
    if origin != "psycopg.AsyncConnection" or dialect != "postgresql":
        return run(connection, statements, dialect, several)
    if several:
        _refuse_autocommit(connection, dialect)
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


def _sync(connection: Any, dialect: str, several: bool) -> Callable[[str, Any], Rows]:
    origin = origin_of(connection)
    match origin:
        case "psycopg.Connection" | "sqlite3.Connection" if origin == _OWN[dialect]:
            if several:
                _refuse_autocommit(connection, dialect)
            return _through_cursor(lambda: _plain_cursor(connection))
        case "sqlalchemy.Connection" if connection.dialect.driver in _DRIVERS[dialect]:
            if several:
                _begin(connection, dialect)
            return _through_sqlalchemy(connection)
        case "sqlalchemy.Session":
            return _sync(connection.connection(), dialect, several)
        case "django.DatabaseWrapper" | "django.ConnectionProxy" if connection.vendor == dialect:
            connection.ensure_connection()
            return _sync(connection.connection, dialect, several)
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


def _refuse_autocommit(connection: Any, dialect: str) -> None:
    """Each statement would be committed by itself, and a key could stand without its job."""
    if _autocommits(connection, dialect):
        raise ConnectionUnsupported(
            "connection= is in autocommit mode and no transaction is open on it, so that a key, an identity or several jobs could be "
            "written in part. Open a transaction first: `with connection.transaction():` in psycopg, BEGIN in sqlite3, "
            "`with transaction.atomic():` in Django, an isolation level other than AUTOCOMMIT in SQLAlchemy."
        )


def _autocommits(connection: Any, dialect: str) -> bool:
    """Of a driver's connection, plain or async: no transaction is open, and the next write opens none."""
    if dialect == "postgresql":
        return bool(connection.autocommit) and connection.info.transaction_status.name == "IDLE"
    if connection.in_transaction:
        return False
    # Since Python 3.12; neither True nor False is the way before it.
    mode = getattr(connection, "autocommit", None)
    return mode is True or (mode is not False and connection.isolation_level is None)


def _begin(connection: Any, dialect: str) -> None:
    """SQLAlchemy would begin by itself with the first statement; it has to now, so that what comes of it is seen."""
    begun = None if connection.in_transaction() else connection.begin()
    try:
        _refuse_autocommit(connection.connection.driver_connection, dialect)
    except ConnectionUnsupported:
        if begun is not None:
            begun.rollback()
        raise


def origin_of(connection: object) -> str:
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
    if origin_of(connection) == "sqlite3.Connection":
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
