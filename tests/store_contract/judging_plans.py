"""What is wrong with a plan, and statements as they are explained."""

import re
from collections.abc import Iterator
from typing import Any

from tests.store_contract.full_tables import LARGE
from tests.store_contract.plans_on_sqlite import SORTED

UNTIL_NOW = {
    "PROMOTE",
    "PURGE_SETTLED",
    "PURGE_KEYS",
    "PURGE_IDENTITIES",
    "KEEP_IDENTITIES",
}  # must not read on past what is due


def anything(sql: str) -> tuple[int, ...]:
    """A value for whatever a statement asks for: plans do not look at it."""
    marks = re.findall(r"\?(\d*)", sql)
    return (1,) * (max(int(mark) for mark in marks) if any(marks) else len(marks))


def with_numbers(sql: str) -> tuple[str, int]:
    """$1, $2 … for each %s, and the same number for the same %(name)s."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found.group(1) or f"#{len(names)}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return re.sub(r"%(?:\((\w+)\))?[sb]", number, sql), len(names)


def faults(name: str, plan: dict[str, Any], indexes: set[str]) -> list[str]:
    nodes = list(walk(plan))
    whole = [node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE]
    bounded = {id(node) for limit in nodes if limit["Node Type"] == "Limit" for node in walk(limit)}
    whole += [  # an index read from end to end is no better, unless it holds few rows or stops early
        node
        for node in nodes
        if node.get("Relation Name") in LARGE
        and node.get("Index Name") not in (None, "job_running", "job_stopping", "settled_dead")
        and "Index Cond" not in node
        and (id(node) not in bounded or name.partition(",")[0] in UNTIL_NOW)
    ]
    used = {node["Index Name"] for node in nodes if "Index Name" in node}
    sorts = [
        node
        for limit in nodes
        if limit["Node Type"] == "Limit"
        for node in walk(limit)
        if node["Node Type"] in ("Sort", "Incremental Sort")
        and any(below.get("Relation Name") in LARGE for below in walk(node))
    ]
    if whole or not indexes <= used or (sorts and name.partition(",")[0] in SORTED):
        shape = [
            " ".join(str(node[key]) for key in ("Node Type", "Relation Name", "Index Name") if key in node)
            for node in nodes
        ]
        return [f"{name} wants {sorted(indexes)}, has:\n  " + "\n  ".join(shape)]
    return []


def walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from walk(below)
