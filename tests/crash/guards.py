"""What the checker asks of jobs with guards: the order of sessions, how many ran at once, callbacks of batches. It reads
the ledger and the payloads of the rows, nothing else of the product's."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.crash.ledger import BodyLine, CallLine

CALLBACKS = (
    1_000_000_000  # from this number on, a job is the callback of a batch: this plus the batch's own number
)
AT_ONCE = 2  # jobs of one key, as the program limits them

Woken = Callable[[BodyLine], bool]


def out_of_turn(
    calls: Sequence[CallLine],
    bodies: Mapping[str, Sequence[BodyLine]],
    payloads: Mapping[str, bytes],
    woken: Woken,
) -> list[str]:
    """Jobs of a session that began before an earlier one had begun for the last time, or had done its effect. Starts of
    processes that were paused are left out: they can change nothing any more."""
    sessions: dict[str, list[str]] = defaultdict(list)
    unknown = {line.job for line in calls if line.kind == "unknown"}
    for job in dict.fromkeys(line.job for line in calls if line.kind == "attempted"):
        session = _said(payloads.get(job)).get("session")
        if session is not None and job not in unknown:
            sessions[session].append(job)
    wrong: list[str] = []
    for jobs in sessions.values():
        latest = 0.0
        for job in jobs:
            lines = [line for line in bodies.get(job, ()) if not woken(line)]
            begun = [line.at for line in lines if line.kind == "start"]
            if begun and min(begun) < latest:
                wrong.append(job)
            latest = max([latest, *(line.at for line in lines)])
    return wrong


def too_many_at_once(
    bodies: Mapping[str, Sequence[BodyLine]], payloads: Mapping[str, bytes], woken: Woken
) -> list[str]:
    """Keys of which more ran at some instant than they may. An attempt runs from its start to its effect."""
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for job, lines in bodies.items():
        key = _said(payloads.get(job)).get("key")
        if key is None:
            continue
        ends = {line.fence: line.at for line in lines if line.kind in ("effect", "failed")}
        for line in lines:
            if line.kind == "start" and line.fence in ends and not woken(line):
                changes[key] += [(line.at, 1), (ends[line.fence], -1)]
    return [key for key, steps in changes.items() if _highest(steps) > AT_ONCE]


def callbacks_not_once(batches: Iterable[int], payloads: Mapping[str, bytes]) -> list[str]:
    """Batches that were made, and have no callback or more than one."""
    found = [_said(payload).get("number", 0) - CALLBACKS for payload in payloads.values()]
    return [str(batch) for batch in batches if found.count(batch) != 1]


def is_callback(payload: bytes) -> bool:
    return bool(_said(payload).get("number", 0) >= CALLBACKS)


def _highest(steps: list[tuple[float, int]]) -> int:
    running = most = 0
    for _, change in sorted(steps):  # of one instant, ends first
        running += change
        most = max(most, running)
    return most


def _said(payload: bytes | None) -> dict[str, Any]:
    said = json.loads(payload or b"{}")
    return said if isinstance(said, dict) else {}
