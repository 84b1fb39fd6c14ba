"""Rows of a table become jobs: each version of each row one, whenever it commits, wherever a page or a process ends."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from lateshift import Lateshift, RowChange
from lateshift.clock import ManualClock
from lateshift.errors import TriggerInvalid
from lateshift.model.ids import new_member_id
from lateshift.runtime.leadership import TTL
from lateshift.triggers import reader as reading
from lateshift.triggers import row_values, rows
from lateshift.triggers.reader import LONGEST_PAUSE, STAND_BY, Reader
from lateshift.triggers.row_table import RowTable
from tests.postgres_server import PostgresServer
from tests.triggers.tables import Orders, Turned, Watch

NOON = datetime(2020, 1, 1, 12)  # noqa: DTZ001 - the column has no zone
SECOND = timedelta(seconds=1)


def test_it_begins_after_the_newest_row_there_is(orders: Orders, watch: Watch) -> None:
    orders.put([1, 2, 4])
    turned = watch(orders)
    turned.reader.round()
    turned.reader.round()  # the first look is stored now, and none of the polls has begun
    orders.put([3, 5])  # one of them commits late
    turned.turn()
    assert turned.ids == [3, 5]
    orders.put([6])
    turned.turn()
    assert turned.ids == [3, 5, 6]
    told = {"of": "orders.id", "newest": {"int": 6}, "since": {"int": 5}}
    assert turned.view.position == {**told, "in": RowTable(turned.where).database}


def test_another_column_begins_anew(orders: Orders, watch: Watch, app: Lateshift) -> None:
    orders.put([1], at=NOON)
    turned = watch(orders, cursor="at")
    turned.turn()
    turned.reader.resign()
    changed = Lateshift("shop", store="memory://unused")
    changed._store, changed.clock = app.store, app.clock

    @changed.on_row(orders.url, table="orders", cursor="id")
    @changed.task
    def handle(row: dict[str, Any]) -> None: ...

    turned = Turned(changed)
    turned.turn()
    orders.put([2], at=NOON)
    turned.turn()
    assert turned.ids == [2]
    turned.reader.resign()


def test_an_empty_table_is_read_from_its_first_row_on(orders: Orders, watch: Watch) -> None:
    turned = watch(orders)
    turned.turn()
    orders.put([5, -5])
    turned.turn()
    orders.put([3])
    turned.again()
    turned.turn()
    assert turned.ids == [-5, 5, 3]


def test_it_may_begin_with_what_is_there(orders: Orders, watch: Watch) -> None:
    orders.put([2, 1])
    turned = watch(orders, from_start=True)
    turned.turn()
    turned.again()
    turned.turn()
    assert turned.ids == [1, 2]


def test_a_row_that_commits_late_is_found(orders: Orders, watch: Watch) -> None:
    turned = watch(orders, behind=100)
    turned.turn()
    orders.put([1000])
    turned.turn()
    turned.turn()
    orders.put([900, 899])  # the second is further behind than was asked for
    turned.turn()
    turned.turn()
    assert turned.ids == [1000, 900]


def test_of_two_transactions_the_one_with_the_smaller_number_commits_later(
    server_orders: Orders, watch: Watch
) -> None:
    turned = watch(server_orders)
    turned.turn()
    insert = text("INSERT INTO orders (id) VALUES (:id)")
    with server_orders.begin() as first:
        first.execute(insert, {"id": 1})
        with server_orders.begin() as second:
            second.execute(insert, {"id": 2})
        turned.turn()
        assert turned.ids == [2]
    turned.turn()
    assert turned.ids == [2, 1]


def test_what_commits_late_is_found_though_many_came_while_it_looked(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "AT_ONCE", 9)
    orders.put([100])
    turned = watch(orders, behind=5)
    turned.turn()
    orders.put([*range(101, 106), *range(107, 111)])
    assert turned.reader.round() == timedelta(0)  # a page, and the look goes on
    assert turned.ids[-1] == 110
    orders.put([106])  # four behind the newest of this moment
    orders.put(range(111, 160))
    turned.turn()
    turned.turn()
    assert sorted(turned.ids) == list(range(101, 160))


def test_where_there_is_much_to_look_at_again_new_rows_do_not_wait_for_it(
    orders: Orders, watch: Watch
) -> None:
    turned = watch(orders, behind=5)
    turned.turn()
    orders.put(range(1, 10))
    turned.turn()
    turned.turn()
    source: Any = turned.reader._source
    source._again_from = float("inf")  # as after a look that took long
    orders.put(range(11, 31))
    turned.turn()
    orders.put([10])  # long behind what was found meanwhile, and found all the same
    orders.put([31])
    turned.turn()
    assert turned.ids == [*range(1, 10), *range(11, 32)]
    if orders.url.startswith("sqlite"):
        turned.again()
    else:
        source._again_from = 0.0
    turned.turn()
    assert turned.ids[-1] == 10
    assert len(turned.ids) == 31


def test_each_change_of_a_row_is_a_job_where_the_cursor_tells_of_changes(
    orders: Orders, watch: Watch
) -> None:
    turned = watch(orders, cursor="at")
    orders.put([1, 2], at=NOON)
    turned.turn()  # the first look
    with orders.begin() as connection:
        connection.execute(
            text("UPDATE orders SET at = :at, note = 'paid' WHERE id = 1"), {"at": NOON + SECOND}
        )
    turned.turn()
    orders.put([3], at=NOON - 50 * SECOND)  # it commits late
    orders.put([4], at=NOON - 3600 * SECOND)  # and this one an hour late
    turned.turn()
    turned.turn()
    assert [(row["id"], row["note"]) for row in turned.rows] == [(1, "paid"), (3, None)]


def test_rows_with_the_same_cursor_are_read_across_pages(orders: Orders, watch: Watch) -> None:
    turned = watch(orders, cursor="at", behind=timedelta(0))
    turned.turn()
    orders.put(range(2300), at=NOON)
    turned.turn()
    assert turned.ids == list(range(2300))
    orders.put([-1, 5000], at=NOON)
    turned.again()
    turned.turn()
    assert turned.ids[2300:] == [-1, 5000]
    assert turned.view.repeated == 0


def test_times_that_sqlite_keeps_in_any_form_are_read_as_they_are(file_orders: Orders, watch: Watch) -> None:
    """CURRENT_TIMESTAMP has no fractions of a second, and the text with them is another."""
    turned = watch(file_orders, cursor="at")
    file_orders.run("INSERT INTO orders (id, at) VALUES (0, '2020-01-01 11:59:00')")
    turned.turn()
    values = ", ".join(f"({id}, '2020-01-01 12:00:00')" for id in range(1, 1200))
    file_orders.run(f"INSERT INTO orders (id, at) VALUES {values}")
    turned.turn()
    file_orders.run(
        "INSERT INTO orders (id, at) VALUES (5000, '2020-01-01 11:59:30'), (5001, '2020-01-01 12:00:00.5')"
    )
    turned.turn()
    assert sorted(turned.ids) == [*range(1, 1200), 5000, 5001]


def test_what_cannot_be_placed_is_left_alone(orders: Orders, watch: Watch) -> None:
    turned = watch(orders, cursor="at")
    turned.turn()
    orders.put([1], at=None)
    orders.put([2], at=NOON)
    turned.turn()
    assert turned.ids == [2]


def test_text_may_be_a_cursor(orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FORGET_AFTER", 5)
    turned = watch(orders, cursor="note")
    orders.put([1], note="b")
    turned.turn()
    for id, note in enumerate(["c", "c", "d d", "d d", "e", "e!", "f", "f", "g" * 2000, "g" * 2000], start=2):
        orders.put([id], note=note)
        turned.turn()
        turned.turn()
        turned.turn()
        if id % 3 == 0:
            turned.again()
    assert turned.ids == list(range(2, 12))
    assert len(turned.receipts) < 8


def test_receipts_are_kept_as_far_as_is_looked_again(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FORGET_AFTER", 10)
    turned = watch(orders, behind=20)
    turned.turn()
    for start in range(1, 400, 40):
        orders.put(range(start, start + 40))
        turned.turn()
    turned.turn()
    turned.turn()
    assert turned.ids == list(range(1, 401))
    assert 20 <= len(turned.receipts) <= 80
    orders.run("UPDATE orders SET note = 'the cursor is as it was'")
    turned.again()
    turned.turn()
    assert len(turned.ids) == 400


def test_a_restart_at_any_moment_loses_nothing_and_repeats_nothing(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LOOKED_AT", 7), ("NEW_AT_ONCE", 11), ("FORGET_AFTER", 3)):
        monkeypatch.setattr(rows, name, value)
    monkeypatch.setattr(reading, "AT_ONCE", 4)
    orders.put(range(50))
    turned = watch(orders, behind=10)
    for after in range(30):
        for _ in range(after % 9):
            turned.reader.round()
        if turned.view.position is not None:
            orders.put(range(50 + after * 5, 55 + after * 5))
        turned.again()
    turned.turn()
    turned.turn()
    assert len(set(turned.ids)) == len(turned.ids) == turned.view.made
    first = min(turned.ids)
    assert sorted(turned.ids) == list(range(first, 200))
    assert first >= 50


def test_one_reads_and_another_goes_on_when_the_term_is_over(
    orders: Orders, watch: Watch, app: Lateshift, clock: ManualClock
) -> None:
    turned = watch(orders)
    turned.turn()
    other = Reader(app.store, app.triggers["handle"], new_member_id(), clock)
    orders.put([1])
    assert other.round() == STAND_BY
    turned.turn()
    clock.move(seconds=TTL.total_seconds() + 1)
    orders.put([2])
    while not other.round():
        pass
    assert turned.reader.round() == STAND_BY
    assert turned.ids == [1, 2]
    other.resign()


def test_two_readers_that_both_believe_to_hold_the_term_make_one_job_of_each_row(
    orders: Orders, watch: Watch, app: Lateshift, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has read, and is late to store it: another has taken over meanwhile."""
    turned = watch(orders)
    turned.turn()
    orders.put([1, 2])
    take = app.store.triggers.take
    other = Reader(app.store, app.triggers["handle"], new_member_id(), clock)
    overtaken: list[str] = []

    def late(name: str, arrivals: Any, **rest: Any) -> Any:
        if arrivals and not overtaken:
            overtaken.append(name)
            clock.move(seconds=TTL.total_seconds() + 1)
            while not other.round():
                pass
        return take(name, arrivals, **rest)

    monkeypatch.setattr(app.store.triggers, "take", late)
    assert turned.reader.round() == STAND_BY
    assert turned.ids == [1, 2]
    other.resign()


def test_a_table_that_is_not_there_yet_is_waited_for(orders: Orders, watch: Watch) -> None:
    turned = watch(orders, table="later", from_start=True)
    turned.reader.round()
    assert "there is no table later in" in str(turned.view.error)
    orders.run("CREATE TABLE later (id bigint)", "INSERT INTO later VALUES (7)")
    turned.turn()
    assert (turned.ids, turned.view.error) == ([7], None)


@pytest.mark.parametrize("wrong", ["cursor", "key"])
def test_a_column_that_is_missing_is_told_with_those_that_are_there(
    orders: Orders, watch: Watch, wrong: str
) -> None:
    turned = watch(orders, **{wrong: "updated_at"})
    turned.reader.round()
    told = f"has no column updated_at, which is to be the {wrong}. It has: id, at, note."
    assert told in str(turned.view.error)


def test_a_schema_may_be_named(orders: Orders, watch: Watch) -> None:
    schema = "main"
    if orders.url.startswith("postgresql"):
        schema = "the Sales"
        orders.run(f'CREATE SCHEMA "{schema}"', f'CREATE TABLE "{schema}".orders (id int)')
    turned = watch(orders, table=f"{schema}.orders", from_start=True)
    with orders.begin() as connection:
        connection.execute(text(f'INSERT INTO "{schema}".orders (id) VALUES (1)'))
    turned.turn()
    assert turned.ids == [1]


def test_a_file_that_goes_away_and_comes_back_is_read_on(
    file_orders: Orders, watch: Watch, tmp_path: Path
) -> None:
    turned = watch(file_orders)
    turned.turn()
    file_orders.put([1])
    file_orders.close()
    (tmp_path / "shop.db").rename(tmp_path / "away.db")
    turned.again()
    turned.reader.round()
    assert "there is no file" in str(turned.view.error)
    assert not (tmp_path / "shop.db").exists()
    (tmp_path / "away.db").rename(tmp_path / "shop.db")
    turned.turn()
    assert turned.ids == [1]


@pytest.mark.slow
def test_a_server_that_goes_away_and_comes_back_is_read_on(watch: Watch) -> None:
    with PostgresServer() as server:
        orders = Orders(server.admin_url.replace("postgres@", "postgres:hush@"))
        orders.run("CREATE TABLE orders (id bigint PRIMARY KEY, at timestamp, note text)")
        turned = watch(orders)
        turned.turn()
        orders.put([1])
        turned.turn()
        orders.put([2])
        orders.close()
        server.stop("immediate")
        turned.reader.round()
        assert "127.0.0.1" in str(turned.view.error)
        assert "hush" not in str(turned.view)
        server.start()
        turned.turn()
        assert (turned.ids, turned.view.error) == ([1, 2], None)
        orders.close()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me:hush@127.0.0.1:1/shop", "connection failed"),
        ("mysql+nodriver://me:hush@127.0.0.1/shop", "SQLAlchemy does not speak mysql+nodriver"),
        ("nothing://me:hush@127.0.0.1/shop", "no URL of a database that SQLAlchemy speaks"),
        (
            "mysql+pymysql://me:hush@127.0.0.1/shop",
            "pymysql, by which SQLAlchemy reaches mysql+pymysql, is not installed",
        ),
        ("sqlite:///:memory:", "names no file"),
    ],
)
def test_what_cannot_be_reached_is_told_without_the_password(
    app: Lateshift, url: str, told: str, watch: Watch
) -> None:
    class Nowhere(Orders):
        def __init__(self) -> None:
            self.url = url

    turned = watch(Nowhere())
    turned.reader.round()
    assert told in str(turned.view.error)
    assert "hush" not in str(turned.view)


def test_rows_are_written_as_json(server_orders: Orders, app: Lateshift) -> None:
    server_orders.run(
        """CREATE TABLE kinds (id serial, at timestamptz, day date, price numeric, code uuid, raw bytea, document jsonb,
         tags text[], lasts interval, address inet, number float, place point, yes boolean)""",
        """INSERT INTO kinds (at, day, price, code, raw, document, tags, lasts, address, number, place, yes) VALUES
         ('2030-01-01 12:00:00.5+02', '2030-01-01', 1.10, '00000000-0000-0000-0000-000000000001', 'abc', '{"a": [1, null]}',
         '{x,y}', '1 day', '10.0.0.1', 'NaN', '(1,2)', true)""",
    )

    @app.on_row(server_orders.url, table="kinds", cursor="id", from_start=True)
    @app.task
    def handle(row: dict[str, Any]) -> None: ...

    turned = Turned(app)
    turned.turn()
    assert turned.rows == [
        {
            "id": 1, "at": "2030-01-01T10:00:00.500000Z", "day": "2030-01-01", "price": "1.10",
            "code": "00000000-0000-0000-0000-000000000001", "raw": "YWJj", "document": {"a": [1, None]}, "tags": ["x", "y"],
            "lasts": "P1D", "address": "10.0.0.1", "number": "NaN", "place": "(1,2)", "yes": True,
        }
    ]  # fmt: skip
    turned.reader.resign()


def test_a_row_that_cannot_be_written_is_refused_and_the_others_go_on(
    server_orders: Orders, watch: Watch, app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_values, "_AS_TEXT", ())  # as if nobody had thought of addresses
    server_orders.run("ALTER TABLE orders ADD COLUMN address inet")
    turned = watch(server_orders, from_start=True)
    server_orders.run("INSERT INTO orders (id, address) VALUES (1, NULL), (2, '10.0.0.1'), (3, NULL)")
    server_orders.run("INSERT INTO orders (id, note) VALUES (4, repeat('x', 300000))")
    turned.turn()
    assert turned.ids == [1, 3]
    refused = app.store.triggers.refused("handle", None, 10)
    assert "the column address holds a IPv4Address" in refused[0].reason
    assert b'"id":2' in refused[0].raw
    assert "over the limit" in refused[1].reason
    turned.turn()
    assert len(app.store.triggers.refused("handle", None, 10)) == 2


def test_a_task_may_ask_for_the_change_and_a_program_may_pass_rows_over(
    orders: Orders, app: Lateshift
) -> None:
    def paid(change: RowChange) -> RowChange | None:
        return change if change.row["note"] == "paid" else None

    @app.on_row(orders.url, table="orders", cursor="id", from_start=True, decode=paid)
    @app.task
    def handle(row: RowChange) -> None: ...

    orders.put([1], note="open")
    orders.put([2], note="paid")
    turned = Turned(app)
    turned.turn()
    assert turned.rows == [{"table": "orders", "row": {"id": 2, "at": None, "note": "paid"}}]
    turned.reader.resign()


def test_rows_that_wait_are_counted(orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "LAG_MOST", 1500)
    turned = watch(orders, from_start=True)
    orders.put(range(2500))
    turned.reader.round()
    assert turned.view.lag == 1500
    turned.turn()
    assert turned.view.lag == 0


def test_a_long_interval_does_not_outlast_the_term(orders: Orders, watch: Watch) -> None:
    turned = watch(orders, every=timedelta(hours=1))
    assert turned.turn() == LONGEST_PAUSE
    orders.put([1])
    assert timedelta(0) < turned.reader.round() <= LONGEST_PAUSE
    assert turned.ids == []


def test_a_long_interval_begins_when_all_is_read(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "NEW_AT_ONCE", 500)
    orders.put(range(2300))
    turned = watch(orders, every=timedelta(hours=1), from_start=True)
    turned.turn()
    assert turned.ids == list(range(2300))


def test_a_kind_of_overlap_that_does_not_fit_is_told(orders: Orders, watch: Watch) -> None:
    turned = watch(orders, cursor="at", behind=5)
    orders.put([1], at=NOON)
    turned.reader.round()
    assert "behind is a timedelta, not 5" in str(turned.view.error)


def test_a_table_in_the_stores_own_file_needs_one_library(
    sqlite_url: str, watch: Watch, app: Lateshift
) -> None:
    if not app.store.url.startswith("sqlite"):
        return
    turned = watch(Orders(app.store.url))
    turned.reader.round()
    assert "?driver=sqlite3" in str(turned.view.error)


@pytest.mark.parametrize("behind", [-1, timedelta(seconds=-1), True, "1 s"])
def test_an_overlap_that_is_none_is_refused(app: Lateshift, behind: Any) -> None:
    with pytest.raises(TriggerInvalid, match="behind is a whole number or a timedelta"):
        app.on_row("sqlite:///shop.db", table="orders", cursor="id", behind=behind)


def test_an_aware_time_is_told_in_utc(server_orders: Orders, watch: Watch) -> None:
    server_orders.run("ALTER TABLE orders ALTER at TYPE timestamptz")
    turned = watch(server_orders, cursor="at", from_start=True)
    server_orders.put([1], at=datetime(2020, 1, 1, 12, tzinfo=UTC))
    turned.turn()
    assert turned.rows[0]["at"] == "2020-01-01T12:00:00Z"
    assert turned.receipts == ["2020-01-01T12:00:00.000000Z 1"]
