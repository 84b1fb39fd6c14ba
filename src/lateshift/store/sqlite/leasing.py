"""How jobs are given out: one statement raises the fence and counts the attempt."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import repeat
from operator import itemgetter
from typing import Any

from lateshift.model.ids import MemberId, job_id_of
from lateshift.model.job import Lease
from lateshift.store.contract import Want
from lateshift.store.lines import LANES
from lateshift.store.sqlite.database import Connection

COLUMNS = """id, fence, task, payload, attempt, attempts, time_limit, queue, lane, exclusive, checkpoint, history,
 -priority, due_at, batch, trace, leased_at"""
TAKE = """UPDATE job SET state = 2, attempt = attempt + 1, fence = fence + 1, holder = ?1, leased_at = ?2,
 complete_by = ?2 + time_limit"""

# Up to n ready jobs of one line, in order. job_ready.
LEASE = f"""{TAKE} WHERE id IN (SELECT id FROM job WHERE state = 1 AND queue = ?3 AND lane = ?4
 ORDER BY priority DESC, due_at, id LIMIT ?5) RETURNING {COLUMNS}"""

# The same from one priority. job_ready.
LEASE_LEVEL = f"""{TAKE} WHERE id IN (SELECT id FROM job WHERE state = 1 AND queue = ?3 AND lane = ?4
 AND priority = ?6 ORDER BY due_at, id LIMIT ?5) RETURNING {COLUMNS}"""

# The priority whose head waits longest: a probe for each priority in use. job_ready.
OLDEST_LEVEL = """WITH RECURSIVE level(priority) AS (
  SELECT max(priority) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
  UNION ALL
  SELECT (SELECT max(priority) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2 AND priority < level.priority)
  FROM level WHERE level.priority IS NOT NULL)
 SELECT priority FROM level WHERE priority IS NOT NULL ORDER BY
 (SELECT min(due_at) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2 AND priority = level.priority) LIMIT 1"""

# What a member holds, each with the time that is left of its limit. job_running.
HELD = f"""SELECT {COLUMNS.replace("time_limit", "max(complete_by - ?2, 0)")} FROM job
 WHERE holder = ?1 AND state = 2"""

# One whose heartbeat has run out is as good as dead, though nobody may have said so yet. Primary key.
ALIVE = "SELECT 1 FROM member WHERE id = ? AND dead_at IS NULL AND expires_at > ?"
PAUSED = "SELECT 1 FROM queue WHERE name = ? AND paused_at IS NOT NULL"

_order = itemgetter(12, 13, 0)


def may_lease(connection: Connection, holder: MemberId, now: int) -> bool:
    return bool(connection.execute(ALIVE, (holder.bytes, now)).fetchall())


def is_open(connection: Connection, want: Want) -> bool:
    return want.count > 0 and not connection.execute(PAUSED, (want.line.queue,)).fetchall()


def lease(connection: Connection, holder: MemberId, want: Want, now: int) -> list[Lease]:
    queue, lane = want.line.queue, int(want.line.lane)
    arguments: tuple[Any, ...] = (holder.bytes, now, queue, lane, want.count)
    level = connection.execute(OLDEST_LEVEL, (queue, lane)).fetchall() if want.by_age else []
    rows = (
        connection.execute(LEASE_LEVEL, (*arguments, *level[0]))
        if level
        else connection.execute(LEASE, arguments)
    )
    return leases_of(sorted(rows.fetchall(), key=_order))


def held(connection: Connection, holder: MemberId, now: int) -> list[Lease]:
    return leases_of(connection.execute(HELD, (holder.bytes, now)).fetchall())


Guards = tuple[str | None, bytes | None, str | None]
"""Of a lease: its session, what that keeps, the key of its limit."""

NO_GUARDS: Guards = (None, None, None)


def leases_of(rows: Iterable[tuple[Any, ...]], guards: Iterable[Guards] = repeat(NO_GUARDS)) -> list[Lease]:
    limits: dict[int | None, timedelta | None] = {None: None}
    leases = []
    for (
        id,
        fence,
        task,
        payload,
        attempt,
        attempts,
        limit,
        queue,
        lane,
        exclusive,
        checkpoint,
        history,
        _,
        due,
        batch,
        trace,
        leased,
    ), (session, kept, limit_key) in zip(rows, guards, strict=False):
        if limit not in limits:
            limits[limit] = timedelta(microseconds=limit)
        leases.append(
            Lease(
                job_id_of(id), fence, task, payload, attempt, attempts, limits[limit], queue, LANES[lane],
                exclusive, checkpoint, history, None if batch is None else job_id_of(batch), session,
                kept, limit_key, False, trace, (leased - due) / 1_000_000 if leased > due else 0.0,
            )
        )  # fmt: skip
    return leases
