"""How jobs are given out: one statement raises the fence and counts the attempt."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any

from lateshift.model.ids import MemberId, job_id_of
from lateshift.model.job import Lease
from lateshift.store.contract import LANES, Want
from lateshift.store.sqlite.database import Connection

_COLUMNS = """id, fence, task, payload, attempt, attempts, time_limit, queue, lane, exclusive, checkpoint, history,
 -priority, due_at, batch"""
_TAKE = """UPDATE job SET state = 2, attempt = attempt + 1, fence = fence + 1, holder = ?1, leased_at = ?2,
 complete_by = ?2 + time_limit"""

# Up to n ready jobs of one line, in order. job_ready.
LEASE = f"""{_TAKE} WHERE id IN (SELECT id FROM job WHERE state = 1 AND queue = ?3 AND lane = ?4
 ORDER BY priority DESC, due_at, id LIMIT ?5) RETURNING {_COLUMNS}"""

# The same from one priority. job_ready.
LEASE_LEVEL = f"""{_TAKE} WHERE id IN (SELECT id FROM job WHERE state = 1 AND queue = ?3 AND lane = ?4
 AND priority = ?6 ORDER BY due_at, id LIMIT ?5) RETURNING {_COLUMNS}"""

# The priority whose head waits longest: a probe for each priority in use. job_ready.
OLDEST_LEVEL = """WITH RECURSIVE level(priority) AS (
  SELECT max(priority) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
  UNION ALL
  SELECT (SELECT max(priority) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2 AND priority < level.priority)
  FROM level WHERE level.priority IS NOT NULL)
 SELECT priority FROM level WHERE priority IS NOT NULL ORDER BY
 (SELECT min(due_at) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2 AND priority = level.priority) LIMIT 1"""

# Candidates of a careful lane, with the key that only one may hold. job_ready.
CANDIDATES = """SELECT id, exclusive FROM job WHERE state = 1 AND queue = ? AND lane = ?
 ORDER BY priority DESC, due_at, id LIMIT ?"""
CANDIDATES_LEVEL = """SELECT id, exclusive FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
 AND priority = ?4 ORDER BY due_at, id LIMIT ?3"""
# job_exclusive
HELD_KEY = "SELECT 1 FROM job WHERE exclusive = ? AND state = 2 LIMIT 1"
# The ready jobs of a key that is held wait for it, many at once so that they delay nobody else. job_exclusive.
BLOCK = """UPDATE job SET state = 3 WHERE id IN
 (SELECT id FROM job WHERE exclusive = ? AND state = 1 LIMIT 1000)"""
LEASE_ONE = f"{_TAKE} WHERE id = ?3 AND state = 1 RETURNING {_COLUMNS}"

# What a member holds, each with the time that is left of its limit. job_running.
HELD = f"""SELECT {_COLUMNS.replace("time_limit", "max(complete_by - ?2, 0)")} FROM job
 WHERE holder = ?1 AND state = 2"""

ALIVE = "SELECT 1 FROM member WHERE id = ? AND dead_at IS NULL"
PAUSED = "SELECT 1 FROM queue WHERE name = ? AND paused_at IS NOT NULL"

_ROUNDS = 10  # of blocking, before a claim leaves the rest to the next

_order = itemgetter(12, 13, 0)


def lease(connection: Connection, holder: MemberId, wants: Sequence[Want], now: int) -> list[Lease]:
    if not wants or not connection.execute(ALIVE, (holder.bytes,)).fetchall():
        return []
    leases: list[Lease] = []
    for want in wants:
        queue, lane = want.line.queue, int(want.line.lane)
        if want.count < 1 or connection.execute(PAUSED, (queue,)).fetchall():
            continue
        if want.line.lane.careful:
            leases += _carefully(connection, holder.bytes, want, now)
            continue
        arguments: tuple[Any, ...] = (holder.bytes, now, queue, lane, want.count)
        level = connection.execute(OLDEST_LEVEL, (queue, lane)).fetchall() if want.by_age else []
        rows = (
            connection.execute(LEASE_LEVEL, (*arguments, *level[0]))
            if level
            else connection.execute(LEASE, arguments)
        )
        leases += _leases(sorted(rows.fetchall(), key=_order))
    return leases


def _carefully(connection: Connection, holder: bytes, want: Want, now: int) -> list[Lease]:
    """One running job for each exclusive key: what finds its key held is blocked until the holder is settled."""
    rows: list[tuple[Any, ...]] = []
    line = (want.line.queue, int(want.line.lane))
    for _ in range(_ROUNDS):
        blocked = False
        level = connection.execute(OLDEST_LEVEL, line).fetchall() if want.by_age else []
        row = (*line, want.count - len(rows))
        candidates = (
            connection.execute(CANDIDATES_LEVEL, (*row, *level[0]))
            if level
            else connection.execute(CANDIDATES, row)
        )
        for id, exclusive in candidates.fetchall():
            if exclusive is not None and connection.execute(HELD_KEY, (exclusive,)).fetchall():
                connection.execute(BLOCK, (exclusive,))
                blocked = True
            else:
                rows += connection.execute(LEASE_ONE, (holder, now, id)).fetchall()
        if not blocked:
            break
    return _leases(rows)


def held(connection: Connection, holder: MemberId, now: int) -> list[Lease]:
    return _leases(connection.execute(HELD, (holder.bytes, now)).fetchall())


def _leases(rows: Iterable[tuple[Any, ...]]) -> list[Lease]:
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
        _,
        batch,
    ) in rows:
        if limit not in limits:
            limits[limit] = timedelta(microseconds=limit)
        leases.append(
            Lease(
                job_id_of(id), fence, task, payload, attempt, attempts, limits[limit], queue, LANES[lane],
                exclusive, checkpoint, history, None if batch is None else job_id_of(batch),
            )
        )  # fmt: skip
    return leases
