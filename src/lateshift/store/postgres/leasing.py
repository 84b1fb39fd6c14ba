"""How jobs are given out: one statement raises the fence and counts the attempt.

The ids are picked in a materialised step and then looked up by primary key through an array, so that whatever the
statistics say, the statement takes no more than it was asked for and never reads the whole table."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from psycopg import Cursor

from lateshift.model.ids import MemberId
from lateshift.model.job import Lease
from lateshift.store.contract import LANES, Want
from lateshift.store.postgres.database import Connection

_COLUMNS = "id, fence, task, payload, attempt, attempts, time_limit, queue, lane, exclusive, checkpoint, history, batch"
_TAKE = """UPDATE lateshift.job SET state = 2, attempt = attempt + 1, fence = fence + 1, holder = %(holder)s,
 leased_at = clock_timestamp() + %(skew)s::interval, complete_by = clock_timestamp() + %(skew)s::interval + time_limit"""
_OPEN = """NOT EXISTS (SELECT 1 FROM lateshift.queue WHERE name = %(queue)s AND paused_at IS NOT NULL)
 AND EXISTS (SELECT 1 FROM lateshift.member WHERE id = %(holder)s AND dead_at IS NULL)"""
_LINE = "state = 1 AND queue = %(queue)s AND lane = %(lane)s::smallint"

# Up to n ready jobs of one line, in order. job_ready.
LEASE = f"""WITH picked AS MATERIALIZED (SELECT id FROM lateshift.job WHERE {_LINE} AND {_OPEN}
 ORDER BY priority DESC, due_at, id LIMIT %(count)s FOR UPDATE SKIP LOCKED),
taken AS ({_TAKE} WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING {_COLUMNS}, priority, due_at)
SELECT {_COLUMNS} FROM taken ORDER BY priority DESC, due_at, id"""

# The same from the priority whose head waits longest: a probe for each priority in use. job_ready.
LEASE_BY_AGE = f"""WITH RECURSIVE level AS (
  (SELECT priority, due_at FROM lateshift.job WHERE {_LINE} ORDER BY priority DESC, due_at LIMIT 1)
  UNION ALL
  SELECT next.priority, next.due_at FROM level, LATERAL (SELECT priority, due_at FROM lateshift.job
    WHERE {_LINE} AND priority < level.priority ORDER BY priority DESC, due_at LIMIT 1) next),
picked AS MATERIALIZED (SELECT id FROM lateshift.job WHERE {_LINE} AND {_OPEN}
 AND priority = (SELECT priority FROM level ORDER BY due_at LIMIT 1)
 ORDER BY due_at, id LIMIT %(count)s FOR UPDATE SKIP LOCKED),
taken AS ({_TAKE} WHERE id = ANY(ARRAY(SELECT id FROM picked)) RETURNING {_COLUMNS}, priority, due_at)
SELECT {_COLUMNS} FROM taken ORDER BY priority DESC, due_at, id"""

# The priority whose head waits longest. job_ready.
OLDEST_LEVEL = f"""WITH RECURSIVE level AS (
  (SELECT priority, due_at FROM lateshift.job WHERE {_LINE} ORDER BY priority DESC, due_at LIMIT 1)
  UNION ALL
  SELECT next.priority, next.due_at FROM level, LATERAL (SELECT priority, due_at FROM lateshift.job
    WHERE {_LINE} AND priority < level.priority ORDER BY priority DESC, due_at LIMIT 1) next)
SELECT priority FROM level ORDER BY due_at LIMIT 1"""

# Candidates of a careful lane, with the key that only one may hold. job_ready.
CANDIDATES = f"""SELECT id, exclusive FROM lateshift.job WHERE {_LINE} AND {_OPEN}
 ORDER BY priority DESC, due_at, id LIMIT %(count)s FOR UPDATE SKIP LOCKED"""
CANDIDATES_LEVEL = f"""SELECT id, exclusive FROM lateshift.job WHERE {_LINE} AND {_OPEN}
 AND priority = %(level)s::smallint ORDER BY due_at, id LIMIT %(count)s FOR UPDATE SKIP LOCKED"""
# A key's lock, held until the end of the transaction; whoever does not get it leaves the job as it is.
LOCK_KEY = "SELECT pg_try_advisory_xact_lock(hashtextextended('lateshift ' || %s, 0))"
# job_exclusive
HELD_KEY = "SELECT 1 FROM lateshift.job WHERE exclusive = %s AND state = 2 LIMIT 1"
# The ready jobs of a key that is held wait for it, many at once so that they delay nobody else. job_exclusive.
BLOCK = """WITH waiting AS MATERIALIZED (SELECT id FROM lateshift.job WHERE exclusive = %s AND state = 1 LIMIT 1000
 FOR UPDATE SKIP LOCKED)
UPDATE lateshift.job SET state = 3 WHERE id = ANY(ARRAY(SELECT id FROM waiting))"""
LEASE_ONE = f"{_TAKE} WHERE id = %(id)s AND state = 1 RETURNING {_COLUMNS}"

_ROUNDS = 10  # of blocking, before a claim leaves the rest to the next

# What a member holds, each with the time that is left of its limit. job_running.
_LEFT = """CASE WHEN complete_by IS NOT NULL
 THEN greatest(complete_by - clock_timestamp() - %(skew)s::interval, interval '0') END"""
HELD = f"""SELECT {_COLUMNS.replace("time_limit", _LEFT)} FROM lateshift.job
 WHERE holder = %(holder)s AND state = 2"""


def send(
    connection: Connection, holder: MemberId, wants: Sequence[Want], skew: timedelta
) -> list[Cursor[Any]]:
    """Queue the statements in the caller's pipeline."""
    return [
        connection.execute(
            LEASE_BY_AGE if want.by_age else LEASE, _parameters(want, holder, skew), binary=True
        )
        for want in wants
    ]


def receive(cursors: Iterable[Cursor[Any]]) -> list[Lease]:
    return [lease for cursor in cursors for lease in _leases(cursor.fetchall())]


def lease_carefully(connection: Connection, holder: MemberId, want: Want, skew: timedelta) -> list[Lease]:
    """One running job for each exclusive key: what finds its key held is blocked until the holder is settled."""
    rows: list[tuple[Any, ...]] = []
    with connection.transaction():
        for _ in range(_ROUNDS):
            blocked = False
            for id, exclusive in _candidates(connection, holder, want, skew, want.count - len(rows)):
                if exclusive is not None:
                    [[locked]] = connection.execute(LOCK_KEY, (exclusive,)).fetchall()
                    if not locked:
                        continue
                    if connection.execute(HELD_KEY, (exclusive,)).fetchall():
                        connection.execute(BLOCK, (exclusive,))
                        blocked = True
                        continue
                one = {"holder": holder, "skew": skew, "id": id}
                rows += connection.execute(LEASE_ONE, one, binary=True).fetchall()
            if not blocked:
                break
    return _leases(rows)


def _candidates(
    connection: Connection, holder: MemberId, want: Want, skew: timedelta, count: int
) -> list[tuple[Any, ...]]:
    parameters = {**_parameters(want, holder, skew), "count": count}
    level = connection.execute(OLDEST_LEVEL, parameters).fetchall() if want.by_age else []
    if level:
        return connection.execute(
            CANDIDATES_LEVEL, parameters | {"level": level[0][0]}, binary=True
        ).fetchall()
    return connection.execute(CANDIDATES, parameters, binary=True).fetchall()


def held(connection: Connection, holder: MemberId, skew: timedelta) -> list[Lease]:
    return _leases(connection.execute(HELD, {"holder": holder, "skew": skew}, binary=True).fetchall())


def _parameters(want: Want, holder: MemberId, skew: timedelta) -> dict[str, Any]:
    return {
        "queue": want.line.queue, "lane": int(want.line.lane), "count": want.count, "holder": holder, "skew": skew,
    }  # fmt: skip


def _leases(rows: Iterable[tuple[Any, ...]]) -> list[Lease]:
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
        )
        for id, fence, task, payload, attempt, attempts, limit, queue, lane, exclusive, checkpoint, history, batch in rows
    ]
