"""Listings, page by page: what such a query asks, and where the next page begins."""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from lateshift.api.asked import Asked
from lateshift.api.bounds import PAGE, PAGE_BYTES, READ_BYTES, Cursor, PageSize

V = TypeVar("V")
K = TypeVar("K")


class Paging(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: PageSize = PAGE
    cursor: Cursor | None = None


class Weight(Struct, Generic[V], frozen=True):
    """How many bytes an entry has of what callers or strangers made, and how many it may have."""

    of: Callable[[V], int]
    most: int


def paged(
    asked: Asked, kind: type[K], read: Callable[[K | None, int], list[V]], place: Callable[[V], K], weight: Weight[V] | None = None,
) -> tuple[list[V], str | None]:  # fmt: skip
    """The page that a query asks for, and the cursor of the next, if there may be one. `read`: so many after a place. `place`: of one of
    them, which is a `kind`. `weight`: where that of an entry has no bound that 200 of them could have."""
    query: Paging = asked.query
    start = asked.cursors.read(query.cursor, kind)
    if weight is None:
        found = read(start, query.limit)
        more = len(found) == query.limit
    else:
        found, more = within_bytes(read, start, query.limit, place, weight)
    return found, asked.cursors.write(place(found[-1]) if more else None)


def within_bytes(
    read: Callable[[K | None, int], list[V]], start: K | None, limit: int, place: Callable[[V], K], weight: Weight[V]
) -> tuple[list[V], bool]:  # fmt: skip
    """So many, or fewer where they would be over PAGE_BYTES together, but one at the least; and whether there may be more. They are read a
    few at a time, as many as are within READ_BYTES whatever they have."""
    found: list[V] = []
    few, size = max(1, READ_BYTES // weight.most), 0
    while len(found) < limit:
        wanted = min(few, limit - len(found))
        read_now = read(place(found[-1]) if found else start, wanted)
        for entry in read_now:
            size += weight.of(entry)
            if found and size > PAGE_BYTES:
                return found, True
            found.append(entry)
        if len(read_now) < wanted:
            return found, False
    return found, True
