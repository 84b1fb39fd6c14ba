"""A clock that tests move, and a store of each kind that goes by it."""

from collections.abc import Iterator

import pytest

from lateshift.clock import ManualClock
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import Supervisor, Worker


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(store_url: str, clock: ManualClock) -> Iterator[Store]:
    store = open_store(store_url, clock)
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
