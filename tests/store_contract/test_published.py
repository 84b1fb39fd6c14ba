"""What channels were told, read page by page: no page is larger than was asked for, and none of it is missed."""

import re
from collections.abc import Sequence
from datetime import timedelta

import pytest

from lateshift.store import postgres, sqlite
from lateshift.store.contract import Store
from lateshift.store.postgres import PostgresStore
from lateshift.store.replying import EVENTS_KEPT
from lateshift.store.sqlite import SqliteStore
from tests.store_contract.explaining import analyse, plans

SIZES = [10, 8_200, 300_000, 8_200, 8_200, 0, 20, 65_536, 30, 65_537, 40]


def tell(store: Store, sizes: Sequence[int]) -> None:
    """So many bytes each, as a courier would."""
    if isinstance(store, SqliteStore):
        until = store.clock.microseconds() + EVENTS_KEPT // timedelta(microseconds=1)
        with store._database.write() as connection:
            connection.executemany(
                sqlite.replies.PUBLISH, [("orders", "default", b"x" * size, until) for size in sizes]
            )
        return
    assert isinstance(store, PostgresStore)
    told = [b"x" * size for size in sizes]
    names = ["orders"] * len(told), ["default"] * len(told)
    with store._database.connect() as server:
        server.execute(postgres.replies.PUBLISH, (EVENTS_KEPT + store.clock.offset, *names, told))


def sizes_from(store: Store, after: int, limit: int, most: int | None) -> list[list[int]]:
    """Of all pages."""
    pages = []
    while page := store.replies.published(after, limit, most=most):
        assert [each.number for each in page] == list(range(after + 1, after + 1 + len(page)))
        after = page[-1].number
        pages.append([len(each.told) for each in page])
    return pages


def test_a_page_tells_no_more_than_so_many_bytes_but_one_message_in_any_case(store: Store) -> None:
    tell(store, SIZES)
    assert sizes_from(store, 0, 100, 65_536) == [
        [10, 8_200], [300_000], [8_200, 8_200, 0, 20], [65_536], [30], [65_537], [40],
    ]  # fmt: skip
    assert sizes_from(store, 0, 100, 0) == [[size] for size in SIZES]


def test_a_page_has_no_more_messages_than_were_asked_for_however_small_they_are(store: Store) -> None:
    tell(store, SIZES)
    assert [len(page) for page in sizes_from(store, 0, 3, 10**9)] == [3, 3, 3, 2]
    assert [len(page) for page in sizes_from(store, 0, 3, None)] == [3, 3, 3, 2]
    assert sizes_from(store, 0, 100, 10**9) == sizes_from(store, 0, 100, None) == [SIZES]
    assert sizes_from(store, len(SIZES), 100, 65_536) == []


@pytest.mark.parametrize("analysed", [False, True])
def test_a_page_is_read_by_the_numbers_of_its_messages(store: Store, analysed: bool) -> None:
    tell(store, [400] * 5_000)
    if analysed:
        analyse(store)
    if isinstance(store, PostgresStore):
        for sql, asked in (
            (postgres.replies.PUBLISHED, (4_000, timedelta(0), 100)),
            (postgres.replies.PUBLISHED_WITHIN, (4_000, timedelta(0), 100, 65_536)),
        ):
            for found in plans(store, sql, asked):
                assert "event_pkey" in found, found
                assert not re.search("Seq Scan", found), found
        return
    for sql in (sqlite.replies.PUBLISHED, sqlite.replies.PUBLISHED_WITHIN):
        [found] = plans(store, sql)
        assert "INTEGER PRIMARY KEY (rowid>?)" in found, found
        assert not re.search(r"SCAN event\b", found), found
