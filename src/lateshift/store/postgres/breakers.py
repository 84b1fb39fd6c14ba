"""Circuit breakers in PostgreSQL, as code declares them and operators see them. Where they stand is counted in gates.py."""

from collections.abc import Collection, Mapping, Sequence

from lateshift.model.breaker import Breaker, Circuit, CircuitView, Opened
from lateshift.model.gate import Gate
from lateshift.model.guard import Turns
from lateshift.model.job import Line, NewJob
from lateshift.store import gating
from lateshift.store.breaker_contract import PARKED_AT_ONCE
from lateshift.store.breaker_reading import Ask, BreakerReading
from lateshift.store.contract import COUNT_LIMIT
from lateshift.store.hints import lines_of
from lateshift.store.postgres import enqueue, gates, rules
from lateshift.store.postgres.arrays import Texts
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.sweeping import NOW
from lateshift.store.postgres.wakes import NotifyWakes

# All of them: as few as code declares.
BREAKERS = "SELECT name, set_by, failures, share, within, open_for, by_version FROM lateshift.breaker"
DECLARED = "SELECT task, name, most, queue FROM lateshift.gate WHERE set_by = %s"
DECLARE = """INSERT INTO lateshift.breaker (name, failures, share, within, open_for, by_version, set_by, set_at)
 VALUES (%s, %s, %s, %s, %s, %s, %s, clock_timestamp() + %s::interval) ON CONFLICT (name) DO UPDATE SET
 failures = excluded.failures, share = excluded.share, within = excluded.within, open_for = excluded.open_for,
 by_version = excluded.by_version, set_by = excluded.set_by, set_at = excluded.set_at"""
# Those that stand before no task any more.
WITHDRAW_IDLE = """DELETE FROM lateshift.breaker b WHERE NOT EXISTS
 (SELECT 1 FROM lateshift.gate g WHERE g.most IS NULL AND g.name = b.name) RETURNING name"""
# In the order of their names, as everybody locks them.
FORGET = """DELETE FROM lateshift.circuit WHERE name = ANY(ARRAY(SELECT name FROM lateshift.circuit WHERE breaker = ANY(%b::text[])
 ORDER BY name FOR UPDATE))"""
WITHDRAW_GATES = "DELETE FROM lateshift.gate WHERE task = ANY(%b::text[]) AND set_by = %s"
STAND = """INSERT INTO lateshift.gate (task, room, name, queue, most, set_by) VALUES (%s, %s, %s, %s, %s, %s)
 ON CONFLICT (task, room, name, queue) DO UPDATE SET most = excluded.most, set_by = excluded.set_by"""
TASKS = "SELECT name, task FROM lateshift.gate WHERE most IS NULL ORDER BY name, task"
CIRCUITS = f"{gates.CIRCUIT} ORDER BY name"
BREAKERS_OF = "SELECT name, breaker FROM lateshift.circuit"
# job_blocked
PARKED = """SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE state = 3 AND blocked_by = %s LIMIT %s) AS counted"""
UNTOLD = """SELECT name, opened_at, reason FROM lateshift.circuit
 WHERE opened_at IS NOT NULL AND opened_by IS NULL AND NOT told"""
TOLD = "UPDATE lateshift.circuit SET told = true WHERE name = %s AND opened_at = %s AND NOT told RETURNING 1"

READING = BreakerReading(
    breakers=BREAKERS, stand=DECLARED, circuits=CIRCUITS, of=BREAKERS_OF, tasks=TASKS, parked=PARKED,
    breaker_of=gates.breaker_of, circuit_of=gates.circuit_of, job_id=lambda job: job,
)  # fmt: skip


class PostgresBreakers:
    """See breaker_contract.Breakers."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def declare(
        self, breakers: Mapping[str, Breaker], gates: Sequence[Gate], *, tasks: Collection[str], by: str
    ) -> None:
        def work(connection: Connection, again: bool) -> None:
            if READING.as_declared(_ask(connection), breakers, gates, tasks, by):
                return
            with connection.transaction():
                connection.execute(rules.LOCK_RULES)
                known = READING.declared(_ask(connection))
                gone: set[str] = set()
                for name, it in sorted(breakers.items()):
                    row = (name, it.failures, it.share, it.within, it.open_for, it.by_version)
                    connection.execute(DECLARE, (*row, by, self._clock.offset))
                    if name in known and known[name].by_version != it.by_version:
                        gone.add(name)  # it is counted otherwise from now on
                connection.execute(WITHDRAW_GATES, (Texts(tasks), by))
                for gate in gates:
                    connection.execute(STAND, (gate.task, gate.is_room, gate.name, gate.queue, gate.most, by))
                gone |= {name for (name,) in connection.execute(WITHDRAW_IDLE).fetchall()}
                if gone:
                    connection.execute(FORGET, (Texts(sorted(gone)),))

        self._database.run(work)

    def open(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, told: Lines) -> bool:
            breaker = _breaker_of(connection, name)
            if breaker is None:
                return False
            [(now,)] = connection.execute(NOW, (self._clock.offset,)).fetchall()
            circuit = gates.lock(connection, {name: breaker}, now)[name]
            if circuit.opened_by is not None:
                return False
            circuit.opened_at = circuit.opened_at or now
            circuit.opened_by = by
            gates.keep(connection, circuit)
            told.write("open breaker", [name], by)
            return True

        return do(self._database, deed)

    def close(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, told: Lines) -> set[Line] | None:
            breaker = _breaker_of(connection, name)
            if breaker is None:
                return None
            [(now,)] = connection.execute(NOW, (self._clock.offset,)).fetchall()
            if not gates.lock(connection, {name: breaker}, now)[name].is_open:
                return None
            gates.keep(connection, Circuit(name=name, since=now))
            told.write("close breaker", [name], by)
            return rules.ready(connection, f"breaker:{name}", PARKED_AT_ONCE, Turns())

        lines = do(self._database, deed)
        self._wakes.hint(lines or set())
        return lines is not None

    def untold(self) -> list[Opened]:
        rows = self._database.run(lambda connection, again: connection.execute(UNTOLD).fetchall())
        return [Opened(name=name, at=at, reason=reason) for name, at, reason in rows]

    def tell(self, opened: Opened, jobs: Sequence[NewJob]) -> bool:
        def work(connection: Connection, again: bool) -> bool:
            with connection.transaction():
                if not connection.execute(TOLD, (opened.name, opened.at)).fetchall():
                    return False
                if jobs:
                    enqueue.run(connection, enqueue.statements(jobs, self._clock.offset, again=again))
            return True

        told = self._database.run(work)
        self._wakes.hint(lines_of(jobs))
        return told

    def list(self, limit: int | None = None, *, after: str = "") -> list[CircuitView]:
        return self._database.run(lambda connection, again: views(connection, limit=limit, after=after))


def _breaker_of(connection: Connection, circuit: str) -> str | None:
    rows = connection.execute(gates.OF_CIRCUITS, (Texts([circuit]),)).fetchall()
    return gating.breaker_of(circuit, READING.declared(_ask(connection)), rows[0][1] if rows else None)


def views(
    connection: Connection, wanted: gating.Wanted = gating.every, limit: int | None = None, after: str = ""
) -> list[CircuitView]:
    return READING.views(_ask(connection), COUNT_LIMIT, wanted, limit, after)


def _ask(connection: Connection) -> Ask:
    return lambda sql, *given: connection.execute(sql.encode(), given).fetchall()
