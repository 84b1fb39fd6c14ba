"""How much waits in a queue, and making room in it, in SQLite."""

from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.job import Lane
from lateshift.store.sqlite.database import Connection, Database

# How many jobs of a queue are due and wait, up to a limit. job_ready, job_held_up.
COUNT_WAITING = """SELECT (SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 1 AND queue = ?1 LIMIT ?2))
 + (SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 3 AND queue = ?1 LIMIT ?2))"""

# The priorities in use in one lane of a queue, from one to the next. job_ready.
LEVELS = """WITH RECURSIVE level(priority) AS (
  SELECT max(priority) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2
  UNION ALL
  SELECT (SELECT max(priority) FROM job WHERE state = 1 AND queue = ?1 AND lane = ?2 AND priority < level.priority)
  FROM level WHERE level.priority IS NOT NULL)
 SELECT priority FROM level WHERE priority IS NOT NULL"""

# Ready jobs of one priority, those that wait longest first; not a workflow that has begun, which would have to undo what it did,
# nor a step of one, which would have failed. job_ready.
LONGEST = """SELECT due_at, id FROM job WHERE state = 1 AND queue = ? AND lane = ? AND priority = ?
 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.id IN (job.id, job.batch)) ORDER BY due_at, id LIMIT ?"""

# Ready jobs under a priority, the lowest first, of each the one that came last. job_ready, backwards.
LOWEST = """SELECT priority, due_at, id FROM job WHERE state = 1 AND queue = ? AND lane = ? AND priority < ?
 AND NOT EXISTS (SELECT 1 FROM run r WHERE r.id IN (job.id, job.batch)) ORDER BY priority, due_at DESC, id DESC LIMIT ?"""


def waiting(database: Database, name: str, limit: int) -> int:
    with database.read() as connection:
        counted: int = connection.execute(COUNT_WAITING, (name, limit)).fetchall()[0][0]
    return min(counted, limit)


def to_shed(connection: Connection, name: str, count: int, below: int | None) -> list[JobId]:
    """Which jobs have to make room."""
    found: list[tuple[Any, ...]] = []
    for lane in Lane:
        if below is not None:
            rows = connection.execute(LOWEST, (name, int(lane), below, count)).fetchall()
            found += [(priority, -due, id) for priority, due, id in rows]
            continue
        for (level,) in connection.execute(LEVELS, (name, int(lane))).fetchall():
            found += connection.execute(LONGEST, (name, int(lane), level, count)).fetchall()
    return [UUID(bytes=row[-1]) for row in sorted(found)[:count]]
