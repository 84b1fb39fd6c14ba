"""Pieces of ids."""

from collections.abc import Sequence
from itertools import takewhile
from uuid import UUID


def first_digits(ids: Sequence[UUID]) -> str:
    """Those that all of them begin with: more or fewer, for they tell the time."""
    places = zip(*(id.hex for id in ids), strict=True)
    return "".join(place[0] for place in takewhile(lambda place: len({*place}) == 1, places))
