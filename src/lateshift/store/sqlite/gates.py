"""Gates in SQLite: what stands before a task, where jobs are leased and settled, and where the parked go on."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import structs

from lateshift.model.breaker import Breaker, Circuit, after
from lateshift.model.gate import Before, Gate, Gates
from lateshift.model.guard import Candidate, Turns
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import Lease, Line
from lateshift.model.member import Serves
from lateshift.model.outcome import Settlement
from lateshift.store import gating
from lateshift.store.breaker_contract import PARKED_AT_ONCE
from lateshift.store.lines import lines_there
from lateshift.store.sqlite import pressure, rules
from lateshift.store.sqlite.database import Connection

SECOND = rules.SECOND

# As few as tasks that have one.
GATES = """SELECT g.task, g.name, g.most, g.queue, coalesce(b.by_version, 0) FROM gate g LEFT JOIN breaker b
 ON g.most IS NULL AND b.name = g.name"""
BREAKER = "SELECT failures, share, within, open_for, by_version FROM breaker WHERE name = ?"
# Primary keys.
CIRCUIT = """SELECT name, since, failed, passed, in_a_row, opened_at, opened_by, reason, probe_at, probe, probe_fence, told,
 (SELECT b.open_for FROM breaker b WHERE b.name = c.breaker), coalesce((SELECT j.state = 2 AND j.fence = c.probe_fence FROM job j WHERE j.id = c.probe), 0) FROM circuit c"""
CIRCUIT_NAMED = f"{CIRCUIT} WHERE name = ?"
KEEP = """INSERT INTO circuit (name, breaker, since, failed, passed, in_a_row, opened_at, opened_by, reason, probe_at, probe,
 probe_fence, told) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (name) DO UPDATE SET
 since = ?3, failed = ?4, passed = ?5, in_a_row = ?6, opened_at = ?7, opened_by = ?8, reason = ?9, probe_at = ?10,
 probe = ?11, probe_fence = ?12, told = ?13"""
PROBE = """UPDATE circuit SET probe = ?, probe_fence = ?, probe_at = ? + coalesce((SELECT b.open_for FROM breaker b
 WHERE b.name = circuit.breaker), 0) WHERE name = ?"""
OF_CIRCUIT = """SELECT c.breaker, coalesce(b.set_by, '') FROM circuit c LEFT JOIN breaker b ON b.name = c.breaker
 WHERE c.name = ?"""
# The first that is parked in a line; the first of the next tenant, or of the same one under a priority. job_blocked.
_PARKED = "SELECT due_at, id, tenant, priority FROM job WHERE state = 3 AND blocked_by = ?1 AND queue = ?2 AND lane = ?3"
FIRST = f"{_PARKED} ORDER BY tenant, priority DESC, due_at, id LIMIT 1"
FIRST_OF_NEXT = f"{_PARKED} AND tenant > ?4 ORDER BY tenant, priority DESC, due_at, id LIMIT 1"
FIRST_UNDER = f"{_PARKED} AND tenant = ?4 AND priority < ?5 ORDER BY priority DESC, due_at, id LIMIT 1"
READY_THIS = "UPDATE job SET state = 1, blocked_by = NULL WHERE id = ? AND state = 3"
# As few as breakers.
PROBES = "SELECT 1 FROM circuit WHERE probe = ? AND probe_fence = ?"
SERVES = "SELECT serves FROM member WHERE id = ?"
# Who else is alive. A scan of the members.
ALL_SERVE = "SELECT serves FROM member WHERE dead_at IS NULL AND expires_at > ? AND serves IS NOT NULL"
ROOMS = "SELECT DISTINCT name, most FROM gate WHERE most IS NOT NULL"

_serves = msgspec.json.Decoder(Serves)


class Doors:
    """What stands before tasks, for one transaction of one worker: read once, when it is first asked for."""

    def __init__(self, connection: Connection, holder: MemberId, now: int) -> None:
        self._connection = connection
        self._holder = holder
        self._now = now
        self._read: tuple[Before, str | None] | None = None

    def gates(self) -> Gates | None:
        """Of which nothing is known yet: they are learnt about anew for each line. None if no task has any."""
        if self._read is None:
            self._read = self._look()
        before, version = self._read
        return Gates(before, self._now / SECOND, version) if before else None

    def _look(self) -> tuple[Before, str | None]:
        rows = self._connection.execute(GATES).fetchall()
        before = gating.before(
            [Gate(task, name, most, queue, bool(by_version)) for task, name, most, queue, by_version in rows]
        )
        if not gating.any_by_version(before):
            return before, None
        return before, _version(self._connection, self._holder)


def _version(connection: Connection, holder: MemberId) -> str | None:
    rows = connection.execute(SERVES, (holder.bytes,)).fetchall()
    return _serves.decode(rows[0][0]).version if rows and rows[0][0] is not None else None


def learn(connection: Connection, candidates: Sequence[Candidate], gates: Gates) -> None:
    """What is not known yet of the gates before these."""
    circuits, queues = gating.named(gates, {(job.task, job.queue) for job in candidates})
    for name in circuits.keys() - gates.known:
        if (circuit := read(connection, name)) is not None and circuit.is_open:
            gates.circuits[name] = circuit
    gates.known.update(circuits)
    for queue, most in queues.items():
        if queue not in gates.rooms:
            gates.rooms[queue] = most - waiting(connection, queue, most)


def begin_probes(connection: Connection, leases: list[Lease], gates: Gates, now: int) -> list[Lease]:
    """Write down which of these probe. Gives the leases."""
    fences = {lease.id.bytes: lease.fence for lease in leases}
    begun = {name: job for name, job in gates.probes.items() if job in fences}
    for name, job in begun.items():
        connection.execute(PROBE, (job, fences[job], now, name))
    return gating.probing(leases, gates, key) if begun else leases


def marked(connection: Connection, lease: Lease) -> Lease:
    """As it was given: that it probes, if it does."""
    probes = connection.execute(PROBES, (lease.id.bytes, lease.fence)).fetchall()
    return structs.replace(lease, probe=True) if probes else lease


def count(
    connection: Connection,
    gates: Gates,
    settlements: Sequence[Settlement],
    lost: Sequence[Lease],
    now: int,
    turns: Turns,
) -> set[Line]:
    """Count how these ended. Gives the lines in which jobs may go on because a breaker has closed."""
    lines: set[Line] = set()
    circuits, _ = gating.named(gates, {(it.lease.task, it.lease.queue) for it in settlements})
    for name, verdicts in gating.verdicts(gates, settlements, lost, key).items():
        breaker = breaker_named(connection, circuits[name])
        if breaker is None:
            continue
        before = read(connection, name) or Circuit(name=name, since=now / SECOND)
        circuit = after(breaker, before, verdicts, now / SECOND)
        if circuit != before:
            keep(connection, circuit, circuits[name])
        if before.is_open and not circuit.is_open:
            lines |= rules.ready(connection, f"breaker:{name}", PARKED_AT_ONCE, turns)
    return lines


def release(connection: Connection, waits: Sequence[tuple[str, str]], now: int, turns: Turns) -> set[Line]:
    """Those who wait at gates that have opened meanwhile. Gives their lines."""
    lines: set[Line] = set()
    kinds = gating.by_kind(waits)
    for name in kinds.get("breaker", ()):
        circuit = read(connection, name)
        queues = {queue for waits_for, queue in waits if waits_for == f"breaker:{name}"}
        free = gating.let_go(circuit, others=_others(connection, name, queues, now))
        lines |= rules.ready(connection, f"breaker:{name}", free, turns) if free else set()
        if circuit is not None and circuit.lets_one_through(now / SECOND):
            lines |= _ready_to_probe(connection, f"breaker:{name}")
    if "room" in kinds:
        most = dict(connection.execute(ROOMS).fetchall())
        for queue in kinds["room"]:
            free = most[queue] - waiting(connection, queue, most[queue]) if queue in most else PARKED_AT_ONCE
            lines |= rules.ready(connection, f"room:{queue}", free, turns) if free > 0 else set()
    return lines


def _ready_to_probe(connection: Connection, waits_for: str) -> set[Line]:
    """One in each line that waits: one of them may be paused, or served by nobody. Whoever is leased first is the probe."""
    lines: set[Line] = set()
    at: tuple[str, int] = ("", -1)
    while rows := connection.execute(rules.NEXT_WAITING_LINE, (waits_for, *at)).fetchall():
        at = rows[0]
        connection.execute(READY_THIS, (_next_to_probe(connection, (waits_for, *at)),))
        lines.update(lines_there([at]))
    return lines


def _next_to_probe(connection: Connection, line: tuple[str, str, int]) -> bytes:
    """The one that is due longest, so that each has its turn, whatever their priorities: one that fails by itself must not keep the
    others out. Looked for among the first of each tenant and priority."""
    heads = connection.execute(FIRST, line).fetchall()
    while len(heads) < gating.HEADS_LOOKED_AT:
        tenant, priority = heads[-1][2:]
        lower = connection.execute(FIRST_UNDER, (*line, tenant, priority)).fetchall()
        more = lower or connection.execute(FIRST_OF_NEXT, (*line, tenant)).fetchall()
        if not more:
            break
        heads += more
    id: bytes = min(heads)[1]
    return id


def _others(connection: Connection, name: str, queues: Collection[str], now: int) -> bool:
    """Whether workers of another version of the app are there that serve one of these queues, of a breaker that counts by version."""
    rows = connection.execute(OF_CIRCUIT, (name,)).fetchall()
    if not rows or rows[0][0] == name:
        return False
    alive = [_serves.decode(serves) for (serves,) in connection.execute(ALL_SERVE, (now,)).fetchall()]
    [(breaker, app)] = rows
    return gating.others_serve(name, breaker, app, queues, alive)


def waiting(connection: Connection, queue: str, most: int) -> int:
    counted: int = connection.execute(pressure.COUNT_WAITING, (queue, most)).fetchall()[0][0]
    return counted


def breaker_named(connection: Connection, name: str) -> Breaker | None:
    rows = connection.execute(BREAKER, (name,)).fetchall()
    return breaker_of(rows[0]) if rows else None


def breaker_of(row: tuple[Any, ...]) -> Breaker:
    failures, share, within, open_for, by_version = row
    return Breaker(
        failures=failures, share=share, within=timedelta(microseconds=within), open_for=timedelta(microseconds=open_for),
        by_version=bool(by_version),
    )  # fmt: skip


def read(connection: Connection, name: str) -> Circuit | None:
    rows = connection.execute(CIRCUIT_NAMED, (name,)).fetchall()
    return circuit_of(rows[0]) if rows else None


def circuit_of(row: tuple[Any, ...]) -> Circuit:
    found = dict(zip(gating.CIRCUIT_FIELDS, row, strict=True))
    for name in ("since", "opened_at", "probe_at", "open_for"):
        found[name] = None if found[name] is None else found[name] / SECOND
    return Circuit(**found | {"told": bool(found["told"]), "probing": bool(found["probing"])})


def keep(connection: Connection, it: Circuit, breaker: str) -> None:
    opened_at = None if it.opened_at is None else round(it.opened_at * SECOND)
    times = round(it.since * SECOND), round(it.probe_at * SECOND)
    row = (
        it.name,
        breaker,
        times[0],
        it.failed,
        it.passed,
        it.in_a_row,
        opened_at,
        it.opened_by,
        it.reason,
        times[1],
    )
    connection.execute(KEEP, (*row, it.probe, it.probe_fence, it.told))


def key(job: JobId) -> bytes:
    """A job's id, as it stands in the rows."""
    return job.bytes
