"""A graph as Mermaid text. Whatever comes from users stands in quotes, and what could mean something there is written as a number."""

import re
from collections.abc import Sequence

from lateshift.model.workflow.graph import Edge, Node, NodeKind
from lateshift.workflow.graph.style import class_of
from lateshift.workflow.graph.text import printable

SHAPES = {
    NodeKind.START: ("([", "])"), NodeKind.END: ("([", "])"), NodeKind.FAIL: ("([", "])"), NodeKind.STEP: ("[", "]"),
    NodeKind.TASK: ("[", "]"), NodeKind.CHILD: ("[[", "]]"), NodeKind.SLEEP: ("(", ")"), NodeKind.WAIT: ("(", ")"),
    NodeKind.EMIT: (">", "]"), NodeKind.GATHER: ("[/", "\\]"), NodeKind.JOIN: ("[\\", "/]"), NodeKind.BRANCH: ("{", "}"),
    NodeKind.LOOP: ("{{", "}}"), NodeKind.UNKNOWN: ("[", "]"),
}  # fmt: skip
CLASSES = {
    "fail": "stroke:#c62828", "unknown": "stroke-dasharray:4 3", "completed": "stroke:#2e7d32,stroke-width:2px",
    "failed": "stroke:#c62828,stroke-width:3px", "running": "stroke:#0277bd,stroke-width:3px", "held": "stroke:#ef6c00,stroke-width:3px",
    "undone": "stroke:#6d4c41,stroke-width:2px,stroke-dasharray:4 3",
}  # fmt: skip
_SAFE = re.compile(r"[\w .,:()=?…]|(?<=\w)[-/](?=\w)")  # what Mermaid takes as it is, between quotes
# What it would take for more than text, though each character is escaped: the number of a list, its own commands, formulas, breaks.
_LIST = re.compile(r"^(\d+)\.")
_COMMAND = re.compile(r"[sc](?=tyle|lassDef)")
_PARTED = re.compile(r"\$(?=\$)|\\")
JOINER = "\N{WORD JOINER}"  # nobody sees it


def mermaid(nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    lines = ["flowchart TD"]
    for node in nodes:
        opening, closing = SHAPES[node.kind]
        marked = class_of(node)
        mark = f":::{marked}" if marked in CLASSES else ""
        label = "<br/>".join(_escaped(line) for line in node.lines)
        lines.append(f'    {node.id}{opening}"{label}"{closing}{mark}')
    for edge in edges:
        arrow = "-.->" if edge.failure else "-->"
        label = "" if edge.label is None else f'|"{_escaped(edge.label)}"|'
        lines.append(f"    {edge.source} {arrow}{label} {edge.target}")
    used = {class_of(node) for node in nodes}
    lines += [f"    classDef {name} {style}" for name, style in CLASSES.items() if name in used]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """As one line."""
    line = _PARTED.sub(lambda found: found.group() + JOINER, printable(text))
    escaped = "".join(
        each if _SAFE.match(line, place) else f"#{ord(each)};" for place, each in enumerate(line)
    )
    escaped = _COMMAND.sub(lambda found: f"#{ord(found.group())};", escaped)
    return _LIST.sub(r"\1#46;", escaped)
