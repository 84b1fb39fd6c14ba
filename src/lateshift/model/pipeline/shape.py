"""The shape of a chain, as each item keeps it: names and queues, without the code. An item goes on by the shape it began with."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.model.pipeline.chain import Chain, FanIn, FanOut, Filter, Part

SHAPE = "shape"  # the name of the step in which an item keeps its own
FAN_OUT, RESULT = (
    "fan_out",
    "result",
)  # of steps that hold an item which cannot go on there, though no filter of it has failed


class Place(Struct, frozen=True, omit_defaults=True):
    """One part: a filter, which may be a workflow (`child`); or, with `inner`, a fan_out over those, `at_once` so many of its elements; or,
    if it `reduces`, what a fan_in calls."""

    task: str = ""
    queue: str = ""
    inner: "tuple[Place, ...]" = ()
    reduces: bool = False
    child: bool = False
    at_once: int | None = None

    def __str__(self) -> str:
        if self.inner:
            return f"fan_out({' | '.join(map(str, self.inner))})"
        return f"fan_in({self.task})" if self.reduces else self.task


_places = msgspec.json.Decoder(tuple[Place, ...])


def shape_of(chain: Chain[Any, Any]) -> tuple[Place, ...]:
    return tuple(_place(part) for part in chain.parts)


def _place(part: Part) -> Place:
    match part:
        case FanOut():
            return Place(inner=shape_of(part.inner), at_once=part.at_once)
        case FanIn():
            return _of_filter(part.filter, reduces=True)
        case Filter():
            return _of_filter(part)


def _of_filter(filter: Filter, *, reduces: bool = False) -> Place:
    return Place(filter.name, filter.queue, reduces=reduces, child=filter.task.is_workflow)


def written(shape: Sequence[Place]) -> bytes:
    return msgspec.json.encode(shape)


def read(shape: bytes) -> tuple[Place, ...]:
    return _places.decode(shape)


def filters(shape: Sequence[Place]) -> Iterator[Place]:
    """Every filter, in order, those inside a fan_out too."""
    for place in shape:
        if place.inner:
            yield from filters(place.inner)
        else:
            yield place
