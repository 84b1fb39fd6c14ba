"""A clock that tests move, and a store of each kind that goes by it."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from lateshift.clock import ManualClock
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.sqlite import SqliteStore
from tests.store_contract.driving import Supervisor, Worker


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "sqlite3", "postgres", "memory"])
def store(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Store]:
    """Each store; SQLite with the library that Lateshift brings, with Python's own, and in memory."""
    match request.param:
        case "sqlite":
            url = request.getfixturevalue("migrated_sqlite_url")
        case "sqlite3":
            url = f"{request.getfixturevalue('migrated_sqlite_url')}?driver=sqlite3"
        case "postgres":
            url = request.getfixturevalue("postgres_url")
        case _:
            url = f"memory://{uuid4().hex}"
    store = open_store(url, clock)
    store.ready()
    yield store
    store.close()


@pytest.fixture
def worker(store: Store) -> Worker:
    return Worker(store)


@pytest.fixture
def other_worker(store: Store) -> Worker:
    return Worker(store)


@pytest.fixture
def supervisor(store: Store) -> Supervisor:
    return Supervisor(store)


@pytest.fixture
def quick_store(store_url: str, clock: ManualClock) -> Iterator[Store]:
    """A store that does not wait for the disk, which is not what is tested here."""
    if store_url.startswith("sqlite"):
        store = open_store(store_url, clock)
        store.ready()
        assert isinstance(store, SqliteStore)
        with store._database.write():
            pass
        assert store._database._writer is not None
        store._database._writer.execute("PRAGMA synchronous = OFF")
    else:
        store = open_store(f"{store_url}?durability=off&options=-c%20synchronous_commit%3Doff", clock)
        store.ready()
    yield store
    store.close()
