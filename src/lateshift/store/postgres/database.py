"""Connections to PostgreSQL: a few, kept, each used by one thread at a time, never after a fork. A transaction that
meets a broken connection or a conflict is run again as a whole; each is written so that this does nothing twice."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import IsolationLevel
from psycopg import errors as pg
from psycopg.pq import TransactionStatus

from lateshift.clock import Clock
from lateshift.errors import (
    RightMissing,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnsafe,
    StoreUrlInvalid,
)
from lateshift.store.forks import forks
from lateshift.store.postgres.arrays import teach
from lateshift.store.postgres.schema import STEPS, VERSION
from lateshift.store.postgres.watchdog import Watchdog
from lateshift.store.urls import shown

P = ParamSpec("P")
T = TypeVar("T")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One of the store's own."""

    @cached_property
    def kept_cursor(self) -> psycopg.Cursor[tuple[Any, ...]]:
        """For the statement that most callers wait for: a new one for each call takes a tenth of its time."""
        return self.cursor()


GIVE_UP_SECONDS = 20.0
STATEMENT_SECONDS = 30
IDLE_SECONDS = 5  # a process frozen in a transaction must not keep its locks
CALL_SECONDS = STATEMENT_SECONDS + 5.0  # the server itself ends a statement before that
KEPT_CONNECTIONS = 8
REPEATABLE = (
    psycopg.OperationalError, psycopg.InterfaceError, pg.SerializationFailure, pg.DeadlockDetected, pg.AdminShutdown,
    pg.CrashShutdown, pg.CannotConnectNow, pg.QueryCanceled, pg.LockNotAvailable, pg.IdleInTransactionSessionTimeout,
)  # fmt: skip
MIGRATION_LOCK = 0x1A7E5417
LOCK_SECONDS = 2  # that a migration waits for a table


_CONNECTING: dict[str, Any] = {
    "autocommit": True, "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000, "application_name": "lateshift",
    "client_encoding": "utf8",  # whatever the database's: arrays are written by us
}  # fmt: skip
# A plan made while a table was small is kept while it grows: none may read a whole table, or gather and sort all that fits before it takes
# the first. What has no other way (the few members) is read whole all the same; that looks so dear to the planner that it would compile the
# statement, for 100 ms: no jit.
_SETTINGS = f"""SET statement_timeout = '{STATEMENT_SECONDS:d}s'; SET enable_seqscan = off;
 SET idle_in_transaction_session_timeout = '{IDLE_SECONDS:d}s'; SET enable_bitmapscan = off; SET jit = off""".encode()

SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
DATABASE = "SELECT current_database()::text"


class OnStandby(psycopg.OperationalError):
    """One of several hosts answered, and it is not the one that can be written to, or not yet."""


def is_standby(connection: psycopg.BaseConnection[Any]) -> bool:
    """As the server says by itself when it is connected to; a pooler need not pass it on."""
    return connection.pgconn.parameter_status(b"in_hot_standby") == b"on"


class Database:
    """Runs transactions. `again` tells a transaction that an earlier try may have been committed."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.clock = clock
        self.address, self.pooled, self._unsafe = _split(url)
        self.name = shown(url)
        self.watchdog = Watchdog(CALL_SECONDS)
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._forks = forks()
        self._closed = False

    def run(
        self, transaction: Callable[Concatenate[Connection, bool, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run it on a connection, and again on another while the store is away, for GIVE_UP_SECONDS in all."""
        return self._run(GIVE_UP_SECONDS, False, transaction, *args, **kwargs)

    def run_again(
        self, transaction: Callable[Concatenate[Connection, bool, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same with one that may have been committed elsewhere."""
        return self._run(GIVE_UP_SECONDS, True, transaction, *args, **kwargs)

    def run_once(
        self, transaction: Callable[Concatenate[Connection, bool, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run it if the store answers now."""
        return self._run(0.0, False, transaction, *args, **kwargs)

    def _run(
        self,
        seconds: float,
        again: bool,
        transaction: Callable[Concatenate[Connection, bool, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        end = time.monotonic() + seconds
        pause = 0.02
        while True:
            connection: Connection | None = None
            try:
                connection = self._take()
                self.watchdog.begin(connection)
                try:
                    answer = transaction(connection, again, *args, **kwargs)
                finally:
                    self.watchdog.end(connection)
            except REPEATABLE as error:
                self._drop(connection)
                if isinstance(error, pg.DiskFull | pg.InvalidPassword | pg.InvalidCatalogName):
                    raise self._explain(error) from error
                again = again or connection is not None
                # Nothing was kept alive that could have gone stale: the server is not there at all.
                hopeless = connection is None and not again and not isinstance(error, pg.CannotConnectNow)
                if time.monotonic() + pause > end or (hopeless and self._stays_refused(error)):
                    raise self._explain(error) from error
                time.sleep(pause * (0.5 + random.random()))
                pause = min(pause * 2, 1.0)
            except psycopg.Error as error:
                self._drop(connection)
                raise self._explain(error) from error
            except BaseException:
                self._drop(connection)
                raise
            else:
                self._give(connection)
                return answer

    def snapshot(self, look: Callable[[Connection], T]) -> T:
        """Statements that only read, all of them from the same instant."""

        def work(connection: Connection, again: bool) -> T:
            with connection.transaction():
                connection.execute(SNAPSHOT)
                return look(connection)

        return self.run(work)

    def connect(self) -> Connection:
        """A connection of the caller's own, for listening."""
        connection = Connection.connect(self.address, **_CONNECTING)
        if is_standby(connection):
            connection.close()
            raise OnStandby("it is a standby, which cannot be written to")
        teach(connection)
        # Whatever the server's default: what is read after a lock was waited for must be as it is then.
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        if self.pooled:
            connection.prepare_threshold = None
        else:
            connection.prepare_threshold = 0
            with self.watched(connection):
                connection.execute(_SETTINGS, prepare=False)
        return connection

    async def aconnect(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        """The same on the running loop, for reading; not through a pooler in transaction mode, where nobody knows which server is read. Raises
        psycopg.Error, also for a standby: what only reads would not notice, and be late for ever."""
        connection = await psycopg.AsyncConnection.connect(self.address, **_CONNECTING)
        teach(connection)
        connection.prepare_threshold = 0
        try:
            with self.watched(connection):
                await connection.execute(_SETTINGS, prepare=False)
                found = await connection.execute("SELECT pg_is_in_recovery()", prepare=False)
                if await found.fetchone() != (False,):
                    raise OnStandby("it is a standby")
        except BaseException:
            await connection.close()
            raise
        return connection

    @contextmanager
    def watched(self, connection: psycopg.BaseConnection[Any]) -> Iterator[None]:
        """What a caller does on a connection of its own ends, with an error, when no answer comes."""
        self.watchdog.begin(connection)
        try:
            yield
        finally:
            self.watchdog.end(connection)

    @cached_property
    def called(self) -> str:
        """The name of the database itself."""
        [[name]] = self.run(lambda connection, again: connection.execute(DATABASE).fetchall())
        return str(name)

    def missing(self) -> str | None:
        return None if self.run(_version) else f"the database {self.called} has no schema lateshift"

    def ready(self) -> None:
        """Safe to use, and of this code's version; a database without Lateshift's schema gets it at once."""
        self.run(self._refuse_unsafe)
        have = self.run(_version)
        if have == 0:
            self.migrate()
        elif have > VERSION:
            raise self._too_new(have)
        elif have < VERSION:
            raise SchemaTooOld(
                f"{self.name} has schema {have}, this Lateshift needs {VERSION}. Run `lateshift store migrate`."
            )

    def migrate(self) -> list[int]:
        return self.run(self._migrate)

    def close(self) -> None:
        if self._forks != forks():  # after a fork the parent's connections, and its lock, are not ours
            return
        with self._lock:
            self._closed = True
            connections, self._idle = self._idle, []
        for connection in connections:
            connection.close()

    def _migrate(self, connection: Connection, again: bool) -> list[int]:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,), prepare=False)
            # All who come after it wait behind a migration that waits for a table: it gives up, and is tried again.
            connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'", prepare=False)
            have = _version(connection, again)
            if have > VERSION:
                raise self._too_new(have)
            if have == 0:
                connection.execute("CREATE SCHEMA IF NOT EXISTS lateshift", prepare=False)
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS lateshift.migration "
                    "(version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
                    prepare=False,
                )
            for number, step in enumerate(STEPS[have:], have + 1):
                for statement in step:
                    self.watchdog.begin(connection)  # each may take its time
                    connection.execute(statement.encode(), prepare=False)
                connection.execute(
                    "INSERT INTO lateshift.migration (version) VALUES (%s)", (number,), prepare=False
                )
        return list(range(have + 1, VERSION + 1))

    def _refuse_unsafe(self, connection: Connection, again: bool) -> None:
        row = connection.execute(
            "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('synchronous_commit'), "
            "current_setting('server_version_num')::int",
            prepare=False,
        ).fetchone()
        assert row is not None
        standby, fsync, synchronous, version = row
        if version < 140000:
            raise StoreUnsafe(f"{self.name} is PostgreSQL {version // 10000}. Lateshift needs 14 or newer.")
        if standby:
            raise self._standby()
        if (fsync != "on" or synchronous == "off") and not self._unsafe:
            raise StoreUnsafe(
                f"{self.name} runs with fsync={fsync} and synchronous_commit={synchronous}: jobs it has accepted could "
                "be lost. Turn both on, or add ?durability=off to the URL if that is what you want."
            )

    def _too_new(self, have: int) -> SchemaTooNew:
        return SchemaTooNew(
            f"{self.name} has schema {have}, and this Lateshift knows {VERSION}. Upgrade Lateshift on this machine."
        )

    def _standby(self) -> StoreUnsafe:
        return StoreUnsafe(f"{self.name} is a standby, which cannot be written to. Name the primary.")

    def _stays_refused(self, error: Exception) -> bool:
        """A host name that does not exist, a wrong password, or a standby that is the only host, will not mend itself while we wait."""
        if isinstance(error, OnStandby):
            return "," not in str(psycopg.conninfo.conninfo_to_dict(self.address).get("host"))
        return _refused(error)

    def _take(self) -> Connection:
        if self._forks != forks():  # after a fork the parent's connections are not ours
            self._idle, self._lock, self._forks = [], threading.Lock(), forks()
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self.connect()

    def _give(self, connection: Connection) -> None:
        if connection.pgconn.transaction_status == TransactionStatus.IDLE:
            with self._lock:
                if len(self._idle) < KEPT_CONNECTIONS and not self._closed:
                    self._idle.append(connection)
                    return
        connection.close()

    def _drop(self, connection: Connection | None) -> None:
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _explain(self, error: Exception) -> StoreError:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        match error:
            case pg.DiskFull():
                return StoreFull(f"{self.name}: the database's disk is full. Jobs accepted so far are safe.")
            case pg.ReadOnlySqlTransaction():
                return StoreReadOnly(
                    f"{self.name} is read-only: {first}. Name the primary, or a user that may write."
                )
            case OnStandby():
                return self._standby()
            case pg.InsufficientPrivilege():
                from lateshift.store.postgres.rights import remedy  # which is made of this module's rest

                return RightMissing(f"{self.name}: {first}. {remedy(first)}.")
            case pg.UndefinedTable() | pg.InvalidSchemaName() | pg.UndefinedColumn():
                return SchemaTooOld(f"{self.name}: {first}. Run `lateshift store migrate`.")
            case pg.QueryCanceled() | pg.LockNotAvailable():
                return StoreUnavailable(f"{self.name} is held up: {first}. Does something lock its tables?")
            case _ if isinstance(error, REPEATABLE):
                return StoreUnavailable(
                    f"{self.name} cannot be reached: {first}. Is it running, and is the URL right?"
                )
            case _:
                return StoreError(f"{self.name} refused: {first}.")


def _version(connection: Connection, again: bool) -> int:
    # Not by to_regclass, which answers from a cache that another's migration a moment ago need not have reached.
    [[table]] = connection.execute(
        "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = 'lateshift' AND tablename = 'migration'",
        prepare=False,
    ).fetchall()
    if not table:
        return 0
    [[version]] = connection.execute(
        "SELECT coalesce(max(version), 0) FROM lateshift.migration", prepare=False
    ).fetchall()
    return int(version)


def _refused(error: Exception) -> bool:
    text = str(error)
    return any(
        part in text
        for part in ("resolve", "Name or service", "nodename", "authentication", "does not exist")
    )


def _split(url: str) -> tuple[str, bool, bool]:
    """The address for libpq, whether a pooler in transaction mode stands before it, whether unsafe is allowed."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise StoreUrlInvalid(f"{shown(url)!r} is no PostgreSQL URL: {error}.") from error
    options = dict(parse_qsl(parts.query))
    pooler, durability = options.pop("pooler", None), options.pop("durability", None)
    if pooler not in (None, "transaction") or durability not in (None, "off"):
        raise StoreUrlInvalid(
            f"{shown(url)!r}: Lateshift's own options are ?pooler=transaction and ?durability=off."
        )
    query = urlencode(options, quote_via=quote)  # libpq takes %20 for a space, not a plus
    address = f"postgresql://{parts.netloc}{parts.path}{'?' if query else ''}{query}"
    try:
        ports = str(psycopg.conninfo.conninfo_to_dict(address).get("port") or "")
    except psycopg.ProgrammingError as error:
        raise StoreUrlInvalid(f"{shown(url)!r} is no PostgreSQL URL: {str(error).strip()}.") from error
    for port in ports.split(","):  # one for each host, or none
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise StoreUrlInvalid(f"{shown(url)!r} is no PostgreSQL URL: {port!r} is no port.")
    return address, pooler is not None, durability is not None
