"""Enqueue in the caller's own transaction: the job exists if and only if that transaction commits."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy
from msgspec.structs import replace
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from lateshift.clock import ManualClock
from lateshift.errors import ConnectionUnsupported, KeyConflict, SequenceUsed
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, Lane, Line, NewJob, Place, State
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import (
    HOUR,
    LINE,
    Worker,
    file_of,
    keyed,
    make_job,
    only,
    query,
    see,
)


class Transaction(Protocol):
    """A caller's open transaction: enqueue in it, then end it one way or the other."""

    def enqueue(self, *jobs: NewJob) -> list[JobId]: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...


class Begun:
    def __init__(self, store: Store, connection: Any, ends: Any = None) -> None:
        self.connection = connection
        self._store = store
        self._ends = ends or connection

    def enqueue(self, *jobs: NewJob) -> list[JobId]:
        return [answer.id for answer in self._store.enqueue_on(self.connection, jobs)]

    def commit(self) -> None:
        self._ends.commit()

    def rollback(self) -> None:
        self._ends.rollback()


# One opener for each kind of connection


@contextmanager
def by_sqlite3(store: Store) -> Iterator[Begun]:
    connection = sqlite3.connect(file_of(store.url))
    connection.execute("CREATE TABLE IF NOT EXISTS business (name TEXT)")
    yield Begun(store, connection)
    connection.close()


@contextmanager
def by_sqlite3_with_rows_as_dictionaries(store: Store) -> Iterator[Begun]:
    with by_sqlite3(store) as begun:
        begun.connection.row_factory = lambda cursor, row: {
            column[0]: value for column, value in zip(cursor.description, row, strict=True)
        }
        yield begun


@contextmanager
def by_psycopg(store: Store) -> Iterator[Begun]:
    connection = psycopg.connect(store.url)
    yield Begun(store, connection)
    connection.close()


@contextmanager
def by_psycopg_with_rows_as_dictionaries(store: Store) -> Iterator[Begun]:
    connection = psycopg.connect(store.url, row_factory=dict_row)
    yield Begun(store, connection)
    connection.close()


def engine_url(url: str) -> str:
    url = url.partition("?")[0]
    return url if url.startswith("sqlite") else url.replace("postgresql://", "postgresql+psycopg://")


@contextmanager
def by_sqlalchemy(store: Store) -> Iterator[Begun]:
    engine = sqlalchemy.create_engine(engine_url(store.url), poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        yield Begun(store, connection)
    engine.dispose()


@contextmanager
def by_sqlalchemys_session(store: Store) -> Iterator[Begun]:
    engine = sqlalchemy.create_engine(engine_url(store.url), poolclass=sqlalchemy.NullPool)
    with Session(engine) as session:
        yield Begun(store, session)
    engine.dispose()


@contextmanager
def by_django(store: Store) -> Iterator[Begun]:
    connection = django_connection(store.url)
    connection.set_autocommit(False)
    yield Begun(store, connection)
    connection.rollback()
    connection.close()


def django_connection(url: str) -> Any:
    from django.conf import settings
    from django.db.utils import ConnectionHandler

    if not settings.configured:
        settings.configure(USE_TZ=True)
    if url.startswith("sqlite"):
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(file_of(url))}
    else:
        parts = urlsplit(url)
        database = {
            "ENGINE": "django.db.backends.postgresql", "NAME": parts.path[1:], "USER": parts.username or "",
            "PASSWORD": parts.password or "", "HOST": parts.hostname or "", "PORT": str(parts.port or ""),
        }  # fmt: skip
    return ConnectionHandler({"default": database})["default"]


OPENERS = [
    ("sqlite", by_sqlite3),
    ("sqlite", by_sqlite3_with_rows_as_dictionaries),
    ("sqlite", by_sqlalchemy),
    ("sqlite", by_sqlalchemys_session),
    ("sqlite", by_django),
    ("postgres", by_psycopg),
    ("postgres", by_psycopg_with_rows_as_dictionaries),
    ("postgres", by_sqlalchemy),
    ("postgres", by_sqlalchemys_session),
    ("postgres", by_django),
]


def named(value: object) -> str:
    return getattr(value, "__name__", str(value))


Begin = Callable[[], Any]


def own(url: str) -> str:
    """The store as a program names it that opens the file itself."""
    return f"{url}?driver=sqlite3" if url.startswith("sqlite") else url


@pytest.fixture(params=OPENERS, ids=lambda pair: f"{pair[0]}-{named(pair[1])}")
def opened(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[tuple[Store, Begin]]:
    """A store, and how to begin a transaction on it."""
    kind, opener = request.param
    store = open_store(own(request.getfixturevalue(f"{kind}_url")), clock)
    store.ready()
    yield store, lambda: opener(store)
    store.close()


def test_a_job_is_there_once_the_transaction_commits_and_not_before(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    worker = Worker(store)
    with begin() as transaction:
        [id] = transaction.enqueue(make_job(payload=b'["cat.png"]', priority=3))

        assert store.reports.job(id) is None
        assert store.jobs.lines() == []
        transaction.commit()

        view = see(store, id)
        assert (view.state, view.payload, view.priority) == (State.READY, b'["cat.png"]', 3)
        assert worker.lease_one().id == id


def test_a_job_is_gone_with_the_transaction_that_rolls_back(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    with begin() as transaction:
        transaction.enqueue(make_job(), make_job(queue="other"), keyed("order-1", b"[1]"))
        transaction.rollback()

        assert store.reports.jobs(JobFilter(), 10) == []
        [answer] = store.jobs.enqueue([keyed("order-1", b"[2]")])
        assert answer.created


def test_a_transaction_left_open_leaves_nothing(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    with begin() as transaction:
        transaction.enqueue(make_job())

    assert store.reports.jobs(JobFilter(), 10) == []


def test_many_jobs_and_delays_go_into_one_transaction(
    opened: tuple[Store, Begin], clock: ManualClock
) -> None:
    store, begin = opened
    jobs = [make_job(), make_job(), make_job(delay=HOUR), make_job(queue="other", lane=Lane.THREAD)]
    with begin() as transaction:
        assert transaction.enqueue(*jobs) == [job.id for job in jobs]
        transaction.commit()

    assert [see(store, job.id).state for job in jobs] == [
        State.READY,
        State.READY,
        State.SCHEDULED,
        State.READY,
    ]
    assert set(store.jobs.lines()) == {LINE, Line("other", Lane.THREAD)}
    assert abs((see(store, jobs[2].id).due_at - clock.now() - HOUR).total_seconds()) < 60


def test_a_key_holds_in_a_callers_transaction_too(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    [first] = store.jobs.enqueue([keyed("order-1", b"[1]")])
    with begin() as transaction:
        assert transaction.enqueue(keyed("order-1", b"[1]")) == [first.id]
        with pytest.raises(KeyConflict):
            transaction.enqueue(keyed("order-1", b"[2]"))
        transaction.commit()

    assert len(store.reports.jobs(JobFilter(), 10)) == 1


def test_a_refused_call_takes_no_key_though_the_caller_commits(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    store.jobs.enqueue([keyed("order-1", b"[1]")])
    with begin() as transaction:
        with pytest.raises(KeyConflict):
            transaction.enqueue(make_job(), keyed("order-2", b"[2]"), keyed("order-1", b"[3]"))
        transaction.commit()

    assert len(store.reports.jobs(JobFilter(), 10)) == 1
    [answer] = store.jobs.enqueue([keyed("order-2", b"[4]")])
    assert answer.created


def test_a_refused_number_takes_no_key_and_no_identity_though_the_caller_commits(
    opened: tuple[Store, Begin],
) -> None:
    store, begin = opened
    used, once = Place("s", 1), only("user 7")
    store.jobs.enqueue([make_job(place=used), make_job(unique=once)])
    with begin() as transaction:
        with pytest.raises(SequenceUsed):
            transaction.enqueue(
                replace(keyed("order-1", b"[1]"), unique=once),
                make_job(unique=only("user 8")),
                make_job(place=used),
            )
        transaction.commit()

    answers = store.jobs.enqueue([keyed("order-1", b"[2]"), make_job(unique=only("user 8"))])
    assert [answer.created for answer in answers] == [True, True]
    assert not store.jobs.enqueue([make_job(unique=once)])[0].created


def test_an_identity_holds_in_a_callers_transaction_too(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    worker = Worker(store)
    [first] = store.jobs.enqueue([make_job(unique=only("a"))])
    with begin() as transaction:
        new = make_job(unique=only("b"))
        assert transaction.enqueue(make_job(unique=only("a")), new, make_job(unique=only("b"))) == [
            first.id,
            new.id,
            new.id,
        ]
        assert transaction.enqueue(make_job(unique=only("b"))) == [new.id]
        transaction.commit()

    assert len(store.reports.jobs(JobFilter(), 10)) == 2
    worker.settle_all(worker.lease(2))
    with begin() as transaction:
        both = make_job(unique=only("a")), make_job(unique=only("b"))
        assert transaction.enqueue(*both) == [job.id for job in both]
        transaction.commit()
    assert len(store.reports.jobs(JobFilter(state=State.READY), 10)) == 2


def test_an_identity_is_free_again_when_the_transaction_rolls_back(opened: tuple[Store, Begin]) -> None:
    store, begin = opened
    with begin() as transaction:
        transaction.enqueue(make_job(unique=only("a")))
        transaction.rollback()

    assert store.jobs.enqueue([make_job(unique=only("a"))])[0].created
    assert query(store, "SELECT count(*) FROM {job_identity}") == [(1,)]


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_who_comes_while_a_transaction_is_open_waits_for_its_end(
    postgres_url: str, clock: ManualClock, ends: str
) -> None:
    store = open_store(postgres_url, clock)
    with psycopg.connect(postgres_url) as connection, ThreadPoolExecutor(1) as thread:
        [mine] = store.enqueue_on(connection, [make_job(unique=only("a"))])
        coming = thread.submit(store.jobs.enqueue, [make_job(unique=only("a"))])
        while not query(store, "SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not coming.done()
        getattr(connection, ends)()
        [theirs] = coming.result(timeout=30)

    assert (theirs.id == mine.id, theirs.created) == ((True, False) if ends == "commit" else (False, True))
    assert len(store.reports.jobs(JobFilter(), 10)) == 1
    store.close()


def test_the_business_row_and_the_job_come_together(sqlite_url: str, clock: ManualClock) -> None:
    store = open_store(f"{sqlite_url}?driver=sqlite3", clock)
    store.ready()
    with by_sqlite3(store) as transaction:
        transaction.connection.execute("INSERT INTO business VALUES ('a')")
        transaction.enqueue(make_job())
        transaction.rollback()
        transaction.connection.execute("INSERT INTO business VALUES ('b')")
        [id] = transaction.enqueue(make_job())
        transaction.commit()

    assert query(store, "SELECT name FROM business") == [("b",)]
    assert [view.id for view in store.reports.jobs(JobFilter(), 10)] == [id]
    store.close()


def test_a_savepoint_that_rolls_back_takes_its_job_with_it(postgres_url: str, clock: ManualClock) -> None:
    store = open_store(postgres_url, clock)
    with psycopg.connect(postgres_url) as connection:
        [kept] = store.enqueue_on(connection, [make_job()])
        with connection.transaction(force_rollback=True):
            store.enqueue_on(connection, [make_job()])

    assert [view.id for view in store.reports.jobs(JobFilter(), 10)] == [kept.id]
    store.close()


# Async connections


@asynccontextmanager
async def by_async_psycopg(store: Store) -> AsyncIterator[Any]:
    connection = await psycopg.AsyncConnection.connect(store.url)
    yield connection
    await connection.close()


@asynccontextmanager
async def by_async_psycopg_with_rows_as_dictionaries(store: Store) -> AsyncIterator[Any]:
    connection = await psycopg.AsyncConnection.connect(store.url, row_factory=dict_row)
    yield connection
    await connection.close()


@asynccontextmanager
async def by_async_sqlalchemy(store: Store) -> AsyncIterator[Any]:
    engine = create_async_engine(engine_url(store.url), poolclass=sqlalchemy.NullPool)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


@asynccontextmanager
async def by_sqlalchemys_async_session(store: Store) -> AsyncIterator[Any]:
    engine = create_async_engine(engine_url(store.url), poolclass=sqlalchemy.NullPool)
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()


ASYNC_OPENERS = [
    by_async_psycopg,
    by_async_psycopg_with_rows_as_dictionaries,
    by_async_sqlalchemy,
    by_sqlalchemys_async_session,
]


@pytest.mark.anyio
@pytest.mark.parametrize("opener", ASYNC_OPENERS, ids=named)
async def test_async_a_job_is_there_once_the_transaction_commits_and_not_before(
    postgres_url: str, clock: ManualClock, opener: Any
) -> None:
    store = open_store(postgres_url, clock)
    async with opener(store) as connection:
        jobs = [make_job(), make_job(unique=only("a")), keyed("order-1")]
        answers = await store.aenqueue_on(connection, jobs)

        assert [(answer.id, answer.created) for answer in answers] == [(job.id, True) for job in jobs]
        assert store.jobs.lines() == []
        await connection.commit()

        assert len(store.reports.jobs(JobFilter(state=State.READY), 10)) == 3
    store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("opener", ASYNC_OPENERS, ids=named)
async def test_async_a_job_is_gone_with_the_transaction_that_rolls_back(
    postgres_url: str, clock: ManualClock, opener: Any
) -> None:
    store = open_store(postgres_url, clock)
    async with opener(store) as connection:
        await store.aenqueue_on(connection, [make_job(), keyed("order-1")])
        await connection.rollback()

    assert store.reports.jobs(JobFilter(), 10) == []
    assert query(store, "SELECT count(*) FROM {job_key}") == [(0,)]
    store.close()


@pytest.mark.anyio
async def test_async_code_may_give_a_plain_connection(sqlite_url: str, clock: ManualClock) -> None:
    store = open_store(f"{sqlite_url}?driver=sqlite3", clock)
    store.ready()
    with by_sqlite3(store) as transaction:
        [answer] = await store.aenqueue_on(transaction.connection, [make_job()])
        assert store.reports.job(answer.id) is None
        transaction.commit()

    assert see(store, answer.id).state is State.READY
    store.close()


# Without a transaction, nothing holds a key and its job together


@contextmanager
def sqlite3_without_begin(store: Store) -> Iterator[Any]:
    connection = sqlite3.connect(file_of(store.url), isolation_level=None)
    yield connection
    connection.close()


@contextmanager
def psycopg_in_autocommit(store: Store) -> Iterator[Any]:
    with psycopg.connect(store.url, autocommit=True) as connection:
        yield connection


@contextmanager
def sqlalchemy_in_autocommit(store: Store) -> Iterator[Any]:
    engine = sqlalchemy.create_engine(engine_url(store.url), poolclass=sqlalchemy.NullPool)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection
        assert not connection.in_transaction()
    engine.dispose()


@contextmanager
def django_outside_atomic(store: Store) -> Iterator[Any]:
    connection = django_connection(store.url)
    yield connection
    connection.close()


AUTOCOMMIT = [
    ("sqlite", sqlite3_without_begin),
    ("sqlite", sqlalchemy_in_autocommit),
    ("sqlite", django_outside_atomic),
    ("postgres", psycopg_in_autocommit),
    ("postgres", sqlalchemy_in_autocommit),
    ("postgres", django_outside_atomic),
]


@pytest.fixture(params=AUTOCOMMIT, ids=lambda pair: f"{pair[0]}-{named(pair[1])}")
def autocommit(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[tuple[Store, Any]]:
    """A store, and a connection to it that commits each statement."""
    kind, opener = request.param
    store = open_store(own(request.getfixturevalue(f"{kind}_url")), clock)
    store.ready()
    with opener(store) as connection:
        yield store, connection
    store.close()


TOGETHER: dict[str, Callable[[], list[NewJob]]] = {
    "key": lambda: [keyed("order-1")],
    "identity": lambda: [make_job(unique=only("a"))],
    "several": lambda: [make_job(), make_job(queue="other")],
}


@pytest.mark.parametrize("what", TOGETHER)
def test_what_must_stand_together_is_refused_in_autocommit_mode_with_advice(
    autocommit: tuple[Store, Any], what: str
) -> None:
    store, connection = autocommit
    batch = TOGETHER[what]()
    with pytest.raises(ConnectionUnsupported, match="Open a transaction first"):
        store.enqueue_on(connection, batch)

    assert store.reports.jobs(JobFilter(), 10) == []
    assert query(store, "SELECT count(*) FROM {job_key}") == [(0,)]


def test_one_job_without_a_key_may_be_committed_by_itself(autocommit: tuple[Store, Any]) -> None:
    store, connection = autocommit
    [answer] = store.enqueue_on(connection, [make_job()])
    if isinstance(connection, sqlalchemy.Connection):
        connection.rollback()  # of what SQLAlchemy began by itself: in this mode it changes nothing

    assert see(store, answer.id).state is State.READY


@contextmanager
def begun_in(connection: Any) -> Iterator[None]:
    """A transaction of the caller's, opened in autocommit mode and rolled back at the end."""
    if isinstance(connection, psycopg.Connection):
        with connection.transaction(force_rollback=True):
            yield
    elif isinstance(connection, sqlite3.Connection):
        connection.execute("BEGIN")
        yield
        connection.execute("ROLLBACK")
    else:
        connection.set_autocommit(False)
        yield
        connection.rollback()


def test_a_transaction_opened_in_autocommit_mode_holds_a_key_and_its_job_together(
    autocommit: tuple[Store, Any],
) -> None:
    store, connection = autocommit
    if isinstance(connection, sqlalchemy.Connection):
        return  # knows none in this mode
    with begun_in(connection):
        [mine] = store.enqueue_on(connection, [keyed("order-1")])
        assert mine.created

    [other] = store.jobs.enqueue([keyed("order-1", b"[2]")])
    assert other.created


@pytest.mark.anyio
async def test_async_what_must_stand_together_is_refused_in_autocommit_mode(
    postgres_url: str, clock: ManualClock
) -> None:
    store = open_store(postgres_url, clock)
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        with pytest.raises(ConnectionUnsupported, match="Open a transaction first"):
            await store.aenqueue_on(connection, [keyed("order-1")])
        async with connection.transaction():
            await store.aenqueue_on(connection, [keyed("order-1")])

    assert len(store.reports.jobs(JobFilter(), 10)) == 1
    store.close()


# What is no connection to this store


@pytest.mark.anyio
@pytest.mark.parametrize(
    "opener", [by_async_psycopg, by_async_sqlalchemy, by_sqlalchemys_async_session], ids=named
)
async def test_an_async_connection_in_a_plain_call_is_refused_with_advice(
    postgres_url: str, clock: ManualClock, opener: Any
) -> None:
    store = open_store(postgres_url, clock)
    async with opener(store) as connection:
        with pytest.raises(ConnectionUnsupported, match=r"async connection: use `await .*aenqueue"):
            store.enqueue_on(connection, [make_job()])
    store.close()


@pytest.mark.parametrize("thing", [None, "postgresql://host/db", b"", 7], ids=repr)
def test_what_is_no_connection_is_refused_with_advice(store: Store, thing: object) -> None:
    with pytest.raises(
        ConnectionUnsupported, match=r"connection= got a .*Give an open connection of psycopg"
    ):
        store.enqueue_on(thing, [make_job()])
    assert store.reports.jobs(JobFilter(), 10) == []


def test_a_connection_to_the_other_kind_of_database_is_refused(
    sqlite_url: str, postgres_url: str, clock: ManualClock
) -> None:
    file, server = open_store(f"{sqlite_url}?driver=sqlite3", clock), open_store(postgres_url, clock)
    file.ready()
    for opener in (by_sqlite3, by_sqlalchemy, by_sqlalchemys_session, by_django):
        with (
            opener(file) as transaction,
            pytest.raises(ConnectionUnsupported, match="the store is postgresql"),
        ):
            server.enqueue_on(transaction.connection, [make_job()])
    for opener in (by_psycopg, by_sqlalchemy, by_sqlalchemys_session, by_django):
        with opener(server) as transaction, pytest.raises(ConnectionUnsupported, match="the store is sqlite"):
            file.enqueue_on(transaction.connection, [make_job()])
    file.close()
    server.close()


def test_sqlalchemy_on_another_driver_is_refused_with_advice(store: Store) -> None:
    class Dialect:
        name = "postgresql" if store.url.startswith("postgresql") else "sqlite"
        driver = "psycopg2"

    class Connection:
        dialect = Dialect

    Connection.__module__ = "sqlalchemy.engine.base"
    Connection.__qualname__ = "Connection"

    with pytest.raises(ConnectionUnsupported, match=r"psycopg 3|driver=sqlite3"):
        store.enqueue_on(Connection(), [make_job()])


def test_a_job_in_a_committed_transaction_wakes_a_worker(postgres_url: str, clock: ManualClock) -> None:
    store = open_store(postgres_url, clock)
    heard: Queue[Line] = Queue()
    stop = store.wakes.listen(heard.put)
    with psycopg.connect(postgres_url) as connection:
        while heard.empty():
            store.enqueue_on(connection, [make_job(queue="woken")])
            connection.commit()
        assert heard.get(timeout=10) == Line("woken", Lane.COROUTINE)
    stop()
    store.close()


def test_a_callers_connection_needs_the_callers_library(sqlite_url: str, clock: ManualClock) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    with pytest.raises(ConnectionUnsupported, match="driver=sqlite3"):
        store.enqueue_on(connection, [make_job()])
    store.close()
    connection.close()


def test_closing_a_callers_connection_loses_nothing_that_is_accepted_afterwards(
    sqlite_url: str, clock: ManualClock
) -> None:
    store = open_store(own(sqlite_url), clock)
    store.ready()
    for _ in range(3):
        connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
        store.enqueue_on(connection, [make_job()])
        connection.commit()
        connection.close()
        store.jobs.enqueue([make_job()])
    counted = "import apsw, sys; print(apsw.Connection(sys.argv[1]).execute('SELECT count(*) FROM job').fetchall()[0][0])"
    command = [sys.executable, "-c", counted, sqlite_url.removeprefix("sqlite:///")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "6"
    store.close()


def test_a_connection_to_another_store_of_the_same_kind_is_refused(
    sqlite_url: str, postgres_url: str, empty_postgres_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    other = open_store(f"sqlite:///{tmp_path}/other.db?driver=sqlite3", clock)
    other.ready()
    file = open_store(own(sqlite_url), clock)
    file.ready()
    connection = sqlite3.connect(tmp_path / "other.db")
    with pytest.raises(ConnectionUnsupported, match="in another store"):
        file.enqueue_on(connection, [make_job()])
    connection.close()
    server = open_store(postgres_url, clock)
    with (
        psycopg.connect(empty_postgres_url) as elsewhere,
        pytest.raises(ConnectionUnsupported, match="another store"),
    ):
        server.enqueue_on(elsewhere, [make_job()])
    for store in (other, file, server):
        store.close()
