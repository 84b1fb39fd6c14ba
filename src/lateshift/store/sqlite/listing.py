"""Which jobs a filter means, newest first, in SQLite: those of a batch, a session or a tenant by the index that knows them."""

from typing import Any

from lateshift.model.job import JobFilter, Lane, State
from lateshift.store.contract import Rows
from lateshift.store.guards import IN_LINE, NOT_IN_LINE
from lateshift.store.sqlite.database import Connection

MANY = 1000  # jobs of a session or a tenant, from which on a page of them is soon found among all

HOT = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 complete_by, NULL, holder, cancel_by IS NOT NULL, payload, NULL, NULL, progress, checkpoint, history, exclusive,
 batch, session, sequence, nullif(tenant, ''), limit_key"""
COLD = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 NULL, settled_at, holder, 0, payload, result, reason, progress, checkpoint, history, exclusive, batch, session, sequence, nullif(tenant, ''), limit_key"""

_FITS = """(?2 IS NULL OR queue = ?2) AND (?3 IS NULL OR task = ?3) AND (?4 IS NULL OR state = ?4)
 AND (?7 IS NULL OR session = ?7) AND (?8 IS NULL OR tenant = ?8) AND (?9 IS NULL OR batch = ?9)"""
_PAGE = f"id < ?1 AND {_FITS} ORDER BY id DESC LIMIT ?5"
_ENDED_PAGE = f"(?6 IS NULL OR reason = ?6) AND {_PAGE}"
# Newest first, by the order of the ids. Primary keys; settled_dead for dead letters.
HOT_JOBS = f"SELECT {HOT} FROM job WHERE ?6 IS NULL AND {_PAGE}"
COLD_JOBS = f"SELECT {COLD} FROM settled WHERE {_ENDED_PAGE}"
DEAD_JOBS = f"SELECT {COLD} FROM settled WHERE state = 6 AND {_ENDED_PAGE}"
# The same of one batch. job_batch, settled_batch, settled_batch_dead.
HOT_OF_BATCH = f"SELECT {HOT} FROM job WHERE batch = ?9 AND ?6 IS NULL AND {_PAGE}"
COLD_OF_BATCH = f"SELECT {COLD} FROM settled WHERE batch = ?9 AND {_ENDED_PAGE}"
DEAD_OF_BATCH = f"SELECT {COLD} FROM settled WHERE batch = ?9 AND state = 6 AND {_ENDED_PAGE}"


def _queues(known: str) -> str:
    """Sessions and tenants belong to a queue: `q` has every queue of which such jobs are known, found from one to the next."""
    return f"""WITH RECURSIVE q(name) AS (SELECT min(queue) FROM job WHERE {known}
  UNION ALL SELECT (SELECT min(queue) FROM job WHERE queue > q.name AND {known}) FROM q WHERE q.name IS NOT NULL)"""


def _found(queues: str, **by: str) -> str:
    """The newest of what stands in these parts of the table, no job in two, each with its index."""
    parts = "\n UNION ALL ".join(
        f"SELECT id FROM job INDEXED BY {index} WHERE {part} AND id < ?1 AND {_FITS}"
        for index, part in by.items()
    )
    return f"""{queues}, found AS ({parts})
SELECT {HOT} FROM job WHERE ?6 IS NULL AND id IN (SELECT id FROM found ORDER BY id DESC LIMIT ?5) ORDER BY id DESC"""


def _many(queues: str, part: str) -> str:
    """Whether there are so many that the newest are found sooner by going through all jobs."""
    return f"{queues} SELECT count(*) >= {MANY} FROM (SELECT 1 FROM job WHERE {part} LIMIT {MANY})"


_IN_QUEUES = "queue IN (SELECT name FROM q)"
_LANES = ", ".join(f"{lane:d}" for lane in Lane if lane.careful)
# What has not ended of one session: its line; and, read through, what is scheduled for later. job_line, job_scheduled.
_SESSIONS = _queues(IN_LINE)
_LINE = f"{_IN_QUEUES} AND session = ?7 AND {IN_LINE}"
HOT_OF_SESSION = _found(_SESSIONS, job_line=_LINE, job_scheduled=f"{NOT_IN_LINE} AND session = ?7")
MANY_OF_SESSION = _many(_SESSIONS, _LINE)
# Of one tenant: what is ready; and, read through, what is not. job_tenant; job_scheduled, job_running, job_blocked.
_TENANTS = _queues("state = 1 AND tenant IS NOT NULL")
_READY = f"state = 1 AND {_IN_QUEUES} AND lane IN ({_LANES}) AND tenant = ?8"
HOT_OF_TENANT = _found(
    _TENANTS,
    job_tenant=_READY,
    job_scheduled="state = 0 AND tenant = ?8",
    job_running="state = 2 AND tenant = ?8",
    job_blocked="state = 3 AND tenant = ?8",
)
MANY_OF_TENANT = _many(_TENANTS, _READY)


def read(connection: Connection, wanted: JobFilter, row: tuple[Any, ...]) -> Rows:
    """The newest such jobs: of the table of those that have not ended, of those that have, or of both."""
    asked: list[str] = []
    if wanted.state is None or not wanted.state.settled:
        asked.append(_hot(connection, wanted, row))
    if wanted.state is None or wanted.state.settled:
        asked.append(_cold(wanted))
    return [found for sql in asked for found in connection.execute(sql, row).fetchall()]


def _hot(connection: Connection, wanted: JobFilter, row: tuple[Any, ...]) -> str:
    if wanted.batch is not None:
        return HOT_OF_BATCH
    if wanted.session is not None:
        return HOT_JOBS if connection.execute(MANY_OF_SESSION, row[:7]).fetchall()[0][0] else HOT_OF_SESSION
    if wanted.tenant is not None:
        return HOT_JOBS if connection.execute(MANY_OF_TENANT, row[:8]).fetchall()[0][0] else HOT_OF_TENANT
    return HOT_JOBS


def _cold(wanted: JobFilter) -> str:
    if wanted.state is State.DEAD:
        return DEAD_JOBS if wanted.batch is None else DEAD_OF_BATCH
    return COLD_JOBS if wanted.batch is None else COLD_OF_BATCH
