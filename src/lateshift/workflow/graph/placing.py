"""How far to the right each vertex of a drawing stands: near what it is connected with, and in every layer apart from its neighbours."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import inf

from lateshift.workflow.graph.layers import Layers

APART = 34.0  # two boxes
ROOM = 16.0  # a box, or a way, from a way
ROUNDS = 30
NEARLY = 12.0
ALONE = 6.0  # how much more than others two want to stand in a line that have nobody else in that direction
STRAIGHT = 8.0  # how much more a way wants to go straight on than a box wants to stand in the middle


def placed(layers: Layers, widths: Sequence[float]) -> list[float]:
    """The middle of each."""
    near: list[list[tuple[int, float, float]]] = [
        [] for _ in range(layers.count)
    ]  # whom, how much, how far to its right
    below, above = Counter(upper for upper, _ in layers.pairs), Counter(lower for _, lower in layers.pairs)
    for upper, lower in layers.pairs:
        weight = ALONE if below[upper] == above[lower] == 1 else _weight(layers, upper, lower)
        near[upper].append((lower, weight, 0.0))
        near[lower].append((upper, weight, 0.0))
    for room, vertex in layers.beside.items():
        near[room].append((vertex, 1.0, widths[vertex] / 2 + ROOM))
    middles = [0.0] * layers.count
    for order in layers.order:
        for vertex, x in zip(order, _spread(layers, order, widths, [0.0] * len(order), [1.0] * len(order)), strict=True):  # fmt: skip
            middles[vertex] = x
    for number in range(ROUNDS):
        for order in layers.order if number % 2 == 0 else reversed(layers.order):
            wanted, weights = [], []
            for vertex in order:
                weight = sum(each for _, each, _ in near[vertex])
                pulled = sum((middles[other] + right) * each for other, each, right in near[vertex])
                wanted.append(pulled / weight if weight else middles[vertex])
                weights.append(weight or 0.1)
            for vertex, x in zip(order, _spread(layers, order, widths, wanted, weights), strict=True):
                middles[vertex] = x
    _straighten(layers, widths, middles)
    return middles


def _straighten(layers: Layers, widths: Sequence[float], middles: list[float]) -> None:
    """Ways through several layers go in one line, where there is room for it; then what is nearly below another stands right below it."""
    beside = {vertex: (order, place) for order in layers.order for place, vertex in enumerate(order)}

    def room_of(vertex: int) -> tuple[float, float]:
        order, place = beside[vertex]
        left, right = order[:place][-1:], order[place + 1 :][:1]
        least = max((middles[each] + _apart(layers, each, vertex, widths) for each in left), default=-inf)
        return least, min(
            (middles[each] - _apart(layers, vertex, each, widths) for each in right), default=inf
        )

    def move(vertices: Sequence[int], wanted: float) -> None:
        rooms = [room_of(each) for each in vertices]
        least, most = max(least for least, _ in rooms), min(most for _, most in rooms)
        if least <= most:
            for each in vertices:
                middles[each] = min(max(wanted, least), most)

    for path, _, _ in layers.paths:
        ways = path[1:-1]
        if len(ways) > 1:
            move(ways, sorted(middles[each] for each in ways)[len(ways) // 2])
    for upper, lower in layers.pairs:
        if 0 < abs(middles[upper] - middles[lower]) < NEARLY:
            move([lower], middles[upper])


def _weight(layers: Layers, upper: int, lower: int) -> float:
    rooms = (upper >= layers.real) + (lower >= layers.real)
    return STRAIGHT if rooms == 2 else 2.0 if rooms else 1.0


def _apart(layers: Layers, one: int, other: int, widths: Sequence[float]) -> float:
    is_room = one >= layers.real or other >= layers.real
    return (widths[one] + widths[other]) / 2 + (ROOM if is_room else APART)


def _spread(
    layers: Layers, order: Sequence[int], widths: Sequence[float], wanted: Sequence[float], weights: Sequence[float]
) -> list[float]:  # fmt: skip
    """As near to where each wants to be as their order and their widths allow: those that would be too close move as one."""
    offsets = [0.0]
    for one, other in pairwise(order):
        offsets.append(offsets[-1] + _apart(layers, one, other, widths))
    groups: list[tuple[float, float, int]] = []  # where, how much it wants that, how many
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        where, much, many = want - offset, weight, 1
        while groups and groups[-1][0] > where:
            before, weighed, counted = groups.pop()
            where = (before * weighed + where * much) / (weighed + much)
            much, many = weighed + much, counted + many
        groups.append((where, much, many))
    found = [where for where, _, many in groups for _ in range(many)]
    return [where + offset for where, offset in zip(found, offsets, strict=False)]
