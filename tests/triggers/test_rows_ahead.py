"""Rows with a time that is yet to come: each makes its job, once, and hides no other."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lateshift.triggers import cursors, rows
from lateshift.triggers.row_table import RowTable
from tests.triggers.tables import Orders, Watch

NOON = datetime(2020, 1, 1, 12)  # noqa: DTZ001 - the column has no zone
FAR = datetime(2999, 1, 1)  # noqa: DTZ001
DAY = timedelta(days=1)


@pytest.fixture
def clock_of_table(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """What the database says that the time is: the last of these."""
    said = [NOON]
    monkeypatch.setattr(RowTable, "present", lambda table: (said[-1].replace(tzinfo=UTC), timedelta(0)))
    return said


def present() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def test_a_time_that_is_yet_to_come_makes_its_job_and_hides_no_other(
    orders: Orders, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    turned = watch(orders, cursor="at")
    turned.turn()
    orders.put([1], at=FAR)
    with caplog.at_level(logging.WARNING):
        turned.turn()
    assert turned.ids == [1]
    assert "orders.at holds times that are yet to come, such as 2999-01-01" in caplog.text
    orders.put([2], at=present())
    turned.turn()
    turned.again()
    orders.put([3], at=present())
    orders.put([4], at=FAR - DAY)
    for _ in range(3):
        turned.turn()
    assert turned.ids == [1, 2, 3, 4]
    assert turned.view.repeated == 0
    assert "2999" not in str(turned.view.position)


def test_it_begins_after_the_rows_of_the_present(orders: Orders, watch: Watch) -> None:
    orders.put([1], at=NOON)
    orders.put([2], at=FAR)
    turned = watch(orders, cursor="at")
    turned.turn()
    orders.put([3], at=NOON + timedelta(hours=1))
    turned.turn()
    turned.again()
    turned.turn()
    assert turned.ids == [3]


def test_a_table_that_holds_nothing_else_is_read_from_its_next_row_on(orders: Orders, watch: Watch) -> None:
    orders.put([1], at=FAR)
    turned = watch(orders, cursor="at")
    turned.turn()
    orders.put([2], at=NOON)
    turned.turn()
    turned.again()
    turned.turn()
    assert turned.ids == [2]


def test_when_its_time_has_come_it_makes_no_second_job(
    orders: Orders, watch: Watch, clock_of_table: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FORGET_AFTER", 1)
    turned = watch(orders, cursor="at")
    turned.turn()
    orders.put([1, 2], at=NOON + 3 * DAY)
    turned.turn()
    for number in range(1, 8):
        clock_of_table.append(NOON + number * DAY)
        orders.put([10 * number], at=clock_of_table[-1])
        turned.turn()
        turned.turn()
        if number % 2:
            turned.again()
    assert turned.ids == [1, 2, *range(10, 80, 10)]
    assert len(turned.receipts) < 5


def test_many_rows_ahead_of_time_are_read_in_pages_and_once(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LOOKED_AT", 50)
    turned = watch(orders, cursor="at", from_start=True)
    orders.put(range(700), at=NOON)
    orders.put(range(1000, 1120), at=FAR)
    orders.put(range(2000, 2120), at=FAR + DAY)
    for _ in range(3):
        turned.turn()
        turned.again()
    assert turned.ids == [*range(700), *range(1000, 1120), *range(2000, 2120)]


def test_a_position_that_was_ahead_of_time_is_brought_back(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = watch(orders, cursor="at")
    turned.turn()
    with monkeypatch.context() as patched:  # as before it was looked at
        patched.setattr(cursors, "latest", lambda *_: None)
        orders.put([1], at=FAR)
        turned.turn()
        assert "2999" in str(turned.view.position)
    turned.again()
    turned.turn()
    here = datetime.now(UTC).astimezone().utcoffset() or timedelta(
        0
    )  # what is written here without a zone may be ahead
    orders.put([2], at=present() + max(timedelta(0), here) + timedelta(minutes=2))
    turned.turn()
    assert turned.ids == [1, 2]


def test_with_a_zone_nothing_that_comes_within_the_overlap_is_hidden(
    server_orders: Orders, watch: Watch
) -> None:
    server_orders.run("ALTER TABLE orders ALTER at TYPE timestamptz")
    turned = watch(server_orders, cursor="at")
    turned.turn()
    for number, minutes in enumerate([10, 0, 0.9, 0, 600, 0]):
        server_orders.put([number], at=datetime.now(UTC) + timedelta(minutes=minutes))
        turned.turn()
        turned.turn()
    assert turned.ids == [0, 1, 2, 3, 4, 5]


def test_a_day_that_is_yet_to_come_hides_no_other(server_orders: Orders, watch: Watch) -> None:
    server_orders.run("ALTER TABLE orders ALTER at TYPE date")
    turned = watch(server_orders, cursor="at")
    turned.turn()
    server_orders.put([1], at=FAR)
    turned.turn()
    turned.turn()
    server_orders.put([2], at=present().date())
    turned.turn()
    assert turned.ids == [1, 2]


def test_text_that_is_no_time_hides_no_other(file_orders: Orders, watch: Watch) -> None:
    turned = watch(file_orders, cursor="at")
    file_orders.put([1], at="2020-01-01T12:00:00")
    turned.turn()
    file_orders.put([2], at="unknown")
    turned.turn()
    turned.turn()
    file_orders.put([3], at="2020-01-01T12:30:00")
    turned.turn()
    assert turned.ids == [2, 3]


def test_the_database_is_asked_for_its_clock_only_if_a_row_may_be_ahead(
    orders: Orders, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    ask = RowTable.present

    def counted(table: RowTable) -> tuple[datetime, timedelta]:
        asked.append(table)
        return ask(table)

    monkeypatch.setattr(RowTable, "present", counted)
    turned = watch(orders, cursor="at")
    turned.turn()
    for number in range(10):
        orders.put([number], at=NOON)
        turned.turn()
    assert len(asked) == 1
    assert turned.ids == list(range(10))


@pytest.fixture
def far_east(server_orders: Orders) -> Iterator[Orders]:
    """Its clocks are fourteen hours ahead of UTC."""
    name = server_orders.engine.url.database
    server_orders.run(f"ALTER DATABASE \"{name}\" SET timezone = 'Pacific/Kiritimati'")
    server_orders.close()
    yield server_orders
    server_orders.run(f'ALTER DATABASE "{name}" RESET timezone')
    server_orders.close()


@pytest.mark.parametrize(
    ("where", "now"), [("file_orders", "CURRENT_TIMESTAMP"), ("far_east", "localtimestamp")]
)
def test_what_a_database_writes_without_a_zone_is_of_the_present(
    request: pytest.FixtureRequest, watch: Watch, caplog: pytest.LogCaptureFixture, where: str, now: str
) -> None:
    orders: Orders = request.getfixturevalue(where)
    turned = watch(orders, cursor="at")
    turned.turn()
    for number in range(3):
        orders.run(f"INSERT INTO orders (id, at) VALUES ({number}, {now})")
        turned.turn()
    assert turned.ids == [0, 1, 2]
    assert "yet to come" not in caplog.text
