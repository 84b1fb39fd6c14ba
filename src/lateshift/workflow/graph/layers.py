"""Which layer each vertex of a drawing is in, which ways lead through which layers, and the order in each, so that few ways cross."""

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct

SWEEPS = 12  # in which the order gets better, or does not
APART_MOST = 3  # long ways to one target that are drawn apart; more of them join

Arc: TypeAlias = tuple[int, int, bool]  # source, target, whether it is of a failure
Path: TypeAlias = tuple[
    list[int], bool, bool
]  # vertices from source to target, whether it leads back, whether it is of a failure


class Layers(Struct):
    """`real`: how many vertices are boxes and labels; those after them keep room for a way. `order`: of each layer, from left to
    right. `pairs`: vertices of neighbouring layers with a line between them, the upper first. `beside`: a room where a way turns, and the
    vertex of its layer that it comes from or leads to."""

    real: int
    layer: list[int]
    order: list[list[int]]
    paths: list[Path]
    pairs: list[tuple[int, int]]
    beside: dict[int, int]

    @property
    def count(self) -> int:
        return len(self.layer)


def layered(count: int, arcs: Sequence[Arc]) -> Layers:
    visited, back = _walked(count, arcs)
    layer = _depths(count, [arc for number, arc in enumerate(arcs) if number not in back], visited)
    found = Layers(count, layer, [], [], [], {})
    rooms: dict[tuple[int, ...], int] = {}
    long = Counter(target for source, target, _ in arcs if layer[target] > layer[source] + 1)
    for number, (source, target, failure) in enumerate(arcs):
        is_back = number in back
        between = (
            range(layer[source], layer[target] - 1, -1)
            if is_back
            else range(layer[source] + 1, layer[target])
        )
        joins = is_back or long[target] > APART_MOST
        key = (target, is_back, failure, -1 if joins else number)
        path = [source, *(_room(found, rooms, (*key, each)) for each in between), target]
        found.paths.append((path, is_back, failure))
        if is_back:
            found.beside.setdefault(path[1], source)
            found.beside[path[-2]] = target
    found.pairs = _pairs(found)
    found.order = _ordered(found, visited)
    return found


def _room(found: Layers, rooms: dict[tuple[int, ...], int], key: tuple[int, ...]) -> int:
    """Ways that join share their rooms. A key ends with the layer."""
    if key not in rooms:
        rooms[key] = len(found.layer)
        found.layer.append(key[-1])
    return rooms[key]


def _walked(count: int, arcs: Sequence[Arc]) -> tuple[list[int], set[int]]:
    """The vertices in the order of a walk that goes down first, and the numbers of arcs that lead back to where the walk came from."""
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for number, (source, target, _) in enumerate(arcs):
        leaving[source].append((number, target))
    order: list[int] = []
    back: set[int] = set()
    seen, on_way = [False] * count, [False] * count
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = on_way[root] = True
        order.append(root)
        stack = [(root, iter(leaving[root]))]
        while stack:
            here, ways = stack[-1]
            for number, target in ways:
                if on_way[target]:
                    back.add(number)
                elif not seen[target]:
                    seen[target] = on_way[target] = True
                    order.append(target)
                    stack.append((target, iter(leaving[target])))
                    break
            else:
                on_way[here] = False
                stack.pop()
    return order, back


def _depths(count: int, arcs: Iterable[Arc], visited: Sequence[int]) -> list[int]:
    """Each below all that lead to it."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    open_ways = [0] * count
    for source, target, _ in arcs:
        leaving[source].append(target)
        open_ways[target] += 1
    layer = [0] * count
    ready = [vertex for vertex in visited if not open_ways[vertex]]
    while ready:
        here = ready.pop()
        for target in leaving[here]:
            layer[target] = max(layer[target], layer[here] + 1)
            open_ways[target] -= 1
            if not open_ways[target]:
                ready.append(target)
    return layer


def _pairs(found: Layers) -> list[tuple[int, int]]:
    pairs: dict[tuple[int, int], None] = {}
    for path, is_back, _ in found.paths:
        vertices = list(reversed(path[1:-1])) if is_back else path
        pairs |= dict.fromkeys(pairwise(vertices))
    return list(pairs)


def _ordered(found: Layers, visited: Sequence[int]) -> list[list[int]]:
    above: list[list[int]] = [[] for _ in range(found.count)]
    below: list[list[int]] = [[] for _ in range(found.count)]
    for upper, lower in found.pairs:
        above[lower].append(upper)
        below[upper].append(lower)
    order: list[list[int]] = [[] for _ in range(max(found.layer, default=-1) + 1)]
    for vertex in [*visited, *range(found.real, found.count)]:
        order[found.layer[vertex]].append(vertex)
    best, fewest = order, _crossings(order, below)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        order = _swept(order, above if down else below, found.beside, down=down)
        crossings = _crossings(order, below)
        if crossings < fewest:
            best, fewest = order, crossings
    return best


def _swept(
    order: Sequence[Sequence[int]], others: Sequence[Sequence[int]], beside: dict[int, int], *, down: bool
) -> list[list[int]]:
    """Each layer in the order of the middles of what its vertices are connected with in the layer before it."""
    found = [list(layer) for layer in order]
    shares: dict[int, float] = {}  # how far to the right each stands, from 0 to 1
    for layer in found if down else reversed(found):
        wanted = {vertex: (place + 0.5) / len(layer) for place, vertex in enumerate(layer)}
        for vertex in layer:
            near = [shares[each] for each in others[vertex]]
            wanted[vertex] = sum(near) / len(near) if near else wanted[vertex]
        for vertex in layer:
            if vertex in beside and not others[vertex]:
                wanted[vertex] = wanted[beside[vertex]] + 1e-6
        layer.sort(key=wanted.__getitem__)
        shares |= {vertex: (place + 0.5) / len(layer) for place, vertex in enumerate(layer)}
    return found


def _crossings(order: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> int:
    """How many pairs of lines cross."""
    crossings = 0
    for upper, lower in pairwise(order):
        place = {vertex: number for number, vertex in enumerate(lower)}
        seen: list[int] = []
        for vertex in upper:
            targets = sorted(place[each] for each in below[vertex])
            crossings += sum(len(seen) - bisect_right(seen, target) for target in targets)
            for target in targets:
                insort(seen, target)
    return crossings
