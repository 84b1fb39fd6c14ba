"""Rows in any order of writing, committing, reading, dying and starting again: what was promised, each row once."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from lateshift.model.triggering.sources import RowSource
from lateshift.model.triggering.trigger import known_by
from lateshift.triggers import rows
from lateshift.triggers.rows import Rows
from tests.triggers.tables import Orders

BEHIND = 3
LIMIT = 3
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 9)),
        st.tuples(st.just("hold"), st.integers(1, 3)),
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.sampled_from(["read", "read", "read", "rest", "die", "restart"]), st.just(0)),
    ),
    max_size=40,
)


class Kept:
    """What a store keeps of a trigger. See source.Receipts."""

    def __init__(self) -> None:
        self.position: bytes | None = None
        self.events: set[str] = set()
        self.made: list[int] = []

    def unseen(self, events: list[tuple[str, str]]) -> list[bool]:
        return [event not in self.events for event, _ in events]

    def after(self, event: str, limit: int) -> list[str]:
        return sorted(each for each in self.events if each > event)[:limit]

    def forget(self, events: list[str], *, before: str | None = None) -> int:
        gone = {each for each in self.events if each in events or (before is not None and each < before)}
        self.events -= gone
        return len(gone)


class Shop:
    """Writers, of whom some commit late, and the one who reads."""

    def __init__(self, folder: Path, *, coarse: int, text_cursor: bool) -> None:
        self.orders = Orders(f"sqlite:///{folder}/shop.db")
        self.orders.run(f"CREATE TABLE orders (id integer, at {'text' if text_cursor else 'integer'})")
        self.coarse = coarse
        self.text_cursor = text_cursor
        self.behind = 0 if text_cursor else BEHIND
        self.next = 0
        self.newest = -1
        self.held: list[int] = []
        self.promised: list[int] = []
        self.kept = Kept()
        self.start()

    def cursor(self, id: int) -> int | str:
        return f"{id // self.coarse:06d}" if self.text_cursor else id // self.coarse

    def start(self) -> None:
        where = RowSource(
            url=self.orders.url, table="orders", cursor="at", key="id", behind=None if self.text_cursor else BEHIND
        )  # fmt: skip
        self.rows = Rows(where)
        self.rows.open(self.kept.position, self.kept)

    def write(self, ids: list[int]) -> None:
        """Those that are too far behind when they commit are not promised, and not written."""
        ids = [id for id in ids if id // self.coarse >= self.newest - self.behind]
        values = [{"id": id, "at": self.cursor(id)} for id in ids]
        if values:
            with self.orders.begin() as connection:
                connection.execute(text("INSERT INTO orders VALUES (:id, :at)"), values)
            self.newest = max(self.newest, *(id // self.coarse for id in ids))
            self.promised += ids

    def take(self, count: int) -> list[int]:
        self.next += count
        return list(range(self.next - count, self.next))

    def read(self, *, dies: bool = False) -> bool:
        """Gives whether there is more."""
        read = self.rows.read(LIMIT, 0)
        if dies:
            return False
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

    def again(self) -> None:
        self.rows.close()
        self.start()


@pytest.mark.parametrize(
    ("coarse", "text_cursor"), [(1, False), (4, False), (30, False), (4, True), (1, True)]
)
@settings(max_examples=30)
@given(actions=ACTIONS)
def test_each_row_that_was_promised_is_one_job(
    coarse: int, text_cursor: bool, actions: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        for name, value in (("LOOKED_AT", 4), ("NEW_AT_ONCE", 5), ("FORGET_AFTER", 2)):
            patch.setattr(rows, name, value)
        shop = Shop(Path(folder), coarse=coarse, text_cursor=text_cursor)
        shop.write(shop.take(5))
        old = len(shop.promised)
        while shop.kept.position is None:
            shop.read()
        for action, number in actions:
            match action:
                case "put":
                    shop.write(shop.take(number))
                case "hold":
                    shop.held += shop.take(number)
                case "commit" if shop.held:
                    shop.write([shop.held.pop(number % len(shop.held))])
                case "read":
                    shop.read()
                case "rest":
                    shop.rest()
                case "die":
                    shop.read(dies=True)
                    shop.again()
                case "restart":
                    shop.again()
        shop.write(shop.held)
        for _ in range(5):  # what was seen in a look is forgotten at the begin of another
            shop.rest()
        shop.rows.close()
        shop.orders.close()
        assert sorted(shop.kept.made) == sorted(shop.promised[old:])
        assert len(shop.kept.events) <= (BEHIND + 2) * coarse + 20
