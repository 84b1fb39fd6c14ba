"""Pausing queues, and how much stands in each, in PostgreSQL."""

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from lateshift.model.job import Lane, Line
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

# The queues with ready jobs, from one to the next (job_ready), each counted up to the limit.
_NAMES = """WITH RECURSIVE name AS (
  (SELECT queue FROM lateshift.job WHERE state = 1 ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT next.queue FROM name, LATERAL (SELECT queue FROM lateshift.job
    WHERE state = 1 AND queue > name.queue ORDER BY queue LIMIT 1) next)"""
_COUNTED = """LATERAL (SELECT count(*) AS n, min(due_at) AS oldest FROM
  (SELECT due_at FROM lateshift.job j WHERE j.state = 1 AND j.queue = name.queue LIMIT %(limit)s) AS bounded) counted"""
_READY = (
    "SELECT queue, counted.n, greatest(clock_timestamp() + %(skew)s::interval - counted.oldest, interval '0')"
)
READY = f"{_NAMES} {_READY} FROM (SELECT queue FROM name LIMIT %(queues)s::bigint) AS name, {_COUNTED}"
READY_NAMES = f"{_NAMES} SELECT queue FROM name"
READY_OF = f"{_READY} FROM unnest(%(of)b::text[]) AS name (queue), {_COUNTED} WHERE counted.n > 0"
COUNT_SCHEDULED = """SELECT queue, count(*) FROM
 (SELECT queue FROM lateshift.job WHERE state = 0 ORDER BY due_at LIMIT %s) AS bounded GROUP BY queue"""
COUNT_RUNNING = "SELECT queue, count(*) FROM (SELECT queue FROM lateshift.job WHERE state = 2 LIMIT %s) AS bounded GROUP BY queue"
COUNT_BLOCKED = """SELECT queue, count(*), count(*) FILTER (WHERE starts_with(blocked_by, 'breaker:')),
 count(*) FILTER (WHERE blocked_by = 'rate:queue:' || queue), count(*) FILTER (WHERE held)
 FROM (SELECT queue, blocked_by, CASE WHEN blocked_by ~ '^(session|sequence):' THEN EXISTS (SELECT 1 FROM lateshift.session k
   WHERE k.queue = job.queue AND k.name = job.session AND k.held_why IS NOT NULL LIMIT 1) ELSE false END AS held
  FROM lateshift.job WHERE state = 3 LIMIT %s) AS bounded GROUP BY queue"""
COUNT_DEAD = """SELECT queue, count(*) FROM
 (SELECT queue FROM lateshift.settled WHERE state = 6 LIMIT %s) AS bounded GROUP BY queue"""
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
KNOWN = "SELECT name, paused_at, paused_by FROM lateshift.queue"
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
            some = (COUNT_LIMIT,)
            with connection.pipeline():
                cursors = [connection.execute(READY_NAMES), connection.execute(KNOWN)]
                cursors += [
                    connection.execute(sql, some)
                    for sql in (COUNT_SCHEDULED, COUNT_RUNNING, COUNT_BLOCKED, COUNT_DEAD)
                ]
            return [*{row[0] for cursor in cursors for row in cursor.fetchall()}]

        return self._database.run(work)

    def list(
        self, most: int = COUNT_LIMIT, *, limit: int | None = None, of: Collection[str] | None = None
    ) -> list[QueueView]:
        def work(connection: Connection, again: bool) -> list[list[tuple[Any, ...]]]:
            some = (most,)
            with connection.pipeline():
                told: dict[str, Any] = {"skew": self._clock.offset, "limit": most}
                told |= {"queues": limit} if of is None else {"of": Texts(of)}
                cursors = [connection.execute(READY if of is None else READY_OF, told)]
                cursors += [
                    connection.execute(sql, some)
                    for sql in (COUNT_SCHEDULED, COUNT_RUNNING, COUNT_BLOCKED, COUNT_DEAD)
                ]
                cursors.append(connection.execute(KNOWN))
            return [cursor.fetchall() for cursor in cursors]

        ready_rows, *counted, known_rows = self._database.run(work)
        blocked = {name: rest for name, *rest in counted.pop(2)}
        scheduled, running, dead = (dict(rows) for rows in counted)
        ready = {name: (count, oldest) for name, count, oldest in ready_rows}
        known = {name: (at, by) for name, at, by in known_rows}

        def view(name: str) -> QueueView:
            paused_at, paused_by = known.get(name, (None, None))
            count, oldest = ready.get(name, (0, None))
            held_up, parked, rationed, held = blocked.get(name, (0, 0, 0, 0))
            return QueueView(
                name=name, ready=count, scheduled=scheduled.get(name, 0), running=running.get(name, 0),
                blocked=held_up, parked=parked, rationed=rationed, held=held, dead=dead.get(name, 0), paused_by=paused_by,
                paused_at=paused_at, oldest_ready=oldest,
            )  # fmt: skip

        if of is not None:
            return [view(name) for name in sorted(set(of))]
        # If there are more that have ready jobs, it is these, all of which were counted: the database may have another order.
        names = sorted(
            ready if len(ready) == limit else {*known, *scheduled, *running, *blocked, *dead, *ready}
        )
        return [view(name) for name in names[:limit]]
