"""How jobs are given out: one statement raises the fence and counts the attempt.

The ids are picked in a materialised step and then looked up by primary key through an array, so that whatever the
statistics say, the statement takes no more than it was asked for and never reads the whole table."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from psycopg import Cursor

from lateshift.model.ids import MemberId
from lateshift.model.job import Lease
from lateshift.store.contract import Want
from lateshift.store.lines import LANES
from lateshift.store.postgres.database import Connection

COLUMNS = """id, fence, task, payload, attempt, attempts, time_limit, queue, lane, exclusive, checkpoint, history, batch, trace,
 due_at, leased_at"""
TAKE = """UPDATE lateshift.job SET state = 2, attempt = attempt + 1, fence = fence + 1, holder = %(holder)s,
 leased_at = clock_timestamp() + %(skew)s::interval, complete_by = clock_timestamp() + %(skew)s::interval + time_limit"""
# One whose heartbeat has run out is as good as dead, though nobody may have said so yet.
OPEN = """NOT EXISTS (SELECT 1 FROM lateshift.queue WHERE name = %(queue)s AND paused_at IS NOT NULL)
 AND EXISTS (SELECT 1 FROM lateshift.member WHERE id = %(holder)s AND dead_at IS NULL
  AND expires_at > clock_timestamp() + %(skew)s::interval)"""
LINE = "state = 1 AND queue = %(queue)s AND lane = %(lane)s::smallint"

# Up to n ready jobs of one line, in order. job_ready.
LEASE = f"""WITH picked AS MATERIALIZED (SELECT id FROM lateshift.job WHERE {LINE} AND {OPEN}
 ORDER BY priority DESC, due_at, id LIMIT %(count)s FOR UPDATE SKIP LOCKED),
taken AS ({TAKE} WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING {COLUMNS}, priority)
SELECT {COLUMNS} FROM taken ORDER BY priority DESC, due_at, id"""

# The same from the priority whose head waits longest: a probe for each priority in use. job_ready.
LEASE_BY_AGE = f"""WITH RECURSIVE level AS (
  (SELECT priority, due_at FROM lateshift.job WHERE {LINE} ORDER BY priority DESC, due_at LIMIT 1)
  UNION ALL
  SELECT next.priority, next.due_at FROM level, LATERAL (SELECT priority, due_at FROM lateshift.job
    WHERE {LINE} AND priority < level.priority ORDER BY priority DESC, due_at LIMIT 1) next),
picked AS MATERIALIZED (SELECT id FROM lateshift.job WHERE {LINE} AND {OPEN}
 AND priority = (SELECT priority FROM level ORDER BY due_at LIMIT 1)
 ORDER BY due_at, id LIMIT %(count)s FOR UPDATE SKIP LOCKED),
taken AS ({TAKE} WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING {COLUMNS}, priority)
SELECT {COLUMNS} FROM taken ORDER BY priority DESC, due_at, id"""

# The priority whose head waits longest. job_ready.
OLDEST_LEVEL = f"""WITH RECURSIVE level AS (
  (SELECT priority, due_at FROM lateshift.job WHERE {LINE} ORDER BY priority DESC, due_at LIMIT 1)
  UNION ALL
  SELECT next.priority, next.due_at FROM level, LATERAL (SELECT priority, due_at FROM lateshift.job
    WHERE {LINE} AND priority < level.priority ORDER BY priority DESC, due_at LIMIT 1) next)
SELECT priority FROM level ORDER BY due_at LIMIT 1"""

# What a member holds, each with the time that is left of its limit. job_running.
_LEFT = """CASE WHEN complete_by IS NOT NULL
 THEN greatest(complete_by - clock_timestamp() - %(skew)s::interval, interval '0') END"""
HELD = f"""SELECT {COLUMNS.replace("time_limit", _LEFT)} FROM lateshift.job
 WHERE holder = %(holder)s AND state = 2"""


def send(
    connection: Connection, holder: MemberId, wants: Sequence[Want], skew: timedelta
) -> list[Cursor[Any]]:
    """Queue the statements in the caller's pipeline."""
    return [
        connection.execute(
            LEASE_BY_AGE if want.by_age else LEASE, parameters_of(want, holder, skew), binary=True
        )
        for want in wants
    ]


def receive(cursors: Iterable[Cursor[Any]]) -> list[Lease]:
    return [lease for cursor in cursors for lease in leases_of(cursor.fetchall())]


def held(connection: Connection, holder: MemberId, skew: timedelta) -> list[Lease]:
    return leases_of(connection.execute(HELD, {"holder": holder, "skew": skew}, binary=True).fetchall())


def parameters_of(want: Want, holder: MemberId, skew: timedelta) -> dict[str, Any]:
    return {
        "queue": want.line.queue, "lane": int(want.line.lane), "count": want.count, "holder": holder, "skew": skew,
    }  # fmt: skip


def leases_of(rows: Iterable[tuple[Any, ...]]) -> list[Lease]:
    return [
        Lease(
            id,
            fence,
            task,
            payload,
            attempt,
            attempts,
            limit,
            queue,
            LANES[lane],
            exclusive,
            checkpoint,
            history,
            batch,
            trace=trace,
            waited=(leased - due).total_seconds() if leased > due else 0.0,
        )
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
            batch,
            trace,
            due,
            leased,
        ) in rows
    ]
