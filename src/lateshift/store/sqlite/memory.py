"""The SQLite store on a database that lives in memory: for tests, in one process. `memory://` is a store of its own;
stores that are opened with one name, `memory://shop`, share what is in it, and the last to close takes it along."""

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from uuid import uuid4
from weakref import WeakValueDictionary

from lateshift.clock import Clock
from lateshift.errors import ConnectionUnsupported, StoreUnavailable, StoreUnsafe
from lateshift.model.job import Enqueued, Line, NewJob
from lateshift.store.forks import forks
from lateshift.store.hints import Coalesced
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.drivers import DRIVERS
from lateshift.store.sqlite.store import SqliteStore


class Memory:
    """What the stores of one name share: one connection, a lock for it, and who listens."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listeners: list[Callable[[Line], None]] = []
        self._connection: Connection | None = None
        self._users = 0

    def enter(self) -> Connection:
        """Called with the lock held."""
        if self._connection is None:
            self._connection = DRIVERS["apsw"].connect(Path(":memory:"), lambda tries: False, 0)
        self._users += 1
        return self._connection

    def leave(self) -> None:
        with self.lock:
            self._users -= 1
            if self._users == 0 and self._connection is not None:
                self._connection.close()
                self._connection = None


_named: WeakValueDictionary[str, Memory] = WeakValueDictionary()
_naming = threading.Lock()


class MemoryDatabase(Database):
    """Reads and writes go over one connection, one after the other."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(Path(f"memory:{name}"), clock)
        with _naming:
            self.memory = _named.setdefault(name or uuid4().hex, Memory())
        self._write_lock = self._reading = self.memory.lock
        self._closed = False

    def missing(self) -> str | None:
        return None

    def ready(self) -> None:
        self._closed = False
        super().ready()

    def close(self) -> None:
        self._closed = True
        if self._writer is not None and self._forks == forks():
            self.memory.leave()
        self._writer, self._idle = None, []

    def _open_reader(self) -> Connection:
        return self._writer or self._connect()

    def _connect(self) -> Connection:
        if self._closed:
            raise StoreUnavailable(
                "This memory:// store was closed, and what was in it is gone. Open a new one."
            )
        self._writer = self.memory.enter()
        return self._writer

    def _refuse_inherited(self) -> None:
        if self._forks != forks():
            raise StoreUnsafe(
                "A memory:// store belongs to the process that opened it, and this is a child of that one. Name a file "
                "(sqlite:///jobs.db) or PostgreSQL to share jobs between processes."
            )

    def _refuse_unsafe(self) -> None:
        """Nothing is kept, so nothing accepted can be lost."""


class MemoryWakes:
    """See contract.Wakes. A listener is called on the thread of whoever made the job ready."""

    def __init__(self, memory: Memory, clock: Clock) -> None:
        self._listeners = memory.listeners
        self._due = Coalesced(clock)
        self._stops: list[Callable[[], None]] = []

    def hint(self, lines: Iterable[Line]) -> None:
        due = self._due.of(lines)
        for heard in list(self._listeners):
            for line in due:
                heard(line)

    def listen(self, heard: Callable[[Line], None]) -> Callable[[], None]:
        def listener(line: Line) -> None:
            heard(line)

        def stop() -> None:
            if stop in self._stops:
                self._stops.remove(stop)
                self._listeners.remove(listener)

        self._listeners.append(listener)
        self._stops.append(stop)
        return stop

    def close(self) -> None:
        for stop in list(self._stops):
            stop()


class MemoryStore(SqliteStore):
    """See contract.Store."""

    def __init__(self, url: str, name: str, clock: Clock) -> None:
        database = MemoryDatabase(name, clock)
        super().__init__(url, database, MemoryWakes(database.memory, clock))

    def enqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        raise self._not_shared(connection)

    async def aenqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        raise self._not_shared(connection)

    @staticmethod
    def _not_shared(connection: object) -> ConnectionUnsupported:
        kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
        return ConnectionUnsupported(
            f"connection= got a {kind}, and the store is memory://, which no connection of yours can reach. Leave "
            "connection= out, or test on the kind of store that you use: a SQLite file (with ?driver=sqlite3) or PostgreSQL. "
            "Give an open connection of psycopg 3 or sqlite3 there."
        )
