"""Gates in PostgreSQL: what stands before a task, where jobs are leased and settled, and where the parked go on.

Whoever counts, or lets a probe through, has the circuit's row locked until its transaction ends. Who counts waits for such rows, once,
in the order of their names; who looks for a probe waits for none, nor for the rows of jobs: so nobody waits in a circle."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from lateshift.model.breaker import Breaker, Circuit, after
from lateshift.model.gate import Gate, Gates
from lateshift.model.guard import Candidate, Turns
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import Lease, Line
from lateshift.model.member import Serves
from lateshift.model.outcome import Settlement
from lateshift.store import gating
from lateshift.store.breaker_contract import PARKED_AT_ONCE
from lateshift.store.contract import Rows
from lateshift.store.lines import lines_there
from lateshift.store.postgres import pressure, rules
from lateshift.store.postgres.arrays import Texts
from lateshift.store.postgres.database import Connection

# As few as tasks that have one.
GATES = """SELECT g.task, g.name, g.most, g.queue, coalesce(b.by_version, false) FROM lateshift.gate g LEFT JOIN lateshift.breaker b
 ON g.most IS NULL AND b.name = g.name"""
BREAKERS = "SELECT name, failures, share, within, open_for, by_version FROM lateshift.breaker WHERE name = ANY(%b::text[])"
# Primary keys.
CIRCUIT = """SELECT name, extract(epoch FROM since)::float8, failed, passed, in_a_row, extract(epoch FROM opened_at)::float8,
 opened_by, reason, extract(epoch FROM probe_at)::float8, probe, probe_fence, told,
 (SELECT extract(epoch FROM b.open_for)::float8 FROM lateshift.breaker b WHERE b.name = c.breaker),
 coalesce((SELECT j.state = 2 AND j.fence = c.probe_fence FROM lateshift.job j WHERE j.id = c.probe), false) FROM lateshift.circuit c"""
CIRCUITS_NAMED = f"{CIRCUIT} WHERE name = ANY(%b::text[])"
OPEN_NAMED = f"{CIRCUIT} WHERE name = ANY(%b::text[]) AND opened_at IS NOT NULL"
FREE_NAMED = f"{CIRCUIT} WHERE name = ANY(%b::text[]) AND opened_at IS NOT NULL FOR UPDATE OF c SKIP LOCKED"
LOCK_NAMED = f"{CIRCUIT} WHERE name = ANY(%b::text[]) ORDER BY name FOR UPDATE OF c"
BEGIN = """INSERT INTO lateshift.circuit (name, breaker, since, failed, passed, in_a_row, probe_at)
 VALUES (%s, %s, to_timestamp(%s), 0, 0, 0, to_timestamp(0)) ON CONFLICT (name) DO NOTHING"""
KEEP = """UPDATE lateshift.circuit SET since = to_timestamp(%(since)s), failed = %(failed)s, passed = %(passed)s,
 in_a_row = %(in_a_row)s, opened_at = to_timestamp(%(opened_at)s::float8), opened_by = %(opened_by)s, reason = %(reason)s,
 probe_at = to_timestamp(%(probe_at)s), probe = %(probe)s, probe_fence = %(probe_fence)s, told = %(told)s
 WHERE name = %(name)s"""
PROBE = """UPDATE lateshift.circuit c SET probe = %(job)s, probe_fence = %(fence)s, probe_at = to_timestamp(%(now)s)
 + coalesce((SELECT open_for FROM lateshift.breaker b WHERE b.name = c.breaker), interval '0') WHERE c.name = %(name)s"""
OF_CIRCUITS = """SELECT c.name, c.breaker, coalesce(b.set_by, '') FROM lateshift.circuit c
 LEFT JOIN lateshift.breaker b ON b.name = c.breaker WHERE c.name = ANY(%b::text[])"""
# In each line the one that is due longest: among the first of each tenant and priority, from one to the next. job_blocked.
_PARKED = """SELECT j.id, j.tenant, j.priority, j.due_at FROM lateshift.job j WHERE j.state = 3 AND j.blocked_by = %(waits)s
   AND j.queue = {at}.queue AND j.lane = {at}.lane"""
_FIRST = "ORDER BY j.tenant, j.priority DESC, j.due_at, j.id LIMIT 1"
_HEAD = _PARKED.format(at="head")
READY_TO_PROBE = f"""WITH RECURSIVE line AS (
  (SELECT queue, lane FROM lateshift.job WHERE state = 3 AND blocked_by = %(waits)s ORDER BY queue, lane LIMIT 1)
  UNION ALL
  SELECT next.queue, next.lane FROM line, LATERAL (SELECT queue, lane FROM lateshift.job
    WHERE state = 3 AND blocked_by = %(waits)s AND (queue, lane) > (line.queue, line.lane)
    ORDER BY queue, lane LIMIT 1) next),
head AS (
  SELECT line.queue, line.lane, first.*, 1 AS place FROM line, LATERAL ({_PARKED.format(at="line")} {_FIRST}) AS first
  UNION ALL
  SELECT head.queue, head.lane, next.*, head.place + 1 FROM head, LATERAL (
    SELECT * FROM ({_HEAD} AND j.tenant = head.tenant AND j.priority < head.priority {_FIRST}) AS lower
    UNION ALL SELECT * FROM ({_HEAD} AND j.tenant > head.tenant {_FIRST}) AS later LIMIT 1) AS next
  WHERE head.place < %(most)s),
chosen AS (SELECT DISTINCT ON (queue, lane) id FROM head ORDER BY queue, lane, due_at, id),
free AS MATERIALIZED (SELECT id FROM lateshift.job WHERE id = ANY(ARRAY(SELECT id FROM chosen)) AND state = 3
 FOR UPDATE SKIP LOCKED)
UPDATE lateshift.job SET state = 1, blocked_by = NULL WHERE id = ANY(ARRAY(SELECT id FROM free)) RETURNING queue, lane"""
# As few as breakers.
PROBES = "SELECT probe, probe_fence FROM lateshift.circuit WHERE probe IS NOT NULL"
SERVES = "SELECT serves FROM lateshift.member WHERE id = %s"
# Who else is alive. A scan of the members.
ALL_SERVE = """SELECT serves FROM lateshift.member WHERE dead_at IS NULL AND serves IS NOT NULL
 AND extract(epoch FROM expires_at) > %s"""
ROOMS = "SELECT DISTINCT name, most FROM lateshift.gate WHERE most IS NOT NULL"

_serves = msgspec.json.Decoder(Serves)


def of(connection: Connection, rows: Rows, holder: MemberId, now: float) -> Gates | None:
    """Of what GATES has read. None if no task has any."""
    if not rows:
        return None
    before = gating.before([Gate(*row) for row in rows])
    version = _version(connection, holder) if gating.any_by_version(before) else None
    return Gates(before, now, version)


def _version(connection: Connection, holder: MemberId) -> str | None:
    rows = connection.execute(SERVES, (holder,)).fetchall()
    return _serves.decode(rows[0][0]).version if rows and rows[0][0] is not None else None


def learn(connection: Connection, candidates: Sequence[Candidate], gates: Gates) -> None:
    """What is not known yet of the gates before these. A circuit that may let a probe through is ours until the transaction ends; if
    somebody else has it, it is shut."""
    circuits, queues = gating.named(gates, {(job.task, job.queue) for job in candidates})
    unknown = circuits.keys() - gates.known
    gates.known.update(unknown)
    if unknown:
        rows = connection.execute(OPEN_NAMED, (Texts(unknown),)).fetchall()
        found = {row[0]: circuit_of(row) for row in rows}
        due = [name for name, circuit in found.items() if circuit.lets_one_through(gates.now)]
        if due:
            ours = {
                row[0]: circuit_of(row) for row in connection.execute(FREE_NAMED, (Texts(due),)).fetchall()
            }
            gates.busy |= set(due) - ours.keys()
            found |= ours
        gates.circuits |= found
    for queue, most in queues.items():
        if queue not in gates.rooms:
            gates.rooms[queue] = most - waiting(connection, queue, most)


def begin_probes(connection: Connection, leases: list[Lease], gates: Gates) -> list[Lease]:
    """Write down which of these probe. Gives the leases."""
    fences = {lease.id: lease.fence for lease in leases}
    begun = {name: job for name, job in gates.probes.items() if job in fences}
    for name, job in begun.items():
        connection.execute(PROBE, {"job": job, "fence": fences[job], "now": gates.now, "name": name})
    return gating.probing(leases, gates, key) if begun else leases


def marked(connection: Connection, leases: list[Lease]) -> list[Lease]:
    """As they were given: that they probe, if they do."""
    probes = set(connection.execute(PROBES).fetchall())
    return [
        structs.replace(lease, probe=True) if (lease.id, lease.fence) in probes else lease for lease in leases
    ]


def count(
    connection: Connection,
    gates: Gates,
    settlements: Sequence[Settlement],
    lost: Sequence[Lease],
    turns: Turns,
) -> set[Line]:
    """Count how these ended. Gives the lines in which jobs may go on because a breaker has closed."""
    found = gating.verdicts(gates, settlements, lost, key)
    circuits, _ = gating.named(gates, {(it.lease.task, it.lease.queue) for it in settlements})
    lines: set[Line] = set()
    if not found:
        return lines
    breakers = breakers_named(connection, [circuits[name] for name in found])
    known = lock(
        connection, {name: circuits[name] for name in found if circuits[name] in breakers}, gates.now
    )
    for name, before in known.items():
        circuit = after(breakers[circuits[name]], before, found[name], gates.now)
        if circuit != before:
            keep(connection, circuit)
        if before.is_open and not circuit.is_open:
            lines |= rules.ready(connection, f"breaker:{name}", PARKED_AT_ONCE, turns)
    return lines


def release(connection: Connection, waits: Sequence[tuple[str, str]], now: float, turns: Turns) -> set[Line]:
    """Those who wait at gates that have opened meanwhile. Gives their lines."""
    lines: set[Line] = set()
    kinds = gating.by_kind(waits)
    names = kinds.get("breaker", [])
    if names:
        rows = connection.execute(CIRCUITS_NAMED, (Texts(names),)).fetchall()
        circuits = {row[0]: circuit_of(row) for row in rows}
        others = _others(connection, waits, names, now)
        for name in sorted(names):
            circuit = circuits.get(name)
            free = gating.let_go(circuit, others=name in others)
            lines |= rules.ready(connection, f"breaker:{name}", free, turns) if free else set()
            if circuit is not None and circuit.lets_one_through(now):
                lines |= _ready_to_probe(connection, f"breaker:{name}")
    if "room" in kinds:
        most = dict(connection.execute(ROOMS).fetchall())
        for queue in sorted(kinds["room"]):
            free = most[queue] - waiting(connection, queue, most[queue]) if queue in most else PARKED_AT_ONCE
            lines |= rules.ready(connection, f"room:{queue}", free, turns) if free > 0 else set()
    return lines


def _ready_to_probe(connection: Connection, waits_for: str) -> set[Line]:
    """One in each line that waits: one of them may be paused, or served by nobody. Whoever is leased first is the probe. By turns,
    whatever their priorities: one that fails by itself must not keep the others out."""
    asked = {"waits": waits_for, "most": gating.HEADS_LOOKED_AT}
    return set(lines_there(connection.execute(READY_TO_PROBE, asked).fetchall()))


def _others(
    connection: Connection, waits: Sequence[tuple[str, str]], names: Sequence[str], now: float
) -> set[str]:
    """Of breakers that count by version, those for which workers of another version of the app serve a queue that waits."""
    of = {name: rest for name, *rest in connection.execute(OF_CIRCUITS, (Texts(names),)).fetchall()}
    by_version = {name: rest for name, rest in of.items() if rest[0] != name}
    if not by_version:
        return set()
    alive = [_serves.decode(serves) for (serves,) in connection.execute(ALL_SERVE, (now,)).fetchall()]
    queues: dict[str, set[str]] = {}
    for waits_for, queue in waits:
        queues.setdefault(waits_for, set()).add(queue)
    return {
        name
        for name, (breaker, app) in by_version.items()
        if gating.others_serve(name, breaker, app, queues[f"breaker:{name}"], alive)
    }


def waiting(connection: Connection, queue: str, most: int) -> int:
    counted: int = connection.execute(pressure.COUNT_WAITING, {"queue": queue, "limit": most}).fetchall()[0][
        0
    ]
    return counted


def breakers_named(connection: Connection, names: Sequence[str]) -> dict[str, Breaker]:
    return {name: breaker_of(row) for name, *row in connection.execute(BREAKERS, (Texts(names),)).fetchall()}


def breaker_of(row: Sequence[Any]) -> Breaker:
    failures, share, within, open_for, by_version = row
    return Breaker(failures=failures, share=share, within=within, open_for=open_for, by_version=by_version)


def lock(connection: Connection, circuits: Mapping[str, str], now: float) -> dict[str, Circuit]:
    """These, each with its breaker, as they stand until the transaction ends; those that are new begin."""
    known = {row[0]: circuit_of(row) for row in connection.execute(LOCK_NAMED, (Texts(circuits),)).fetchall()}
    new = sorted(circuits.keys() - known.keys())
    for name in new:
        connection.execute(BEGIN, (name, circuits[name], now))
    if new:
        rows = connection.execute(LOCK_NAMED, (Texts(circuits),)).fetchall()
        known = {row[0]: circuit_of(row) for row in rows}
    return known


def circuit_of(row: Sequence[Any]) -> Circuit:
    return Circuit(**dict(zip(gating.CIRCUIT_FIELDS, row, strict=True)))


def keep(connection: Connection, it: Circuit) -> None:
    connection.execute(
        KEEP,
        {
            "name": it.name, "since": it.since, "failed": it.failed, "passed": it.passed, "in_a_row": it.in_a_row,
            "opened_at": it.opened_at, "opened_by": it.opened_by, "reason": it.reason, "probe_at": it.probe_at,
            "probe": it.probe, "probe_fence": it.probe_fence, "told": it.told,
        },
    )  # fmt: skip


def key(job: JobId) -> JobId:
    """A job's id, as it stands in the rows."""
    return job
