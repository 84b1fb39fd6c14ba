"""What became of the jobs: reads the ledgers, the final rows and the list of injected faults, and nothing else.

It never asks the product: rows are read by SQL of its own. Every count in `Counts.zeros` must be 0.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

import apsw
import psycopg

from tests.crash import guards
from tests.crash.ledger import BodyLine, CallLine, Ledger

ORPHANED = 0.25  # seconds in which a process may begin a body though its parent was killed

SCHEDULED, READY, RUNNING, BLOCKED, COMPLETED, CANCELLED, DEAD = range(7)


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done to which processes, and when. Times are of the system's clock, as in the ledger.

    `until` is when its effect was over: the kill was sent, the process woken, the server back. A process that was
    paused may wake and go on with what is no longer its own. `everyone` is for a fault that may end any lease.
    """

    kind: str
    at: float
    until: float
    pids: frozenset[int] = frozenset()
    pauses: bool = False
    everyone: bool = False

    def hits(self, line: BodyLine) -> bool:
        return self.everyone or line.pid in self.pids or line.parent in self.pids

    def over(self, line: BodyLine) -> float:
        """When this line's process had felt it: a child outlives its parent by the moment in which it is told."""
        return self.until + (ORPHANED if line.parent in self.pids else 0.0)


@dataclass(frozen=True, slots=True)
class Row:
    """A job as the store holds it at the end. `settled_at` is None in the table of jobs that have not ended."""

    job: str
    state: int
    attempt: int
    losses: int
    fence: int
    due_at: float
    settled_at: float | None = None
    reason: str | None = None
    payload: bytes = b"{}"


@dataclass
class Counts:
    """`zeros` must all be 0, `told` is for people. `words` says which jobs, for the first few of each kind."""

    zeros: dict[str, int]
    told: dict[str, int]
    words: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not any(self.zeros.values())

    def __str__(self) -> str:
        numbers = {**self.told, **self.zeros}
        lines = [f"{name:<28}{number:>10,}" for name, number in numbers.items()]
        return "\n".join([*lines, *self.words])


def check(
    ledger: Ledger,
    rows: Iterable[Row],
    faults: Sequence[Fault],
    *,
    now: float | None = None,
    batches: Sequence[int] = (),
) -> Counts:
    """Count what must not be. `batches` are the numbers of those that were made."""
    at = time.time() if now is None else now
    return judge(ledger.calls(), ledger.bodies(), list(rows), faults, at, batches)


def judge(
    calls: Sequence[CallLine],
    bodies: Sequence[BodyLine],
    rows: Sequence[Row],
    faults: Sequence[Fault],
    now: float,
    batches: Sequence[int] = (),
) -> Counts:
    by_id = {row.job: row for row in rows}
    payloads = {row.job: row.payload for row in rows}

    def woken(line: BodyLine) -> bool:
        return _was_paused(line, faults)

    attempted = {line.job for line in calls}
    accepted = {line.job for line in calls if line.kind == "ok"}
    jobs = _jobs(bodies)
    found: dict[str, list[str]] = {
        "lost": [job for job in accepted if _is_lost(by_id.get(job))],
        "from nowhere": [
            job
            for job in sorted((set(jobs) | set(by_id)) - attempted)
            if not guards.is_callback(payloads.get(job, b"{}"))
        ],
        "in two tables": [job for job, times in Counter(row.job for row in rows).items() if times > 1],
        "two jobs for one key": _doubled_keys(calls, by_id),
        "settled and run again": [],
        "unexplained duplicates": [],
        "fence order violations": [],
        "stuck": [row.job for row in rows if _is_stuck(row, now)],
        "out of their session's turn": guards.out_of_turn(calls, jobs, payloads, woken),
        "keys with too many at once": guards.too_many_at_once(jobs, payloads, woken),
        "batches without one callback": guards.callbacks_not_once(batches, payloads),
    }
    explained = stale = executions = 0
    for job, lines in jobs.items():
        row = by_id.get(job)
        starts = sorted((line for line in lines if line.kind == "start"), key=lambda line: line.fence)
        executions += len(starts)
        again, zombies = _after_the_end(starts, row, faults)
        found["settled and run again"] += [job] * again
        stale += zombies
        unexplained = _unexplained(lines, starts, row, faults)
        found["unexplained duplicates"] += [job] * unexplained
        explained += max(0, len(starts) - 1 - unexplained)
        found["fence order violations"] += [job] * _out_of_order(lines, row, faults)
    states = Counter(row.state for row in rows)
    return Counts(
        zeros={name: len(which) for name, which in found.items()},
        told={
            "enqueues attempted": len(attempted),
            "enqueues unknown": len(
                {line.number for line in calls} - {line.number for line in calls if line.kind == "ok"}
            ),
            "accepted": len(accepted),
            "executions": executions,
            "duplicates explained": explained,
            "starts of woken processes": stale,
            "completed": states[COMPLETED],
            "dead letters": states[DEAD],
            "cancelled": states[CANCELLED],
            "faults": len(faults),
        },
        words=[f"{name}: {', '.join(which[:5])}" for name, which in found.items() if which],
    )


def _jobs(bodies: Iterable[BodyLine]) -> dict[str, list[BodyLine]]:
    jobs: dict[str, list[BodyLine]] = defaultdict(list)
    for line in bodies:
        jobs[line.job].append(line)
    return jobs


def _is_lost(row: Row | None) -> bool:
    """I1. A dead letter counts as kept only with its reason and its payload."""
    return row is None or not row.payload or (row.state == DEAD and not row.reason)


def _is_stuck(row: Row, now: float) -> bool:
    """I12. At the end only a job whose time has not come may wait."""
    return row.settled_at is None and not (row.state == SCHEDULED and row.due_at > now)


def _doubled_keys(calls: Iterable[CallLine], rows: Mapping[str, Row]) -> list[str]:
    """I4."""
    jobs: dict[str, set[str]] = defaultdict(set)
    for line in calls:
        if line.key is not None and (line.kind == "ok" or line.job in rows):
            jobs[line.key].add(line.job)
    return [key for key, which in jobs.items() if len(which) > 1]


def _after_the_end(starts: Iterable[BodyLine], row: Row | None, faults: Sequence[Fault]) -> tuple[int, int]:
    """I7: starts after the settled time, or with a later lease than the one that settled. A process that was paused
    while it held an older lease, or one that made the job a dead letter, may wake and begin: it can change nothing, and
    is counted apart."""
    again = zombies = 0
    if row is not None and row.settled_at is not None:
        for start in starts:
            if start.fence > row.fence:
                again += 1
            elif start.at > row.settled_at:
                stale = start.fence < row.fence or row.state != COMPLETED
                woken = stale and _was_paused(start, faults)
                zombies += woken
                again += not woken
    return again, zombies


def _unexplained(
    lines: Sequence[BodyLine], starts: Sequence[BodyLine], row: Row | None, faults: Sequence[Fault]
) -> int:
    """I8: between one start and the next, the first must have failed or been hit. Without any fault, and once it is
    settled, a job has run as often as it has attempts."""
    failed = {line.fence for line in lines if line.kind == "failed"}
    count = 0
    for first, then in pairwise(starts):
        hit = any(
            fault.hits(first) and fault.at <= then.at and fault.over(first) >= first.at for fault in faults
        )
        woken = first.at > then.at and _was_paused(first, faults)
        count += not hit and not woken and first.fence not in failed
    if not faults and row is not None and row.settled_at is not None:
        count += abs(row.attempt - len(starts))
    return count


def _out_of_order(lines: Sequence[BodyLine], row: Row | None, faults: Sequence[Fault]) -> int:
    """I5 and I6: a lease is begun once; a lower fence never begins or acts after a higher one, but in a process that
    was paused; what completed the job is the lease whose effect was done."""
    fences = [line.fence for line in lines if line.kind == "start"]
    count = len(fences) - len(set(fences))
    highest = 0
    for line in lines:
        if line.kind in ("start", "effect"):
            count += line.fence < highest and not _was_paused(line, faults)
            highest = max(highest, line.fence)
    if row is not None and row.settled_at is not None and row.state == COMPLETED:
        count += not any(line.kind == "effect" and line.fence == row.fence for line in lines)
    if row is not None:
        count += any(fence > row.fence for fence in fences)
    return count


def _was_paused(line: BodyLine, faults: Iterable[Fault]) -> bool:
    """At any time: a line is stamped a moment before it is written, and the pause may have come between."""
    return any(fault.pauses and fault.hits(line) for fault in faults)


# -- the rows, by SQL of the checker's own --------------------------------------------------------------------------

_SQLITE = """SELECT lower(hex(id)), state, attempt, losses, fence, due_at / 1e6, NULL, NULL, payload FROM job UNION ALL
 SELECT lower(hex(id)), state, attempt, losses, fence, due_at / 1e6, settled_at / 1e6, reason, payload FROM settled"""
_POSTGRES = """SELECT replace(id::text, '-', ''), state, attempt, losses, fence, extract(epoch FROM due_at)::float8,
 NULL::float8, NULL::text, payload FROM lateshift.job UNION ALL
 SELECT replace(id::text, '-', ''), state, attempt, losses, fence, extract(epoch FROM due_at)::float8,
 extract(epoch FROM settled_at)::float8, reason, payload FROM lateshift.settled"""


def read_rows(url: str) -> list[Row]:
    """Every job in the store, in one snapshot."""
    found = query(url, _SQLITE, _POSTGRES)
    return [Row(*values) for values in found]


def query(url: str, sqlite: str, postgres: str | None = None) -> list[tuple[Any, ...]]:
    """Rows of a statement that only reads, on a connection of its own.

    By apsw and not the standard library's sqlite3: a second copy of SQLite in one process takes the first one's locks
    away when it closes the file (https://sqlite.org/howtocorrupt.html, 2.2.1).
    """
    if url.startswith("sqlite"):
        return _on_file(url, sqlite, apsw.SQLITE_OPEN_READONLY)
    with psycopg.connect(url, autocommit=True) as session:
        return session.execute((postgres or sqlite).encode()).fetchall()


def change(url: str, sqlite: str, postgres: str) -> None:
    """Doctor the store behind the product's back."""
    if url.startswith("sqlite"):
        _on_file(url, sqlite, apsw.SQLITE_OPEN_READWRITE)
    else:
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(postgres.encode())


_IDLE_IN_TRANSACTION = """SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
 AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '50 ms'"""


def writable(url: str) -> bool:
    """Whether nobody keeps the store's write lock, or locks on rows; call it once everybody had time to let go."""
    if not url.startswith("sqlite"):
        return not query(url, _IDLE_IN_TRANSACTION)
    try:
        _on_file(url, "BEGIN IMMEDIATE; ROLLBACK", apsw.SQLITE_OPEN_READWRITE, patience=300)
    except apsw.BusyError:
        return False
    return True


def _on_file(url: str, statement: str, flags: int, patience: int = 10_000) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(unquote(urlsplit(url).path[1:]), flags=flags)
    try:
        connection.set_busy_timeout(patience)
        return connection.execute(statement).fetchall()
    finally:
        connection.close()
