"""Values that Python has none for: the row with one is refused, with the reason, and the next ones flow."""

import pytest
from sqlalchemy import text

from lateshift import Lateshift
from lateshift.errors import LateshiftError
from tests.triggers.tables import Orders, Turned, Watch


def reasons(turned: Turned) -> list[str]:
    return [view.reason for view in turned.app.store.triggers.refused("handle", None, 100)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamptz", "'infinity'"), ("timestamptz", "'20000-01-01'"), ("timestamptz", "'0044-03-15 BC'"),
        ("timestamp", "'-infinity'"), ("date", "'infinity'"), ("time", "'24:00'"), ("interval", "'100000000 years'"),
        ("timestamptz[]", "ARRAY['infinity'::timestamptz]"),
    ],
)  # fmt: skip
def test_a_row_with_such_a_value_is_refused_and_the_others_go_on(
    server_orders: Orders, watch: Watch, kind: str, value: str
) -> None:
    server_orders.run(f"ALTER TABLE orders ADD COLUMN odd {kind}")
    turned = watch(server_orders)
    turned.turn()
    server_orders.run(f"INSERT INTO orders (id, odd) VALUES (1, NULL), (2, {value}), (3, NULL)")
    for _ in range(2):
        turned.turn()
    server_orders.put([4])
    turned.turn()
    assert turned.ids == [1, 3, 4]
    [reason] = reasons(turned)
    assert "the column odd holds a" in reason
    [refused] = turned.app.store.triggers.refused("handle", None, 100)
    assert b'"id":2' in refused.raw


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
@pytest.mark.parametrize("from_start", [False, True])
def test_a_cursor_that_python_has_none_for_is_refused_once_and_hides_no_other(
    server_orders: Orders, watch: Watch, kind: str, from_start: bool
) -> None:
    server_orders.run(f"ALTER TABLE orders ALTER at TYPE {kind}")
    turned = watch(server_orders, cursor="at", from_start=from_start)
    if not from_start:
        turned.turn()
    insert = text(f"INSERT INTO orders (id, at) VALUES (:id, CAST(:at AS {kind}))")
    values = ["infinity", "2020-01-01", "20000-01-01", "2020-01-02", "-infinity"]
    for id, at in enumerate(values, start=1):
        with server_orders.begin() as connection:
            connection.execute(insert, {"id": id, "at": at})
        if not from_start:
            turned.turn()
    for _ in range(3):
        turned.turn()
        turned.again()
    assert sorted(turned.ids) == [2, 4]
    told = reasons(turned)  # the first of all times comes before what is looked at again
    assert len(told) == (3 if from_start else 2)
    assert all("the column at holds a" in reason for reason in told)


def test_it_begins_beside_such_rows(server_orders: Orders, watch: Watch) -> None:
    server_orders.run("INSERT INTO orders (id, at) VALUES (1, 'infinity'), (2, '-infinity')")
    turned = watch(server_orders, cursor="at")
    turned.turn()
    server_orders.run("INSERT INTO orders (id, at) VALUES (3, '2020-01-01')")
    turned.turn()
    turned.again()
    turned.turn()
    assert (turned.ids, reasons(turned), turned.view.error) == ([3], [], None)


def test_such_a_row_can_be_retried_once_the_code_takes_text(
    server_orders: Orders, watch: Watch, app: Lateshift
) -> None:
    server_orders.run("ALTER TABLE orders ADD COLUMN until timestamptz")
    turned = watch(server_orders)
    turned.turn()
    server_orders.run("INSERT INTO orders (id, until) VALUES (1, 'infinity')")
    turned.turn()
    [refused] = app.store.triggers.refused("handle", None, 10)
    assert app.retry_refused(refused.id) is not None
    assert turned.rows == [{"id": 1, "at": None, "note": None, "until": "infinity"}]
    with pytest.raises(LateshiftError, match="Nothing that was refused has the id"):
        app.retry_refused(refused.id)
