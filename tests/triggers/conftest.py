"""Each store, and each kind of database that holds the user's table."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.store.open import open_store
from tests.postgres_databases import PostgresDatabases, unused_name
from tests.triggers.tables import ORDERS, Orders, Turned, Watch


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
def app(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> Iterator[Lateshift]:
    """On each store."""
    names = {"sqlite": "migrated_sqlite_url", "postgres": "postgres_url"}
    store = open_store(str(request.getfixturevalue(names[request.param])), clock)
    store.ready()
    app = Lateshift("shop", store="memory://unused")
    with app.using(store):
        yield app


def made(url: str) -> Iterator[Orders]:
    orders = Orders(url)
    orders.run(ORDERS)
    yield orders
    orders.close()


@pytest.fixture
def file_orders(tmp_path: Path) -> Iterator[Orders]:
    yield from made(f"sqlite:///{tmp_path}/shop.db")


@pytest.fixture(scope="session")
def shop_url(postgres_server: PostgresDatabases) -> Iterator[str]:
    """A database beside the store's, for all tests."""
    name = unused_name()
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
def server_orders(shop_url: str) -> Iterator[Orders]:
    orders = Orders(shop_url)
    orders.run(
        "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", 'DROP SCHEMA IF EXISTS "the Sales" CASCADE'
    )
    orders.close()
    yield from made(shop_url)


@pytest.fixture(params=["in sqlite", "in postgres"])
def orders(request: pytest.FixtureRequest) -> Orders:
    names = {"in sqlite": "file_orders", "in postgres": "server_orders"}
    found: Orders = request.getfixturevalue(names[request.param])
    return found


@pytest.fixture
def watch(app: Lateshift) -> Iterator[Watch]:
    """`watch(orders, cursor="id")`: a reader of the table, which has not looked yet."""
    made: list[Turned] = []

    def start(orders: Orders, **options: Any) -> Turned:
        @app.on_row(orders.url, **{"table": "orders", "cursor": "id", **options})
        @app.task
        def handle(row: dict[str, Any]) -> None: ...

        made.append(Turned(app))
        return made[-1]

    yield start
    for each in made:
        each.reader.resign()
