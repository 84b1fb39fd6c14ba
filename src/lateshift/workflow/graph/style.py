"""How nodes are marked, by what they are and by what became of them; and the colours of pictures."""

from lateshift.model.workflow.graph import Node

STATES = {
    "completed": "completed", "running": "running", "waiting": "running", "undoing": "running", "failed": "failed", "undo failed": "failed",
    "held": "held", "late": "held", "undone": "undone", "given up": "undone",
}  # fmt: skip


def class_of(node: Node) -> str:
    """Of a run by what became of it, else by what it is."""
    return node.kind.value if node.state is None else STATES.get(node.state, node.kind.value)


_LIGHT = """
  --paper:#ffffff; --ink:#1d2530; --quiet:#5b6675; --line:#8793a3; --box:#f4f6f9; --edge:#a9b4c2;
  --task-box:#eaf2fd; --task:#3b7dd8; --child-box:#f1edfb; --child:#7b5cc4; --wait-box:#fdf5e3; --wait:#c28a12;
  --emit-box:#e7f6f2; --emit:#2a8f78; --fork-box:#ffffff; --fork:#5b6675; --end-box:#1d2530; --end-ink:#ffffff;
  --good-box:#e8f6ec; --good:#2c8a47; --bad-box:#fdecec; --bad:#c53030; --now-box:#e6f3fd; --now:#1476bd;
  --held-box:#fff1e0; --held:#d1690e; --past-box:#f3efec; --past:#8a6d5b;
"""
_DARK = """
  --paper:#12161c; --ink:#e7ecf2; --quiet:#a3aebb; --line:#76828f; --box:#1d232b; --edge:#4a5562;
  --task-box:#152538; --task:#5c9df0; --child-box:#231c36; --child:#a488ea; --wait-box:#2d2412; --wait:#d9a63a;
  --emit-box:#10291f; --emit:#46b896; --fork-box:#161b22; --fork:#94a0ae; --end-box:#dfe5ec; --end-ink:#12161c;
  --good-box:#12291a; --good:#4bb56c; --bad-box:#341818; --bad:#ef6b6b; --now-box:#102a3d; --now:#48aef2;
  --held-box:#362310; --held:#f0943e; --past-box:#272120; --past:#b3968a;
"""
_KINDS = {
    "task": "task", "child": "child", "sleep": "wait", "wait": "wait", "emit": "emit", "branch": "fork", "loop": "fork", "gather": "fork",
    "join": "fork", "fail": "bad", "completed": "good", "failed": "bad", "running": "now", "held": "held", "undone": "past",
}  # fmt: skip
_G = ".lateshift-graph"
STYLE = "\n".join([
    "", f"{_G} {{{_LIGHT}}}", f"@media (prefers-color-scheme: dark) {{ {_G} {{{_DARK}}} }}",
    f"{_G} text {{ font-family: system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif;",
    "  font-size: 13.5px; fill: var(--ink); text-anchor: middle; dominant-baseline: central; }",
    f"{_G} .more, {_G} .label {{ font-size: 11.5px; fill: var(--quiet); }}",
    f"{_G} .paper {{ fill: var(--paper); }}",
    f"{_G} .wire {{ fill: none; stroke: var(--line); stroke-width: 1.5; }}",
    f"{_G} .failure {{ stroke: var(--bad); stroke-dasharray: 5 4; }}",
    f"{_G} .head {{ fill: var(--line); fill: context-stroke; stroke: none; }}",
    f"{_G} .node rect, {_G} .node polygon {{ fill: var(--box); stroke: var(--edge); stroke-width: 1.5; stroke-linejoin: round; }}",
    f"{_G} .bars {{ fill: none; stroke: var(--child); stroke-width: 1.2; }}",
    f"{_G} .start rect, {_G} .end rect {{ fill: var(--end-box); stroke: var(--end-box); }}",
    f"{_G} .start text, {_G} .end text {{ fill: var(--end-ink); }}",
    f"{_G} .unknown rect {{ stroke-dasharray: 5 4; }}",
    *(
        f"{_G} .{kind} rect, {_G} .{kind} polygon {{ fill: var(--{colour}-box); stroke: var(--{colour}); }}"
        for kind, colour in _KINDS.items()
    ),
    "",
])  # fmt: skip
