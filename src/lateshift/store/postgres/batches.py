"""Batches in PostgreSQL. A transaction that settles jobs adds one line of counts for each batch and locks nothing, so that
workers do not wait for one another at the batch's row. Whoever finds a batch done, or in need of its callback, adds the
lines up in that row, alone with it, and enqueues what is due in the same transaction: the worker after its exchange, and
the supervisor for those who died."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from psycopg.errors import UniqueViolation

from lateshift.errors import StoreError
from lateshift.model.batch import BatchId, BatchView, NewBatch, Standing, due
from lateshift.model.guard import Guarded, Turns
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, Line, NewJob
from lateshift.store import batching
from lateshift.store.batch_contract import Deed
from lateshift.store.contract import ENDINGS_LOOKED_AT
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.postgres import enqueue, guarding, runs, sessions, settling
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.listing import COLD
from lateshift.store.postgres.reports import view_of
from lateshift.store.postgres.wakes import NotifyWakes

LINES_LEFT = 1000  # of a batch, until a worker adds them up itself

_NOW = "clock_timestamp() + %(skew)s::interval"

# Primary key; batch_key.
OPEN = f"""INSERT INTO lateshift.batch (id, name, key, digest, total, created_at, then_call, failure_call)
 VALUES (%(id)s, %(name)s, %(key)s, %(digest)s, %(total)s, {_NOW}, %(then)s, %(failure)s) ON CONFLICT DO NOTHING RETURNING 1"""
READ_KEY = "SELECT id, digest FROM lateshift.batch WHERE key = %s"
# How far a batch has come; nobody else adds to it meanwhile. Primary key.
READ_ADDED = "SELECT added, total, sealed_at, cancelled_by FROM lateshift.batch WHERE id = %s FOR UPDATE"
ADD = "UPDATE lateshift.batch SET added = %s WHERE id = %s"
# No more jobs will come: the total is what has come. Primary key.
SEAL = f"""UPDATE lateshift.batch SET sealed_at = {_NOW}, total = added WHERE id = %(id)s AND sealed_at IS NULL
 RETURNING 1"""
# Jobs of these ids are ready again. Primary keys.
REOPEN = """UPDATE lateshift.batch SET finished_at = NULL, expires_at = NULL
 WHERE id = ANY(ARRAY(SELECT DISTINCT batch FROM lateshift.job WHERE id = ANY(%s::uuid[]) AND batch IS NOT NULL))"""
DISCARD = "DELETE FROM lateshift.batch WHERE id = %s AND added = 0 AND sealed_at IS NULL RETURNING 1"
CALL_OFF = "UPDATE lateshift.batch SET cancelled_by = coalesce(cancelled_by, %s) WHERE id = %s"

# Alone with a batch, add its lines up. Primary key; batch_count_batch.
LOCK = "SELECT 1 FROM lateshift.batch WHERE id = %s FOR UPDATE"
ADD_UP = """WITH line AS (DELETE FROM lateshift.batch_count WHERE batch = %(id)s RETURNING *),
sums AS (SELECT coalesce(sum(completed), 0)::int AS completed, coalesce(sum(failed), 0)::int AS failed,
 coalesce(sum(cancelled), 0)::int AS cancelled, coalesce(sum(failures), 0)::int AS failures FROM line)
UPDATE lateshift.batch b SET completed = b.completed + sums.completed, failed = b.failed + sums.failed,
 cancelled = b.cancelled + sums.cancelled, failures = b.failures + sums.failures FROM sums WHERE b.id = %(id)s
RETURNING sealed_at IS NOT NULL, total, b.completed, b.failed, b.cancelled, b.failures, cancelled_by IS NOT NULL,
 finished_at, then_call, then_at, failure_call, failure_at"""
MARK = f"""UPDATE lateshift.batch SET
 finished_at = CASE WHEN %(finished)s THEN coalesce(finished_at, {_NOW}) END,
 expires_at = CASE WHEN %(finished)s THEN coalesce(finished_at, {_NOW}) + %(keep)s::interval END,
 then_at = CASE WHEN %(then)s THEN {_NOW} ELSE then_at END,
 failure_at = CASE WHEN %(failure)s THEN {_NOW} ELSE failure_at END WHERE id = %(id)s"""
# Lines of a batch that is not there any more. batch_count_batch.
DROP_LINES = "DELETE FROM lateshift.batch_count WHERE batch = %s"

# What the lines of a batch come to that are not in its row yet. batch_count_batch.
_LINES = """LATERAL (SELECT count(*) AS number, coalesce(sum(completed), 0)::int AS completed, coalesce(sum(failed), 0)::int AS failed,
 coalesce(sum(cancelled), 0)::int AS cancelled, coalesce(sum(failures), 0)::int AS failures
 FROM lateshift.batch_count WHERE batch = b.id) line"""
# Those of these batches for which there is something to do, or many lines that no supervisor has added up: looked for after
# each exchange that settled jobs of a batch, without a lock; and runs of workflows, whose steps these are. Primary keys;
# batch_count_batch.
IN_NEED = f"""SELECT id FROM lateshift.run WHERE id = ANY(%(ids)s)
UNION ALL SELECT b.id FROM lateshift.batch b, {_LINES} WHERE b.id = ANY(%(ids)s)
 AND (line.number >= {LINES_LEFT} OR (b.cancelled_by IS NULL AND b.failure_call IS NOT NULL AND b.failure_at IS NULL AND b.failures + line.failures > 0)
  OR (b.sealed_at IS NOT NULL AND b.total <=
   b.completed + b.failed + b.cancelled + line.completed + line.failed + line.cancelled
   AND (b.finished_at IS NULL
    OR (b.cancelled_by IS NULL AND b.then_call IS NOT NULL AND b.then_at IS NULL AND b.failed + line.failed = 0))))"""
# The batches of jobs that have ended. Primary key.
BATCHES_OF = "SELECT DISTINCT batch FROM lateshift.settled WHERE id = ANY(%s::uuid[]) AND batch IS NOT NULL"
# Batches that have lines, from one to the next. batch_count_batch.
WITH_LINES = """WITH RECURSIVE next AS (
  (SELECT batch FROM lateshift.batch_count ORDER BY batch LIMIT 1)
  UNION ALL
  SELECT (SELECT c.batch FROM lateshift.batch_count c WHERE c.batch > next.batch ORDER BY c.batch LIMIT 1)
  FROM next WHERE next.batch IS NOT NULL)
SELECT batch FROM next WHERE batch IS NOT NULL LIMIT %s"""

# Batches with the number of their running jobs. Primary key; job_batch_running, batch_count_batch.
_SEEN = """SELECT b.id, b.name, b.key, b.total, b.added, b.completed + line.completed, b.failed + line.failed,
 b.cancelled + line.cancelled, b.sealed_at, b.created_at, b.finished_at, b.cancelled_by, b.then_call, b.then_at,
 b.failure_call, b.failure_at, (SELECT count(*) FROM lateshift.job j WHERE j.batch = b.id AND j.state = 2)"""
BATCH = f"{_SEEN} FROM lateshift.batch b, {_LINES} WHERE b.id = %s"
BATCHES = f"""{_SEEN} FROM (SELECT * FROM lateshift.batch WHERE id < %s ORDER BY id DESC LIMIT %s) b, {_LINES}
 ORDER BY b.id DESC"""
# Ids that begin so, and that end so among the newest. Primary key.
BEGINNING = "SELECT id FROM lateshift.batch WHERE id BETWEEN %(low)s AND %(high)s LIMIT %(limit)s"
ENDING = """SELECT id FROM (SELECT id FROM lateshift.batch ORDER BY id DESC LIMIT %(looked_at)s) newest
 WHERE right(replace(id::text, '-', ''), length(%(digits)s::text)) = %(digits)s LIMIT %(limit)s"""

# What has ended, in the order of the ids. settled_batch.
SETTLED_JOBS = f"SELECT {COLD} FROM lateshift.settled WHERE batch = %s AND id > %s ORDER BY id LIMIT %s"
# The dead letters of a batch. settled_batch_dead.
FAILED_JOBS = (
    "SELECT id FROM lateshift.settled WHERE batch = %s AND state = 6 AND id > %s ORDER BY id LIMIT %s"
)
# What has not ended, with the guards that it has. job_batch.
UNSETTLED_JOBS = """SELECT id, queue, task, session, limit_key, tenant FROM lateshift.job
 WHERE batch = %s AND id > %s ORDER BY id LIMIT %s"""
# Running jobs are told to stop. Primary key.
HOLD_PAGE = "SELECT 1 FROM lateshift.job WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
ORDER_STOP_OF_BATCH = "UPDATE lateshift.job SET cancel_by = %s WHERE id = ANY(%s) AND state = 2"

# Finished batches to look at again, and whether a job of one is there. batch_expires; job_batch, settled_batch.
EXPIRED = """SELECT id FROM lateshift.batch
 WHERE expires_at <= (SELECT clock_timestamp() + %s::interval) LIMIT %s FOR UPDATE"""
HAS_JOBS = """SELECT EXISTS (SELECT 1 FROM lateshift.settled WHERE batch = %(id)s)
 OR EXISTS (SELECT 1 FROM lateshift.job WHERE batch = %(id)s)"""
KEEP_ON = f"UPDATE lateshift.batch SET expires_at = {_NOW} + %(again)s::interval WHERE id = %(id)s"
PURGE = "DELETE FROM lateshift.batch WHERE id = %(id)s"


class PostgresBatches:
    """See contract.Batches."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes
        self._turns = Turns()

    def open(self, batch: NewBatch, *, deed: Deed | None = None) -> BatchView:
        row = {
            "id": batch.id, "name": batch.name, "key": batch.key, "digest": batch.digest, "total": batch.total,
            "skew": self._clock.offset, "then": batching.written(batch.then), "failure": batching.written(batch.on_failure),
        }  # fmt: skip

        def work(connection: Connection, lines: Lines) -> BatchView:
            if connection.execute(OPEN, row).fetchall() and deed is not None:
                lines.write(deed.action, [deed.subject], deed.by)
            id = batch.id
            if batch.key is not None:
                [(id, digest)] = connection.execute(READ_KEY, (batch.key,)).fetchall()
                batching.refuse_other_calls(batch, digest)
            return _seen(connection.execute(BATCH, (id,)).fetchall()[0])

        return do(self._database, work)

    def add(self, id: BatchId, place: int, jobs: Sequence[NewJob]) -> int:
        def once(connection: Connection) -> tuple[int, set[Line]]:
            lines: set[Line] = set()
            with connection.transaction():
                rows = connection.execute(READ_ADDED, (id,)).fetchall()
                if not rows:
                    raise batching.unknown(id)
                [(added, total, sealed, cancelled_by)] = rows
                end = place + len(jobs)
                if cancelled_by is not None or (sealed is not None and end > total):
                    raise batching.closed(id, added, total, cancelled_by)
                if place > added:
                    raise batching.gap(id, added, place)
                fresh = sorted(jobs[added - place :], key=batching.spec_of)
                if fresh:
                    enqueue.run(connection, enqueue.statements(fresh, self._clock.offset))
                    connection.execute(ADD, (end, id))
                    lines = lines_of(fresh)
                    added = end
                if sealed is None and added >= total:
                    connection.execute(SEAL, {"id": id, "skew": self._clock.offset})
                    lines |= finish(connection, id, self._clock.offset)
                crashpoint("batch.before_commit")
            crashpoint("batch.after_commit")
            return added, lines

        def work(connection: Connection, again: bool) -> tuple[int, set[Line]]:
            try:
                return once(connection)
            except UniqueViolation:  # another caller used a number of a session meanwhile: now it is seen
                return once(connection)

        added, lines = self._database.run(work)
        self._wakes.hint(lines)
        return added

    def seal(self, id: BatchId, *, by: str = "the caller") -> bool:
        def work(connection: Connection, told: Lines) -> tuple[bool, set[Line]]:
            skew = self._clock.offset
            sealed = bool(connection.execute(SEAL, {"id": id, "skew": skew}).fetchall())
            if sealed:
                told.write("seal", [f"batch {id}"], by)
            return sealed, finish(connection, id, skew)

        sealed, lines = do(self._database, work)
        self._wakes.hint(lines)
        return sealed

    def discard(self, id: BatchId) -> bool:
        def work(connection: Connection, again: bool) -> bool:
            gone = connection.execute(DISCARD, (id,)).fetchall()
            return bool(gone) or (again and not connection.execute(BATCH, (id,)).fetchall())

        return self._database.run(work)

    def finish(self, *, limit: int) -> int:
        rows = self._database.run(
            lambda connection, again: connection.execute(WITH_LINES, (limit,)).fetchall()
        )
        for (id,) in rows:
            self._wakes.hint(self._database.run(_finishing(id, self._database)))
        return len(rows)

    def view(self, id: BatchId) -> BatchView | None:
        rows = self._database.run(lambda connection, again: connection.execute(BATCH, (id,)).fetchall())
        return _seen(rows[0]) if rows else None

    def newest(self, before: BatchId | None, limit: int) -> list[BatchView]:
        parameters = (before or batching.LAST, limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(BATCHES, parameters).fetchall()
        )
        return [_seen(row) for row in rows]

    def find(self, digits: str, limit: int) -> list[BatchId]:
        parameters = {
            "low": batching.lowest(digits), "high": batching.highest(digits), "digits": digits, "limit": limit,
            "looked_at": ENDINGS_LOOKED_AT,
        }  # fmt: skip

        def work(connection: Connection, again: bool) -> set[BatchId]:
            return {
                id for sql in (BEGINNING, ENDING) for (id,) in connection.execute(sql, parameters).fetchall()
            }

        return sorted(self._database.run(work), reverse=True)[:limit]

    def settled(self, id: BatchId, after: JobId | None, limit: int) -> list[JobView]:
        parameters = (id, after or batching.FIRST, limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(SETTLED_JOBS, parameters).fetchall()
        )
        return [view_of(row) for row in rows]

    def failed(self, id: BatchId, after: JobId | None, limit: int) -> list[JobId]:
        parameters = (id, after or batching.FIRST, limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(FAILED_JOBS, parameters).fetchall()
        )
        return [job for (job,) in rows]

    def cancel(self, id: BatchId, *, by: str) -> bool:
        def work(connection: Connection, told: Lines) -> tuple[bool, set[Line]]:
            skew = self._clock.offset
            lines = finish(connection, id, skew)
            rows = connection.execute(BATCH, (id,)).fetchall()
            if not rows or _seen(rows[0]).finished:
                return False, lines
            connection.execute(CALL_OFF, (by, id))
            connection.execute(SEAL, {"id": id, "skew": skew})
            told.write("cancel", [f"batch {id}"], by)
            return True, lines | finish(connection, id, skew)

        cancelled, lines = do(self._database, work)
        self._wakes.hint(lines)
        return cancelled

    def cancel_jobs(self, id: BatchId, after: JobId | None, limit: int, *, by: str) -> JobId | None:
        def work(connection: Connection, again: bool) -> tuple[set[Line], JobId | None]:
            with connection.transaction():
                rows = connection.execute(UNSETTLED_JOBS, (id, after or batching.FIRST, limit)).fetchall()
                ids = [row[0] for row in rows]
                guarded = [Guarded(*row[1:5]) for row in rows if row[5] is not None]
                sessions.lock(connection, [job.queue for job in guarded])
                freed = guarding.lock_limits(connection, guarded)
                connection.execute(
                    HOLD_PAGE, (ids,)
                )  # none goes from running to waiting between the two that follow
                begun, woken = runs.cancel(connection, ids, by, self._clock.offset)
                others = [job for job in ids if job not in begun]
                waiting, ended = settling.cancel_waiting(connection, others, by, self._clock.offset)
                connection.execute(ORDER_STOP_OF_BATCH, (by, [job for job in others if job not in waiting]))
                lines = guarding.give_on(connection, ended, freed, self._turns) | woken
                return lines, ids[-1] if len(ids) == limit else None

        lines, last = self._database.run(work)
        self._wakes.hint(lines)
        if last is None:
            finish_in_need(self._database, self._wakes, [id])
        return last


def reopen(connection: Connection, ids: Sequence[JobId]) -> None:
    """Jobs of batches are ready again: these have not finished."""
    connection.execute(REOPEN, (list(ids),))


def finish_in_need(database: Database, wakes: NotifyWakes, ids: Sequence[BatchId]) -> None:
    """After jobs of these batches were settled: was one of them the last, or the first to fail? If the store is away by
    now, that is left to the supervisor."""
    with suppress(StoreError):
        found = database.run_once(
            lambda connection, again: connection.execute(IN_NEED, {"ids": list(ids)}).fetchall()
        )
        for (id,) in found:
            wakes.hint(database.run_once(_finishing(id, database)))


def finish_of(database: Database, wakes: NotifyWakes, jobs: Sequence[JobId]) -> None:
    """After these jobs were cancelled: as finish_in_need, of the batches that they are in."""
    if jobs:
        with suppress(StoreError):
            rows = database.run_once(
                lambda connection, again: connection.execute(BATCHES_OF, (list(jobs),)).fetchall()
            )
            if rows:
                finish_in_need(database, wakes, [batch for (batch,) in rows])


def _finishing(id: BatchId, database: Database) -> Callable[[Connection, bool], set[Line]]:
    def work(connection: Connection, again: bool) -> set[Line]:
        with connection.transaction():
            lines = finish(connection, id, database.clock.offset)
            crashpoint("batch.before_finish_commit")
        crashpoint("batch.after_finish_commit")
        return lines

    return work


def finish(connection: Connection, id: BatchId, skew: timedelta) -> set[Line]:
    """Add up the lines of a batch and enqueue the callbacks that are due, with the mark that they were; of a run of a workflow,
    write down how its steps ended. Gives the lines of what is ready now. The caller has a transaction open."""
    connection.execute(LOCK, (id,))
    rows = connection.execute(ADD_UP, {"id": id}).fetchall()
    if not rows:
        # Lines that came after those that are added up stay, for the next look.
        return runs.collect(connection, id, skew)
    [row] = rows
    finished_at, then_call, then_at, failure_call, failure_at = row[7:]
    now_due = due(_standing(row))
    then = batching.read(then_call) if now_due.then and then_at is None else None
    failure = batching.read(failure_call) if now_due.on_failure and failure_at is None else None
    if then is None and failure is None and now_due.finished == (finished_at is not None):
        return set()
    marks = {"finished": now_due.finished, "then": then is not None, "failure": failure is not None}
    connection.execute(MARK, marks | {"id": id, "skew": skew, "keep": batching.BATCH_KEPT})
    calls = [call for call in (then, failure) if call is not None]
    if calls:
        enqueue.run(connection, enqueue.statements(calls, skew))
    return lines_of(calls)


def purge(connection: Connection, skew: timedelta, limit: int) -> int:
    """Batches whose jobs have passed their retention. Gives how many."""
    gone = 0
    for (id,) in connection.execute(EXPIRED, (skew, limit)).fetchall():
        one = {"id": id, "skew": skew, "again": batching.LOOK_AGAIN}
        if connection.execute(HAS_JOBS, one).fetchall()[0][0]:
            connection.execute(KEEP_ON, one)
        else:
            connection.execute(PURGE, one)
            connection.execute(DROP_LINES, (id,))
            gone += 1
    return gone


def _standing(row: tuple[Any, ...]) -> Standing:
    sealed, total, completed, failed, cancelled, failures, called_off = row[:7]
    return Standing(
        sealed=sealed, total=total, completed=completed, failed=failed, cancelled=cancelled, failures=failures,
        called_off=called_off,
    )  # fmt: skip


def _seen(row: tuple[Any, ...]) -> BatchView:
    return BatchView(
        id=row[0], name=row[1], key=row[2], total=row[3], added=row[4], completed=row[5], failed=row[6],
        cancelled=row[7], sealed=row[8] is not None, created_at=row[9], finished_at=row[10], cancelled_by=row[11],
        then=batching.id_of(row[12]), then_enqueued=row[13] is not None, on_failure=batching.id_of(row[14]),
        on_failure_enqueued=row[15] is not None, then_call=batching.read(row[12]), on_failure_call=batching.read(row[14]),
        running=row[16], to_come=batching.to_come(row),
    )  # fmt: skip
