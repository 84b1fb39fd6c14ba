"""Names by the hundred: SQLite takes a list as so many question marks, and few statements for many rows is faster."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def blocks(names: Sequence[T], size: int) -> Iterator[tuple[T, ...]]:
    """As many as a statement takes; the last one is filled up with a name that is there already."""
    for start in range(0, len(names), size):
        block = tuple(names[start : start + size])
        yield block + block[-1:] * (size - len(block))
