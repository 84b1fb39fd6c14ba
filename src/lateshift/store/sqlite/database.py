"""The file: one connection that writes and a few that read, each used by one thread at a time, never after a fork. A long look has a
connection of its own, and keeps no short one waiting."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psutil

from lateshift.clock import Clock
from lateshift.errors import (
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnsafe,
)
from lateshift.store import private
from lateshift.store.forks import forks
from lateshift.store.sqlite.drivers import DRIVERS, FIXED_SINCE, STDLIB_SINCE, Apsw, Connection, until_free
from lateshift.store.sqlite.schema import STEPS, VERSION

__all__ = ["Connection", "Database"]

BUSY_SECONDS = 15
BUSY_STEP = 0.0005
READERS = 4  # connections that read at the same time; more than the callers of an API that may look at a lot at once
NETWORK_FILE_SYSTEMS = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "gluster",
    "lustre",
    "fuse",
    "webdav",
    "davfs",
)


class Database:
    """Opens on first use, and again after a fork."""

    def __init__(
        self, path: Path, clock: Clock, *, allow_network: bool = False, driver: str = "apsw"
    ) -> None:
        self.path = path
        self.clock = clock
        self.driver = DRIVERS[driver]
        self._allow_network = allow_network
        self._write_lock = threading.Lock()
        self._reading: AbstractContextManager[Any] = threading.BoundedSemaphore(READERS)
        self._writer: Connection | None = None
        self._readers: list[Connection] = []
        self._idle: list[Connection] = []  # of the readers, the one that was used last at the end
        self._inherited: list[Connection | None] = []
        self._forks = forks()
        self._busy_since = 0.0

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction that writes: committed and on disk when the block ends, or as if it never was."""
        self._refuse_inherited()
        with self._write_lock, self._explained():
            connection = self._writer or self._connect()
            self._writer = connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Statements that only read; each sees the newest commit."""
        self._refuse_inherited()
        with self._reading, self._explained():
            idle = self._idle
            try:
                connection = idle.pop()
            except IndexError:
                connection = self._open_reader()
            try:
                yield connection
            finally:
                idle.append(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Statements that only read, all of them from the same commit."""
        with self.read() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def missing(self) -> str | None:
        return None if self.path.exists() else f"there is no file {self.path}"

    def ready(self) -> None:
        """Safe to use, and of this code's version: a new or older file is migrated at once."""
        self._refuse_unsafe()
        try:
            self._refuse_unfit()
        except SchemaTooOld:
            self.migrate()

    def migrate(self) -> list[int]:
        self._refuse_unsafe()
        with self.write() as connection:
            have = self._version(connection)
            if have > VERSION:
                raise self._too_new(have)
            for step in STEPS[have:]:
                for statement in step:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION:d}")
        return list(range(have + 1, VERSION + 1))

    def close(self) -> None:
        self._refuse_inherited()
        for connection in (self._writer, *self._readers):
            if connection is not None:
                connection.close()
        self._writer, self._readers, self._idle = None, [], []

    def _refuse_unfit(self) -> None:
        with self.read() as connection:
            have = self._version(connection)
        if have > VERSION:
            raise self._too_new(have)
        if have < VERSION:
            raise SchemaTooOld(f"{self.path} has schema {have}, this Lateshift needs {VERSION}.")

    def _too_new(self, have: int) -> SchemaTooNew:
        return SchemaTooNew(
            f"{self.path} has schema {have}, and this Lateshift knows {VERSION}. Upgrade Lateshift on this machine."
        )

    @staticmethod
    def _version(connection: Connection) -> int:
        return int(connection.execute("PRAGMA user_version").fetchall()[0][0])

    def _open_reader(self) -> Connection:
        connection = self._connect()
        self._readers.append(connection)
        return connection

    def _connect(self) -> Connection:
        private.create(self.path)  # SQLite gives -wal and -shm the same mode
        if self.path.exists() and not _writable(self.path):
            raise self._read_only()
        connection = self.driver.connect(self.path, self._wait_for_others, BUSY_SECONDS)
        mode = until_free(lambda: connection.execute("PRAGMA journal_mode = wal").fetchall(), BUSY_SECONDS)
        if mode[0][0] != "wal":
            raise StoreUnsafe(
                f"{self.path}: this file system cannot do write-ahead logging. Use a local disk."
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA cache_size = -8000")
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _wait_for_others(self, tries: int) -> bool:
        """Another process writes: look again soon. SQLite's own handler sleeps ever longer, and finds its turn late."""
        if tries == 0:
            self._busy_since = time.monotonic()
        if time.monotonic() - self._busy_since > BUSY_SECONDS:
            return False
        time.sleep(BUSY_STEP)
        return True

    def _refuse_inherited(self) -> None:
        """A SQLite connection carried over a fork corrupts the file: leave it unused, open one's own."""
        if self._forks != forks():
            self._inherited += [
                self._writer,
                *self._readers,
            ]  # never closed: closing would drop the parent's locks
            self._writer, self._readers, self._idle = None, [], []
            self._write_lock, self._reading = threading.Lock(), threading.BoundedSemaphore(READERS)
            self._forks = forks()

    def _refuse_unsafe(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            raise StoreUnavailable(f"There is no folder {folder} to hold {self.path.name}. Create it first.")
        kind = _file_system(folder)
        if kind.startswith(NETWORK_FILE_SYSTEMS) and not self._allow_network:
            raise StoreUnsafe(
                f"{self.path} is on a network file system ({kind}), where SQLite's locks cannot be trusted. Put it on "
                "a local disk, use PostgreSQL, or add ?network=allow to the URL if only one machine ever opens it."
            )
        if Apsw.version < FIXED_SINCE:
            raise StoreUnsafe(
                f"The SQLite {apsw.sqlite_lib_version()} in use may lose commits. Install apsw 3.51.3 or newer."
            )
        if self.driver.version < STDLIB_SINCE:
            raise StoreUnsafe(
                f"Python's own SQLite is {sqlite3.sqlite_version}; ?driver=sqlite3 needs 3.37 or newer. Use a newer Python."
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors as Lateshift's, with what to do."""
        try:
            yield
        except apsw.Error as error:
            raise self._explain(error) from error

    def _read_only(self) -> StoreReadOnly:
        return StoreReadOnly(
            f"{self.path} cannot be written to. Make the file and its folder writable for this user."
        )

    def _explain(self, error: apsw.Error) -> StoreError:
        match error:
            case apsw.BusyError() | apsw.LockedError():
                return StoreUnavailable(
                    f"{self.path}: another process has held the write lock for {BUSY_SECONDS} s. Look for a process "
                    "that is stopped, or has a transaction open, and try again."
                )
            case apsw.FullError():
                return StoreFull(
                    f"{self.path}: the disk is full. Free some space; jobs accepted so far are safe."
                )
            case apsw.ReadOnlyError() | apsw.PermissionsError():
                return self._read_only()
            case apsw.CantOpenError() if not _writable(self.path.parent):
                return StoreReadOnly(
                    f"{self.path.parent} is not writable for this user, so no store can be made there."
                )
            case apsw.CantOpenError():
                return StoreUnavailable(f"{self.path} cannot be opened: {error}. Is it a file, and yours?")
            case apsw.SQLError() if "no such" in str(error):
                return SchemaTooOld(f"{self.path} is no store yet: {error}. Run `lateshift store migrate`.")
            case apsw.CorruptError() | apsw.NotADBError():
                return StoreCorrupt(
                    f"{self.path} is damaged or no SQLite file: {error}. Restore a backup, or name another file."
                )
            case _:
                return StoreUnavailable(f"{self.path}: {error}")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _file_system(folder: Path) -> str:
    """The type of the file system that holds `folder`, such as `ext4` or `nfs4`."""
    resolved = folder.resolve()
    mounts = [
        mount for mount in psutil.disk_partitions(all=True) if resolved.is_relative_to(mount.mountpoint)
    ]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype.lower() if mounts else ""
