"""Plans: every statement on the tables of jobs is served by an index, on full tables, whatever the statistics say.

On PostgreSQL the connection that explains is the store's own, as it is in use; nothing is set here for the test."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any
from uuid import uuid4

import apsw
import psycopg
import pytest

from lateshift.clock import ManualClock
from lateshift.store import postgres, sqlite
from lateshift.store.open import open_store
from tests.postgres_databases import PostgresDatabases, unused_name
from tests.store_contract.driving import file_of

READY, SCHEDULED, RUNNING, BLOCKED, SETTLED, KEYS = 12_000, 3_000, 300, 500, 20_000, 5_000
LARGE = {
    "job",
    "settled",
    "job_key",
    "job_identity",
    "batch",
    "batch_count",
    "schedule",
    "run",
    "step",
    "signal",
}
IDS = [uuid4() for _ in range(100)]
ONE = IDS[0]
NO_TIME = timedelta(0)
SOMETIME = datetime(2030, 1, 31, tzinfo=UTC)


# SQLite: statement, bindings, and what the plan must say. A statement with a second form is named once for each.

SQLITE: list[tuple[str, str, str]] = [
    ("LEASE", sqlite.leasing.LEASE, "job_ready (queue=? AND lane=?)"),
    ("LEASE_LEVEL", sqlite.leasing.LEASE_LEVEL, "job_ready (queue=? AND lane=? AND priority=?)"),
    ("OLDEST_LEVEL", sqlite.leasing.OLDEST_LEVEL, "job_ready (queue=? AND lane=? AND priority<?)"),
    ("CANDIDATES", sqlite.guarding.CANDIDATES, "job_ready (queue=? AND lane=?)"),
    ("CANDIDATES_LEVEL", sqlite.guarding.CANDIDATES_LEVEL, "job_ready (queue=? AND lane=? AND priority=?)"),
    ("PROMISED", sqlite.guarding.PROMISED, "job_promised (queue=? AND lane=?)"),
    ("CANDIDATES_OF", sqlite.guarding.CANDIDATES_OF, "job_tenant (queue=? AND lane=? AND tenant=?)"),
    ("HELD_KEY", sqlite.guarding.HELD_KEY, "job_exclusive (exclusive=? AND state=?)"),
    ("BLOCK_KEY", sqlite.guarding.BLOCK_KEY, "job_exclusive (exclusive=? AND state=?)"),
    ("BLOCK", sqlite.guarding.BLOCK, "PRIMARY KEY (id=?)"),
    ("LATER", sqlite.guarding.LATER, "PRIMARY KEY (id=?)"),
    ("HEADS_AFTER", sqlite.guarding.HEADS_AFTER, "job_tenant (queue=? AND lane=? AND tenant>?)"),
    ("HEADS_UP_TO", sqlite.guarding.HEADS_UP_TO, "job_tenant (queue=? AND lane=? AND tenant>? AND tenant<?)"),
    ("LEASE_THESE", sqlite.guarding.LEASE_THESE, "PRIMARY KEY (id=?)"),
    ("GIVE_UP", sqlite.uniques.GIVE_UP, "PRIMARY KEY (identity=?)"),
    ("LEASE_COUNTED", sqlite.guarding.LEASE_COUNTED, "PRIMARY KEY (id=?)"),
    ("COUNT in a queue", sqlite.rules.COUNT["queue"], "job_running"),
    ("COUNT of a task", sqlite.rules.COUNT["task"], "job_running"),
    ("LOOK", sqlite.sessions.LOOK, "job_line (queue=? AND session=?)"),
    ("CANDIDATES_OF sessions", sqlite.guarding.CANDIDATES_OF, "job_line (queue=? AND session=?)"),
    ("READY_HEADS", sqlite.sessions.READY_HEADS, "job_line (queue=? AND session=?)"),
    ("ANYBODY_WAITS", sqlite.sessions.ANYBODY_WAITS, "job_blocked (blocked_by>? AND blocked_by<?)"),
    ("ANYBODY_WAITS for a place", sqlite.rules.ANYBODY_WAITS, "job_blocked (blocked_by>? AND blocked_by<?)"),
    ("STAY_FIRST", sqlite.sessions.STAY_FIRST, "job_line (queue=? AND session=?)"),
    ("UPCOMING", sqlite.reports.UPCOMING, "job_scheduled"),
    ("UNSETTLED", sqlite.firing.UNSETTLED, "PRIMARY KEY (id=?)"),
    ("DUE", sqlite.firing.DUE, "schedule_due (next_at>? AND next_at<?)"),
    ("MOVE", sqlite.firing.MOVE, "PRIMARY KEY (name=?)"),
    ("COMING", sqlite.jobs.COMING, "job_scheduled (due_at<?)"),
    ("COMES_BACK", sqlite.jobs.COMES_BACK, "PRIMARY KEY (id=?)"),
    ("WAITED_FOR", sqlite.rules.WAITED_FOR, "job_blocked (blocked_by=?)"),
    ("OF_LEASE", sqlite.guarding.OF_LEASE, "PRIMARY KEY (id=?)"),
    ("WAITING", sqlite.sessions.WAITING, "job_line (queue=? AND session=?)"),
    ("MISS", sqlite.sessions.MISS, "PRIMARY KEY (id=?)"),
    ("HOLD", sqlite.sessions.HOLD, "PRIMARY KEY (id=?)"),
    ("RUNNING of a queue", sqlite.rules.RUNNING["queue"], "job_limit_queue (queue=?)"),
    ("RUNNING of a task", sqlite.rules.RUNNING["task"], "job_limit_task (task=?)"),
    ("RUNNING of a key", sqlite.rules.RUNNING["key"], "job_limit_key (limit_key=?)"),
    (
        "NEXT_WAITING_LINE",
        sqlite.rules.NEXT_WAITING_LINE,
        "job_blocked (blocked_by=? AND (queue,lane)>(?,?))",
    ),
    (
        "READY_FIRST",
        sqlite.rules.READY_FIRST,
        "job_blocked (blocked_by=? AND queue=? AND lane=? AND tenant>?)",
    ),
    # Of workflows.
    ("WAKE", sqlite.runs.WAKE, "PRIMARY KEY (id=?)"),
    ("CANCEL", sqlite.runs.CANCEL, "PRIMARY KEY (id=?)"),
    ("RESTART", sqlite.runs.RESTART, "PRIMARY KEY (id=?)"),
    ("ENDED", sqlite.runs.ENDED, "step_job (run=?)"),
    ("UNDONE", sqlite.runs.UNDONE, "step_undo_job (run=?)"),
    ("END_STEP", sqlite.runs.END, "PRIMARY KEY (run=? AND path=?)"),
    ("END_UNDO", sqlite.runs.END_UNDO, "PRIMARY KEY (run=? AND path=?)"),
    ("UNDO_AGAIN", sqlite.runs.UNDO_AGAIN, "PRIMARY KEY (run=?)"),
    ("NEWS", sqlite.runs.NEWS, "PRIMARY KEY (id=?)"),
    ("MINE", sqlite.workflows.MINE, "PRIMARY KEY (id=?)"),
    ("CANCEL_TOLD", sqlite.workflows.CANCEL_TOLD, "PRIMARY KEY (id=?)"),
    ("SLEEP", sqlite.workflows.SLEEP, "PRIMARY KEY (id=?)"),
    ("PUT_UNDO", sqlite.workflows.PUT_UNDO, "PRIMARY KEY (run=? AND path=?)"),
    ("STEPS", sqlite.workflows.STEPS, "PRIMARY KEY (run=?)"),
    ("SIGNALS", sqlite.workflows.SIGNALS, "PRIMARY KEY (run=?)"),
    ("KEY_USED", sqlite.workflows.KEY_USED, "signal_key (run=? AND key=?)"),
    ("LAST_SIGNAL", sqlite.workflows.LAST_SIGNAL, "PRIMARY KEY (run=?)"),
    ("TAKE_SIGNAL", sqlite.workflows.TAKE, "PRIMARY KEY (run=? AND number=?)"),
    ("UNSETTLED of a run", sqlite.workflows.UNSETTLED, "PRIMARY KEY (id=?)"),
    ("IS_THERE", sqlite.workflows.IS_THERE, "PRIMARY KEY (id=?)"),
    ("SETTLED", sqlite.workflows.SETTLED, "PRIMARY KEY (id=?)"),
    ("JOB", sqlite.workflows.JOB, "PRIMARY KEY (id=?)"),
    ("SETTLED_JOB", sqlite.workflows.SETTLED_JOB, "PRIMARY KEY (id=?)"),
    ("NEWEST_ALL", sqlite.workflows.NEWEST_ALL, "PRIMARY KEY (id<?)"),
    ("NEWEST_OF", sqlite.workflows.NEWEST_OF, "run_name (name=? AND id<?)"),
    ("NEWEST_FORWARD", sqlite.workflows.NEWEST_FORWARD, "PRIMARY KEY (id<?)"),
    ("NEWEST_IN", sqlite.workflows.NEWEST_IN, "run_phase (phase=? AND id<?)"),
    ("DIRECT", sqlite.workflows.DIRECT, "PRIMARY KEY (id=?)"),
    ("MEND", sqlite.workflows.MEND, "PRIMARY KEY (run=? AND path=?)"),
    ("OVERDUE_STEPS", sqlite.workflows.OVERDUE_STEPS, "step_late (complete_by<?)"),
    ("FAIL_LATE", sqlite.workflows.FAIL_LATE, "PRIMARY KEY (run=? AND path=?)"),
    ("TRY_AGAIN", sqlite.workflows.TRY_AGAIN, "PRIMARY KEY (run=?)"),
    ("NEXT_WAIT", sqlite.sweeping.NEXT_WAIT, "job_blocked ((blocked_by,queue)>(?,?))"),
    ("NUMBERED", sqlite.enqueue.NUMBERED, "job_sequence (queue=? AND session=? AND sequence=?)"),
    ("SETTLED", sqlite.enqueue.SETTLED, "PRIMARY KEY (id=?)"),
    ("INSERT_GUARDED", sqlite.enqueue.INSERT_GUARDED, "PRIMARY KEY (id=?)"),
    ("HELD", sqlite.leasing.HELD, "job_running (holder=?)"),
    ("COPY", sqlite.settling.COPY, "PRIMARY KEY (id=?)"),
    ("DROP", sqlite.settling.DROP, "PRIMARY KEY (id=?)"),
    ("COPY_BLOCK", sqlite.settling.COPY_BLOCK, "SEARCH job USING PRIMARY KEY (id=?)"),
    ("COPY_GUARDED_BLOCK", sqlite.settling.COPY_GUARDED_BLOCK, "PRIMARY KEY (id=?)"),
    ("DROP_BLOCK", sqlite.settling.DROP_BLOCK, "PRIMARY KEY (id=?)"),
    ("DROP_THESE", sqlite.settling.DROP_THESE, "PRIMARY KEY (id=?)"),
    ("SETTLED_BY", sqlite.settling.SETTLED_BY, "PRIMARY KEY (id=?)"),
    ("AGAIN", sqlite.settling.AGAIN, "PRIMARY KEY (id=?)"),
    ("CANCELLED_BY", sqlite.settling.CANCELLED_BY, "PRIMARY KEY (id=?)"),
    ("COPY_WAITING", sqlite.settling.COPY_WAITING, "PRIMARY KEY (id=?)"),
    ("DROP_WAITING", sqlite.settling.DROP_WAITING, "PRIMARY KEY (id=?)"),
    ("READY_NEXT", sqlite.settling.READY_NEXT, "job_exclusive (exclusive=? AND state=?)"),
    ("OVERDUE", sqlite.sweeping.OVERDUE, "SCAN job USING INDEX job_running"),
    ("READY_AGAIN", sqlite.sweeping.READY_AGAIN, "PRIMARY KEY (id=?)"),
    ("COPY_TAKEN", sqlite.sweeping.COPY_TAKEN, "PRIMARY KEY (id=?)"),
    ("DROP_TAKEN", sqlite.sweeping.DROP_TAKEN, "PRIMARY KEY (id=?)"),
    ("COUNT_LOSS", sqlite.sweeping.COUNT_LOSS, "PRIMARY KEY (id=?)"),
    ("STRANDED", sqlite.sweeping.STRANDED, "job_exclusive"),
    ("NEXT_LINE", sqlite.jobs.NEXT_LINE, "job_ready"),
    ("NEXT_DUE", sqlite.jobs.NEXT_DUE, "job_scheduled"),
    ("PROMOTE", sqlite.jobs.PROMOTE, "job_scheduled (due_at<?)"),
    ("SAVE", sqlite.jobs.SAVE, "PRIMARY KEY (id=?)"),
    ("STOP_ORDERS", sqlite.jobs.STOP_ORDERS, "job_stopping (holder=?)"),
    ("ORDER_STOP", sqlite.cancelling.ORDER_STOP, "PRIMARY KEY (id=?)"),
    ("REVIVE", sqlite.jobs.REVIVE, "PRIMARY KEY (id=?)"),
    ("FORGET_SETTLED", sqlite.jobs.FORGET_SETTLED, "PRIMARY KEY (id=?)"),
    ("READ_SETTLED", sqlite.editing.READ_SETTLED, "PRIMARY KEY (id=?)"),
    ("EDIT", sqlite.editing.EDIT, "PRIMARY KEY (id=?)"),
    ("INSERT", sqlite.enqueue.INSERT, "PRIMARY KEY (id=?)"),
    ("READ_KEY", sqlite.enqueue.READ_KEY, "PRIMARY KEY (task=? AND text=?)"),
    ("FREE_KEY", sqlite.enqueue.FREE_KEY, "PRIMARY KEY (task=? AND text=?)"),
    ("TAKE_IDENTITY", sqlite.uniques.TAKE_IDENTITY, "SEARCH job USING PRIMARY KEY (id=?)"),
    ("READ_IDENTITY", sqlite.uniques.READ_IDENTITY, "PRIMARY KEY (identity=?)"),
    ("KNOWN_JOB", sqlite.uniques.KNOWN_JOB, "SEARCH settled USING PRIMARY KEY (id=?)"),
    ("RELET_KEY", sqlite.uniques.RELET_KEY, "PRIMARY KEY (task=? AND text=?)"),
    ("COUNT_WAITING", sqlite.pressure.COUNT_WAITING, "job_held_up (queue=?)"),
    ("LEVELS", sqlite.pressure.LEVELS, "job_ready (queue=? AND lane=? AND priority<?)"),
    ("LONGEST", sqlite.pressure.LONGEST, "job_ready (queue=? AND lane=? AND priority=?)"),
    ("LOWEST", sqlite.pressure.LOWEST, "job_ready (queue=? AND lane=? AND priority<?)"),
    ("PURGE_IDENTITIES", sqlite.upkeep.PURGE_IDENTITIES, "job_identity_expires (expires_at<?)"),
    ("KEEP_IDENTITIES", sqlite.upkeep.KEEP_IDENTITIES, "job_identity_expires (expires_at<?)"),
    ("LEAVE", sqlite.members.LEAVE, "job_running (holder=?)"),
    ("NEXT_READY", sqlite.queues.NEXT_READY, "job_ready (queue>?)"),
    ("COUNT_READY", sqlite.queues.COUNT_READY, "job_ready (queue=?)"),
    ("OLDEST_READY", sqlite.queues.OLDEST_READY, "job_ready (queue=?)"),
    ("COUNT_SCHEDULED", sqlite.queues.COUNT_SCHEDULED, "job_scheduled"),
    ("COUNT_RUNNING", sqlite.queues.COUNT_RUNNING, "job_"),
    ("COUNT_BLOCKED", sqlite.queues.COUNT_BLOCKED, "job_held_up"),
    ("COUNT_DEAD", sqlite.queues.COUNT_DEAD, "settled_dead"),
    ("JOB", sqlite.reports.JOB, "PRIMARY KEY (id=?)"),
    ("HOT_JOBS", sqlite.listing.HOT_JOBS, "SEARCH job USING PRIMARY KEY (id<?)"),
    ("COLD_JOBS", sqlite.listing.COLD_JOBS, "SEARCH settled USING PRIMARY KEY (id<?)"),
    ("DEAD_JOBS", sqlite.listing.DEAD_JOBS, "settled_dead (id<?)"),
    ("HOT_OF_BATCH", sqlite.listing.HOT_OF_BATCH, "job_batch (batch=? AND id<?)"),
    ("COLD_OF_BATCH", sqlite.listing.COLD_OF_BATCH, "settled_batch (batch=? AND id<?)"),
    ("DEAD_OF_BATCH", sqlite.listing.DEAD_OF_BATCH, "settled_batch_dead (batch=? AND id<?)"),
    ("HOT_OF_SESSION by its line", sqlite.listing.HOT_OF_SESSION, "job_line (queue=? AND session=?)"),
    ("HOT_OF_SESSION by its queues", sqlite.listing.HOT_OF_SESSION, "job_line (queue>?)"),
    ("HOT_OF_SESSION if scheduled", sqlite.listing.HOT_OF_SESSION, "SCAN job USING INDEX job_scheduled"),
    ("HOT_OF_SESSION in the end", sqlite.listing.HOT_OF_SESSION, "SEARCH job USING PRIMARY KEY (id=?)"),
    ("MANY_OF_SESSION", sqlite.listing.MANY_OF_SESSION, "job_line (queue=? AND session=?)"),
    ("MANY_OF_TENANT", sqlite.listing.MANY_OF_TENANT, "job_tenant (queue=? AND lane=? AND tenant=?)"),
    ("HOT_OF_TENANT if ready", sqlite.listing.HOT_OF_TENANT, "job_tenant (queue=? AND lane=? AND tenant=?)"),
    ("HOT_OF_TENANT by its queues", sqlite.listing.HOT_OF_TENANT, "job_tenant (queue>?)"),
    ("HOT_OF_TENANT if scheduled", sqlite.listing.HOT_OF_TENANT, "SCAN job USING INDEX job_scheduled"),
    ("HOT_OF_TENANT if running", sqlite.listing.HOT_OF_TENANT, "SCAN job USING INDEX job_running"),
    ("HOT_OF_TENANT if blocked", sqlite.listing.HOT_OF_TENANT, "SCAN job USING INDEX job_blocked"),
    ("HOT_OF_TENANT in the end", sqlite.listing.HOT_OF_TENANT, "SEARCH job USING PRIMARY KEY (id=?)"),
    ("BEGINNING", sqlite.reports.BEGINNING, "SEARCH settled USING PRIMARY KEY (id>? AND id<?)"),
    ("ENDING", sqlite.reports.ENDING, "SEARCH job USING PRIMARY KEY (id<?)"),
    ("RUNNING", sqlite.reports.RUNNING, "job_"),
    ("GUARD", sqlite.explaining.GUARD, "PRIMARY KEY (id=?)"),
    ("HIGHER", sqlite.explaining.HIGHER, "job_ready (queue=? AND lane=? AND priority>?)"),
    ("OLDER", sqlite.explaining.OLDER, "job_ready (queue=? AND lane=? AND priority=? AND (due_at,id)<(?,?))"),
    (
        "HIGHER_OF_TENANT",
        sqlite.explaining.HIGHER_OF_TENANT,
        "job_tenant (queue=? AND lane=? AND tenant=? AND priority>?)",
    ),
    (
        "OLDER_OF_TENANT",
        sqlite.explaining.OLDER_OF_TENANT,
        "job_tenant (queue=? AND lane=? AND tenant=? AND priority=? AND (due_at,id)<(?,?))",
    ),
    ("HAS_TURN", sqlite.explaining.HAS_TURN, "job_line (queue=? AND session=?)"),
    (
        "BEFORE_IN_LINE",
        sqlite.explaining.BEFORE_IN_LINE,
        "job_line (queue=? AND session=? AND (turn,id)<(?,?))",
    ),
    ("EXCLUSIVE_HOLDER", sqlite.explaining.EXCLUSIVE_HOLDER, "job_exclusive (exclusive=? AND state=?)"),
    ("RUNNING_IN_QUEUE", sqlite.explaining.RUNNING_IN_QUEUE, "job_limit_queue (queue=?)"),
    ("RUNNING_OF_TASK", sqlite.explaining.RUNNING_OF_TASK, "job_limit_task (task=?)"),
    ("RUNNING_OF_KEY", sqlite.explaining.RUNNING_OF_KEY, "job_limit_key (limit_key=?)"),
    ("PURGE_SETTLED", sqlite.upkeep.PURGE_SETTLED, "settled_expires (expires_at<?)"),
    ("ERASE", sqlite.upkeep.ERASE, "PRIMARY KEY (id=?)"),
    ("PURGE_KEYS", sqlite.upkeep.PURGE_KEYS, "job_key_expires (expires_at<?)"),
    ("PURGE_MEMBERS", sqlite.upkeep.PURGE_MEMBERS, "job_running (holder=?)"),
    ("BATCH", sqlite.batches.BATCH, "SEARCH job USING COVERING INDEX job_batch_running (batch=?)"),
    ("BATCHES", sqlite.batches.BATCHES, "SEARCH job USING COVERING INDEX job_batch_running (batch=?)"),
    ("SETTLED_JOBS", sqlite.batches.SETTLED_JOBS, "settled_batch (batch=? AND id>?)"),
    ("FAILED_JOBS", sqlite.batches.FAILED_JOBS, "settled_batch_dead (batch=? AND id>?)"),
    ("UNSETTLED_JOBS", sqlite.batches.UNSETTLED_JOBS, "job_batch (batch=? AND id>?)"),
    ("ORDER_STOP_OF_BATCH", sqlite.batches.ORDER_STOP_OF_BATCH, "PRIMARY KEY (id=?)"),
    ("HAS_JOBS", sqlite.batches.HAS_JOBS, "settled_batch"),
]
UNPLANNED = {
    "TAKE",  # a part of others
    "BODY",  # of a function, which inserts alone
    "RULES",  # what `store check` looks through, whole tables
    "TAKE_KEY",
    "INSERT_NOW",
    "INSERT_BLOCK",
    "INSERT_FIRST",
    "INSERT_FIRSTS",
    "TAKE_IDENTITIES",
    "INSERT_BATCH",
    "INSERT_BATCH_BLOCK",
    "INSERT_DUE",
    "INSERT_DUE_BLOCK",
    "INSERT_PAST_BLOCK",
}  # an upsert by primary key has no plan to look at

FILL_SQLITE = f"""
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {READY + SCHEDULED + RUNNING + BLOCKED})
INSERT INTO job (id, queue, lane, state, priority, attempts, due_at, created_at, holder, exclusive, task, payload)
SELECT randomblob(16), 'q' || (i % 5), i % 3, state, i % 4, 3, i, i,
 CASE state WHEN 2 THEN randomblob(16) END, CASE WHEN state = 3 OR i % 50 = 0 THEN 'k' || (i % 40) END, 'noop', x'5b5d'
FROM (SELECT i, CASE WHEN i <= {READY} THEN 1 WHEN i <= {READY + SCHEDULED} THEN 0
 WHEN i <= {READY + SCHEDULED + RUNNING} THEN 2 ELSE 3 END AS state FROM n);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {SETTLED})
INSERT INTO settled (id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at, settled_at,
 expires_at, task, payload)
SELECT randomblob(16), 'q' || (i % 5), 0, CASE WHEN i % 50 = 0 THEN 6 ELSE 4 END, 0, 1, 3, 0, 1, i, i, i, i, 'noop', x'5b5d'
FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO job_key (task, text, job_id, digest, expires_at) SELECT 'noop', 'k' || i, randomblob(16), x'00', i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO job_identity (identity, job_id, scope, until, expires_at) SELECT randomblob(16), randomblob(16), 2, i, i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO run (id, name, version, started_at) SELECT randomblob(16), 'w' || (i % 50), '', i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO step (run, path, kind, name, state, failures, job, started_at, undo_state, undo_failures)
SELECT randomblob(16), '00001', i % 2, 'do', 1 + i % 2, 0, CASE i % 2 WHEN 0 THEN randomblob(16) END, i, 0, 0 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {KEYS})
INSERT INTO signal (run, number, name, key, at) SELECT randomblob(16), i, 'go', 'k', i FROM n;
"""


@pytest.mark.parametrize("analysed", [False, True])
def test_no_statement_reads_a_whole_table_of_a_full_sqlite_file(
    sqlite_url: str, clock: ManualClock, analysed: bool
) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    store.close()
    connection = apsw.Connection(str(file_of(sqlite_url)))
    connection.execute(f"BEGIN; {FILL_SQLITE} COMMIT")
    if analysed:
        connection.execute("ANALYZE")

    wrong = []
    for name, sql, index in SQLITE:
        plan = "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", anything(sql)))
        whole = re.search(
            r"SCAN (job|settled|job_key|job_identity|run|step|signal|[br])\b(?! USING (COVERING )?INDEX)",
            plan,
        )
        if whole or index not in plan or (name in SORTED and "TEMP B-TREE" in plan):
            wrong.append(f"{name} wants {index}:\n{plan}")
    connection.close()
    assert wrong == [], "\n\n".join(wrong)


def anything(sql: str) -> tuple[int, ...]:
    """A value for whatever a statement asks for: plans do not look at it."""
    marks = re.findall(r"\?(\d*)", sql)
    return (1,) * (max(int(mark) for mark in marks) if any(marks) else len(marks))


SORTED = {
    "LEASE", "LEASE_LEVEL", "CANDIDATES", "CANDIDATES_LEVEL", "PROMISED", "NEXT_LINE", "NEXT_READY", "PROMOTE", "HOT_JOBS", "COLD_JOBS",
    "DEAD_JOBS", "LEASE_BY_AGE", "LINES", "NEXT_DUE", "UPCOMING", "CANDIDATES_OF", "WAITING",
    "DUE", "NEXT_WAITING_LINE", "NEXT_WAIT", "LONGEST", "LOWEST", "SETTLED_JOBS", "FAILED_JOBS", "UNSETTLED_JOBS", "HOT_OF_BATCH",
    "COLD_OF_BATCH", "DEAD_OF_BATCH",
}  # in the order of the index, so that the first rows cost as much as they are  # fmt: skip


UNTIL_NOW = {
    "PROMOTE",
    "PURGE_SETTLED",
    "PURGE_KEYS",
    "PURGE_IDENTITIES",
    "KEEP_IDENTITIES",
}  # must not read on past what is due

# PostgreSQL: statement, parameters, indexes that the plan must use.

LINE = {"queue": "q1", "lane": 1, "count": 100, "holder": ONE, "skew": NO_TIME, "level": 2}
LEASES = {"ids": IDS, "fences": [1] * 100, "skew": NO_TIME}
END = {"states": [6] * 100, "reasons": ["no"] * 100, "histories": [b"[]"] * 100, "keeps": [NO_TIME] * 100}
TAKEN = {
    "id": ONE, "fence": 1, "losses": 1, "history": b"[]", "lane": 1, "state": 6, "keep": NO_TIME, "reason": "no",
    "skew": NO_TIME, "limit": 100, "grace": NO_TIME, "identity": NO_TIME,
}  # fmt: skip
FILTER = {
    "before": ONE, "queue": None, "task": None, "limit": 50, "state": None, "reason": None, "session": None, "tenant": None,
    "batch": None,
}  # fmt: skip
FOUND = {"low": ONE, "high": ONE, "last": ONE, "looked_at": 100_000, "digits": "ff", "limit": 10}
AHEAD = {
    "queue": "q1", "lane": 4, "tenant": "t1", "priority": 1, "due_at": datetime(2026, 1, 1, tzinfo=UTC), "id": ONE,
    "limit": 10_000,
}  # fmt: skip
NAMED = {"queues": ["q1"] * 100, "names": ["s1"] * 100, "numbers": True}
NEW = ("q1", 0, 0, 3, None, None, "noop")
# CANCELLED_BY and ORDER_STOP may go by the primary key or by the few running jobs.
POSTGRES: list[tuple[str, str, Any, set[str]]] = [
    ("LEASE", postgres.leasing.LEASE, LINE, {"job_ready", "job_pkey"}),
    ("LEASE_BY_AGE", postgres.leasing.LEASE_BY_AGE, LINE, {"job_ready", "job_pkey"}),
    ("OLDEST_LEVEL", postgres.leasing.OLDEST_LEVEL, LINE, {"job_ready"}),
    ("CANDIDATES", postgres.guarding.CANDIDATES, LINE, {"job_ready", "job_line"}),
    ("CANDIDATES_LEVEL", postgres.guarding.CANDIDATES_LEVEL, LINE, {"job_ready", "job_line"}),
    ("PROMISED", postgres.guarding.PROMISED, LINE, {"job_promised", "job_line"}),
    ("OF_ONE_TENANT", postgres.guarding.OF_ONE_TENANT, LINE, {"job_tenant", "job_line"}),
    ("OPENED", postgres.guarding.OPENED, LINE, {"job_blocked"}),
    ("HEADS", postgres.guarding.HEADS, {**LINE, "after": "t2"}, {"job_tenant"}),
    (
        "CANDIDATES_OF",
        postgres.guarding.CANDIDATES_OF,
        {**LINE, "tenants": ["t1"] * 100, "each": 9},
        {"job_tenant", "job_line"},
    ),
    ("HELD_KEY", postgres.guarding.HELD_KEY, ("k1",), {"job_exclusive"}),
    ("BLOCK_KEY", postgres.guarding.BLOCK_KEY, ("k1",), {"job_exclusive", "job_pkey"}),
    ("BLOCK", postgres.guarding.BLOCK, {"ids": IDS, "waits": ["w"] * 100}, {"job_pkey"}),
    (
        "LATER",
        postgres.guarding.LATER,
        {"ids": IDS, "waits": ["w"] * 100, "times": [1.0] * 100},
        {"job_pkey"},
    ),
    ("LEASE_THESE", postgres.guarding.LEASE_THESE, {**LINE, "ids": IDS}, {"job_pkey"}),
    ("REOPEN", postgres.batches.REOPEN, (IDS,), {"batch_pkey", "job_pkey"}),
    ("GIVE_UP", postgres.uniques.GIVE_UP, (ONE, ONE, ONE, ONE), {"job_identity_pkey"}),
    ("LEASE_COUNTED", postgres.guarding.LEASE_COUNTED, {**LINE, "ids": IDS}, {"job_pkey"}),
    ("COUNT in a queue", postgres.rules.COUNT["queue"], ("q1",), {"job_running"}),
    ("COUNT of a task", postgres.rules.COUNT["task"], ("noop",), {"job_running"}),
    ("OF_LEASES", postgres.guarding.OF_LEASES, (IDS,), {"job_pkey"}),
    ("LOOK_AT_ALL", postgres.sessions.LOOK_AT_ALL, NAMED, {"job_line"}),
    ("LOOK", postgres.sessions.LOOK, {"queue": "q1", "name": "s1"}, {"job_line"}),
    ("READY_HEADS", postgres.sessions.READY_HEADS, NAMED, {"job_line", "job_pkey"}),
    ("WAITING", postgres.sessions.WAITING, ("q1", "s1"), {"job_line"}),
    ("MISS", postgres.sessions.MISS, {"ids": IDS, "gap_after": NO_TIME, "skew": NO_TIME}, {"job_pkey"}),
    ("HOLD", postgres.sessions.HOLD, {"ids": IDS, "skew": NO_TIME}, {"settled_pkey"}),
    ("RUNNING of queues", postgres.rules.RUNNING["queue"], (["q1"] * 100, [5] * 100), {"job_limit_queue"}),
    ("RUNNING of tasks", postgres.rules.RUNNING["task"], (["noop"] * 100, [5] * 100), {"job_limit_task"}),
    ("RUNNING of keys", postgres.rules.RUNNING["key"], (["a:1"] * 100, [5] * 100), {"job_limit_key"}),
    (
        "READY_FIRST",
        postgres.rules.READY_FIRST,
        {"waits": "limit:task:noop", "free": 5, "after": ""},
        {"job_blocked", "job_pkey"},
    ),
    ("WAITED_FOR", postgres.rules.WAITED_FOR, (["task:noop"] * 100,), {"job_blocked"}),
    ("WAITS", postgres.sweeping.WAITS, {"waits": "a", "queue": "q", "limit": 100}, {"job_blocked"}),
    ("NUMBERED", postgres.enqueue.NUMBERED, ("q1", "s1", 5), {"job_sequence"}),
    ("SETTLED", postgres.enqueue.SETTLED, (ONE,), {"settled_pkey"}),
    ("HOLD_PAGE", postgres.batches.HOLD_PAGE, (IDS,), {"job_pkey"}),
    ("GUARDED", postgres.cancelling.GUARDED, (IDS,), {"job_pkey"}),
    ("DEAD_QUEUES", postgres.jobs.DEAD_QUEUES, (IDS,), {"settled_pkey"}),
    ("HELD", postgres.leasing.HELD, LINE, {"job_running"}),
    (
        "COMPLETE",
        postgres.settling.COMPLETE,
        {**LEASES, "results": [b"1"] * 100, "keep": NO_TIME},
        {"job_pkey"},
    ),
    (
        "COMPLETE_ANY",
        postgres.settling.COMPLETE_ANY,
        {**LEASES, "results": [b"1"] * 100, "keep": NO_TIME},
        {"job_pkey"},
    ),
    (
        "COMPLETE_TELLING",
        postgres.settling.COMPLETE_TELLING,
        {**LEASES, "results": [b"1"] * 100, "keep": NO_TIME},
        {"job_pkey"},
    ),
    ("END", postgres.settling.END, LEASES | END, {"job_pkey"}),
    ("ACCEPTED", postgres.triggers.ACCEPTED, {"id": ONE}, {"job_pkey", "settled_pkey"}),
    (
        "AGAIN",
        postgres.settling.AGAIN,
        {**LEASES, **END, "delays": [NO_TIME] * 100, "backs": [0] * 100},
        {"job_pkey"},
    ),
    ("CANCELLED_BY", postgres.settling.CANCELLED_BY, (IDS,), set()),
    ("SETTLED_BY", postgres.settling.SETTLED_BY, LEASES | END, {"settled_pkey"}),
    ("DROP_SETTLED", postgres.settling.DROP_SETTLED, (IDS,), {"job_pkey", "settled_pkey"}),
    (
        "CANCEL_WAITING",
        postgres.settling.CANCEL_WAITING,
        {**LEASES, "keep": NO_TIME, "reason": ""},
        {"job_pkey"},
    ),
    ("READY_NEXT", postgres.settling.READY_NEXT, {"key": "k1"}, {"job_exclusive", "job_pkey"}),
    ("OVERDUE", postgres.sweeping.OVERDUE, TAKEN, {"job_running"}),
    ("READY_AGAIN", postgres.sweeping.READY_AGAIN, TAKEN, {"job_pkey"}),
    ("END_TAKEN", postgres.sweeping.END_TAKEN, TAKEN, {"job_pkey"}),
    ("STRANDED", postgres.sweeping.STRANDED, (100,), {"job_exclusive"}),
    ("LINES", postgres.jobs.LINES, (), {"job_ready"}),
    ("UPCOMING", postgres.reports.UPCOMING, (100,), {"job_scheduled"}),
    ("UNSETTLED", postgres.firing.UNSETTLED, (IDS,), {"job_pkey"}),
    ("DUE", postgres.firing.DUE, {"now": datetime.now(UTC), "limit": 100}, {"schedule_due"}),
    (
        "MOVE",
        postgres.firing.MOVE,
        {
            "places": ["(0,1)"] * 100,
            "cursors": [None] * 100,
            "nexts": [None] * 100,
            "recent": [b""] * 100,
            "zones": "",
        },
        set(),
    ),
    ("PROMOTE", postgres.jobs.PROMOTE, (NO_TIME, 100), {"job_scheduled", "job_pkey"}),
    ("NEXT_DUE", postgres.jobs.NEXT_DUE, (NO_TIME,), {"job_scheduled"}),
    ("SAVE", postgres.jobs.SAVE, (b"", b"", ONE, 1, NO_TIME), {"job_pkey"}),
    ("STOP_ORDERS", postgres.jobs.STOP_ORDERS, (ONE,), {"job_stopping"}),
    ("ORDER_STOP", postgres.cancelling.ORDER_STOP, ("me", IDS), set()),
    ("REVIVE", postgres.jobs.REVIVE, (IDS, NO_TIME), {"settled_pkey"}),
    ("READ_SETTLED", postgres.editing.READ_SETTLED, (IDS,), {"settled_pkey"}),
    ("EDIT", postgres.editing.EDIT, (b"", b"", ONE), {"settled_pkey"}),
    (
        "INSERT_ONE",
        postgres.enqueue.INSERT_ONE,
        (ONE, *NEW[:7], b"", None, None, NO_TIME, ONE, ONE),
        {"settled_pkey", "job_pkey"},
    ),
    (
        "INSERT_MANY",
        postgres.enqueue.INSERT_MANY,
        (None, None, NO_TIME, *NEW, IDS, [b""] * 100, IDS, IDS),
        {"settled_pkey", "job_pkey"},
    ),
    (
        "INSERT_GUARDED",
        postgres.enqueue.INSERT_GUARDED,
        (
            None,
            None,
            NO_TIME,
            *NEW,
            None,
            IDS,
            [b""] * 100,
            ["s1"] * 100,
            [None] * 100,
            [None] * 100,
            [0] * 100,
            [""] * 100,
            [None] * 100,
            [False] * 100,
            IDS,
            IDS,
        ),
        {"settled_pkey", "job_pkey"},
    ),
    ("UNDO_REPEAT", postgres.enqueue.UNDO_REPEAT, (IDS,), {"job_pkey", "settled_pkey"}),
    ("READ_KEY", postgres.enqueue.READ_KEY, ("noop", "k1"), {"job_key_pkey"}),
    ("FREE_KEY", postgres.enqueue.FREE_KEY, ("noop", "k1", ONE), {"job_key_pkey"}),
    (
        "FREE_IDENTITIES",
        postgres.uniques.FREE_IDENTITIES,
        (IDS, NO_TIME),
        {"job_identity_pkey", "job_pkey", "settled_pkey"},
    ),
    ("KNOWN_JOBS", postgres.uniques.KNOWN_JOBS, (IDS, IDS), {"job_pkey", "settled_pkey"}),
    ("RELET_KEY", postgres.uniques.RELET_KEY, (ONE, "noop", "k1", ONE), {"job_key_pkey"}),
    (
        "COUNT_WAITING",
        postgres.pressure.COUNT_WAITING,
        LINE | {"limit": 10_000},
        {"job_ready", "job_held_up"},
    ),
    ("LEVELS", postgres.pressure.LEVELS, LINE, {"job_ready"}),
    ("LONGEST", postgres.pressure.LONGEST, ("q1", 1, 2, 10), {"job_ready"}),
    ("LOWEST", postgres.pressure.LOWEST, ("q1", 1, 2, 10), {"job_ready"}),
    ("WERE_SHED", postgres.pressure.WERE_SHED, (IDS, "shed"), {"settled_pkey"}),
    (
        "PURGE_IDENTITIES",
        postgres.upkeep.PURGE_IDENTITIES,
        TAKEN,
        {"job_identity_expires", "job_identity_pkey", "job_pkey", "settled_pkey"},
    ),
    (
        "KEEP_IDENTITIES",
        postgres.upkeep.KEEP_IDENTITIES,
        TAKEN,
        {"job_identity_expires", "job_identity_pkey", "job_pkey", "settled_pkey"},
    ),
    ("LEAVE", postgres.members.LEAVE, (IDS[:2],), {"job_running"}),
    ("READY", postgres.queues.READY, {"skew": NO_TIME, "limit": 100}, {"job_ready"}),
    ("COUNT_SCHEDULED", postgres.queues.COUNT_SCHEDULED, (10_000,), {"job_scheduled"}),
    ("COUNT_RUNNING", postgres.queues.COUNT_RUNNING, (10_000,), {"job_running"}),
    ("COUNT_BLOCKED", postgres.queues.COUNT_BLOCKED, (10_000,), {"job_held_up"}),
    ("COUNT_DEAD", postgres.queues.COUNT_DEAD, (10_000,), {"settled_dead"}),
    ("JOB", postgres.reports.JOB, {"id": ONE}, {"job_pkey", "settled_pkey"}),
    ("HOT_JOBS", postgres.listing.HOT_JOBS, FILTER, {"job_pkey"}),
    ("COLD_JOBS", postgres.listing.COLD_JOBS, FILTER, {"settled_pkey"}),
    ("DEAD_JOBS", postgres.listing.DEAD_JOBS, FILTER, {"settled_dead"}),
    ("HOT_OF_BATCH", postgres.listing.HOT_OF_BATCH, FILTER | {"batch": ONE}, {"job_batch"}),
    ("COLD_OF_BATCH", postgres.listing.COLD_OF_BATCH, FILTER | {"batch": ONE}, {"settled_batch"}),
    ("DEAD_OF_BATCH", postgres.listing.DEAD_OF_BATCH, FILTER | {"batch": ONE}, {"settled_batch_dead"}),
    (
        "HOT_OF_SESSION",
        postgres.listing.HOT_OF_SESSION,
        FILTER | {"session": "s11"},
        {"job_line", "job_scheduled", "job_pkey"},
    ),
    ("MANY_OF_SESSION", postgres.listing.MANY_OF_SESSION, {"session": "s11"}, {"job_line"}),
    ("MANY_OF_TENANT", postgres.listing.MANY_OF_TENANT, {"tenant": "t10"}, {"job_tenant"}),
    (
        "HOT_OF_TENANT",
        postgres.listing.HOT_OF_TENANT,
        FILTER | {"tenant": "t10"},
        {"job_tenant", "job_scheduled", "job_running", "job_blocked", "job_pkey"},
    ),
    ("BEGINNING", postgres.reports.BEGINNING, FOUND, {"job_pkey", "settled_pkey"}),
    ("ENDING", postgres.reports.ENDING, FOUND, {"job_pkey", "job_running", "settled_pkey", "settled_dead"}),
    ("RUNNING", postgres.reports.RUNNING, (100,), {"job_running"}),
    ("GUARD", postgres.explaining.GUARD, {"id": ONE}, {"job_pkey", "settled_pkey"}),
    ("HIGHER", postgres.explaining.HIGHER, AHEAD, {"job_ready"}),
    ("OLDER", postgres.explaining.OLDER, AHEAD, {"job_ready"}),
    ("HIGHER_OF_TENANT", postgres.explaining.HIGHER_OF_TENANT, AHEAD, {"job_tenant"}),
    ("OLDER_OF_TENANT", postgres.explaining.OLDER_OF_TENANT, AHEAD, {"job_tenant"}),
    ("HAS_TURN", postgres.explaining.HAS_TURN, ("q1", "s1"), {"job_line"}),
    ("BEFORE_IN_LINE", postgres.explaining.BEFORE_IN_LINE, ("q1", "s1", 7, ONE, 100), {"job_line"}),
    ("EXCLUSIVE_HOLDER", postgres.explaining.EXCLUSIVE_HOLDER, ("k1",), {"job_exclusive"}),
    ("RUNNING_IN_QUEUE", postgres.explaining.RUNNING_IN_QUEUE, ("q1", 100), {"job_limit_queue"}),
    ("RUNNING_OF_TASK", postgres.explaining.RUNNING_OF_TASK, ("noop", 100), {"job_limit_task"}),
    ("RUNNING_OF_KEY", postgres.explaining.RUNNING_OF_KEY, ("k1", 100), {"job_limit_key"}),
    ("PURGE_SETTLED", postgres.upkeep.PURGE_SETTLED, TAKEN, {"settled_expires", "settled_pkey"}),
    ("ERASE", postgres.upkeep.ERASE, (IDS,), {"settled_pkey"}),
    ("PURGE_KEYS", postgres.upkeep.PURGE_KEYS, TAKEN, {"job_key_expires"}),
    ("PURGE_MEMBERS", postgres.upkeep.PURGE_MEMBERS, TAKEN, {"job_running"}),
    (
        "COMPLETE_OF_BATCH",
        postgres.settling.COMPLETE_OF_BATCH,
        {**LEASES, "results": [b"1"] * 100, "keep": NO_TIME},
        {"job_pkey"},
    ),
    (
        "COMPLETE_OF_BATCH_TELLING",
        postgres.settling.COMPLETE_OF_BATCH_TELLING,
        {**LEASES, "results": [b"1"] * 100, "keep": NO_TIME},
        {"job_pkey"},
    ),
    ("END_OF_BATCH", postgres.settling.END_OF_BATCH, LEASES | END, {"job_pkey"}),
    ("BATCH", postgres.batches.BATCH, (ONE,), {"batch_pkey", "job_batch_running", "batch_count_batch"}),
    (
        "BATCHES",
        postgres.batches.BATCHES,
        (ONE, 20),
        {"batch_pkey", "job_batch_running", "batch_count_batch"},
    ),
    ("SETTLED_JOBS", postgres.batches.SETTLED_JOBS, (ONE, ONE, 100), {"settled_batch"}),
    ("FAILED_JOBS", postgres.batches.FAILED_JOBS, (ONE, ONE, 100), {"settled_batch_dead"}),
    ("UNSETTLED_JOBS", postgres.batches.UNSETTLED_JOBS, (ONE, ONE, 100), {"job_batch"}),
    ("ORDER_STOP_OF_BATCH", postgres.batches.ORDER_STOP_OF_BATCH, ("me", IDS), set()),
    ("HAS_JOBS", postgres.batches.HAS_JOBS, {"id": ONE}, set()),
    ("BATCHES_OF", postgres.batches.BATCHES_OF, (IDS,), {"settled_pkey"}),
    # Of workflows.
    ("HOLD of a run", postgres.runs.HOLD, {"id": ONE}, {"job_pkey"}),
    ("HOLD_ALL", postgres.runs.HOLD_ALL, (IDS,), {"job_pkey"}),
    ("WAKE", postgres.runs.WAKE, {"id": ONE, "skew": NO_TIME}, {"job_pkey"}),
    ("NEWS", postgres.runs.NEWS, {"id": ONE}, {"run_pkey"}),
    ("BEGUN", postgres.runs.BEGUN, (IDS,), {"run_pkey"}),
    ("CANCEL", postgres.runs.CANCEL, {"id": ONE, "by": "me"}, {"run_pkey", "job_pkey"}),
    ("RESTART", postgres.runs.RESTART, (IDS,), {"run_pkey", "settled_pkey"}),
    ("ENDED", postgres.runs.ENDED, (ONE,), {"step_job", "settled_pkey"}),
    ("UNDONE", postgres.runs.UNDONE, (ONE,), {"step_undo_job", "settled_pkey"}),
    ("UNDO_AGAIN", postgres.runs.UNDO_AGAIN, (IDS,), {"step_pkey"}),
    ("MINE", postgres.workflows.MINE, {"ids": IDS, "fences": [1] * 100, "skew": NO_TIME}, {"job_pkey"}),
    ("CANCEL_TOLD", postgres.workflows.CANCEL_TOLD, {"id": ONE}, {"job_pkey"}),
    (
        "SLEEP",
        postgres.workflows.SLEEP,
        {"ids": IDS, "news": [0] * 100, "waits": [1] * 100, "untils": [SOMETIME] * 100, "now": SOMETIME},
        {"job_pkey", "run_pkey"},
    ),
    ("STEPS", postgres.run_views.STEPS, {"ids": IDS}, {"step_pkey"}),
    ("SIGNALS", postgres.run_views.SIGNALS, {"ids": IDS}, {"signal_pkey"}),
    ("KEY_USED", postgres.workflows.KEY_USED, (ONE, "k"), {"signal_key"}),
    ("LAST_SIGNAL", postgres.workflows.LAST_SIGNAL, (ONE,), {"signal_pkey"}),
    ("ARE_THERE", postgres.workflows.ARE_THERE, {"ids": IDS}, {"job_pkey", "settled_pkey"}),
    ("SETTLED", postgres.workflows.SETTLED, (ONE,), {"settled_pkey"}),
    ("JOBS", postgres.run_views.JOBS, {"ids": IDS}, {"job_pkey", "settled_pkey"}),
    ("NEWEST_ALL", postgres.run_views.NEWEST_ALL, {"before": ONE, "limit": 20}, {"run_pkey"}),
    ("NEWEST_OF", postgres.run_views.NEWEST_OF, {"before": ONE, "limit": 20, "name": "w"}, {"run_name"}),
    ("NEWEST_FORWARD", postgres.run_views.NEWEST_FORWARD, {"before": ONE, "limit": 20}, {"run_pkey"}),
    ("NEWEST_IN", postgres.run_views.NEWEST_IN, {"before": ONE, "limit": 20, "phase": 2}, {"run_phase"}),
    ("DIRECT", postgres.workflows.DIRECT, {"id": ONE, "phase": 1, "why": ""}, {"run_pkey", "job_pkey"}),
    ("MEND", postgres.workflows.MEND, {"id": ONE, "path": "00001", "payload": b""}, {"step_pkey"}),
    ("OVERDUE_STEPS", postgres.workflows.OVERDUE_STEPS, {"skew": NO_TIME, "limit": 100}, {"step_late"}),
    ("TRY_AGAIN", postgres.workflows.TRY_AGAIN, {"id": ONE}, {"step_pkey"}),
    # Of the batches themselves.
    ("IN_NEED", postgres.batches.IN_NEED, {"ids": IDS}, {"run_pkey", "batch_pkey", "batch_count_batch"}),
    ("WITH_LINES", postgres.batches.WITH_LINES, (100,), {"batch_count_batch"}),
    ("ADD_UP", postgres.batches.ADD_UP, {"id": ONE}, {"batch_pkey", "batch_count_batch"}),
    ("EXPIRED", postgres.batches.EXPIRED, (NO_TIME, 100), {"batch_expires"}),
]

FILL_POSTGRES = f"""
INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, holder, exclusive, task,
 payload)
SELECT gen_random_uuid(), 'q' || (i % 5), i % 3, state, i % 4, 3, now() + i * interval '1 second', now(),
 CASE state WHEN 2 THEN gen_random_uuid() END, CASE WHEN state = 3 OR i % 50 = 0 THEN 'k' || (i % 40) END, 'noop', '[]'
FROM (SELECT i, CASE WHEN i <= {READY} THEN 1 WHEN i <= {READY + SCHEDULED} THEN 0
 WHEN i <= {READY + SCHEDULED + RUNNING} THEN 2 ELSE 3 END AS state
 FROM generate_series(1, {READY + SCHEDULED + RUNNING + BLOCKED}) i) n;
UPDATE lateshift.job SET lane = 4, tenant = 't' || (priority * 7 + attempts), task = 'guarded',
 limit_key = CASE WHEN state = 2 THEN 'a:1' END, session = CASE WHEN state IN (1, 3) THEN 's' || left(id::text, 2) END,
 turn = 1, in_limits = CASE WHEN state = 2 THEN true END, blocked_by = CASE WHEN state = 3 THEN 'session:s' || left(id::text, 2) END
 WHERE left(id::text, 1) IN ('1', '2', '3');
INSERT INTO lateshift.settled (id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at,
 settled_at, expires_at, task, payload)
SELECT gen_random_uuid(), 'q' || (i % 5), 0, CASE WHEN i % 50 = 0 THEN 6 ELSE 4 END, 0, 1, 3, 0, 1, now(), now(), now(),
 now() + i * interval '1 second', 'noop', '[]' FROM generate_series(1, {SETTLED}) i;
INSERT INTO lateshift.job_key (task, text, job_id, digest, expires_at)
SELECT 'noop', 'k' || i, gen_random_uuid(), '', now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.job_identity (identity, job_id, scope, until, expires_at)
SELECT gen_random_uuid(), gen_random_uuid(), 2, now(), now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.batch (id, total, created_at, finished_at, expires_at)
SELECT gen_random_uuid(), 1, now(), now(), now() + i * interval '1 second' FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.batch_count (batch, completed, failed, cancelled, failures)
SELECT gen_random_uuid(), 1, 0, 0, 0 FROM generate_series(1, {KEYS}) i;
UPDATE lateshift.job SET batch = gen_random_uuid() WHERE priority = 1;
UPDATE lateshift.settled SET batch = gen_random_uuid() WHERE queue = 'q1';
INSERT INTO lateshift.schedule (name, plan, spec, payload, overlap, generation, cursor, next_at, recent, zones, created_at,
 changed_at, changed_by) SELECT 's' || i, '', '', '', 1, 1, now(), now() + i * interval '1 second', '', '', now(), now(), ''
 FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.run (id, name, version, started_at)
SELECT gen_random_uuid(), 'w' || (i % 50), '', now() FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.step (run, path, kind, name, state, failures, job, started_at, undo_state, undo_failures)
SELECT gen_random_uuid(), '00001', i % 2, 'do', 1 + i % 2, 0, CASE i % 2 WHEN 0 THEN gen_random_uuid() END, now(), 0, 0
 FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.signal (run, number, name, key, at) SELECT gen_random_uuid(), i, 'go', 'k', now() FROM generate_series(1, {KEYS}) i;
INSERT INTO lateshift.member (id, name, kind, host, pid, started_at, expires_at, stats)
SELECT gen_random_uuid(), 'w', 'worker', 'h', 1, now(), now(), '' FROM generate_series(1, 20);
"""


@pytest.fixture(params=["analysed", "analysed when empty", "never analysed"])
def full(
    request: pytest.FixtureRequest, postgres_server: PostgresDatabases, postgres_template: str
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection to a full database with such statistics."""
    name = unused_name()
    store = open_store(postgres_server.create_database(name, template=postgres_template))
    assert isinstance(store, postgres.PostgresStore)
    with store._database.connect() as connection:
        if request.param == "analysed when empty":
            connection.execute("ANALYZE")
        connection.execute(FILL_POSTGRES.encode(), prepare=False)
        if request.param == "analysed":
            connection.execute("ANALYZE")
        yield connection
    store.close()
    postgres_server.drop_database(name)


def test_no_statement_reads_a_whole_table_of_a_full_database(
    full: psycopg.Connection[tuple[Any, ...]],
) -> None:
    wrong = []
    for name, sql, parameters, indexes in POSTGRES:
        [[plan]] = full.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode(), parameters, prepare=False).fetchall()
        wrong += faults(name, plan[0]["Plan"], indexes)
    assert wrong == [], "\n\n".join(wrong)


def test_no_plan_that_is_kept_for_any_parameters_reads_a_whole_table(
    full: psycopg.Connection[tuple[Any, ...]],
) -> None:
    """The store's statements are prepared: after a few runs PostgreSQL may make one plan for all parameters."""
    full.execute("SET plan_cache_mode = force_generic_plan")
    wrong = []
    for name, sql, _, indexes in POSTGRES:
        numbered, count = with_numbers(sql)
        full.execute(f"PREPARE generic AS {numbered}".encode())
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        [[plan]] = full.execute(f"EXPLAIN (FORMAT JSON) EXECUTE generic{values}".encode()).fetchall()
        full.execute("DEALLOCATE generic")
        wrong += faults(f"{name}, any parameters", plan[0]["Plan"], indexes)
    assert wrong == [], "\n\n".join(wrong)


def with_numbers(sql: str) -> tuple[str, int]:
    """$1, $2 … for each %s, and the same number for the same %(name)s."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found.group(1) or f"#{len(names)}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return re.sub(r"%(?:\((\w+)\))?[sb]", number, sql), len(names)


def faults(name: str, plan: dict[str, Any], indexes: set[str]) -> list[str]:
    nodes = list(walk(plan))
    whole = [node for node in nodes if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE]
    bounded = {id(node) for limit in nodes if limit["Node Type"] == "Limit" for node in walk(limit)}
    whole += [  # an index read from end to end is no better, unless it holds few rows or stops early
        node
        for node in nodes
        if node.get("Relation Name") in LARGE
        and node.get("Index Name") not in (None, "job_running", "job_stopping", "settled_dead")
        and "Index Cond" not in node
        and (id(node) not in bounded or name.partition(",")[0] in UNTIL_NOW)
    ]
    used = {node["Index Name"] for node in nodes if "Index Name" in node}
    sorts = [
        node
        for limit in nodes
        if limit["Node Type"] == "Limit"
        for node in walk(limit)
        if node["Node Type"] in ("Sort", "Incremental Sort")
        and any(below.get("Relation Name") in LARGE for below in walk(node))
    ]
    if whole or not indexes <= used or (sorts and name.partition(",")[0] in SORTED):
        shape = [
            " ".join(str(node[key]) for key in ("Node Type", "Relation Name", "Index Name") if key in node)
            for node in nodes
        ]
        return [f"{name} wants {sorted(indexes)}, has:\n  " + "\n  ".join(shape)]
    return []


def walk(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from walk(below)


# No statement is forgotten


BATCHES_THEMSELVES = {"IN_NEED", "WITH_LINES", "ADD_UP", "EXPIRED"}  # which touch no table of jobs
SCHEDULES_THEMSELVES = {"DUE", "MOVE"}  # nor do these
WORKFLOWS_THEMSELVES = {
    "END_STEP", "END_UNDO", "UNDO_AGAIN", "NEWS", "PUT_UNDO", "STEPS", "SIGNALS", "KEY_USED", "LAST_SIGNAL", "TAKE_SIGNAL", "NEWEST_ALL",
    "NEWEST_OF", "NEWEST_IN", "NEWEST_FORWARD", "TRY_AGAIN", "BEGUN", "ENDED", "UNDONE",
    "OVERDUE_STEPS", "FAIL_LATE",
}  # nor these  # fmt: skip


TOUCHES = re.compile(r"\b(FROM|INTO|UPDATE)\s+(lateshift\.)?(job|settled|job_key|job_identity)\b")


def is_statement(value: object) -> bool:
    return isinstance(value, str) and TOUCHES.search(value) is not None


def statements_of(package: ModuleType) -> set[str]:
    """The names of all statements that touch the tables of jobs."""
    found = set()
    for module in vars(package).values():
        if isinstance(module, ModuleType) and module.__name__.startswith(package.__name__):
            for name, value in vars(module).items():
                forms = value.values() if isinstance(value, dict) else [value]
                if name.isupper() and not name.startswith("_") and all(map(is_statement, forms)):
                    found.add(name)
    return found


def test_every_statement_on_the_tables_of_jobs_has_its_plan_looked_at() -> None:
    themselves = BATCHES_THEMSELVES | SCHEDULES_THEMSELVES | WORKFLOWS_THEMSELVES
    planned_on_sqlite = {name.split()[0] for name, _, _ in SQLITE}
    assert (
        statements_of(sqlite) - UNPLANNED == planned_on_sqlite - SCHEDULES_THEMSELVES - WORKFLOWS_THEMSELVES
    )
    planned = {name.split()[0] for name, _, _, _ in POSTGRES}
    assert statements_of(postgres) - UNPLANNED == planned - themselves
