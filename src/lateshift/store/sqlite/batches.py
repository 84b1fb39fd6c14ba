"""Batches in SQLite. There is one writer, so that the transaction which settles a job counts it in the batch's own row, and
the one that settles the last enqueues the callback: nothing is ever left to be looked after."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from lateshift.model.batch import BatchId, BatchView, NewBatch, Standing, due
from lateshift.model.guard import Guarded, Turns
from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND, to_instant
from lateshift.model.job import JobView, Line, NewJob, State
from lateshift.store import batching
from lateshift.store.batch_contract import Deed
from lateshift.store.contract import ENDINGS_LOOKED_AT, Wakes
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.sqlite import deeds, enqueue, guarding, runs, settling
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.listing import COLD
from lateshift.store.sqlite.reports import view_of

# Primary key; batch_key.
OPEN = """INSERT INTO batch (id, name, key, digest, total, created_at, then_call, failure_call)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"""
READ_KEY = "SELECT id, digest FROM batch WHERE key = ?"
# How far a batch has come. Primary key.
READ_ADDED = "SELECT added, total, sealed_at, cancelled_by FROM batch WHERE id = ?"
ADD = "UPDATE batch SET added = ? WHERE id = ?"
# No more jobs will come: the total is what has come. Primary key.
SEAL = "UPDATE batch SET sealed_at = ?, total = added WHERE id = ? AND sealed_at IS NULL RETURNING 1"
DISCARD = "DELETE FROM batch WHERE id = ? AND added = 0 AND sealed_at IS NULL RETURNING 1"
CALL_OFF = "UPDATE batch SET cancelled_by = coalesce(cancelled_by, ?) WHERE id = ?"

# How jobs of a batch ended, or that they are ready again. Primary key.
COUNT = """UPDATE batch SET completed = completed + ?2, failed = failed + ?3, cancelled = cancelled + ?4,
 failures = failures + ?5 WHERE id = ?1"""
READ_STANDING = """SELECT sealed_at IS NOT NULL, total, completed, failed, cancelled, failures, cancelled_by IS NOT NULL,
 finished_at, then_call, then_at, failure_call, failure_at FROM batch WHERE id = ?"""
MARK = "UPDATE batch SET finished_at = ?, expires_at = ?, then_at = ?, failure_at = ? WHERE id = ?"

# Batches with the number of their running jobs. Primary key; job_batch_running.
_SEEN = """SELECT id, name, key, total, added, completed, failed, cancelled, sealed_at, created_at, finished_at,
 cancelled_by, then_call, then_at, failure_call, failure_at,
 (SELECT count(*) FROM job WHERE job.batch = batch.id AND job.state = 2) FROM batch"""
BATCH = f"{_SEEN} WHERE id = ?"
BATCHES = f"{_SEEN} WHERE id < ? ORDER BY id DESC LIMIT ?"
# Ids that begin so, and that end so among the newest. Primary key.
BEGINNING = "SELECT id FROM batch WHERE id BETWEEN ?1 AND ?2 LIMIT ?3"
ENDING = """SELECT id FROM (SELECT id FROM batch ORDER BY id DESC LIMIT ?1)
 WHERE substr(lower(hex(id)), -length(?2)) = ?2 LIMIT ?3"""

# What has ended, in the order of the ids. settled_batch.
SETTLED_JOBS = f"SELECT {COLD} FROM settled WHERE batch = ? AND id > ? ORDER BY id LIMIT ?"
# The dead letters of a batch. settled_batch_dead.
FAILED_JOBS = "SELECT id FROM settled WHERE batch = ? AND state = 6 AND id > ? ORDER BY id LIMIT ?"
# What has not ended. job_batch.
UNSETTLED_JOBS = "SELECT id FROM job WHERE batch = ? AND id > ? ORDER BY id LIMIT ?"
# A running job is told to stop. Primary key.
ORDER_STOP_OF_BATCH = "UPDATE job SET cancel_by = ? WHERE id = ? AND state = 2"

# Finished batches to look at again, and whether a job of one is there. batch_expires; job_batch, settled_batch.
EXPIRED = "SELECT id FROM batch WHERE expires_at <= ? LIMIT ?"
HAS_JOBS = (
    "SELECT EXISTS (SELECT 1 FROM settled WHERE batch = ?1) OR EXISTS (SELECT 1 FROM job WHERE batch = ?1)"
)
KEEP_ON = "UPDATE batch SET expires_at = ? WHERE id = ?"
PURGE = "DELETE FROM batch WHERE id = ?"


class SqliteBatches:
    """See contract.Batches."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes
        self._turns = Turns()

    def open(self, batch: NewBatch, *, deed: Deed | None = None) -> BatchView:
        callbacks = (batching.written(batch.then), batching.written(batch.on_failure))
        with self._database.write() as connection:
            now = self._clock.microseconds()
            row = (batch.id.bytes, batch.name, batch.key, batch.digest, batch.total, now, *callbacks)
            if connection.execute(OPEN, row).fetchall() and deed is not None:
                deeds.write(connection, now, deed.action, [deed.subject], deed.by)
            id = batch.id.bytes
            if batch.key is not None:
                [(id, digest)] = connection.execute(READ_KEY, (batch.key,)).fetchall()
                batching.refuse_other_calls(batch, digest)
            return _seen(connection.execute(BATCH, (id,)).fetchall()[0])

    def add(self, id: BatchId, place: int, jobs: Sequence[NewJob]) -> int:
        lines: set[Line] = set()
        with self._database.write() as connection:
            now = self._clock.microseconds()
            rows = connection.execute(READ_ADDED, (id.bytes,)).fetchall()
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
                enqueue.run(connection, enqueue.statements(fresh, now))
                connection.execute(ADD, (end, id.bytes))
                lines = lines_of(fresh)
                added = end
            if sealed is None and added >= total:
                connection.execute(SEAL, (now, id.bytes))
                lines |= finish(connection, id.bytes, now)
            crashpoint("batch.before_commit")
        crashpoint("batch.after_commit")
        self._wakes.hint(lines)
        return int(added)

    def seal(self, id: BatchId, *, by: str = "the caller") -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            sealed = connection.execute(SEAL, (now, id.bytes)).fetchall()
            lines = finish(connection, id.bytes, now) if sealed else set()
            deeds.write(connection, now, "seal", [f"batch {id}" for _ in sealed], by)
        self._wakes.hint(lines)
        return bool(sealed)

    def discard(self, id: BatchId) -> bool:
        with self._database.write() as connection:
            return bool(connection.execute(DISCARD, (id.bytes,)).fetchall())

    def finish(self, *, limit: int) -> int:
        return 0

    def view(self, id: BatchId) -> BatchView | None:
        with self._database.read() as connection:
            rows = connection.execute(BATCH, (id.bytes,)).fetchall()
        return _seen(rows[0]) if rows else None

    def newest(self, before: BatchId | None, limit: int) -> list[BatchView]:
        with self._database.read() as connection:
            rows = connection.execute(BATCHES, ((before or batching.LAST).bytes, limit)).fetchall()
        return [_seen(row) for row in rows]

    def find(self, digits: str, limit: int) -> list[BatchId]:
        low, high = batching.lowest(digits).bytes, batching.highest(digits).bytes
        with self._database.read() as connection:
            rows = connection.execute(BEGINNING, (low, high, limit)).fetchall()
            rows += connection.execute(ENDING, (ENDINGS_LOOKED_AT, digits, limit)).fetchall()
        return [UUID(bytes=id) for id in sorted({bytes(id) for (id,) in rows}, reverse=True)[:limit]]

    def settled(self, id: BatchId, after: JobId | None, limit: int) -> list[JobView]:
        with self._database.read() as connection:
            rows = connection.execute(
                SETTLED_JOBS, (id.bytes, (after or batching.FIRST).bytes, limit)
            ).fetchall()
        return [view_of(row) for row in rows]

    def failed(self, id: BatchId, after: JobId | None, limit: int) -> list[JobId]:
        with self._database.read() as connection:
            rows = connection.execute(
                FAILED_JOBS, (id.bytes, (after or batching.FIRST).bytes, limit)
            ).fetchall()
        return [UUID(bytes=job) for (job,) in rows]

    def cancel(self, id: BatchId, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            rows = connection.execute(READ_STANDING, (id.bytes,)).fetchall()
            if not rows or due(_standing(rows[0])).finished:
                return False
            connection.execute(CALL_OFF, (by, id.bytes))
            connection.execute(SEAL, (now, id.bytes))
            deeds.write(connection, now, "cancel", [f"batch {id}"], by)
            finish(connection, id.bytes, now)
        return True

    def cancel_jobs(self, id: BatchId, after: JobId | None, limit: int, *, by: str) -> JobId | None:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            rows = connection.execute(
                UNSETTLED_JOBS, (id.bytes, (after or batching.FIRST).bytes, limit)
            ).fetchall()
            counts: Counter[Ending] = Counter()
            ended: list[Guarded] = []
            lines: set[Line] = set()
            for (job,) in rows:
                is_run, woken = runs.cancel(connection, job, by, now)
                lines |= woken
                waited = (
                    [] if is_run else settling.cancel_waiting(connection, UUID(bytes=job), by, now, counts)
                )
                if not (waited or is_run):
                    connection.execute(ORDER_STOP_OF_BATCH, (by, job))
                ended += [Guarded(*row[:4]) for row in waited if row[4] is not None]
            lines |= guarding.give_on(connection, ended, self._turns) | count(connection, counts, now)
        self._wakes.hint(lines)
        return UUID(bytes=rows[-1][0]) if len(rows) == limit else None


Ending = tuple[bytes, int]
"""A batch, and the state in which jobs of it ended."""


def count(connection: Connection, ended: Counter[Ending], now: int) -> set[Line]:
    """Write down how many jobs of which batches ended so, in the transaction that settles them (or, with a negative number,
    makes them ready again). Gives the lines of callbacks that were enqueued."""
    lines: set[Line] = set()
    for batch in {batch for batch, _ in ended}:
        completed, failed, cancelled = (
            ended[batch, int(state)] for state in (State.COMPLETED, State.DEAD, State.CANCELLED)
        )
        connection.execute(COUNT, (batch, completed, failed, cancelled, max(0, failed)))
        lines |= finish(connection, batch, now)
    return lines


def finish(connection: Connection, batch: bytes, now: int) -> set[Line]:
    """Enqueue the callbacks that are due, with the mark that they were; of a run of a workflow, write down how its steps ended.
    Gives the lines of what is ready now."""
    rows = connection.execute(READ_STANDING, (batch,)).fetchall()
    if not rows:
        return runs.collect(connection, batch, now)
    finished_at, then_call, then_at, failure_call, failure_at = rows[0][7:]
    now_due = due(_standing(rows[0]))
    then = batching.read(then_call) if now_due.then and then_at is None else None
    failure = batching.read(failure_call) if now_due.on_failure and failure_at is None else None
    if then is None and failure is None and now_due.finished == (finished_at is not None):
        return set()
    finished_at = (finished_at or now) if now_due.finished else None
    expires_at = finished_at + batching.BATCH_KEPT // MICROSECOND if finished_at is not None else None
    marks = (now if then is not None else then_at, now if failure is not None else failure_at)
    connection.execute(MARK, (finished_at, expires_at, *marks, batch))
    calls = [call for call in (then, failure) if call is not None]
    if calls:
        enqueue.run(connection, enqueue.statements(calls, now))
    return lines_of(calls)


def purge(connection: Connection, now: int, limit: int) -> int:
    """Batches whose jobs have passed their retention. Gives how many."""
    gone = 0
    for row in connection.execute(EXPIRED, (now, limit)).fetchall():
        if connection.execute(HAS_JOBS, row).fetchall()[0][0]:
            connection.execute(KEEP_ON, (now + batching.LOOK_AGAIN // MICROSECOND, *row))
        else:
            connection.execute(PURGE, row)
            gone += 1
    return gone


def _standing(row: tuple[Any, ...]) -> Standing:
    sealed, total, completed, failed, cancelled, failures, called_off = row[:7]
    return Standing(
        sealed=bool(sealed), total=total, completed=completed, failed=failed, cancelled=cancelled, failures=failures,
        called_off=bool(called_off),
    )  # fmt: skip


def _seen(row: tuple[Any, ...]) -> BatchView:
    return BatchView(
        id=UUID(bytes=row[0]), name=row[1], key=row[2], total=row[3], added=row[4], completed=row[5], failed=row[6],
        cancelled=row[7], sealed=row[8] is not None, created_at=to_instant(row[9]),
        finished_at=None if row[10] is None else to_instant(row[10]), cancelled_by=row[11],
        then=batching.id_of(row[12]), then_enqueued=row[13] is not None, on_failure=batching.id_of(row[14]),
        on_failure_enqueued=row[15] is not None, then_call=batching.read(row[12]), on_failure_call=batching.read(row[14]),
        running=row[16], to_come=batching.to_come(row),
    )  # fmt: skip
