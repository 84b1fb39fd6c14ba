"""Pausing queues, and how much stands in each, in SQLite."""

from collections.abc import Collection, Iterator
from datetime import timedelta
from itertools import islice
from typing import NamedTuple

from lateshift.model.instants import to_instant
from lateshift.model.job import Lane, Line, State
from lateshift.store.contract import COUNT_LIMIT, QueueView, TenantView, Wakes
from lateshift.store.guard_contract import TENANT_COUNTED
from lateshift.store.sqlite import deeds, pressure
from lateshift.store.sqlite.database import Connection, Database

PAUSE = """INSERT INTO queue (name, paused_at, paused_by) VALUES (?1, ?2, ?3)
 ON CONFLICT (name) DO UPDATE SET paused_at = ?2, paused_by = ?3 WHERE paused_at IS NULL RETURNING 1"""
RESUME = (
    "UPDATE queue SET paused_at = NULL, paused_by = NULL WHERE name = ? AND paused_at IS NOT NULL RETURNING 1"
)

# The states of which an index knows the queue: from one to the next, each counted up to a limit. A job that runs is in none: that would
# cost every job that is leased. job_ready, job_later, job_held_up, settled_dead_of.
_STAND = {
    State.READY: "job WHERE state = 1",
    State.SCHEDULED: "job WHERE state = 0",
    State.BLOCKED: "job WHERE state = 3",
    State.DEAD: "settled WHERE state = 6",
}
NEXT = {
    state: f"SELECT queue FROM {stand} AND queue > ? ORDER BY queue LIMIT 1"
    for state, stand in _STAND.items()
}
COUNT = {
    state: f"SELECT count(*) FROM (SELECT 1 FROM {stand} AND queue = ? LIMIT ?)"
    for state, stand in _STAND.items()
}
# And whether its session waits for somebody. Primary key of the sessions.
COUNT[State.BLOCKED] = """SELECT count(*), count(*) FILTER (WHERE blocked_by GLOB 'breaker:*'),
 count(*) FILTER (WHERE blocked_by = 'rate:queue:' || ?1), count(*) FILTER (WHERE held)
 FROM (SELECT blocked_by, EXISTS (SELECT 1 FROM session k WHERE k.queue = ?1 AND k.held_why IS NOT NULL AND k.name =
   CASE WHEN blocked_by GLOB 'session:*' THEN substr(blocked_by, 9) WHEN blocked_by GLOB 'sequence:*' THEN substr(blocked_by, 10) END)
   AS held FROM job WHERE state = 3 AND queue = ?1 LIMIT ?2)"""
OLDEST_READY = """SELECT min(due_at) FROM (SELECT due_at FROM job WHERE state = 1 AND queue = ? LIMIT ?)"""
# Never more than the workers have room for. job_running.
COUNT_RUNNING = "SELECT queue, count(*) FROM (SELECT queue FROM job WHERE state = 2 LIMIT ?) GROUP BY queue"
# From one tenant to the next in a lane, each counted up to a limit; not those without one. job_tenant.
_TENANT = "state = 1 AND tenant IS NOT NULL AND queue = ? AND lane = ?"
NEXT_TENANT = f"SELECT tenant FROM job WHERE {_TENANT} AND tenant > ? ORDER BY tenant LIMIT 1"
COUNT_TENANT = (
    f"""SELECT count(*), min(due_at) FROM (SELECT due_at FROM job WHERE {_TENANT} AND tenant = ? LIMIT ?)"""
)
PAUSED = "SELECT name, paused_at, paused_by FROM queue WHERE paused_at IS NOT NULL"
# As few as code declares. Primary key.
CONCEALED = "SELECT name FROM sensitive"
CONCEAL = "INSERT INTO sensitive (name) VALUES (?) ON CONFLICT DO NOTHING"

_CAREFUL = [int(lane) for lane in Lane if lane.careful]


def concealed(connection: Connection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute(CONCEALED).fetchall())


def _names(connection: Connection, state: State) -> Iterator[str]:
    """From one to the next, as far as is asked for."""
    name = ""
    while rows := connection.execute(NEXT[state], (name,)).fetchall():
        [[name]] = rows
        yield name


class SqliteQueues:
    """See contract.Queues."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def pause(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            paused = bool(connection.execute(PAUSE, (name, now, by)).fetchall())
            if paused:
                deeds.write(connection, now, "pause", [name], by)
        return paused

    def resume(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            resumed = bool(connection.execute(RESUME, (name,)).fetchall())
            if resumed:
                deeds.write(connection, self._clock.microseconds(), "resume", [name], by)
        self._wakes.hint({Line(name, lane) for lane in Lane})
        return resumed

    def waiting(self, name: str, limit: int) -> int:
        return pressure.waiting(self._database, name, limit)

    def tenants(self, name: str, limit: int) -> list[TenantView]:
        found: dict[str, tuple[int, int]] = {}
        with self._database.read() as connection:
            for lane in _CAREFUL:
                tenant, seen = "", 0
                while seen < limit and (
                    rows := connection.execute(NEXT_TENANT, (name, lane, tenant)).fetchall()
                ):
                    [[tenant]] = rows
                    seen += 1
                    asked = (name, lane, tenant, TENANT_COUNTED)
                    [(count, oldest)] = connection.execute(COUNT_TENANT, asked).fetchall()
                    before = found.get(tenant, (0, oldest))
                    found[tenant] = before[0] + count, min(before[1], oldest)
        now = self._clock.microseconds()
        return [
            TenantView(name=tenant, ready=count, oldest_ready=timedelta(microseconds=max(0, now - oldest)))
            for tenant, (count, oldest) in sorted(found.items())[:limit]
        ]

    def conceal(self, names: Collection[str]) -> None:
        if names and (new := sorted(set(names) - self.concealed())):
            with self._database.write() as connection:
                connection.executemany(CONCEAL, [(name,) for name in new])

    def concealed(self) -> frozenset[str]:
        with self._database.read() as connection:
            return concealed(connection)

    def names(self) -> list[str]:
        with self._database.read() as connection:
            found = {name for name, *_ in connection.execute(PAUSED)}
            found |= {name for name, _ in connection.execute(COUNT_RUNNING, (COUNT_LIMIT,))}
            return [*found.union(*(_names(connection, state) for state in NEXT))]

    def list(
        self, most: int = COUNT_LIMIT, *, limit: int | None = None, of: Collection[str] | None = None
    ) -> list[QueueView]:
        with self._database.read() as connection:
            known = {name: (at, by) for name, at, by in connection.execute(PAUSED)}
            running = dict(connection.execute(COUNT_RUNNING, (COUNT_LIMIT,)).fetchall())
            if of is None:
                there = {state: {*islice(_names(connection, state), limit)} for state in NEXT}
                ready = there[State.READY]
                wanted = ready if len(ready) == limit else {*known, *running}.union(*there.values())
                chosen = sorted(wanted)[:limit]
            else:
                chosen = sorted(set(of))
            counts = {name: _counts(connection, name, most) for name in chosen}
        now = self._clock.microseconds()
        more_running = sum(running.values()) >= COUNT_LIMIT

        def view(name: str) -> QueueView:
            paused_at, paused_by = known.get(name, (None, None))
            count = counts[name]
            return QueueView(
                name=name, ready=count.ready, scheduled=count.scheduled, running=running.get(name, 0), blocked=count.blocked,
                parked=count.parked, rationed=count.rationed, held=count.held, dead=count.dead, paused_by=paused_by,
                paused_at=None if paused_at is None else to_instant(paused_at), more_running=more_running,
                oldest_ready=None if count.oldest is None else timedelta(microseconds=max(0, now - count.oldest)),
            )  # fmt: skip

        return [view(name) for name in chosen]


class _Counts(NamedTuple):
    ready: int
    oldest: int | None
    scheduled: int
    blocked: int
    parked: int
    rationed: int
    held: int
    dead: int


def _counts(connection: Connection, name: str, most: int) -> _Counts:
    asked = (name, most)
    [(ready,)] = connection.execute(COUNT[State.READY], asked).fetchall()
    [(oldest,)] = connection.execute(OLDEST_READY, asked).fetchall()
    [(scheduled,)] = connection.execute(COUNT[State.SCHEDULED], asked).fetchall()
    [(blocked, parked, rationed, held)] = connection.execute(COUNT[State.BLOCKED], asked).fetchall()
    [(dead,)] = connection.execute(COUNT[State.DEAD], asked).fetchall()
    return _Counts(ready, oldest, scheduled, blocked, parked, rationed, held, dead)
