"""The two SQLite libraries that a process may have: apsw's, which is current, and the one of Python's own sqlite3 module.

A process must open a file with one of them only: each library keeps its own books of the file's locks, and closing a file
in one drops the locks of the other and may delete the log it writes to. So a program whose own code opens the store's
file, with sqlite3, SQLAlchemy or Django, names the store with ?driver=sqlite3, and Lateshift uses that library too."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

FIXED_SINCE = (
    3,
    51,
    3,
)  # before it, SQLite may lose a commit when a checkpoint meets a writer (the WAL-reset bug)
STDLIB_SINCE = (3, 37, 0)  # what Lateshift's statements need
CHECKPOINT_EVERY = 500  # commits, where checkpoints must not meet a writer


class Connection(Protocol):
    """What Lateshift uses of a connection; rows come untyped from SQLite."""

    in_transaction: bool

    def execute(self, statements: str, bindings: Any = ..., /) -> Any: ...
    def executemany(self, statements: str, sequence: Any, /) -> Any: ...
    def total_changes(self) -> int: ...
    def close(self) -> None: ...


class Driver(Protocol):
    """Opens connections to a file."""

    name: str
    version: tuple[int, int, int]

    def connect(self, path: Path, wait: Callable[[int], bool], seconds: float) -> Connection: ...

    def backup(self, source: Connection, target: Path) -> None: ...


class Apsw:
    """The default."""

    name = "apsw"
    version = cast(
        "tuple[int, int, int]", tuple(int(part) for part in apsw.sqlite_lib_version().split(".")[:3])
    )

    def connect(self, path: Path, wait: Callable[[int], bool], seconds: float) -> Connection:
        connection = apsw.Connection(str(path))
        connection.set_busy_handler(wait)
        return cast(Connection, connection)

    def backup(self, source: Connection, target: Path) -> None:
        copy = apsw.Connection(str(target))
        try:
            with copy.backup("main", cast(apsw.Connection, source), "main") as backup:
                backup.step(-1)  # at once: in steps it would begin anew with each commit of somebody else
        finally:
            copy.close()


class Stdlib:
    """Python's own, for programs that open the file themselves."""

    name = "sqlite3"
    version = sqlite3.sqlite_version_info

    def connect(self, path: Path, wait: Callable[[int], bool], seconds: float) -> Connection:
        with _as_apsw():
            inner = sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)
        return StdlibConnection(inner, careful=self.version < FIXED_SINCE)

    def backup(self, source: Connection, target: Path) -> None:
        copy = sqlite3.connect(target)
        try:
            with _as_apsw():
                cast(StdlibConnection, source).inner.backup(copy)
        finally:
            copy.close()


class StdlibConnection:
    """A sqlite3 connection with apsw's manners, its errors included. With a library that has the WAL-reset bug it never
    checkpoints beside a writer: not by itself, and every so often with the write lock held (TRUNCATE takes it)."""

    def __init__(self, inner: sqlite3.Connection, *, careful: bool) -> None:
        self.inner = inner
        self._careful = careful
        self._commits = 0

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    @in_transaction.setter
    def in_transaction(self, value: bool) -> None:
        raise AttributeError("SQLite says whether a transaction is open")

    def execute(self, statements: str, bindings: Any = (), /) -> Any:
        if self._careful and statements.startswith("PRAGMA wal_autocheckpoint"):
            statements = "PRAGMA wal_autocheckpoint = 0"
        with _as_apsw():
            cursor = self.inner.execute(statements, bindings)
            rows = cursor.fetchall() if cursor.description else []
        if self._careful and statements == "COMMIT":
            self._commits += 1
            if self._commits % CHECKPOINT_EVERY == 0:
                self.inner.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Rows(rows)

    def executemany(self, statements: str, sequence: Any, /) -> Any:
        with _as_apsw():
            self.inner.executemany(statements, sequence)
        return Rows([])

    def total_changes(self) -> int:
        return self.inner.total_changes

    def close(self) -> None:
        self.inner.close()


class Rows(list[tuple[Any, ...]]):
    """What a statement gave."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self


class _as_apsw:  # noqa: N801 - used as a plain context manager
    """sqlite3's errors as apsw's, by their code."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", None)
            translated = apsw.exception_for(code) if code else apsw.SQLError()
            raise type(translated)(str(error)) from error


DRIVERS: dict[str, Driver] = {driver.name: driver for driver in cast("list[Driver]", [Apsw(), Stdlib()])}


def until_free(connect: Callable[[], Any], seconds: float) -> Any:
    """Run what changes the journal mode again while others do the same: SQLite asks no busy handler for that."""
    end = time.monotonic() + seconds
    while True:
        try:
            return connect()
        except apsw.BusyError:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)
