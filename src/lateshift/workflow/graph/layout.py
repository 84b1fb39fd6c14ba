"""Where the boxes of a drawing stand, and how lines lead from one to another: in layers from top to bottom. Boxes never overlap, and lines
pass between them. Knows sizes only; what is drawn is told elsewhere."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct

from lateshift.workflow.graph.layers import Layers, layered
from lateshift.workflow.graph.placing import placed

GAP = 46.0  # between two layers
LABEL_GAP = 20.0  # where one of them holds labels alone
TURN = 26.0  # how far a line swings out that leads back
MARGIN = 24.0

Point: TypeAlias = tuple[float, float]
Curve: TypeAlias = tuple[Point, Point, Point]  # two points that pull, and where it ends


class Size(Struct, frozen=True):
    width: float
    height: float


class Link(Struct, frozen=True):
    """From one box to another, by their numbers. `label`: room for what stands at it."""

    source: int
    target: int
    label: Size | None = None
    failure: bool = False


class Place(Struct, frozen=True):
    """Its middle, and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


class Wire(Struct, frozen=True):
    """A line. One that joins another has no arrow of its own."""

    start: Point
    curves: list[Curve]
    arrow: bool
    failure: bool


class Layout(Struct, frozen=True):
    """`places` of the boxes; `labels` of the links that have one, by their numbers."""

    width: float
    height: float
    places: list[Place]
    labels: dict[int, Place]
    wires: list[Wire]


def laid_out(boxes: Sequence[Size], links: Sequence[Link]) -> Layout:
    sizes, arcs, labels = [*boxes], [], {}
    for number, link in enumerate(links):
        if link.label is None:
            arcs.append((link.source, link.target, link.failure))
            continue
        labels[number] = len(sizes)
        arcs += [(link.source, len(sizes), link.failure), (len(sizes), link.target, link.failure)]
        sizes.append(link.label)
    layers = layered(len(sizes), arcs)
    sizes += [Size(0, 0)] * (layers.count - len(sizes))
    middles = placed(layers, [size.width for size in sizes])
    left = min((x - size.width / 2 for x, size in zip(middles, sizes, strict=True)), default=0.0)
    bands = _Bands(layers, sizes, set(labels.values()))
    places = [
        Place(
            x - left + MARGIN, bands.middle(layers.layer[vertex]), sizes[vertex].width, sizes[vertex].height
        )
        for vertex, x in enumerate(middles)
    ]
    width = max((place.x + place.width / 2 for place in places), default=0.0) + MARGIN
    return Layout(
        width, bands.height, places[: len(boxes)], {number: places[vertex] for number, vertex in labels.items()},
        list(_Wiring(layers, places, bands, set(labels.values())).wires()),
    )  # fmt: skip


class _Bands:
    """From where to where each layer goes."""

    def __init__(self, layers: Layers, sizes: Sequence[Size], labels: set[int]) -> None:
        self.tops: list[float] = []
        self.bottoms: list[float] = []
        turns_below = {layers.layer[path[0]] for path, is_back, _ in layers.paths if is_back}
        turns_above = {layers.layer[path[-1]] for path, is_back, _ in layers.paths if is_back}
        y = MARGIN + (TURN if 0 in turns_above else 0)
        was_quiet = True
        for number, order in enumerate(layers.order):
            quiet = all(vertex in labels or not sizes[vertex].height for vertex in order)
            if number:
                y += LABEL_GAP if quiet or was_quiet else GAP
                y += TURN / 2 * ((number - 1 in turns_below) + (number in turns_above))
            was_quiet = quiet
            self.tops.append(y)
            y += max((sizes[vertex].height for vertex in order), default=0.0)
            self.bottoms.append(y)
        self.height = y + MARGIN + (TURN if len(layers.order) - 1 in turns_below else 0)

    def middle(self, layer: int) -> float:
        return (self.tops[layer] + self.bottoms[layer]) / 2


class _Wiring:
    """Draws each piece of a way once: where ways have met, they are one line."""

    def __init__(self, layers: Layers, places: Sequence[Place], bands: _Bands, labels: set[int]) -> None:
        self._layers = layers
        self._places = places
        self._bands = bands
        self._labels = labels
        self._drawn: set[tuple[int, int]] = set()

    def wires(self) -> list[Wire]:
        return [
            wire
            for path, is_back, failure in self._layers.paths
            for wire in self._of(path, is_back=is_back, failure=failure)
        ]

    def _of(self, path: Sequence[int], *, is_back: bool, failure: bool) -> list[Wire]:
        start = self._places[path[0]]
        curves = [_line((start.x, start.bottom), (start.x, self._bottom(path[0])))]
        lane = path[1:-1]
        for one, other in pairwise(path):
            if (one, other) in self._drawn:
                return [_wire((start.x, start.bottom), curves, arrow=False, failure=failure)]
            self._drawn.add((one, other))
            if is_back:
                curves += self._up(one, other, is_first=one not in lane, is_last=other not in lane)
            else:
                curves += self._down(one, other)
        end = self._places[path[-1]]
        curves.append(_line(curves[-1][-1], (end.x, end.top)))
        is_end = path[-1] not in self._labels
        return [_wire((start.x, start.bottom), curves, arrow=is_end, failure=failure)]

    def _down(self, one: int, other: int) -> list[Curve]:
        here, there = self._places[one], self._places[other]
        begins, ends = self._bottom(one), self._top(other)
        half = (begins + ends) / 2
        found: list[Curve] = []
        if one >= self._layers.real:  # a place that is kept free in its layer
            found.append(_line((here.x, self._top(one)), (here.x, begins)))
        return [*found, ((here.x, half), (there.x, half), (there.x, ends))]

    def _up(self, one: int, other: int, *, is_first: bool, is_last: bool) -> list[Curve]:
        """Out below the source, beside the layers, and in from above."""
        here, there = self._places[one], self._places[other]
        if is_first:
            bottom = self._bottom(one)
            turn = bottom + TURN
            return [((here.x, turn), (there.x, turn), (there.x, bottom))]
        top = self._top(one)
        through = _line((here.x, self._bottom(one)), (here.x, top))
        if is_last:
            return [through, ((here.x, top - TURN), (there.x, top - TURN), (there.x, top))]
        ends = self._bottom(other)
        half = (top + ends) / 2
        return [through, ((here.x, half), (there.x, half), (there.x, ends))]

    def _top(self, vertex: int) -> float:
        return self._bands.tops[self._layers.layer[vertex]]

    def _bottom(self, vertex: int) -> float:
        return self._bands.bottoms[self._layers.layer[vertex]]


def _wire(start: Point, curves: Sequence[Curve], *, arrow: bool, failure: bool) -> Wire:
    """Without curves that lead nowhere: an arrow would not know its direction."""
    here, found = start, []
    for curve in curves:
        if curve[-1] != here:
            found.append(curve)
        here = curve[-1]
    return Wire(start, found, arrow, failure)


def _line(start: Point, end: Point) -> Curve:
    return (start, end, end)
