"""A search is bounded in time, not only in how many jobs it looks at: what takes long to look through is left for the next page."""

from uuid import UUID

import pytest

from lateshift.model.job import JobFilter, JobView
from lateshift.model.search import LOOKED_AT
from lateshift.store.searching import SEARCH_TIME, STRIDE, Source, next_stride, search


@pytest.mark.parametrize(
    ("looked", "spent", "next"),
    [
        (STRIDE, 0.0, LOOKED_AT - STRIDE), (STRIDE, 0.001, LOOKED_AT - STRIDE), (STRIDE, SEARCH_TIME / 10, LOOKED_AT - STRIDE),
        (STRIDE, SEARCH_TIME / 4, 3 * STRIDE), (STRIDE, SEARCH_TIME * 0.6, 0), (STRIDE, 100.0, 0), (LOOKED_AT, 0.001, 0),
    ],
)  # fmt: skip
def test_the_rest_is_looked_at_if_there_is_time_for_it(looked: int, spent: float, next: int) -> None:
    assert next_stride(looked, spent) == next


def test_a_search_that_finds_nothing_stops_in_time_and_the_next_page_goes_on() -> None:
    clock, looked = [0.0], [0]

    def floor(above: UUID, lowest: UUID, count: int) -> UUID | None:
        looked[0] += count
        return UUID(int=above.int - count) if above.int > count else None

    def page(above: UUID, lowest: UUID, limit: int) -> list[JobView]:
        clock[0] += (above.int - lowest.int) * 0.0005  # half a millisecond for each
        return []

    many = UUID(int=100_000)
    found = search([Source(floor, page)], JobFilter(before=many), 50, lambda: clock[0])

    assert (found.jobs, found.cut) == ([], True)
    assert clock[0] <= SEARCH_TIME
    assert found.before == UUID(int=many.int - looked[0])
