"""Listings, page by page: what such a query asks, and where the next page begins."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from lateshift.api.bounds import PAGE, Cursor, PageSize
from lateshift.api.route import Asked

V = TypeVar("V")
K = TypeVar("K")


class Paging(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: PageSize = PAGE
    cursor: Cursor | None = None


def paged(
    asked: Asked, kind: type[K], read: Callable[[K | None, int], list[V]], place: Callable[[V], K]
) -> tuple[list[V], str | None]:
    """The page that a query asks for, and the cursor of the next, if there may be one. `read`: so many after a place. `place`: of one of
    them, which is a `kind`."""
    query: Paging = asked.query
    found = read(asked.cursors.read(query.cursor, kind), query.limit)
    more = place(found[-1]) if len(found) == query.limit else None
    return found, asked.cursors.write(more)
