"""How much waits in a queue, and making room in it, in PostgreSQL."""

from typing import Any

from lateshift.model.ids import JobId
from lateshift.model.job import Lane
from lateshift.store.postgres.database import Connection, Database

# How many jobs of a queue are due and wait, up to a limit. job_ready, job_held_up.
COUNT_WAITING = """SELECT
 (SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE state = 1 AND queue = %(queue)s LIMIT %(limit)s) AS bounded)
 + (SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE state = 3 AND queue = %(queue)s LIMIT %(limit)s) AS bounded)"""

# The priorities in use in one lane of a queue, from one to the next. job_ready.
LEVELS = """WITH RECURSIVE level AS (
  (SELECT priority FROM lateshift.job WHERE state = 1 AND queue = %(queue)s AND lane = %(lane)s
   ORDER BY priority DESC LIMIT 1)
  UNION ALL
  SELECT next.priority FROM level, LATERAL (SELECT priority FROM lateshift.job WHERE state = 1 AND queue = %(queue)s
   AND lane = %(lane)s AND priority < level.priority ORDER BY priority DESC LIMIT 1) next)
SELECT priority FROM level"""

# Ready jobs of one priority, those that wait longest first; not a workflow that has begun, which would have to undo what it did,
# nor a step of one, which would have failed. job_ready.
LONGEST = """SELECT due_at, id FROM lateshift.job WHERE state = 1 AND queue = %s AND lane = %s AND priority = %s
 AND NOT EXISTS (SELECT 1 FROM lateshift.run r WHERE r.id IN (job.id, job.batch)) ORDER BY due_at, id LIMIT %s"""

# Ready jobs under a priority, the lowest first, of each the one that came last. job_ready, backwards.
LOWEST = """SELECT priority, due_at, id FROM lateshift.job WHERE state = 1 AND queue = %s AND lane = %s
 AND priority < %s
 AND NOT EXISTS (SELECT 1 FROM lateshift.run r WHERE r.id IN (job.id, job.batch)) ORDER BY priority, due_at DESC, id DESC LIMIT %s"""

# Which of these jobs were shed, as an earlier try whose answer was lost may have done. Primary key.
WERE_SHED = "SELECT id FROM lateshift.settled WHERE id = ANY(%s) AND state = 5 AND reason = %s"


def waiting(database: Database, name: str, limit: int) -> int:
    parameters = {"queue": name, "limit": limit}
    [[counted]] = database.run(
        lambda connection, again: connection.execute(COUNT_WAITING, parameters).fetchall()
    )
    return min(int(counted), limit)


def to_shed(connection: Connection, again: bool, name: str, count: int, below: int | None) -> list[JobId]:
    """Which jobs have to make room."""
    found: list[tuple[Any, ...]] = []
    for lane in map(int, Lane):
        if below is not None:
            rows = connection.execute(LOWEST, (name, lane, below, count)).fetchall()
            found += [(priority, -due.timestamp(), id) for priority, due, id in rows]
            continue
        for (level,) in connection.execute(LEVELS, {"queue": name, "lane": lane}).fetchall():
            found += connection.execute(LONGEST, (name, lane, level, count)).fetchall()
    return [row[-1] for row in sorted(found)[:count]]
