"""Which jobs a filter means, newest first, in PostgreSQL: those of a batch, a session or a tenant by the index that knows them."""

from typing import Any

from lateshift.model.job import JobFilter, Lane, State
from lateshift.store.contract import Rows
from lateshift.store.guards import IN_LINE, NOT_IN_LINE
from lateshift.store.postgres.database import Connection

MANY = 1000  # jobs of a session or a tenant, from which on a page of them is soon found among all

HOT = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 complete_by, NULL::timestamptz, holder, cancel_by IS NOT NULL, payload, NULL::bytea, NULL::text, progress, checkpoint,
 history, exclusive, batch, session, sequence, nullif(tenant, ''), limit_key"""
COLD = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 NULL::timestamptz, settled_at, holder, false, payload, result, reason, progress, checkpoint, history, exclusive,
 batch, session, sequence, nullif(tenant, ''), limit_key"""

_FITS = """id < %(before)s AND (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(task)s::text IS NULL OR task = %(task)s)
 AND (%(state)s::smallint IS NULL OR state = %(state)s) AND (%(session)s::text IS NULL OR session = %(session)s)
 AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s) AND (%(batch)s::uuid IS NULL OR batch = %(batch)s)"""
_PAGE = f"{_FITS} ORDER BY id DESC LIMIT %(limit)s"
_NOT_ENDED = "%(reason)s::text IS NULL"
_ENDED_PAGE = f"(%(reason)s::text IS NULL OR reason = %(reason)s) AND {_PAGE}"
# Newest first, by the order of the ids. Primary keys; settled_dead for dead letters.
HOT_JOBS = f"SELECT {HOT} FROM lateshift.job WHERE {_NOT_ENDED} AND {_PAGE}"
COLD_JOBS = f"SELECT {COLD} FROM lateshift.settled WHERE {_ENDED_PAGE}"
DEAD_JOBS = f"SELECT {COLD} FROM lateshift.settled WHERE state = 6 AND {_ENDED_PAGE}"
# The same of one batch. job_batch, settled_batch, settled_batch_dead.
HOT_OF_BATCH = f"SELECT {HOT} FROM lateshift.job WHERE batch = %(batch)s AND {_NOT_ENDED} AND {_PAGE}"
COLD_OF_BATCH = f"SELECT {COLD} FROM lateshift.settled WHERE batch = %(batch)s AND {_ENDED_PAGE}"
DEAD_OF_BATCH = (
    f"SELECT {COLD} FROM lateshift.settled WHERE batch = %(batch)s AND state = 6 AND {_ENDED_PAGE}"
)


def _queues(known: str, order: str) -> str:
    """Sessions and tenants belong to a queue: `q` has every queue of which such jobs are known, found from one to the next in
    the order of their index."""
    first = f"SELECT queue FROM lateshift.job WHERE {known}{{}} ORDER BY {order} LIMIT 1"
    return f"""WITH RECURSIVE q AS (({first.format("")})
  UNION ALL SELECT next.queue FROM q, LATERAL ({first.format(" AND queue > q.queue")}) next)"""


def _found(queues: str, *by: str) -> str:
    """The newest of what stands in these parts of the table, no job in two."""
    parts = "\n UNION ALL ".join(f"SELECT id FROM lateshift.job WHERE {part} AND {_FITS}" for part in by)
    return f"""{queues}, found AS MATERIALIZED ({parts})
SELECT {HOT} FROM lateshift.job WHERE {_NOT_ENDED}
 AND id = ANY(ARRAY(SELECT id FROM found ORDER BY id DESC LIMIT %(limit)s)) ORDER BY id DESC"""


def _many(queues: str, part: str) -> str:
    """Whether there are so many that the newest are found sooner by going through all jobs."""
    return f"{queues} SELECT count(*) >= {MANY} FROM (SELECT 1 FROM lateshift.job WHERE {part} LIMIT {MANY}) first"


_IN_QUEUES = "queue = ANY(ARRAY(SELECT queue FROM q))"
_LANES = ", ".join(f"{lane:d}" for lane in Lane if lane.careful)
# All that is scheduled: the bound leaves nothing out, and names the index.
_SCHEDULED = "state = 0 AND due_at >= '-infinity'"
# What has not ended of one session: its line; and, read through, what is scheduled for later. job_line, job_scheduled.
_SESSIONS = _queues(IN_LINE, "queue, session")
_LINE = f"{_IN_QUEUES} AND session = %(session)s AND {IN_LINE}"
HOT_OF_SESSION = _found(_SESSIONS, _LINE, f"session = %(session)s AND {_SCHEDULED} AND {NOT_IN_LINE}")
MANY_OF_SESSION = _many(_SESSIONS, _LINE)
# Of one tenant: what is ready; and, read through, what is not. job_tenant; job_scheduled, job_running, job_blocked.
_TENANTS = _queues("state = 1 AND tenant IS NOT NULL", "queue, lane, tenant")
_READY = f"state = 1 AND {_IN_QUEUES} AND lane = ANY('{{{_LANES}}}') AND tenant = %(tenant)s"
HOT_OF_TENANT = _found(
    _TENANTS,
    _READY,
    f"tenant = %(tenant)s AND {_SCHEDULED}",
    "tenant = %(tenant)s AND state = 2",
    "tenant = %(tenant)s AND state = 3",
)
MANY_OF_TENANT = _many(_TENANTS, _READY)


def read(connection: Connection, wanted: JobFilter, row: dict[str, Any]) -> Rows:
    """The newest such jobs: of the table of those that have not ended, of those that have, or of both."""
    asked: list[str] = []
    if wanted.state is None or not wanted.state.settled:
        asked.append(_hot(connection, wanted, row))
    if wanted.state is None or wanted.state.settled:
        asked.append(_cold(wanted))
    return [found for sql in asked for found in connection.execute(sql, row).fetchall()]


def _hot(connection: Connection, wanted: JobFilter, row: dict[str, Any]) -> str:
    if wanted.batch is not None:
        return HOT_OF_BATCH
    if wanted.session is not None:
        return HOT_JOBS if connection.execute(MANY_OF_SESSION, row).fetchall()[0][0] else HOT_OF_SESSION
    if wanted.tenant is not None:
        return HOT_JOBS if connection.execute(MANY_OF_TENANT, row).fetchall()[0][0] else HOT_OF_TENANT
    return HOT_JOBS


def _cold(wanted: JobFilter) -> str:
    if wanted.state is State.DEAD:
        return DEAD_JOBS if wanted.batch is None else DEAD_OF_BATCH
    return COLD_JOBS if wanted.batch is None else COLD_OF_BATCH
