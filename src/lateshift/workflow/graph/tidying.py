"""Leaves out of a graph what says nothing: what is never reached, and ways that part and meet again with nothing in between."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lateshift.model.workflow.graph import Edge, Node, NodeKind

OTHERWISE = "otherwise"  # at the way of whatever has none of its own
PASSED = {NodeKind.BRANCH, NodeKind.LOOP}


def tidied(
    nodes: Sequence[Node], edges: Sequence[Edge], joins: Mapping[str, str]
) -> tuple[list[Node], list[Edge]]:
    """`joins`: where the branches of a gather end. The first node is the start."""
    kinds = {node.id: node.kind for node in nodes}
    ways = _Ways(edges)
    went_on = True
    while went_on:
        passed = [_passed(ways, id, kind, joins) for id, kind in kinds.items() if id not in ways.gone]
        went_on = any(passed)
    reached = ways.reached(nodes[0].id)
    left = [edge for edge in ways.edges if edge.source in reached and edge.target in reached]
    return [node for node in nodes if node.id in reached], _once(left, kinds)


class _Ways:
    """Edges, some of whose nodes are passed over."""

    def __init__(self, edges: Sequence[Edge]) -> None:
        self.edges = list(edges)
        self.gone: set[str] = set()

    def targets(self, id: str) -> set[str]:
        return {edge.target for edge in self.edges if edge.source == id} - {id}

    def pass_over(self, id: str, *, labels: bool = False) -> None:
        """What led to it leads to what came after it. `labels`: what stood at those ways still counts."""
        after = [edge for edge in self.edges if edge.source == id and edge.target != id]
        if not labels:
            after = [Edge(source=id, target=target) for target in dict.fromkeys(way.target for way in after)]
        self.gone.add(id)
        kept = [edge for edge in self.edges if edge.source != id]
        self.edges = [new for edge in kept for new in (_joined(edge, after) if edge.target == id else [edge])]

    def cut(self, source: str, target: str) -> None:
        self.edges = [edge for edge in self.edges if (edge.source, edge.target) != (source, target)]

    def reached(self, start: str) -> set[str]:
        found, waiting = {start}, [start]
        while waiting:
            here = waiting.pop()
            new = {edge.target for edge in self.edges if edge.source == here} - found
            found |= new
            waiting += new
        return found


def _joined(edge: Edge, after: Sequence[Edge]) -> list[Edge]:
    return [
        replace(edge, target=way.target, label=way.label or edge.label, failure=way.failure or edge.failure) for way in after
    ]  # fmt: skip


def _passed(ways: _Ways, id: str, kind: NodeKind, joins: Mapping[str, str]) -> bool:
    after = ways.targets(id)
    if kind in PASSED and len(after) < 2:
        ways.pass_over(id)
        return True
    join = joins.get(id)
    if join is None:
        return False
    if join in after and len(after) > 1:  # a branch in which nothing happens
        ways.cut(id, join)
        return True
    alone = len(after) == 1 and not any(edge.label for edge in ways.edges if edge.source == id)
    if alone or after == {join}:
        ways.pass_over(id)
        ways.pass_over(join, labels=True)
    return alone or after == {join}


def _once(edges: Sequence[Edge], kinds: Mapping[str, NodeKind]) -> list[Edge]:
    """One edge from one node to another: of several answers that lead to the same, all are said; of a failure that changes nothing, none."""
    found: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        pair = (edge.source, edge.target)
        there = found.get(pair)
        if there is None or (there.failure and not edge.failure):
            found[pair] = edge
        elif there.failure == edge.failure and kinds[edge.source] in PASSED | {NodeKind.GATHER}:
            found[pair] = replace(there, label=_or(there.label, edge.label))
    return list(found.values())


def _or(one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return one or other
    return OTHERWISE if OTHERWISE in (one, other) else f"{one}, {other}"
