"""Reads the text of metrics as the format's own words describe it, by no code of Lateshift's."""

import re

SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')
UNESCAPED = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}

Labels = frozenset[tuple[str, str]]


def read(text: str) -> dict[tuple[str, Labels], float]:
    """Every sample. Fails on a line that is none, on a metric told of twice, and on a series that has two values."""
    found: dict[tuple[str, Labels], float] = {}
    kinds: dict[str, str] = {}
    assert text.endswith("\n")
    lines = text.split("\n")[:-1]
    assert "# EOF" not in lines[:-1]
    for line in lines:
        if line == "# EOF" or line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, f"{name} has two types"
            kinds[name] = kind
            continue
        matched = SERIES.fullmatch(line)
        assert matched, f"no sample: {line!r}"
        name, labels, value = matched.groups()
        known = [
            it
            for it in (name, name.removesuffix("_total"), re.sub("_(bucket|sum|count)$", "", name))
            if it in kinds
        ]
        assert known, f"{name} has no type"
        key = (name, _labels(labels or ""))
        assert key not in found, f"{key} has two values"
        found[key] = float(value)
    return found


def of(found: dict[tuple[str, Labels], float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def _labels(text: str) -> Labels:
    labels: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        matched = LABEL.match(text, at)
        assert matched, f"no label at {text[at:]!r}"
        labels.append((matched[1], re.sub(r'\\[\\n"]', lambda it: UNESCAPED[it[0]], matched[2])))
        at = matched.end()
    assert len(labels) == len(dict(labels))
    return frozenset(labels)
