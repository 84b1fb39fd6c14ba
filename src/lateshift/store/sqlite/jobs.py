"""The life of a job in SQLite: enqueue, lease, settle, and what operators do to it. Each verb is one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import Any
from uuid import UUID

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.discard import Discarded
from lateshift.model.edit import Edit
from lateshift.model.guard import Guarded, Turns
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import CAREFUL, Enqueued, Lease, Line, NewJob, Note, State
from lateshift.model.outcome import Settlement, last_words
from lateshift.store.contract import EnqueueHere, Exchanged, Gap, Promoted, StopOrder, TakenBack, Wakes, Want
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.lines import lines_there, served
from lateshift.store.sqlite import (
    batches,
    cancelling,
    deeds,
    discarding,
    editing,
    enqueue,
    gates,
    guarding,
    leasing,
    logs,
    pressure,
    runs,
    sessions,
    settling,
    sweeping,
)
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.taking import SHED, alerts_of

# Which lines have a ready job, from one to the next. job_ready.
NEXT_LINE = (
    """SELECT queue, lane FROM job WHERE state = 1 AND (queue, lane) > (?, ?) ORDER BY queue, lane LIMIT 1"""
)
PAUSED = "SELECT name FROM queue WHERE paused_at IS NOT NULL"

# When the next scheduled job is due. job_scheduled.
NEXT_DUE = "SELECT min(due_at) FROM job WHERE state = 0"

# Scheduled jobs whose time has come are ready. job_scheduled.
PROMOTE = """UPDATE job SET state = 1 WHERE id IN
 (SELECT id FROM job WHERE state = 0 AND due_at <= ? ORDER BY due_at LIMIT ?) RETURNING queue, lane"""

# The sessions into whose line some of them come. job_scheduled.
COMING = """SELECT DISTINCT queue, session FROM (SELECT queue, session, fence, blocked_by FROM job
 WHERE state = 0 AND due_at <= ? ORDER BY due_at LIMIT ?) WHERE session IS NOT NULL AND fence = 0 AND blocked_by IS NULL"""
# Attempts of one holder that an operator cancelled. job_stopping.
STOP_ORDERS = "SELECT id, fence, cancel_by FROM job WHERE holder = ? AND state = 2 AND cancel_by IS NOT NULL"

# A dead or cancelled job is ready again, or scheduled, with fresh attempts and the fence it had, and with its arguments, unless there are
# others. Primary key.
REVIVE = """INSERT INTO job (id, queue, lane, state, priority, attempts, fence, due_at, created_at, time_limit,
 exclusive, task, payload, checkpoint, history, session, turn, sequence, gap_after, holds, tenant, limit_key, batch, trace,
 reply)
 SELECT id, queue, lane, ?3, priority, attempts, fence, ?2, created_at, time_limit, exclusive, task, coalesce(?4, payload),
 checkpoint, ?5, session, CASE WHEN session IS NOT NULL THEN max(turn, coalesce(sequence, 1)) END,
 sequence, gap_after, holds, tenant, limit_key, batch, trace, reply
 FROM settled s WHERE id = ?1 AND state IN (5, 6) AND NOT EXISTS (SELECT 1 FROM job WHERE session IS NOT NULL
 AND queue = s.queue AND session = s.session AND sequence = s.sequence) RETURNING queue, lane"""
COMES_BACK = "SELECT queue, session FROM settled WHERE id = ? AND session IS NOT NULL"
FORGET_SETTLED = "DELETE FROM settled WHERE id = ? RETURNING batch, state"


async def _nowhere(jobs: Sequence[NewJob]) -> None:
    """A commit waits for the disk, and a loop must not wait."""


class SqliteJobs:
    """See contract.Jobs."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes
        self._turns = Turns()
        self._looked_at = ("", "")

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self._database.write() as connection:
            answers = enqueue.run(connection, enqueue.statements(jobs, self._clock.microseconds()))
            crashpoint("enqueue.before_commit")
        crashpoint("enqueue.after_commit")
        self._wakes.hint(lines_of(jobs))
        return answers

    def enqueuing_here(self) -> AbstractAsyncContextManager[EnqueueHere]:
        return nullcontext(_nowhere)

    def exchange(
        self, holder: MemberId, settlements: Sequence[Settlement], wants: Sequence[Want],
        logged: Sequence[AttemptLog] = (),
    ) -> Exchanged:  # fmt: skip
        crashpoint("worker.before_settle" if settlements else "worker.before_claim")
        careful = [it for it in settlements if it.lease.lane >= CAREFUL]
        plain = [it for it in settlements if it.lease.lane < CAREFUL] if careful else settlements
        lines: set[Line] = set()
        with self._database.write() as connection:
            now = self._clock.microseconds()
            counts: Counter[batches.Ending] = Counter()
            doors = gates.Doors(connection, holder, now)
            settling.save(connection, last_words(plain), now)
            lost = settling.settle(connection, plain, now, counts)
            if careful:
                too_late, lines = guarding.settle(connection, careful, now, self._turns, counts, doors)
                lost += too_late
            called = batches.count(connection, counts, now) if counts else set()
            if logged:
                logs.keep(connection, logged)
            leases = self._lease(connection, holder, wants, now, doors) if wants else []
            if called:
                crashpoint("batch.before_finish_commit")
        crashpoint("worker.after_settle_commit" if settlements else "worker.after_claim_commit")
        if called:
            crashpoint("batch.after_finish_commit")
        if lines or called:
            self._wakes.hint(lines | called)
        return Exchanged(leases, lost)

    def _lease(
        self, connection: Connection, holder: MemberId, wants: Sequence[Want], now: int, doors: gates.Doors
    ) -> list[Lease]:
        if not leasing.may_lease(connection, holder, now):
            return []
        leases: list[Lease] = []
        for want in wants:
            if not leasing.is_open(connection, want):
                continue
            if want.line.lane.careful:
                leases += guarding.lease(connection, holder, want, now, self._turns, doors)
            else:
                leases += leasing.lease(connection, holder, want, now)
        return leases

    def held(self, holder: MemberId) -> list[Lease]:
        with self._database.read() as connection:
            held = leasing.held(connection, holder, self._clock.microseconds())
            return guarding.complete_leases(connection, held)

    def lines(self, queues: Sequence[str] | None = None) -> list[Line]:
        found: list[tuple[str, int]] = []
        with self._database.read() as connection:
            paused = {name for (name,) in connection.execute(PAUSED)}
            at: tuple[Any, ...] = ("", -1)
            while rows := connection.execute(NEXT_LINE, at).fetchall():
                at = rows[0]
                found.append((at[0], at[1]))
        return lines_there(
            (queue, lane) for queue, lane in found if queue not in paused and served(queue, queues)
        )

    def promote(self, limit: int) -> Promoted:
        with self._database.read() as connection:
            due = connection.execute(NEXT_DUE).fetchall()[0][0]
        now = self._clock.microseconds()
        lines: list[Line] = []
        if due is not None and due <= now:
            with self._database.write() as connection:
                sessions.stay_first(connection, connection.execute(COMING, (now, limit)).fetchall())
                rows = connection.execute(PROMOTE, (now, limit)).fetchall()
                due = connection.execute(NEXT_DUE).fetchall()[0][0]
            lines = lines_there(rows)
        return Promoted(lines, None if due is None else timedelta(microseconds=max(0, due - now)))

    def save(self, notes: Sequence[Note]) -> list[Lease]:
        with self._database.write() as connection:
            return settling.save(connection, notes, self._clock.microseconds())

    def stop_orders(self, holder: MemberId) -> list[StopOrder]:
        with self._database.read() as connection:
            rows = connection.execute(STOP_ORDERS, (holder.bytes,)).fetchall()
        return [StopOrder(UUID(bytes=id), fence, by) for id, fence, by in rows]

    def cancel(self, ids: Sequence[JobId], *, by: str) -> list[JobId]:
        with self._database.write() as connection:
            found, lines = cancelling.cancel(connection, ids, by, self._clock.microseconds(), self._turns)
        self._wakes.hint(lines)
        return found

    def shed(self, queue: str, count: int, *, below: int | None = None) -> list[JobId]:
        gone: list[JobId] = []
        ended: list[Guarded] = []
        with self._database.write() as connection:
            now = self._clock.microseconds()
            counts: Counter[batches.Ending] = Counter()
            for id in pressure.to_shed(connection, queue, count, below):
                waited = settling.cancel_waiting(connection, id, SHED, now, counts, reason=SHED)
                gone += [id for _ in waited]
                ended += [Guarded(*row[:4]) for row in waited if row[4] is not None]
            lines = guarding.give_on(connection, ended, self._turns) | batches.count(connection, counts, now)
        self._wakes.hint(lines)
        return gone

    def resubmit(
        self, ids: Sequence[JobId], *, by: str, edits: Mapping[JobId, Edit] | None = None,
        delays: Mapping[JobId, timedelta] | None = None,
    ) -> list[JobId]:  # fmt: skip
        found: list[JobId] = []
        lines: set[Line] = set()
        with self._database.write() as connection:
            now = self._clock.microseconds()
            counts: Counter[batches.Ending] = Counter()
            steps = runs.steps_among(connection, [id.bytes for id in ids])
            for id in ids:
                edit = edits.get(id) if edits else None
                told = editing.edited(connection, id, edit, by, self._clock.now())
                if id.bytes in steps or told is None:
                    continue
                runs.restart(connection, id.bytes)
                sessions.stay_first(connection, connection.execute(COMES_BACK, (id.bytes,)).fetchall())
                delay = delays[id] // timedelta(microseconds=1) if delays and id in delays else 0
                row = (id.bytes, now + delay, int(State.SCHEDULED if delay > 0 else State.READY), *told)
                for line in connection.execute(REVIVE, row).fetchall():
                    [(batch, state)] = connection.execute(FORGET_SETTLED, (id.bytes,)).fetchall()
                    if batch is not None:
                        counts[batch, state] -= 1
                    found.append(id)
                    lines.update(lines_there([line]))
            sessions.let_go(connection, [id.bytes for id in found], now)
            lines |= batches.count(connection, counts, now)
            deeds.write(connection, now, "resubmit", map(str, found), by)
        self._wakes.hint(lines)
        return found

    def discard(self, ids: Sequence[JobId], *, by: str) -> Discarded:
        return discarding.discard(self._database, ids, by)

    def take_back(
        self, *, term: int, limit: int, alerts: Mapping[MemberId, Sequence[NewJob]] | None = None
    ) -> list[TakenBack]:
        taken = sweeping.take_back(self._database, term, limit, self._turns, alerts)
        self._wakes.hint(
            {job.line for job in taken if job.line is not None} | lines_of(alerts_of(taken, alerts))
        )
        return taken

    def unblock(self, *, term: int, limit: int) -> int:
        return sweeping.unblock(self._database, term, limit)

    def release_waiting(self, *, term: int, limit: int) -> list[Gap]:
        gaps, lines, self._looked_at = sweeping.release_waiting(
            self._database, term, limit, self._looked_at, self._turns
        )
        self._wakes.hint(lines)
        return gaps
