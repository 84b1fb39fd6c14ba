"""Pausing queues, and how much stands in each, in SQLite."""

from collections.abc import Collection, Iterator
from datetime import timedelta
from itertools import islice

from lateshift.model.instants import to_instant
from lateshift.model.job import Lane, Line
from lateshift.store.contract import COUNT_LIMIT, QueueView, TenantView, Wakes
from lateshift.store.guard_contract import TENANT_COUNTED
from lateshift.store.sqlite import deeds, pressure
from lateshift.store.sqlite.database import Connection, Database

PAUSE = """INSERT INTO queue (name, paused_at, paused_by) VALUES (?1, ?2, ?3)
 ON CONFLICT (name) DO UPDATE SET paused_at = ?2, paused_by = ?3 WHERE paused_at IS NULL RETURNING 1"""
RESUME = (
    "UPDATE queue SET paused_at = NULL, paused_by = NULL WHERE name = ? AND paused_at IS NOT NULL RETURNING 1"
)

# The queues that have jobs or settings: from one ready queue to the next (job_ready), then the bounded rest.
NEXT_READY = "SELECT queue FROM job WHERE state = 1 AND queue > ? ORDER BY queue LIMIT 1"
COUNT_READY = "SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 1 AND queue = ? LIMIT ?)"
OLDEST_READY = """SELECT min(due_at) FROM (SELECT due_at FROM job WHERE state = 1 AND queue = ? LIMIT ?)"""
COUNT_SCHEDULED = "SELECT queue, count(*) FROM (SELECT queue FROM job WHERE state = 0 ORDER BY due_at LIMIT ?) GROUP BY queue"
COUNT_RUNNING = "SELECT queue, count(*) FROM (SELECT queue FROM job WHERE state = 2 LIMIT ?) GROUP BY queue"
COUNT_BLOCKED = """SELECT queue, count(*), count(*) FILTER (WHERE blocked_by GLOB 'breaker:*'),
 count(*) FILTER (WHERE blocked_by = 'rate:queue:' || queue),
 count(*) FILTER (WHERE held)
 FROM (SELECT queue, blocked_by, EXISTS (SELECT 1 FROM session k WHERE k.queue = job.queue AND k.held_why IS NOT NULL AND k.name =
   CASE WHEN blocked_by GLOB 'session:*' THEN substr(blocked_by, 9) WHEN blocked_by GLOB 'sequence:*' THEN substr(blocked_by, 10) END)
   AS held FROM job WHERE state = 3 LIMIT ?) GROUP BY queue"""
COUNT_DEAD = "SELECT queue, count(*) FROM (SELECT queue FROM settled WHERE state = 6 LIMIT ?) GROUP BY queue"
# From one tenant to the next in a lane, each counted up to a limit; not those without one. job_tenant.
_TENANT = "state = 1 AND tenant IS NOT NULL AND queue = ? AND lane = ?"
NEXT_TENANT = f"SELECT tenant FROM job WHERE {_TENANT} AND tenant > ? ORDER BY tenant LIMIT 1"
COUNT_TENANT = (
    f"""SELECT count(*), min(due_at) FROM (SELECT due_at FROM job WHERE {_TENANT} AND tenant = ? LIMIT ?)"""
)
KNOWN = "SELECT name, paused_at, paused_by FROM queue"
# As few as code declares. Primary key.
CONCEALED = "SELECT name FROM sensitive"
CONCEAL = "INSERT INTO sensitive (name) VALUES (?) ON CONFLICT DO NOTHING"

_CAREFUL = [int(lane) for lane in Lane if lane.careful]


def concealed(connection: Connection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute(CONCEALED).fetchall())


def _ready_names(connection: Connection) -> Iterator[str]:
    """From one to the next, as far as is asked for."""
    name = ""
    while rows := connection.execute(NEXT_READY, (name,)).fetchall():
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
            found = {name for name, *_ in connection.execute(KNOWN)}
            for sql in (COUNT_SCHEDULED, COUNT_RUNNING, COUNT_BLOCKED, COUNT_DEAD):
                found |= {row[0] for row in connection.execute(sql, (COUNT_LIMIT,))}
            return [*found.union(_ready_names(connection))]

    def list(
        self, most: int = COUNT_LIMIT, *, limit: int | None = None, of: Collection[str] | None = None
    ) -> list[QueueView]:
        with self._database.read() as connection:
            known = {name: (at, by) for name, at, by in connection.execute(KNOWN)}

            def counts(sql: str) -> dict[str, int]:
                return dict(connection.execute(sql, (most,)).fetchall())

            scheduled, running = counts(COUNT_SCHEDULED), counts(COUNT_RUNNING)
            blocked = {name: rest for name, *rest in connection.execute(COUNT_BLOCKED, (most,))}
            dead = counts(COUNT_DEAD)
            ready: dict[str, tuple[int, int]] = {}
            for name in islice(_ready_names(connection), limit) if of is None else of:
                ready[name] = (
                    connection.execute(COUNT_READY, (name, most)).fetchall()[0][0],
                    connection.execute(OLDEST_READY, (name, most)).fetchall()[0][0],
                )
        now = self._clock.microseconds()

        def view(name: str) -> QueueView:
            paused_at, paused_by = known.get(name, (None, None))
            count, oldest = ready.get(name, (0, None))
            held_up, parked, rationed, held = blocked.get(name, (0, 0, 0, 0))
            return QueueView(
                name=name, ready=count, scheduled=scheduled.get(name, 0), running=running.get(name, 0),
                blocked=held_up, parked=parked, rationed=rationed, held=held, dead=dead.get(name, 0), paused_by=paused_by,
                paused_at=None if paused_at is None else to_instant(paused_at),
                oldest_ready=None if oldest is None else timedelta(microseconds=max(0, now - oldest)),
            )  # fmt: skip

        if of is not None:
            return [view(name) for name in sorted(set(of))]
        names = sorted(
            ready if len(ready) == limit else {*known, *scheduled, *running, *blocked, *dead, *ready}
        )
        return [view(name) for name in names[:limit]]
