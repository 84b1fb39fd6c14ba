"""Where things are measured: a fresh database or file for each figure, all on this machine, all gone afterwards."""

import contextlib
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

import psycopg

from tests.postgres_databases import PostgresDatabases, unused_name
from tests.postgres_server import PostgresServer

POSTGRES, SQLITE, REDIS = "PostgreSQL", "SQLite", "Redis"
STORES = (POSTGRES, SQLITE)
REDIS_AT = ("127.0.0.1", 6379)
REDIS_DATABASE = 15  # used only if it is empty, and emptied after each figure


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, and the URL of something empty in it or beside it."""

    store: str
    url: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"BENCH_URL": self.url, "LATESHIFT_STORE": self.url}

    @contextlib.contextmanager
    def asking(self, question: str | None) -> Iterator[Callable[[], bool]]:
        """Gives what tells whether this question, which asks for an unfinished job, finds none. Redis is not asked."""
        if question is None:
            yield lambda: True
        elif self.store == POSTGRES:
            with psycopg.connect(self.url, autocommit=True) as connection:
                yield lambda: not connection.execute(question.encode()).fetchall()
        else:
            with contextlib.closing(sqlite3.connect(self.file, timeout=20)) as file:
                yield lambda: not file.execute(question).fetchall()

    def rest(self) -> None:
        """Write out what filling left behind, so that it does not fall into the figure."""
        if self.store == POSTGRES:
            with psycopg.connect(self.url, autocommit=True) as connection:
                with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                    connection.execute("CHECKPOINT")
        elif self.store == SQLITE:
            with contextlib.closing(sqlite3.connect(self.file, timeout=20)) as file:
                file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @property
    def file(self) -> Path:
        return self.folder / "bench.db"


class Places:
    """Gives places, one after the other. The PostgreSQL server is one for the whole run."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._numbers = count(1)
        self._databases: PostgresDatabases | None = None

    def __enter__(self) -> Self:
        self._base = Path(tempfile.mkdtemp(prefix="lateshift-bench-"))
        self._stack.callback(shutil.rmtree, self._base, ignore_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def place(self, store: str) -> Iterator[Place]:
        folder = self._base / f"{next(self._numbers)}"
        folder.mkdir()
        try:
            match store:
                case "PostgreSQL":
                    name = unused_name()
                    url = self._server().create_database(name)
                    try:
                        yield Place(store, url, folder)
                    finally:
                        self._server().drop_database(name)
                case "SQLite":
                    yield Place(store, f"sqlite:///{folder / 'bench.db'}", folder)
                case _:
                    try:
                        yield Place(store, redis_url(), folder)
                    finally:
                        _empty_redis()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def versions(self) -> str:
        with self._server().connect() as connection:
            [[postgres]] = connection.execute("SHOW server_version").fetchall()
        return f"PostgreSQL {str(postgres).split()[0]}"

    def _server(self) -> PostgresDatabases:
        if self._databases is None:
            named = os.environ.get("LATESHIFT_TEST_POSTGRES")
            # What a stock server has; the tests' own is set up smaller.
            self._databases = (
                PostgresDatabases(named)
                if named
                else self._stack.enter_context(PostgresServer(shared_buffers="128MB"))
            )
        return self._databases


def redis_url() -> str:
    host, port = REDIS_AT
    return f"redis://{host}:{port}/{REDIS_DATABASE}"


def redis_refusal() -> str | None:
    """Why Redis cannot be used, or None if it can."""
    try:
        socket.create_connection(REDIS_AT, timeout=0.5).close()
        import redis

        size = redis.Redis.from_url(redis_url()).dbsize()
    except Exception as error:
        return f"no Redis at {REDIS_AT[0]}:{REDIS_AT[1]} ({type(error).__name__})"
    return f"database {REDIS_DATABASE} of the Redis here is in use" if size else None


def _empty_redis() -> None:
    import redis

    redis.Redis.from_url(redis_url()).flushdb()
