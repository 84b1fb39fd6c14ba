"""Which types fit between two filters, and which do not."""

import datetime as dt
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pytest

from lateshift.model.pipeline.fits import fits

T = TypeVar("T")


class Order(msgspec.Struct):
    number: int


class PaidOrder(Order):
    paid: bool = True


class Other(msgspec.Struct):
    number: int


@dataclass
class Point:
    x: int
    y: int


class Box(msgspec.Struct, Generic[T]):
    inside: T


class Row(TypedDict):
    id: int


class Pair(NamedTuple):
    name: str
    number: int


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


UserId = NewType("UserId", int)

FITS: list[tuple[Any, Any]] = [
    (int, int),
    (int, Any),
    (Any, int),
    (int, float),
    (int, Decimal),
    (float, Decimal),
    (int, int | None),
    (int, int | str),
    (int | str, str | int | None),
    (None, None),
    (None, int | None),
    (UserId, int),
    (int, UserId),
    (Annotated[int, "metres"], int),
    (Literal["a", "b"], str),
    (Literal["a"], Literal["a", "b"]),
    (Literal["red"], Colour),
    (Colour, Colour),
    (Colour, str),
    (Level, int),
    (list[int], list[int]),
    (list[int], list[float]),
    (list[int], list),
    (list, list[int]),
    (list[int], Sequence[int]),
    (tuple[int, ...], list[int]),
    (tuple[int, str], tuple[int, str]),
    (tuple[int, int], list[int]),
    (set[str], list[str]),
    (Pair, tuple[str, int]),
    (dict[str, int], dict[str, float]),
    (dict[str, int], typing.Mapping[str, Any]),
    (dict, dict[str, int]),
    (Order, Order),
    (PaidOrder, Order),
    (Order, dict[str, Any]),
    (Point, dict[str, int]),
    (Row, dict[str, int]),
    (Row, Row),
    (Box[int], Box[int]),
    (Box[int], Box[float]),
    (list[Order], list[Order]),
    (list[PaidOrder], list[Order]),
    (dt.datetime, dt.datetime),
    (UUID, UUID),
]
MISFITS: list[tuple[Any, Any]] = [
    (int, str),
    (int, object),
    (object, int),
    (str, int),
    (float, int),
    (bool, int),
    (bool, float),
    (int, None),
    (None, int),
    (int | None, int),
    (int | str, int),
    (str, Literal["a"]),
    (Literal["a", "c"], Literal["a", "b"]),
    (Literal["green"], Colour),
    (str, Colour),
    (Colour, int),
    (Colour, Level),
    (list[int], int),
    (int, list[int]),
    (str, list[str]),
    (list[str], list[int]),
    (list[int], tuple[int, int]),
    (tuple[int, str], tuple[int, int]),
    (tuple[int, str], list[int]),
    (Pair, tuple[str, str]),
    (dict[str, str], dict[str, int]),
    (dict[str, Any], Order),
    (Order, PaidOrder),
    (Order, Other),
    (Order, int),
    (Point, dict[str, str]),
    (Row, dict[str, str]),
    (Row, Order),
    (Box[int], Box[str]),
    (list[Order], list[Other]),
    (dt.datetime, dt.date),
    (dt.datetime, str),
    (UUID, str),
]


@pytest.mark.parametrize(("given", "wanted"), FITS, ids=str)
def test_what_is_read_as_what_is_wanted_fits(given: Any, wanted: Any) -> None:
    assert fits(given, wanted)


@pytest.mark.parametrize(("given", "wanted"), MISFITS, ids=str)
def test_what_may_not_be_read_does_not_fit(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)


VALUES: list[tuple[Any, Any]] = [
    (int, 3), (float, 1.5), (bool, True), (str, "a"), (None, None), (Literal["red"], "red"), (Colour, Colour.RED), (Level, Level.LOW),
    (list[int], [1, 2]), (tuple[int, int], (1, 2)), (set[str], {"a"}), (Pair, Pair("a", 1)), (dict[str, int], {"a": 1}),
    (Order, Order(1)), (PaidOrder, PaidOrder(1)), (Point, Point(1, 2)), (Row, Row(id=1)), (Box[int], Box(1)),
    (dt.datetime, dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)), (UUID, UUID(int=1)), (UserId, UserId(7)),
]  # fmt: skip


def test_whatever_fits_is_read_by_a_worker() -> None:
    """The table above and the one who reads JSON agree: nothing that fits is refused when it runs."""
    wanted = {str(each): each for _, each in FITS + MISFITS}
    wrong = []
    for given, value in VALUES:
        for kind in wanted.values():
            if fits(given, kind):
                try:
                    msgspec.json.decode(msgspec.json.encode(value), type=kind)
                except msgspec.ValidationError as error:
                    wrong.append(f"{given} as {kind}: {error}")
    assert wrong == []
