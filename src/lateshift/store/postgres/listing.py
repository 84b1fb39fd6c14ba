"""Statements for the jobs that a filter means, newest first, in PostgreSQL: those of a batch, a tag, a session or a tenant by the
index that knows them."""

from functools import cache

from lateshift.model import history
from lateshift.model.job import STRETCHES, Lane
from lateshift.model.sealed import LEFT, WEBHOOK
from lateshift.model.workflow.run import GOES_ON
from lateshift.store.guards import IN_LINE, NOT_IN_LINE

MANY = 1000  # jobs of a session or a tenant, from which on a page of them is soon found among all

HOT = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 complete_by, NULL::timestamptz, holder, cancel_by IS NOT NULL, payload, NULL::bytea, NULL::text, progress, checkpoint,
 history, exclusive, batch, session, sequence, nullif(tenant, ''), limit_key,
 ARRAY(SELECT tag FROM lateshift.job_tag WHERE job_id = job.id), (SELECT parent FROM lateshift.job_parent WHERE child = job.id),
 EXISTS (SELECT FROM lateshift.sensitive WHERE name = job.queue)"""
COLD = """id, task, queue, state, priority, attempt, attempts, fence, losses, created_at, due_at, leased_at,
 NULL::timestamptz, settled_at, holder, false, payload, result, reason, progress, checkpoint, history, exclusive,
 batch, session, sequence, nullif(tenant, ''), limit_key,
 ARRAY(SELECT tag FROM lateshift.job_tag WHERE job_id = settled.id), (SELECT parent FROM lateshift.job_parent WHERE child = settled.id),
 EXISTS (SELECT FROM lateshift.sensitive WHERE name = settled.queue)"""


END = f"substring(history FROM greatest(octet_length(history) - {history.LEFT}, 1))"  # of a history


def _slim(columns: str) -> str:
    """Without its result and its checkpoint, with the beginning of its arguments and the end of its history: see model/sealed.slim. Of the
    arguments of a webhook all, as a part says nothing of where it leads."""
    beginning = f"CASE WHEN starts_with(task, '{WEBHOOK}') THEN payload ELSE substring(payload FROM 1 FOR {LEFT + 1}) END"
    return (
        columns.replace(" payload, NULL::bytea,", f" {beginning}, NULL::bytea,")
        .replace(" payload, result,", f" {beginning}, NULL::bytea,")
        .replace(" checkpoint,", " NULL::bytea,")
        .replace(" history,", f" {END},")
    )


SLIM_HOT, SLIM_COLD = _slim(HOT), _slim(COLD)


@cache
def slim(sql: str) -> str:
    """The same statement for slim jobs."""
    return sql.replace(HOT, SLIM_HOT).replace(COLD, SLIM_COLD)


_BETWEEN = "id < %(before)s AND id >= %(lowest)s"
# No search tells what is in a job that is not shown, nor where a webhook leads. Primary key.
_SHOWN = "NOT EXISTS (SELECT FROM lateshift.sensitive WHERE name = queue)"
_FITS = f"""(%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(task)s::text IS NULL OR task = %(task)s)
 AND (%(state)s::smallint IS NULL OR state = %(state)s) AND (%(session)s::text IS NULL OR session = %(session)s)
 AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s) AND (%(batch)s::uuid IS NULL OR batch = %(batch)s)
 AND (%(argument)s::bytea IS NULL OR (position(%(argument)s::bytea IN payload) > 0 OR position(%(or_argument)s::bytea IN payload) > 0)
  AND NOT starts_with(task, '{WEBHOOK}') AND {_SHOWN})
 AND (%(error)s::bytea IS NULL OR {_SHOWN})"""
_PAGE = f"{_BETWEEN} AND {_FITS} ORDER BY id DESC LIMIT %(limit)s"
_HOT = "%(reason)s::text IS NULL AND (%(error)s::bytea IS NULL OR position(%(error)s::bytea IN history) > 0)"
_HOT_PAGE = f"{_HOT} AND {_PAGE}"
_COLD_PAGE = f"""(%(reason)s::text IS NULL OR reason = %(reason)s) AND (%(error)s::bytea IS NULL
  OR position(%(error)s::bytea IN history) > 0 OR position(%(error)s::bytea IN convert_to(reason, 'UTF8')) > 0) AND {_PAGE}"""
# Newest first, by the order of the ids. Primary keys; settled_dead for dead letters.
HOT_JOBS = f"SELECT {HOT} FROM lateshift.job WHERE {_HOT_PAGE}"
COLD_JOBS = f"SELECT {COLD} FROM lateshift.settled WHERE {_COLD_PAGE}"
DEAD_JOBS = f"SELECT {COLD} FROM lateshift.settled WHERE state = 6 AND {_COLD_PAGE}"
# Those of one task in one queue. settled_dead_of.
DEAD_OF_TASK = f"SELECT {COLD} FROM lateshift.settled WHERE state = 6 AND queue = %(queue)s AND task = %(task)s AND {_COLD_PAGE}"
# What runs, which is never more than the workers have room for. job_running.
RUNNING_JOBS = f"""WITH running AS MATERIALIZED (SELECT id FROM lateshift.job WHERE state = 2)
SELECT {HOT} FROM lateshift.job WHERE id = ANY(ARRAY(SELECT id FROM running)) AND state = 2 AND {_HOT_PAGE}"""
# The same of one batch. job_batch, settled_batch, settled_batch_dead.
HOT_OF_BATCH = f"SELECT {HOT} FROM lateshift.job WHERE batch = %(batch)s AND {_HOT_PAGE}"
COLD_OF_BATCH = f"SELECT {COLD} FROM lateshift.settled WHERE batch = %(batch)s AND {_COLD_PAGE}"
DEAD_OF_BATCH = f"SELECT {COLD} FROM lateshift.settled WHERE batch = %(batch)s AND state = 6 AND {_COLD_PAGE}"
# The same of one tag, whose jobs an index has in the order of their ids. Primary keys.
_TAGGED = "SELECT job_id FROM lateshift.job_tag WHERE tag = %(tag)s AND job_id < %(before)s AND job_id >= %(lowest)s"
HOT_OF_TAG = f"SELECT {HOT} FROM lateshift.job WHERE id = ANY(ARRAY({_TAGGED})) AND {_HOT_PAGE}"
COLD_OF_TAG = f"SELECT {COLD} FROM lateshift.settled WHERE id = ANY(ARRAY({_TAGGED})) AND {_COLD_PAGE}"


def _floor(what: str) -> str:
    """The so-manieth id from above, read from an index alone."""
    return f"SELECT id FROM lateshift.{what} {_BETWEEN} ORDER BY id DESC LIMIT 1 OFFSET %(count)s - 1"


# How far down so many of them go. Primary keys, settled_dead, job_batch, settled_batch, settled_batch_dead, primary key.
HOT_FLOOR, COLD_FLOOR = _floor("job WHERE"), _floor("settled WHERE")
DEAD_FLOOR = _floor("settled WHERE state = 6 AND")
DEAD_TASK_FLOOR = _floor("settled WHERE state = 6 AND queue = %(queue)s AND task = %(task)s AND")
HOT_BATCH_FLOOR = _floor("job WHERE batch = %(batch)s AND")
COLD_BATCH_FLOOR = _floor("settled WHERE batch = %(batch)s AND")
DEAD_BATCH_FLOOR = _floor("settled WHERE batch = %(batch)s AND state = 6 AND")
TAG_FLOOR = """SELECT job_id FROM lateshift.job_tag WHERE tag = %(tag)s AND job_id < %(before)s AND job_id >= %(lowest)s
 ORDER BY job_id DESC LIMIT 1 OFFSET %(count)s - 1"""
# The queues and tasks that have dead letters, from one to the next, so many. settled_dead_of.
_NEXT_OF_DEAD = "SELECT queue, task FROM lateshift.settled WHERE state = 6{} ORDER BY queue, task LIMIT 1"
OF_DEAD = f"""WITH RECURSIVE kind AS (({_NEXT_OF_DEAD.format(" AND (queue, task) > (%(queue)s, '')")})
  UNION ALL SELECT next.* FROM kind, LATERAL ({_NEXT_OF_DEAD.format(" AND (queue, task) > (kind.queue, kind.task)")}) next)
 SELECT queue, task FROM kind LIMIT %(limit)s"""
_GOES_ON = ", ".join(f"'{reason}'" for reason in GOES_ON)
# A step of a run that has ended, and does not go on where it stood; a child of one may do so itself. Primary keys.
_OVER = f"""EXISTS (SELECT FROM lateshift.run WHERE id = newest.batch) AND NOT (attempts = {STRETCHES} AND reason IN ({_GOES_ON}))
 AND EXISTS (SELECT FROM lateshift.settled whole WHERE whole.id = newest.batch AND NOT (whole.state = 6 AND whole.reason IN ({_GOES_ON})))"""
# How many of the newest so many dead letters there are, and how many of these are neither runs that were undone nor steps of runs that have
# ended. settled_dead.
COUNT_DEAD = f"""SELECT count(*), count(*) FILTER (WHERE reason IS DISTINCT FROM 'undone' AND NOT (batch IS NOT NULL AND {_OVER}))
 FROM (SELECT reason, attempts, batch FROM lateshift.settled WHERE state = 6 ORDER BY id DESC LIMIT %s) newest"""
# The jobs that have this key, of each task one, found from one task to the next. Primary key.
KEYED = """WITH RECURSIVE t AS ((SELECT task FROM lateshift.job_key ORDER BY task LIMIT 1)
  UNION ALL SELECT next.task FROM t, LATERAL (SELECT task FROM lateshift.job_key WHERE task > t.task ORDER BY task LIMIT 1) next)
 SELECT k.job_id FROM t, LATERAL (SELECT job_id FROM lateshift.job_key WHERE task = t.task AND text = %s OFFSET 0) k"""


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
SELECT {HOT} FROM lateshift.job WHERE {_HOT} AND {_BETWEEN} AND id = ANY(ARRAY(SELECT id FROM found)) ORDER BY id DESC LIMIT %(limit)s"""


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
