"""Circuit breakers in SQLite, as code declares them and operators see them. Where they stand is counted in gates.py."""

from collections.abc import Collection, Mapping, Sequence

from lateshift.model.breaker import Breaker, Circuit, CircuitView, Opened
from lateshift.model.gate import Gate
from lateshift.model.guard import Turns
from lateshift.model.ids import job_id_of
from lateshift.model.instants import MICROSECOND, to_instant, to_number
from lateshift.model.job import NewJob
from lateshift.store import gating
from lateshift.store.breaker_contract import PARKED_AT_ONCE
from lateshift.store.breaker_reading import Ask, BreakerReading
from lateshift.store.contract import COUNT_LIMIT, Wakes
from lateshift.store.hints import lines_of
from lateshift.store.sqlite import deeds, enqueue, gates, rules
from lateshift.store.sqlite.database import Connection, Database

# All of them: as few as code declares.
BREAKERS = "SELECT name, set_by, failures, share, within, open_for, by_version FROM breaker"
DECLARED = "SELECT task, name, most, queue FROM gate WHERE set_by = ?"
DECLARE = """INSERT INTO breaker (name, failures, share, within, open_for, by_version, set_by, set_at)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) DO UPDATE SET failures = ?2, share = ?3, within = ?4, open_for = ?5,
 by_version = ?6, set_by = ?7, set_at = ?8"""
# Those that stand before no task any more.
WITHDRAW_IDLE = (
    "DELETE FROM breaker WHERE name NOT IN (SELECT name FROM gate WHERE most IS NULL) RETURNING name"
)
FORGET = "DELETE FROM circuit WHERE breaker = ?"
WITHDRAW_GATES = "DELETE FROM gate WHERE task = ? AND set_by = ?"
STAND = """INSERT INTO gate (task, room, name, queue, most, set_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
 ON CONFLICT (task, room, name, queue) DO UPDATE SET most = ?5, set_by = ?6"""
TASKS = "SELECT name, task FROM gate WHERE most IS NULL ORDER BY name, task"
CIRCUITS = f"{gates.CIRCUIT} ORDER BY name"
BREAKERS_OF = "SELECT name, breaker FROM circuit"
# job_blocked
PARKED = "SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 3 AND blocked_by = ? LIMIT ?)"
UNTOLD = "SELECT name, opened_at, reason FROM circuit WHERE opened_at IS NOT NULL AND opened_by IS NULL AND told = 0"
TOLD = "UPDATE circuit SET told = 1 WHERE name = ? AND opened_at = ? AND told = 0 RETURNING 1"

READING = BreakerReading(
    breakers=BREAKERS, stand=DECLARED, circuits=CIRCUITS, of=BREAKERS_OF, tasks=TASKS, parked=PARKED,
    breaker_of=gates.breaker_of, circuit_of=gates.circuit_of, job_id=job_id_of,
)  # fmt: skip


class SqliteBreakers:
    """See breaker_contract.Breakers."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def declare(
        self, breakers: Mapping[str, Breaker], gates: Sequence[Gate], *, tasks: Collection[str], by: str
    ) -> None:
        with self._database.read() as connection:
            if READING.as_declared(_ask(connection), breakers, gates, tasks, by):
                return
        with self._database.write() as connection:
            now = self._clock.microseconds()
            known = READING.declared(_ask(connection))
            for name, it in breakers.items():
                row = (name, it.failures, it.share, it.within // MICROSECOND, it.open_for // MICROSECOND)
                connection.execute(DECLARE, (*row, it.by_version, by, now))
                if name in known and known[name].by_version != it.by_version:
                    connection.execute(FORGET, (name,))  # it is counted otherwise from now on
            connection.executemany(WITHDRAW_GATES, [(task, by) for task in tasks])
            rows = [(gate.task, gate.is_room, gate.name, gate.queue, gate.most, by) for gate in gates]
            connection.executemany(STAND, rows)
            for (name,) in connection.execute(WITHDRAW_IDLE).fetchall():
                connection.execute(FORGET, (name,))

    def open(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            breaker = _breaker_of(connection, name)
            now = self._clock.microseconds()
            circuit = gates.read(connection, name) or Circuit(name=name, since=now / gates.SECOND)
            if breaker is None or circuit.opened_by is not None:
                return False
            circuit.opened_at = circuit.opened_at or now / gates.SECOND
            circuit.opened_by = by
            gates.keep(connection, circuit, breaker)
            deeds.write(connection, now, "open breaker", [name], by)
        return True

    def close(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            breaker, circuit = _breaker_of(connection, name), gates.read(connection, name)
            if breaker is None or circuit is None or not circuit.is_open:
                return False
            now = self._clock.microseconds()
            gates.keep(connection, Circuit(name=name, since=now / gates.SECOND), breaker)
            lines = rules.ready(connection, f"breaker:{name}", PARKED_AT_ONCE, Turns())
            deeds.write(connection, now, "close breaker", [name], by)
        self._wakes.hint(lines)
        return True

    def untold(self) -> list[Opened]:
        with self._database.read() as connection:
            rows = connection.execute(UNTOLD).fetchall()
        return [Opened(name=name, at=to_instant(at), reason=reason) for name, at, reason in rows]

    def tell(self, opened: Opened, jobs: Sequence[NewJob]) -> bool:
        with self._database.write() as connection:
            if not connection.execute(TOLD, (opened.name, to_number(opened.at))).fetchall():
                return False
            if jobs:
                enqueue.run(connection, enqueue.statements(jobs, self._clock.microseconds()))
        self._wakes.hint(lines_of(jobs))
        return True

    def list(self, limit: int | None = None, *, after: str = "") -> list[CircuitView]:
        with self._database.read() as connection:
            return views(connection, limit=limit, after=after)


def _breaker_of(connection: Connection, circuit: str) -> str | None:
    rows = connection.execute(gates.OF_CIRCUIT, (circuit,)).fetchall()
    return gating.breaker_of(circuit, READING.declared(_ask(connection)), rows[0][0] if rows else None)


def views(
    connection: Connection, wanted: gating.Wanted = gating.every, limit: int | None = None, after: str = ""
) -> list[CircuitView]:
    return READING.views(_ask(connection), COUNT_LIMIT, wanted, limit, after)


def _ask(connection: Connection) -> Ask:
    return lambda sql, *given: connection.execute(sql, given).fetchall()
