"""Statements for the jobs that a filter means, newest first, in SQLite: those of a batch, a tag, a session or a tenant by the index
that knows them."""

from functools import cache

from lateshift.model import history
from lateshift.model.job import STRETCHES, Lane
from lateshift.model.sealed import LEFT, WEBHOOK
from lateshift.model.workflow.run import GOES_ON
from lateshift.store.guards import IN_LINE, NOT_IN_LINE

MANY = 1000  # jobs of a session or a tenant, from which on a page of them is soon found among all

HOT = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 complete_by, NULL, holder, cancel_by IS NOT NULL, payload, NULL, NULL, progress, checkpoint, history, exclusive,
 batch, session, sequence, nullif(tenant, ''), limit_key,
 (SELECT json_group_array(tag) FROM job_tag WHERE job_id = job.id), (SELECT parent FROM job_parent WHERE child = job.id),
 EXISTS (SELECT 1 FROM sensitive WHERE name = job.queue)"""
COLD = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 NULL, settled_at, holder, 0, payload, result, reason, progress, checkpoint, history, exclusive, batch, session, sequence, nullif(tenant, ''), limit_key,
 (SELECT json_group_array(tag) FROM job_tag WHERE job_id = settled.id), (SELECT parent FROM job_parent WHERE child = settled.id),
 EXISTS (SELECT 1 FROM sensitive WHERE name = settled.queue)"""


END = f"substr(history, -{history.LEFT + 1})"  # of a history


def _slim(columns: str) -> str:
    """Without its result and its checkpoint, with the beginning of its arguments and the end of its history: see model/sealed.slim. Of the
    arguments of a webhook all, as a part says nothing of where it leads."""
    beginning = f"CASE WHEN substr(task, 1, {len(WEBHOOK)}) = '{WEBHOOK}' THEN payload ELSE substr(payload, 1, {LEFT + 1}) END"
    return (
        columns.replace(" payload, NULL,", f" {beginning}, NULL,")
        .replace(" payload, result,", f" {beginning}, NULL,")
        .replace(" checkpoint,", " NULL,")
        .replace(" history,", f" {END},")
    )


SLIM_HOT, SLIM_COLD = _slim(HOT), _slim(COLD)


@cache
def slim(sql: str) -> str:
    """The same statement for slim jobs."""
    return sql.replace(HOT, SLIM_HOT).replace(COLD, SLIM_COLD)


# No search tells what is in a job that is not shown, nor where a webhook leads. Primary key.
_SHOWN = "NOT EXISTS (SELECT 1 FROM sensitive WHERE name = queue)"
_FITS = f"""(?2 IS NULL OR queue = ?2) AND (?3 IS NULL OR task = ?3) AND (?4 IS NULL OR state = ?4)
 AND (?7 IS NULL OR session = ?7) AND (?8 IS NULL OR tenant = ?8) AND (?9 IS NULL OR batch = ?9)
 AND (?11 IS NULL OR (instr(payload, ?11) > 0 OR instr(payload, ?12) > 0) AND substr(task, 1, {len(WEBHOOK)}) <> '{WEBHOOK}' AND {_SHOWN})
 AND (?13 IS NULL OR {_SHOWN})"""
_BETWEEN = "id < ?1 AND id >= ?10"
_PAGE = f"{_BETWEEN} AND {_FITS} ORDER BY id DESC LIMIT ?5"
_HOT_PAGE = f"?6 IS NULL AND (?13 IS NULL OR instr(history, ?13) > 0) AND {_PAGE}"
_COLD_PAGE = f"""(?6 IS NULL OR reason = ?6)
 AND (?13 IS NULL OR instr(history, ?13) > 0 OR instr(CAST(reason AS BLOB), ?13) > 0) AND {_PAGE}"""
# Newest first, by the order of the ids. Primary keys; settled_dead for dead letters.
HOT_JOBS = f"SELECT {HOT} FROM job WHERE {_HOT_PAGE}"
COLD_JOBS = f"SELECT {COLD} FROM settled WHERE {_COLD_PAGE}"
DEAD_JOBS = f"SELECT {COLD} FROM settled WHERE state = 6 AND {_COLD_PAGE}"
# Those of one task in one queue. settled_dead_of.
DEAD_OF_TASK = f"SELECT {COLD} FROM settled WHERE state = 6 AND queue = ?2 AND task = ?3 AND {_COLD_PAGE}"
# What runs, which is never more than the workers have room for. job_running.
RUNNING_JOBS = f"SELECT {HOT} FROM job INDEXED BY job_running WHERE state = 2 AND {_HOT_PAGE}"
# The same of one batch. job_batch, settled_batch, settled_batch_dead.
HOT_OF_BATCH = f"SELECT {HOT} FROM job WHERE batch = ?9 AND {_HOT_PAGE}"
COLD_OF_BATCH = f"SELECT {COLD} FROM settled WHERE batch = ?9 AND {_COLD_PAGE}"
DEAD_OF_BATCH = f"SELECT {COLD} FROM settled WHERE batch = ?9 AND state = 6 AND {_COLD_PAGE}"
# The same of one tag, whose jobs an index has in the order of their ids. Primary keys.
_TAGGED = "SELECT job_id FROM job_tag WHERE tag = ?14 AND job_id < ?1 AND job_id >= ?10"
HOT_OF_TAG = f"SELECT {HOT} FROM job WHERE id IN ({_TAGGED}) AND {_HOT_PAGE}"
COLD_OF_TAG = f"SELECT {COLD} FROM settled WHERE id IN ({_TAGGED}) AND {_COLD_PAGE}"


def _floor(what: str) -> str:
    """The so-manieth id from above, read from an index alone."""
    return f"SELECT id FROM {what} id < ?1 AND id >= ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3 - 1"


# How far down so many of them go. Primary keys, settled_dead, job_batch, settled_batch, settled_batch_dead, primary key.
HOT_FLOOR, COLD_FLOOR = _floor("job WHERE"), _floor("settled WHERE")
DEAD_FLOOR = _floor("settled WHERE state = 6 AND")
DEAD_TASK_FLOOR = _floor("settled WHERE state = 6 AND queue = ?4 AND task = ?5 AND")
HOT_BATCH_FLOOR, COLD_BATCH_FLOOR = _floor("job WHERE batch = ?4 AND"), _floor("settled WHERE batch = ?4 AND")
DEAD_BATCH_FLOOR = _floor("settled WHERE batch = ?4 AND state = 6 AND")
TAG_FLOOR = _floor("job_tag WHERE tag = ?4 AND").replace(" id ", " job_id ")
# The next task of a queue that has dead letters, and the first of the next queue. Not by a comparison of both at once, for which SQLite
# reads all rows that are equal. settled_dead_of.
NEXT_TASK_OF_DEAD = (
    "SELECT queue, task FROM settled WHERE state = 6 AND queue = ? AND task > ? ORDER BY task LIMIT 1"
)
NEXT_QUEUE_OF_DEAD = (
    "SELECT queue, task FROM settled WHERE state = 6 AND queue > ? ORDER BY queue, task LIMIT 1"
)
_GOES_ON = ", ".join(f"'{reason}'" for reason in GOES_ON)
# A step of a run that has ended, and does not go on where it stood; a child of one may do so itself. Primary keys.
_OVER = f"""EXISTS (SELECT 1 FROM run WHERE id = newest.batch) AND NOT (attempts = {STRETCHES} AND reason IN ({_GOES_ON}))
 AND EXISTS (SELECT 1 FROM settled whole WHERE whole.id = newest.batch AND NOT (whole.state = 6 AND whole.reason IN ({_GOES_ON})))"""
# How many of the newest so many dead letters there are, and how many of these are neither runs that were undone nor steps of runs that have
# ended. settled_dead.
COUNT_DEAD = f"""SELECT count(*), count(*) FILTER (WHERE reason IS NOT 'undone' AND NOT (batch IS NOT NULL AND {_OVER}))
 FROM (SELECT reason, attempts, batch FROM settled WHERE state = 6 ORDER BY id DESC LIMIT ?) newest"""
# The jobs that have this key, of each task one, found from one task to the next. Primary key.
KEYED = """WITH RECURSIVE t(task) AS (SELECT min(task) FROM job_key
  UNION ALL SELECT (SELECT min(task) FROM job_key WHERE task > t.task) FROM t WHERE t.task IS NOT NULL)
 SELECT job_id FROM t CROSS JOIN job_key USING (task) WHERE job_key.text = ?"""


def _queues(known: str) -> str:
    """Sessions and tenants belong to a queue: `q` has every queue of which such jobs are known, found from one to the next."""
    return f"""WITH RECURSIVE q(name) AS (SELECT min(queue) FROM job WHERE {known}
  UNION ALL SELECT (SELECT min(queue) FROM job WHERE queue > q.name AND {known}) FROM q WHERE q.name IS NOT NULL)"""


def _found(queues: str, **by: str) -> str:
    """The newest of what stands in these parts of the table, no job in two, each with its index."""
    parts = "\n UNION ALL ".join(
        f"SELECT id FROM job INDEXED BY {index} WHERE {part} AND {_FITS}" for index, part in by.items()
    )
    return f"""{queues}, found AS ({parts})
SELECT {HOT} FROM job WHERE ?6 IS NULL AND (?13 IS NULL OR instr(history, ?13) > 0)
 AND {_BETWEEN} AND id IN (SELECT id FROM found) ORDER BY id DESC LIMIT ?5"""


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
