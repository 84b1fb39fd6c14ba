"""`by="database"` while releases change: what one of them has stays installed beside one that does not, and tables in use are not waited for."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from lateshift import Lateshift
from lateshift.errors import EventInvalid
from lateshift.model.triggering.trigger import REFUSED_LIMIT
from lateshift.store.postgres.row_triggers import UNINSTALL_AFTER
from tests.triggers.tables import ORDERS, Orders
from tests.triggers.test_rows_in_database import declare, functions, ids, on_row, watched


@pytest.fixture
def orders(postgres_url: str) -> Iterator[Orders]:
    """In the store's own database."""
    orders = Orders(postgres_url)
    orders.run(ORDERS, "CREATE TABLE parts (id bigint PRIMARY KEY)")
    yield orders
    orders.close()


@pytest.fixture
def app(postgres_url: str) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=postgres_url)
    yield app
    app.close()


@pytest.fixture
def older(postgres_url: str) -> Iterator[Lateshift]:
    """A release of the same app that has no such triggers."""
    app = Lateshift("shop", store=postgres_url)
    yield app
    app.close()


def pass_by(orders: Orders) -> None:
    """The time after which what no code has is given up."""
    orders.run(
        f"UPDATE lateshift.trigger SET removed_at = removed_at - interval '{UNINSTALL_AFTER.total_seconds():g} s'"
    )


def test_an_older_release_that_starts_loses_no_row(app: Lateshift, older: Lateshift, orders: Orders) -> None:
    @on_row(app, orders)
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    [newer, *_] = app.readers()
    newer.say()  # type: ignore[attr-defined]
    first = functions(orders)
    [without, *_] = older.readers()
    without.say()  # type: ignore[attr-defined]
    orders.put([1])
    newer.say()  # type: ignore[attr-defined]
    pass_by(orders)
    # It looks again once in a minute, and the newer one has it.
    without.say()  # type: ignore[attr-defined]
    orders.put([2])
    assert ids(app) == [1, 2]
    assert functions(orders) == first


def test_it_goes_when_no_code_has_had_it_for_a_while(
    app: Lateshift, older: Lateshift, orders: Orders
) -> None:
    watched(app, orders)
    [without, *_] = older.readers()
    without.say()  # type: ignore[attr-defined]
    pass_by(orders)
    without.say()  # type: ignore[attr-defined]
    assert functions(orders) == []
    orders.put([1])
    assert ids(app) == []


def test_it_goes_with_the_last_that_is_known_of_it(app: Lateshift, older: Lateshift, orders: Orders) -> None:
    watched(app, orders)
    orders.run("DELETE FROM lateshift.trigger")
    declare(older)
    assert functions(orders) == []


def test_a_table_in_use_keeps_no_other_from_being_installed_or_let_go(
    app: Lateshift, older: Lateshift, orders: Orders
) -> None:
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    on_row(app, orders, name="a")(handle)
    on_row(app, orders, name="b", table="parts")(handle)
    declare(app)
    assert len(functions(orders)) == 2

    @on_row(older, orders, name="c", table="bills")
    @older.task
    def bill(row: dict[str, Any]) -> None: ...

    [changed, *_] = older.readers()
    changed.say()  # type: ignore[attr-defined]
    pass_by(orders)
    orders.run("CREATE TABLE bills (id bigint PRIMARY KEY)")
    with orders.begin() as writer:
        writer.execute(text("INSERT INTO orders (id) VALUES (1)"))
        changed.say()  # type: ignore[attr-defined]
        orders.run("INSERT INTO parts VALUES (1)", "INSERT INTO bills VALUES (1)")
        assert len(functions(orders)) == 2  # that of the table in use, and the new one
    changed.say()  # type: ignore[attr-defined]
    assert len(functions(orders)) == 1


def test_of_a_row_that_is_very_large_the_beginning_is_kept_and_the_rest_told(
    app: Lateshift, orders: Orders
) -> None:
    watched(app, orders)
    orders.put([1], note="x" * 2 * REFUSED_LIMIT)
    [refused] = app.store.triggers.refused("handle", None, 10)
    assert len(refused.raw) == REFUSED_LIMIT
    assert refused.raw.startswith(b'{"table" : "orders", "row" : {"id":1')
    assert f"the first {REFUSED_LIMIT} are kept: it cannot be retried" in refused.reason
    with pytest.raises(EventInvalid, match="only its beginning was kept"):
        app.retry_refused(refused.id)
