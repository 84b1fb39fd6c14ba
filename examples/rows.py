"""A shop whose orders are rows of a table; each becomes a job: `lateshift up examples/rows.py`.

`python examples/rows.py 3` puts three orders into the table, from another window. Needs `pip install 'lateshift[sqlalchemy]'`.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import msgspec

from lateshift import Lateshift

SHOP = Path("orders.db").absolute()

app = Lateshift("orders")


class Order(msgspec.Struct):
    """A row, as the task wants it."""

    id: int
    article: str
    pieces: int


@app.on_row(f"sqlite:///{SHOP}", table="orders", cursor="id")
def ship(order: Order) -> str:
    return f"order {order.id}: {order.pieces} x {order.article}"


def place(count: int) -> None:
    with closing(sqlite3.connect(SHOP)) as shop, shop:
        shop.execute(
            "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, article TEXT, pieces INTEGER)"
        )
        shop.executemany(
            "INSERT INTO orders (article, pieces) VALUES (?, ?)", [("lamp", n + 1) for n in range(count)]
        )


place(0)  # the table is there before anybody looks

if __name__ == "__main__":
    place(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
