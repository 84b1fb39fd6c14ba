"""A graph as a picture: one SVG that fetches nothing, runs nothing, and is readable on light and dark screens. All text in it is escaped."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from lateshift.model.workflow.graph import Edge, Node, NodeKind
from lateshift.workflow.graph.layout import Layout, Link, Place, Point, Size, Wire, laid_out
from lateshift.workflow.graph.style import STYLE, class_of
from lateshift.workflow.graph.text import printable, width_of, wrapped

LINE = 18.0  # from one line of text to the next
PADDED = 13.0  # beside the text of a box
ABOVE = 9.0  # and above it
SMALL = 11.5  # letters, of what stands below the name of a step, and of labels
LARGE = 13.5
LEAST = 64.0  # the width of a box
NOSE = 12.0  # how far the sides of a branch and of a loop stick out


def svg(
    name: str, nodes: Sequence[Node], edges: Sequence[Edge], links: Mapping[str, str] | None = None
) -> str:
    """`links`: it stands in a page, which has the style of it; these nodes lead there."""
    texts = [_texts(node) for node in nodes]
    labels = [None if edge.label is None else wrapped(edge.label) for edge in edges]
    numbers = {node.id: number for number, node in enumerate(nodes)}
    ways = [
        Link(numbers[edge.source], numbers[edge.target], None if label is None else _label_size(label), edge.failure)
        for edge, label in zip(edges, labels, strict=True)
    ]  # fmt: skip
    layout = laid_out([_size(node, lines) for node, lines in zip(nodes, texts, strict=True)], ways)
    return "\n".join(_written(name, layout, nodes, texts, labels, links)) + "\n"


def _written(
    name: str, layout: Layout, nodes: Sequence[Node], texts: Sequence[list[str]], labels: Sequence[list[str] | None],
    links: Mapping[str, str] | None,
) -> Iterator[str]:  # fmt: skip
    width, height = f"{layout.width:.0f}", f"{layout.height:.0f}"
    role = "img" if links is None else "group"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lateshift-graph" role="{role}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">'
    )
    yield f"<title>{_escaped(f'The workflow {name}')}</title>"
    if links is None:
        yield f"<style>{STYLE}</style>"
    yield '<defs><marker id="lateshift-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    yield '<path class="head" d="M0 0.5 L7.5 4 L0 7.5 Z"/></marker></defs>'
    yield f'<rect class="paper" width="{width}" height="{height}"/>'
    for wire in layout.wires:
        yield _wire(wire)
    for number, place in layout.labels.items():
        yield _label(place, labels[number] or [])
    for node, lines, place in zip(nodes, texts, layout.places, strict=True):
        drawn = "\n".join(_node(node, lines, place))
        leads = None if links is None else links.get(node.id)
        yield drawn if leads is None else f'<a href="{_escaped(leads)}">\n{drawn}\n</a>'
    yield "</svg>"


# -- boxes -----------------------------------------------------------------------------------------------------------


def _texts(node: Node) -> list[str]:
    """The name of it comes first, in as many lines as it needs."""
    return [line for each in node.lines for line in wrapped(each)]


def _size(node: Node, lines: Sequence[str]) -> Size:
    name = len(wrapped(node.label))
    widths = [width_of(line, LARGE if number < name else SMALL) for number, line in enumerate(lines)]
    nose = NOSE if node.kind in (NodeKind.BRANCH, NodeKind.LOOP, NodeKind.GATHER, NodeKind.JOIN) else 0.0
    width = max([LEAST, *widths]) + 2 * (PADDED + nose)
    return Size(round(width, 1), len(lines) * LINE + 2 * ABOVE)


def _node(node: Node, lines: Sequence[str], place: Place) -> Iterator[str]:
    yield f'<g class="node {class_of(node)}"><title>{_escaped(" · ".join(node.lines))}</title>'
    yield from _shape(node.kind, place)
    name = len(wrapped(node.label))
    first = place.y - (len(lines) - 1) * LINE / 2
    for number, line in enumerate(lines):
        kind = "name" if number < name else "more"
        yield f'<text class="{kind}" x="{place.x:.1f}" y="{first + number * LINE:.1f}">{_escaped(line)}</text>'
    yield "</g>"


def _shape(kind: NodeKind, place: Place) -> Iterator[str]:
    left, top, width, height = place.x - place.width / 2, place.top, place.width, place.height
    right, bottom = left + width, place.bottom
    match kind:
        case NodeKind.BRANCH | NodeKind.LOOP:
            yield _polygon(
                (left, place.y), (left + NOSE, top), (right - NOSE, top), (right, place.y), (right - NOSE, bottom),
                (left + NOSE, bottom),
            )  # fmt: skip
        case NodeKind.GATHER:
            yield _polygon((left + NOSE, top), (right - NOSE, top), (right, bottom), (left, bottom))
        case NodeKind.JOIN:
            yield _polygon((left, top), (right, top), (right - NOSE, bottom), (left + NOSE, bottom))
        case NodeKind.START | NodeKind.END | NodeKind.FAIL:
            yield _rectangle(left, top, width, height, height / 2)
        case NodeKind.SLEEP | NodeKind.WAIT | NodeKind.EMIT:
            yield _rectangle(left, top, width, height, min(16.0, height / 2))
        case _:
            yield _rectangle(left, top, width, height, 7.0)
    if kind is NodeKind.CHILD:
        yield f'<path class="bars" d="M{left + 6:.1f} {top:.1f} V{bottom:.1f} M{right - 6:.1f} {top:.1f} V{bottom:.1f}"/>'


def _polygon(*corners: Point) -> str:
    return f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}"/>'


def _rectangle(left: float, top: float, width: float, height: float, round_by: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_by:.1f}"/>'
    )


# -- lines -----------------------------------------------------------------------------------------------------------


def _wire(wire: Wire) -> str:
    here = wire.start
    drawn = [f"M{here[0]:.1f} {here[1]:.1f}"]
    for one, other, end in wire.curves:
        if one[0] == other[0] == end[0] == here[0]:
            drawn.append(f"V{end[1]:.1f}")
        else:
            drawn.append("C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in (one, other, end)))
        here = end
    arrow = ' marker-end="url(#lateshift-arrow)"' if wire.arrow else ""
    return f'<path class="wire{" failure" if wire.failure else ""}" d="{" ".join(drawn)}"{arrow}/>'


def _label_size(lines: Sequence[str]) -> Size:
    return Size(max(width_of(line, SMALL) for line in lines) + 6, len(lines) * (LINE - 3))


def _label(place: Place, lines: Sequence[str]) -> str:
    first = place.y - (len(lines) - 1) * (LINE - 3) / 2
    return "".join(
        f'<text class="label" x="{place.x:.1f}" y="{first + number * (LINE - 3):.1f}">{_escaped(line)}</text>'
        for number, line in enumerate(lines)
    )


def _escaped(text: str) -> str:
    return escape(printable(text))
