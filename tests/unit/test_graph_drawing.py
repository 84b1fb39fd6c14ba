"""Graphs as Mermaid text and as pictures: well-formed whatever stands in them, and nothing on top of anything else."""

import re
import time
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lateshift import Graph
from lateshift.model.workflow.graph import LABEL_MOST, NODES_MOST, Edge, Node, NodeKind
from lateshift.workflow.graph.builder import Builder
from lateshift.workflow.graph.layout import Layout, Link, Place, Size, laid_out
from lateshift.workflow.graph.text import LINES_MOST, WIDEST, wrapped

SVG = "{http://www.w3.org/2000/svg}"
NASTY = [
    'a "quoted" <b>', "</svg><script>alert(1)</script>", "end", "1. first", "# heading", "`code`", "x[0] {y} (z) |p| -->", "#quot; &amp;",
    "line\nbreak\ttab", '"]\n    click n1 href "javascript:alert(1)', "\x00\x1b[31m\u202e\ud800\ufffe", "style n1 fill:#f00;", "]]>", "$$x$$",
    "\\n", "日本語 мир 😀", "", " ",
]  # fmt: skip
LINE = re.compile(
    r'    (n\d+(\(\[|\[\[|\[/|\[\\|\{\{|[\[({>])"[^"<>&`]*(<br/>[^"<>&`]*)*"(\]\)|\]\]|\\\]|/\]|\}\}|[\])}])(:::\w+)?'
    r'|n\d+ (-->|-\.->)(\|"[^"<>&`]*"\|)? n\d+|classDef \w+ [\w:#,. -]+)'
)


def line_of_all(text: str) -> Graph:
    """One node of each kind, and ways of each kind, with this text wherever there is one."""
    build = Builder(text)
    for kind in NodeKind:
        if kind not in (NodeKind.START, NodeKind.GATHER, NodeKind.BRANCH, NodeKind.LOOP):
            build.add(kind, text, calls=text, queue=text, undo=text, note=text)
    build.branch(text, [(text, lambda: build.add(NodeKind.STEP, text, state="failed")), ("no", None)])
    build.parallel(
        [(text, lambda: build.add(NodeKind.STEP, "a")), (None, lambda: build.add(NodeKind.STEP, "b"))]
    )
    build.loop(text, text, lambda: build.add(NodeKind.STEP, text), "done")
    build.finish()
    return build.made()


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph, also of parts that nothing connects, with loops and ways to oneself."""
    count = draw(st.integers(1, 14))
    texts = st.text(max_size=60)
    nodes = [
        Node(
            id=f"n{number}", kind=draw(st.sampled_from(NodeKind)), label=draw(texts), queue=draw(st.none() | texts),
            state=draw(st.none() | st.sampled_from(["completed", "undone", "held"])),
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    ids = st.sampled_from([node.id for node in nodes])
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=30, unique=True))
    edges = [
        Edge(source=source, target=target, label=draw(st.none() | texts), failure=draw(st.booleans()))
        for source, target in pairs
    ]
    return Graph(draw(texts), nodes, edges)


# -- Mermaid -----------------------------------------------------------------------------------------------------------


def test_a_graph_is_written_as_a_flow_chart() -> None:
    build = Builder("order")
    build.add(NodeKind.STEP, "reserve", undo="release")
    build.add(NodeKind.TASK, "charge", queue="payments")
    build.branch(
        "paid",
        [("yes", lambda: build.add(NodeKind.WAIT, "wait for picked", note="at most 2 days")), ("no", None)],
    )
    build.parallel([("each part", lambda: build.add(NodeKind.CHILD, "packing"))])
    build.add(NodeKind.UNKNOWN, "x[0]", note="a function chosen at run time")
    build.finish()
    assert (
        build.made().mermaid()
        == """flowchart TD
    n1(["order"])
    n2["reserve<br/>undo: release"]
    n3["charge<br/>queue payments"]
    n4{"paid"}
    n5("wait for picked<br/>at most 2 days")
    n6[/"together"\\]
    n7[["packing"]]
    n8[\\"all have ended"/]
    n9["x#91;0#93;<br/>a function chosen at run time"]:::unknown
    n10(["end"])
    n1 --> n2
    n2 --> n3
    n3 --> n4
    n4 -->|"yes"| n5
    n4 -->|"no"| n6
    n5 --> n6
    n6 -->|"each part"| n7
    n7 --> n8
    n8 --> n9
    n9 --> n10
    classDef unknown stroke-dasharray:4 3
"""
    )


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_whatever_stands_in_it_is_text(text: str) -> None:
    first, *lines = line_of_all(text).mermaid().splitlines()
    assert first == "flowchart TD"
    assert [line for line in lines if not LINE.fullmatch(line)] == []


@given(graphs())
@settings(deadline=None)
def test_every_line_is_one_that_mermaid_knows(graph: Graph) -> None:
    first, *lines = graph.mermaid().splitlines()
    assert first == "flowchart TD"
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert sum(" --> " in line or "-->|" in line or "-.->" in line for line in lines) == len(graph.edges)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('say "hi"', "say #34;hi#34;"), ("a < b & c", "a #60; b #38; c"), ("1. first", "1#46; first"), ("v1.2", "v1.2"), ("a\n b", "a b"),
        ("#35;", "#35;35#59;"), ("`x`", "#96;x#96;"), ("restyle", "re#115;tyle"), ("$$", "#36;#8288;#36;"), ("\\n", "#92;#8288;n"),
        ("a\x00b", "a#65533;b"), ("reserve_stock", "reserve_stock"), ("2026-12-call", "2026-12-call"), ("- a", "#45; a"),
        ("a --> b", "a #45;#45;#62; b"), ("//x", "#47;#47;x"),
    ],
)  # fmt: skip
def test_what_could_mean_something_is_written_as_a_number(text: str, written: str) -> None:
    build = Builder("x")
    build.add(NodeKind.STEP, text)
    assert f'    n2["{written}"]' in build.made().mermaid().splitlines()


# -- pictures ----------------------------------------------------------------------------------------------------------


def shown(picture: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_a_picture_is_well_formed_whatever_stands_in_it(text: str) -> None:
    picture = line_of_all(text).svg()
    tree = ElementTree.fromstring(picture)
    kinds = {element.tag.removeprefix(SVG) for element in tree.iter()}
    assert kinds <= {"svg", "title", "style", "defs", "marker", "path", "rect", "polygon", "g", "text"}
    names = {name for element in tree.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert "script" not in kinds


@given(graphs())
@settings(deadline=None)
def test_every_graph_can_be_drawn(graph: Graph) -> None:
    tree = ElementTree.fromstring(graph.svg())
    assert len(list(tree.iter(f"{SVG}g"))) == len(graph.nodes)


def test_a_picture_has_both_colours_and_fetches_nothing() -> None:
    picture = line_of_all("x").svg()
    assert "prefers-color-scheme: dark" in picture
    assert "@import" not in picture
    assert re.findall(r"url\(([^)]*)\)", picture) == ["#lateshift-arrow"] * picture.count("url(")
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]


def test_a_picture_shows_names_queues_undos_and_what_stands_at_the_ways() -> None:
    build = Builder("order")
    build.add(NodeKind.TASK, "charge", queue="payments", undo="refund", state="undone")
    build.branch("paid", [("yes", lambda: build.add(NodeKind.SLEEP, "sleep 2 days")), ("no", None)])
    build.finish()
    assert sorted(shown(build.made().svg())) == sorted(
        [
            "order",
            "charge",
            "queue payments",
            "undo: refund",
            "undone",
            "paid",
            "yes",
            "no",
            "sleep 2 days",
            "end",
        ]
    )


def test_what_is_long_is_broken_and_what_is_too_long_is_left_out_but_told_whole() -> None:
    words = " ".join(f"word{number}" for number in range(30))
    assert wrapped("short") == ["short"]
    assert wrapped("") == [""]
    assert len(wrapped(words)) == LINES_MOST
    assert all(len(line) <= WIDEST for line in wrapped(words))
    assert wrapped(words)[-1].endswith("…")
    assert [len(line) for line in wrapped("x" * 200)] == [WIDEST] * LINES_MOST
    build = Builder("x")
    build.add(NodeKind.STEP, words[:LABEL_MOST])
    titles = [title.text or "" for title in ElementTree.fromstring(build.made().svg()).iter(f"{SVG}title")]
    assert words[:LABEL_MOST] in titles


# -- where things stand ------------------------------------------------------------------------------------------------

sizes = st.builds(Size, st.floats(20, 300), st.floats(10, 120))


@st.composite
def links(draw: st.DrawFn) -> tuple[list[Size], list[Link]]:
    boxes = draw(st.lists(sizes, min_size=1, max_size=20))
    number = st.integers(0, len(boxes) - 1)
    one = st.builds(Link, number, number, st.none() | sizes, st.booleans())
    return boxes, draw(st.lists(one, max_size=40))


def overlap(one: Place, other: Place) -> bool:
    apart_x = abs(one.x - other.x) >= (one.width + other.width) / 2 - 1e-6
    apart_y = abs(one.y - other.y) >= (one.height + other.height) / 2 - 1e-6
    return not apart_x and not apart_y


@given(links())
@settings(deadline=None, max_examples=200)
def test_no_box_and_no_label_stands_on_another(given_links: tuple[list[Size], list[Link]]) -> None:
    layout = laid_out(*given_links)
    things = [*layout.places, *layout.labels.values()]
    assert [pair for pair in combinations(things, 2) if overlap(*pair)] == []
    for place in things:
        assert 0 <= place.x - place.width / 2 <= place.x + place.width / 2 <= layout.width
        assert 0 <= place.top <= place.bottom <= layout.height


def points_of(layout: Layout) -> list[list[tuple[float, float]]]:
    """Along each line, as a pen would draw it."""
    found = []
    for wire in layout.wires:
        here, points = wire.start, [wire.start]
        for one, other, end in wire.curves:
            for part in range(1, 21):
                t = part / 20
                points.append((
                    (1 - t) ** 3 * here[0] + 3 * (1 - t) ** 2 * t * one[0] + 3 * (1 - t) * t**2 * other[0] + t**3 * end[0],
                    (1 - t) ** 3 * here[1] + 3 * (1 - t) ** 2 * t * one[1] + 3 * (1 - t) * t**2 * other[1] + t**3 * end[1],
                ))  # fmt: skip
            here = end
        found.append(points)
    return found


@given(links())
@settings(deadline=None, max_examples=200)
def test_no_line_passes_through_a_box_or_a_label(given_links: tuple[list[Size], list[Link]]) -> None:
    layout = laid_out(*given_links)
    for points in points_of(layout):
        for x, y in points:
            assert 0 <= x <= layout.width
            assert 0 <= y <= layout.height
            for place in [*layout.places, *layout.labels.values()]:
                inside = (
                    abs(x - place.x) < place.width / 2 - 0.5 and abs(y - place.y) < place.height / 2 - 0.5
                )
                assert not inside


@given(links())
@settings(deadline=None)
def test_every_way_has_an_arrow_where_it_ends_and_ways_that_met_share_one(
    given_links: tuple[list[Size], list[Link]],
) -> None:
    boxes, all_links = given_links
    layout = laid_out(boxes, all_links)
    reached = {(round(wire.curves[-1][-1][0], 3), round(wire.curves[-1][-1][1], 3)) for wire in layout.wires if wire.arrow}  # fmt: skip
    targets = {link.target for link in all_links}
    assert reached == {
        (round(layout.places[each].x, 3), round(layout.places[each].top, 3)) for each in targets
    }


def test_what_follows_stands_below_and_what_leads_back_does_not_count() -> None:
    box = Size(80, 30)
    layout = laid_out([box] * 4, [Link(0, 1), Link(1, 2), Link(2, 1), Link(1, 3), Link(3, 3)])
    tops = [place.top for place in layout.places]
    assert tops[0] < tops[1] < tops[2] == tops[3]


def test_the_largest_graph_is_drawn_within_a_few_seconds() -> None:
    build = Builder("large")
    for number in range((NODES_MOST - 4) // 2):
        build.branch(f"x > {number}", [("yes", lambda: build.add(NodeKind.STEP, "step")), ("no", None)])
    build.finish()
    graph, began = build.made(), time.monotonic()
    ElementTree.fromstring(graph.svg())
    assert time.monotonic() - began < 20
