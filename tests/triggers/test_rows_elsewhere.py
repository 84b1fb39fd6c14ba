"""A trigger that is pointed at another database begins anew there; one whose database has moved, or that is upgraded, goes on."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lateshift import Lateshift
from lateshift.model.triggering.sources import RowSource
from lateshift.triggers import cursors
from lateshift.triggers.row_table import RowTable
from tests.triggers.tables import ORDERS, Orders, Turned, Watch


@pytest.fixture
def others(tmp_path: Path) -> Iterator[Orders]:
    orders = Orders(f"sqlite:///{tmp_path}/other.db")
    orders.run(ORDERS)
    yield orders
    orders.close()


def pointed(app: Lateshift, orders: Orders, **options: Any) -> Turned:
    """The same trigger of the same app, at another database."""
    changed = Lateshift("shop", store="memory://unused")
    changed._store, changed.clock = app.store, app.clock

    @changed.on_row(orders.url, **{"table": "orders", "cursor": "id", **options})
    @changed.task
    def handle(row: dict[str, Any]) -> None: ...

    return Turned(changed)


@pytest.mark.parametrize("from_start", [False, True])
def test_another_database_begins_anew_and_what_came_from_the_first_is_not_taken_for_it(
    orders: Orders, others: Orders, watch: Watch, app: Lateshift, caplog: pytest.LogCaptureFixture, from_start: bool
) -> None:  # fmt: skip
    turned = watch(orders)
    turned.turn()
    orders.put(range(1, 6))
    turned.turn()
    turned.reader.resign()
    others.put([1, 2])
    with caplog.at_level(logging.WARNING):
        moved = pointed(app, others, from_start=from_start)
        moved.turn()
    assert "it begins anew" in caplog.text
    others.put([3, 4])
    moved.turn()
    assert moved.ids[5:] == ([1, 2, 3, 4] if from_start else [3, 4])
    moved.again()
    others.put([5])
    moved.turn()
    assert moved.ids[-1] == 5
    moved.reader.resign()


def test_a_position_of_before_databases_were_told_apart_is_gone_on_from(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_it_was(of: str, newest: Any, since: Any, *, database: str) -> bytes:
        told = {"of": of, "newest": {"int": newest}, "since": {"int": since}}
        return msgspec.json.encode(told)

    orders.put([1])
    turned = watch(orders)
    with monkeypatch.context() as patched:
        patched.setattr(cursors, "written", as_it_was)
        turned.turn()
    assert "in" not in turned.view.position
    turned.reader.resign()
    orders.put([2, 3])
    turned.again()
    turned.turn()
    assert turned.ids == [2, 3]
    assert turned.view.position["in"] == RowTable(turned.where).database


def named(url: str) -> str:
    return RowTable(RowSource(url=url, table="orders", cursor="id", key="id")).database


def test_a_database_is_known_by_its_name_however_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert named("sqlite:///shop.db") == named(f"sqlite:///{tmp_path}/shop.db") != named("sqlite:///other.db")
    server = named("postgresql://me:hush@one.example/shop")
    assert server == "postgresql shop"
    assert server == named(
        "postgresql+psycopg://you@pooler.example:6432/shop?sslmode=require&pooler=transaction"
    )
    assert server != named("postgresql://me@one.example/other")
