"""Rows of the present and rows ahead of time, in any order of writing, reading, dying and starting again: each is one job."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lateshift.model.triggering.sources import RowSource
from lateshift.model.triggering.trigger import known_by
from lateshift.triggers import rows
from lateshift.triggers.row_table import RowTable
from lateshift.triggers.rows import Rows
from tests.triggers.tables import ORDERS, Orders
from tests.triggers.test_rows_model import LIMIT, Kept

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 5)),
        st.tuples(st.just("ahead"), st.integers(2, 5000)),
        st.tuples(st.just("pass"), st.integers(1, 3000)),
        st.tuples(st.sampled_from(["read", "read", "rest", "die", "restart"]), st.just(0)),
    ),
    max_size=40,
)


class Shop:
    """Time passes as it is told to."""

    def __init__(self, folder: Path) -> None:
        self.orders = Orders(f"sqlite:///{folder}/shop.db")
        self.orders.run(ORDERS)
        self.now = datetime(2020, 1, 1, tzinfo=UTC)
        self.next = 0
        self.kept = Kept()
        self.start()

    def start(self) -> None:
        self.rows = Rows(RowSource(url=self.orders.url, table="orders", cursor="at", key="id"))
        self.rows.open(self.kept.position, self.kept)

    def put(self, count: int, minutes: int = 0) -> None:
        at = (self.now + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M:%S")
        self.orders.put(range(self.next, self.next + count), at=at)
        self.next += count

    def read(self) -> bool:
        read = self.rows.read(LIMIT, 0)
        new = [event for event in read.events if known_by(event.event) not in self.kept.events]
        self.kept.made += [event.seen.row["id"] for event in new if not event.old]  # type: ignore[union-attr]
        self.kept.events |= {known_by(event.event) for event in new}
        self.kept.position = read.position or self.kept.position
        self.rows.done(read.events)
        return read.more

    def rest(self) -> None:
        for _ in range(1000):
            if not self.read():
                return
        raise AssertionError("it does not come to rest")


@settings(max_examples=150)
@given(actions=ACTIONS)
def test_each_row_is_one_job_whenever_its_time_is(actions: list[tuple[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        for name, value in (("LOOKED_AT", 4), ("NEW_AT_ONCE", 5), ("FORGET_AFTER", 2)):
            patch.setattr(rows, name, value)
        shop = Shop(Path(folder))
        patch.setattr(RowTable, "present", lambda table: (shop.now, timedelta(0)))
        shop.put(2)
        shop.put(1, minutes=300)
        while shop.kept.position is None:
            shop.read()
        for action, number in actions:
            match action:
                case "put":
                    shop.put(number)
                case "ahead":
                    shop.put(1, minutes=number)
                case "pass":
                    shop.rest()  # what is there is seen before it is too old
                    shop.now += timedelta(minutes=number)
                case "read":
                    shop.read()
                case "rest":
                    shop.rest()
                case _:
                    if action == "die":
                        shop.rows.read(LIMIT, 0)
                    shop.rows.close()
                    shop.start()
        shop.rest()
        shop.now += timedelta(days=10)
        shop.rest()
        shop.put(1)
        shop.rest()
        shop.rest()
        shop.rows.close()
        shop.orders.close()
        assert sorted(shop.kept.made) == list(range(3, shop.next))
