"""A process that reads rows until there are none for now: `python -m tests.triggers.rows_program STORE SHOP SECONDS`.

`SECONDS` is how far its clock is ahead: whoever held the term before it, and was killed, does not hold it any more."""

import sys
from typing import Any

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.store.open import open_store
from lateshift.triggers import reader as reading
from lateshift.triggers import rows
from tests.triggers.tables import Turned

BEHIND = 1000


def main(store_url: str, shop_url: str, seconds: float) -> None:
    """In small pages, so that there are many moments to die at."""
    reading.AT_ONCE, rows.LOOKED_AT, rows.NEW_AT_ONCE, rows.FORGET_AFTER = 7, 20, 14, 5
    clock = ManualClock()
    clock.move(seconds=seconds)
    store = open_store(store_url, clock)
    app = Lateshift("shop", store="memory://unused")
    with app.using(store):

        @app.on_row(shop_url, table="orders", cursor="id", behind=BEHIND)
        @app.task
        def handle(row: dict[str, Any]) -> None: ...

        turned = Turned(app)
        turned.turn()
        turned.turn()
        turned.reader.resign()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
