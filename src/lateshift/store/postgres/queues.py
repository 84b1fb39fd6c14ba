"""Pausing queues, and how much stands in each, in PostgreSQL."""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from lateshift.model.job import Lane, Line, State
from lateshift.store.contract import COUNT_LIMIT, QueueView, TenantView
from lateshift.store.guard_contract import TENANT_COUNTED
from lateshift.store.postgres import pressure
from lateshift.store.postgres.arrays import Texts
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.wakes import NotifyWakes

log = logging.getLogger("lateshift")

PAUSE = """INSERT INTO lateshift.queue AS q (name, paused_at, paused_by) VALUES (%s, clock_timestamp() + %s::interval, %s)
 ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by
 WHERE q.paused_at IS NULL RETURNING 1"""
RESUME = """UPDATE lateshift.queue SET paused_at = NULL, paused_by = NULL
 WHERE name = %s AND paused_at IS NOT NULL RETURNING 1"""

# The states of which an index knows the queue: their queues, from one to the next, and so many counted in each up to the limit. A job
# that runs is in none: that would cost every job that is leased. job_ready, job_later, job_held_up, settled_dead_of.
_STAND = {
    State.READY: "lateshift.job WHERE state = 1",
    State.SCHEDULED: "lateshift.job WHERE state = 0 AND queue <> ''",
    State.BLOCKED: "lateshift.job WHERE state = 3",
    State.DEAD: "lateshift.settled WHERE state = 6",
}
# Whether its session waits for somebody. Primary key of the sessions.
_HELD = """CASE WHEN blocked_by ~ '^(session|sequence):' THEN EXISTS (SELECT 1 FROM lateshift.session k
 WHERE k.queue = job.queue AND k.name = job.session AND k.held_why IS NOT NULL LIMIT 1) ELSE false END"""
_SEEN = {
    State.READY: ("due_at", "count(*), greatest(clock_timestamp() + %(skew)s::interval - min(due_at), interval '0')"),
    State.BLOCKED: (
        f"blocked_by, {_HELD} AS held", """count(*), count(*) FILTER (WHERE starts_with(blocked_by, 'breaker:')),
 count(*) FILTER (WHERE blocked_by = 'rate:queue:' || name.queue), count(*) FILTER (WHERE held)""",
    ),
}  # fmt: skip
NAMES = {
    state: f"""WITH RECURSIVE name AS (
  (SELECT queue FROM {stand} ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT next.queue FROM name, LATERAL (SELECT queue FROM {stand} AND queue > name.queue ORDER BY queue LIMIT 1) next)
SELECT queue FROM name LIMIT %(queues)s::bigint"""
    for state, stand in _STAND.items()
}


def _counting(stand: str, column: str, told: str) -> str:
    return f"""SELECT name.queue, counted.* FROM unnest(%(of)b::text[]) AS name (queue), LATERAL (SELECT {told} FROM
  (SELECT {column} FROM {stand} AND queue = name.queue LIMIT %(limit)s) AS bounded) counted"""


COUNT = {state: _counting(stand, *_SEEN.get(state, ("1", "count(*)"))) for state, stand in _STAND.items()}
# Never more than the workers have room for. job_running.
COUNT_RUNNING = "SELECT queue, count(*) FROM (SELECT queue FROM lateshift.job WHERE state = 2 LIMIT %s) AS bounded GROUP BY queue"
# From one tenant to the next in a lane, each counted up to a limit; not those without one. job_tenant.
_TENANT = "state = 1 AND tenant IS NOT NULL AND queue = %(queue)s AND lane = %(lane)s::smallint"
TENANTS = f"""WITH RECURSIVE name AS (
  (SELECT tenant, 1 AS place FROM lateshift.job WHERE {_TENANT} AND tenant > '' ORDER BY tenant LIMIT 1)
  UNION ALL
  SELECT next.tenant, name.place + 1 FROM name, LATERAL (SELECT tenant FROM lateshift.job
    WHERE {_TENANT} AND tenant > name.tenant ORDER BY tenant LIMIT 1) next WHERE name.place < %(limit)s)
SELECT tenant, counted.n, greatest(clock_timestamp() + %(skew)s::interval - counted.oldest, interval '0')
FROM name, LATERAL (SELECT count(*) AS n, min(due_at) AS oldest FROM
  (SELECT due_at FROM lateshift.job j WHERE {_TENANT} AND j.tenant = name.tenant LIMIT %(most)s) AS bounded) counted"""
PAUSED = "SELECT name, paused_at, paused_by FROM lateshift.queue WHERE paused_at IS NOT NULL"
# As few as code declares. Primary key.
CONCEALED = "SELECT name FROM lateshift.sensitive"
# One who only submits, or reads, hides no queue from others: see roles.
MAY_CONCEAL = "SELECT has_table_privilege('lateshift.sensitive', 'INSERT')"
CONCEAL = "INSERT INTO lateshift.sensitive (name) SELECT unnest(%b::text[]) ON CONFLICT DO NOTHING"

_CAREFUL = [int(lane) for lane in Lane if lane.careful]


def concealed(connection: Connection) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute(CONCEALED).fetchall())


class PostgresQueues:
    """See contract.Queues."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def pause(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            if not connection.execute(PAUSE, (name, self._clock.offset, by)).fetchall():
                return False
            lines.write("pause", [name], by)
            return True

        return do(self._database, deed)

    def resume(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            if not connection.execute(RESUME, (name,)).fetchall():
                return False
            lines.write("resume", [name], by)
            return True

        resumed = do(self._database, deed)
        self._wakes.hint({Line(name, lane) for lane in Lane})
        return resumed

    def waiting(self, name: str, limit: int) -> int:
        return pressure.waiting(self._database, name, limit)

    def tenants(self, name: str, limit: int) -> list[TenantView]:
        def work(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            asked = {"queue": name, "limit": limit, "most": TENANT_COUNTED, "skew": self._clock.offset}
            with connection.pipeline():
                cursors = [connection.execute(TENANTS, asked | {"lane": lane}) for lane in _CAREFUL]
            return [row for cursor in cursors for row in cursor.fetchall()]

        found: dict[str, tuple[int, timedelta]] = {}
        for tenant, count, oldest in self._database.run(work):
            before = found.get(tenant, (0, oldest))
            found[tenant] = before[0] + count, max(before[1], oldest)
        return [
            TenantView(name=tenant, ready=count, oldest_ready=oldest)
            for tenant, (count, oldest) in sorted(found.items())[:limit]
        ]

    def conceal(self, names: Collection[str]) -> None:
        if names and (new := sorted(set(names) - self.concealed())):
            self._database.run(self._conceal, new)

    def _conceal(self, connection: Connection, again: bool, names: Sequence[str]) -> None:
        [[may]] = connection.execute(MAY_CONCEAL).fetchall()
        if may:
            connection.execute(CONCEAL, (Texts(names),))
        else:
            log.warning(
                "this program's role may not tell the store that %s is sensitive: start a worker or a server that declares it",
                ", ".join(names),
            )

    def concealed(self) -> frozenset[str]:
        return self._database.run(lambda connection, again: concealed(connection))

    def names(self) -> list[str]:
        def work(connection: Connection, again: bool) -> list[str]:
            known, running, there = _there(connection, None)
            return [*{*known, *running}.union(*there.values())]

        return self._database.run(work)

    def list(
        self, most: int = COUNT_LIMIT, *, limit: int | None = None, of: Collection[str] | None = None
    ) -> list[QueueView]:
        def work(connection: Connection, again: bool) -> list[QueueView]:
            known, running, there = _there(connection, limit if of is None else 0)
            if of is None:
                # If there are more that have ready jobs, it is these: the database may have another order.
                ready = there[State.READY]
                wanted = ready if len(ready) == limit else {*known, *running}.union(*there.values())
                chosen = sorted(wanted)[:limit]
            else:
                chosen = sorted(set(of))
            told = {"skew": self._clock.offset, "limit": most, "of": Texts(chosen)}
            with connection.pipeline():
                cursors = {state: connection.execute(sql, told) for state, sql in COUNT.items()}
            counts = {
                state: {name: told for name, *told in cursor.fetchall()} for state, cursor in cursors.items()
            }
            return [_view(name, known, running, counts) for name in chosen]

        return self._database.run(work)


_Known = dict[str, tuple[datetime | None, str | None]]


def _there(connection: Connection, limit: int | None) -> tuple[_Known, dict[str, int], dict[State, set[str]]]:
    """What is known of queues, how many jobs of each run, and in which jobs stand: of each state so many."""
    with connection.pipeline():
        known = connection.execute(PAUSED)
        running = connection.execute(COUNT_RUNNING, (COUNT_LIMIT,))
        named = {
            state: connection.execute(sql, {"queues": limit}) for state, sql in NAMES.items() if limit != 0
        }
    there = {state: {name for (name,) in cursor.fetchall()} for state, cursor in named.items()}
    return {name: (at, by) for name, at, by in known.fetchall()}, dict(running.fetchall()), there


def _view(
    name: str, known: _Known, running: dict[str, int], counts: dict[State, dict[str, list[Any]]]
) -> QueueView:
    paused_at, paused_by = known.get(name, (None, None))
    ready, oldest = counts[State.READY][name]
    blocked, parked, rationed, held = counts[State.BLOCKED][name]
    return QueueView(
        name=name, ready=ready, scheduled=counts[State.SCHEDULED][name][0], running=running.get(name, 0), blocked=blocked,
        parked=parked, rationed=rationed, held=held, dead=counts[State.DEAD][name][0], paused_by=paused_by, paused_at=paused_at,
        oldest_ready=oldest if ready else None, more_running=sum(running.values()) >= COUNT_LIMIT,
    )  # fmt: skip
