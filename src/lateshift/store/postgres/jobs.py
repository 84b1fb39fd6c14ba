"""The life of a job in PostgreSQL: enqueue, lease, settle, and what operators do to it. Each verb is one transaction."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from psycopg.errors import UniqueViolation

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.discard import Discarded, Kept
from lateshift.model.edit import Edit
from lateshift.model.guard import Turns
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import CAREFUL, Enqueued, Lease, Line, NewJob, Note
from lateshift.model.outcome import Settlement, last_words
from lateshift.store.contract import (
    EnqueueHere,
    Exchanged,
    Finish,
    Gap,
    Promoted,
    Rows,
    StopOrder,
    TakenBack,
    Want,
)
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.lines import lines_there, served
from lateshift.store.postgres import (
    batches,
    cancelling,
    discarding,
    editing,
    enqueue,
    guarding,
    leasing,
    logs,
    pressure,
    runs,
    sessions,
    settling,
    sweeping,
)
from lateshift.store.postgres.arrays import Blobs, Uuids
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.on_loop import OnLoop
from lateshift.store.postgres.wakes import NotifyWakes
from lateshift.store.taking import SHED, alerts_of

# Which lines have a ready job, from one to the next. job_ready.
LINES = """WITH RECURSIVE line AS (
  (SELECT queue, lane FROM lateshift.job WHERE state = 1 ORDER BY queue, lane LIMIT 1)
  UNION ALL
  SELECT next.queue, next.lane FROM line, LATERAL (SELECT queue, lane FROM lateshift.job
    WHERE state = 1 AND (queue, lane) > (line.queue, line.lane) ORDER BY queue, lane LIMIT 1) next)
SELECT queue, lane FROM line WHERE queue NOT IN (SELECT name FROM lateshift.queue WHERE paused_at IS NOT NULL)"""

# Scheduled jobs whose time has come are ready. job_scheduled, which serves a bound that is computed once: (SELECT …).
PROMOTE = """WITH due AS MATERIALIZED (SELECT id FROM lateshift.job
 WHERE state = 0 AND due_at <= (SELECT clock_timestamp() + %s::interval) ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED)
UPDATE lateshift.job SET state = 1 WHERE id = ANY(ARRAY(SELECT id FROM due)) RETURNING queue, lane"""

# How long until the next scheduled job is due. job_scheduled.
NEXT_DUE = """SELECT greatest(due_at - (clock_timestamp() + %s::interval), interval '0')
 FROM lateshift.job WHERE state = 0 ORDER BY due_at LIMIT 1"""

# Attempts of one holder that an operator cancelled. job_stopping.
STOP_ORDERS = """SELECT id, fence, cancel_by FROM lateshift.job
 WHERE holder = %s AND state = 2 AND cancel_by IS NOT NULL"""

# Dead and cancelled jobs are ready again, or scheduled, with fresh attempts and the fence they had, and with their arguments, unless there
# are others. What is inserted with the fence of a new job is told of as received: so one that was never leased gets its reply back
# afterwards. Primary key.
REVIVE = f"""WITH gone AS (DELETE FROM lateshift.settled s WHERE id = ANY(%(ids)b::uuid[]) AND state IN (5, 6)
 AND (SELECT true FROM lateshift.job j WHERE j.session IS NOT NULL AND j.sequence IS NOT NULL AND j.queue = s.queue
  AND j.session = s.session AND j.sequence = s.sequence LIMIT 1) IS NULL RETURNING *),
{settling.counted("-count(*)", "gone.state", "0")},
back AS (INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, fence, due_at, created_at, time_limit,
 exclusive, task, payload, checkpoint, history, session, turn, sequence, gap_after, holds, tenant, limit_key, batch, trace,
 reply)
SELECT id, queue, lane, CASE WHEN delay > interval '0' THEN 0 ELSE 1 END, priority, attempts, fence,
 clock_timestamp() + %(skew)s::interval + coalesce(delay, interval '0'), created_at, time_limit,
 exclusive, task, coalesce(told.payload, gone.payload), checkpoint, told.history, session,
 CASE WHEN session IS NOT NULL THEN greatest(turn, coalesce(sequence, 1)) END, sequence, gap_after, holds, tenant,
 limit_key, batch, trace, CASE WHEN fence > 0 THEN reply END
FROM gone JOIN unnest(%(ids)b::uuid[], %(payloads)b::bytea[], %(histories)b::bytea[]) AS told (id, payload, history) USING (id)
LEFT JOIN unnest(%(late)b::uuid[], %(delays)s::interval[]) AS later (id, delay) USING (id)
RETURNING id, queue, lane, fence)
SELECT back.id, back.queue, back.lane, CASE WHEN back.fence = 0 THEN gone.reply END FROM back JOIN gone ON gone.id = back.id"""
# The replies of those. Primary key.
GIVE_BACK = """UPDATE lateshift.job SET reply = mine.reply
 FROM unnest(%s::uuid[], %s::text[]) AS mine (id, reply) WHERE job.id = mine.id"""
# The queues in whose sessions these stood. Primary key.
DEAD_QUEUES = "SELECT DISTINCT queue FROM lateshift.settled WHERE id = ANY(%s) AND tenant IS NOT NULL"


HERE_BYTES = 1024 * 1024  # of payloads that are enqueued together without a thread


class PostgresJobs:
    """See contract.Jobs."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes
        self._turns = Turns()
        self._looked_at = ("", "")

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers = self._database.run(self._enqueue, jobs)
        self._wakes.hint(lines_of(jobs))
        return answers

    @asynccontextmanager
    async def enqueuing_here(self) -> AsyncIterator[EnqueueHere]:
        async with OnLoop(self._database) as here:

            async def enqueue_here(jobs: Sequence[NewJob]) -> list[Enqueued] | Finish | None:
                if (
                    sum(len(job.payload) for job in jobs) > HERE_BYTES
                ):  # the loop would stand still while it is written
                    return None
                if (alone := enqueue.alone(jobs, self._clock.offset)) is None:
                    return None
                crashpoint("enqueue.before_commit")
                if (done := await here.commit(*alone)) is None:
                    return None
                if not done:
                    return partial(self._finish, jobs)
                crashpoint("enqueue.after_commit")
                await self._wakes.hint_here(here, lines_of(jobs))
                return [Enqueued(job.id, created=True) for job in jobs]

            yield enqueue_here

    def _finish(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """They may have been committed, or be about to."""
        answers = self._database.run_again(self._enqueue, jobs)
        self._wakes.hint(lines_of(jobs))
        return answers

    def _enqueue(self, connection: Connection, again: bool, jobs: Sequence[NewJob]) -> list[Enqueued]:
        skew = self._clock.offset
        if len(jobs) == 1 and not again and enqueue.is_plain(jobs[0], skew):
            # What most callers wait for, by the shortest way: one statement is a transaction by itself.
            crashpoint("enqueue.before_commit")
            connection.kept_cursor.execute(*enqueue.at_once(jobs[0]))
            answers = [Enqueued(jobs[0].id, created=True)]
        elif jobs and not again and (alone := enqueue.together(jobs, skew)) is not None:
            crashpoint("enqueue.before_commit")
            connection.execute(*alone)
            answers = [Enqueued(job.id, created=True) for job in jobs]
        else:
            try:
                answers = self._enqueue_any(connection, again, jobs)
            except UniqueViolation:  # another caller used a number meanwhile: now it is seen
                answers = self._enqueue_any(connection, again, jobs)
        crashpoint("enqueue.after_commit")
        return answers

    def _enqueue_any(self, connection: Connection, again: bool, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with connection.transaction():
            answers = enqueue.run(connection, enqueue.statements(jobs, self._clock.offset, again=again))
            crashpoint("enqueue.before_commit")
        return answers

    def exchange(
        self, holder: MemberId, settlements: Sequence[Settlement], wants: Sequence[Want],
        logged: Sequence[AttemptLog] = (),
    ) -> Exchanged:  # fmt: skip
        crashpoint("worker.before_settle" if settlements else "worker.before_claim")
        answer, lines = self._database.run(self._exchange, holder, settlements, wants, logged)
        crashpoint("worker.after_settle_commit" if settlements else "worker.after_claim_commit")
        if lines:
            self._wakes.hint(lines)
        of_batches = {settlement.lease.batch for settlement in settlements} - {None}
        if of_batches:
            batches.finish_in_need(self._database, self._wakes, [id for id in of_batches if id is not None])
        return answer

    def _exchange(
        self,
        connection: Connection,
        again: bool,
        holder: MemberId,
        settlements: Sequence[Settlement],
        wants: Sequence[Want],
        logged: Sequence[AttemptLog],
    ) -> tuple[Exchanged, set[Line]]:
        try:
            return self._exchange_once(connection, again, holder, settlements, wants, logged)
        except UniqueViolation:  # a job that is settled was brought back: what is settled is final
            ids = [settlement.lease.id for settlement in settlements]
            connection.execute(settling.DROP_SETTLED, (ids,))
            return self._exchange_once(connection, True, holder, settlements, wants, logged)

    def _exchange_once(
        self,
        connection: Connection,
        again: bool,
        holder: MemberId,
        settlements: Sequence[Settlement],
        wants: Sequence[Want],
        logged: Sequence[AttemptLog],
    ) -> tuple[Exchanged, set[Line]]:
        skew = self._clock.offset
        # An earlier try may have leased what this one would: lease no more, and let the holder look.
        unsure = again and bool(wants)
        wants = [] if again else [want for want in wants if want.count > 0]
        careful = [it for it in settlements if it.lease.lane >= CAREFUL]
        plain = [it for it in settlements if it.lease.lane < CAREFUL] if careful else settlements
        guarded = [want for want in wants if want.line.lane.careful]
        quick = [want for want in wants if not want.line.lane.careful] if guarded else wants
        leases: list[Lease] = []
        lost: list[Lease] = []
        lines: set[Line] = set()
        if plain or quick or logged:
            with connection.pipeline():  # one round trip, one commit
                settling.save(connection, last_words(plain), skew)
                settled = settling.send(connection, plain, skew)
                if logged:
                    logs.keep(connection, logged)
                leased = leasing.send(connection, holder, quick, skew)
            lost = settling.receive(connection, settled, skew)
            leases = leasing.receive(leased)
        if careful or guarded:
            more, too_late, lines = guarding.exchange(connection, holder, careful, guarded, skew, self._turns)
            leases += more
            lost += too_late
        return Exchanged(leases, lost, unsure), lines

    def held(self, holder: MemberId) -> list[Lease]:
        def work(connection: Connection, again: bool) -> list[Lease]:
            return guarding.complete_leases(connection, leasing.held(connection, holder, self._clock.offset))

        return self._database.run(work)

    def lines(self, queues: Sequence[str] | None = None) -> list[Line]:
        rows = self._database.run(lambda connection, again: connection.execute(LINES).fetchall())
        return lines_there((queue, lane) for queue, lane in rows if served(queue, queues))

    def promote(self, limit: int) -> Promoted:
        def work(connection: Connection, again: bool) -> tuple[list[Any], list[Any]]:
            skew = (self._clock.offset,)
            due = connection.execute(NEXT_DUE, skew).fetchall()
            if not due or due[0][0]:
                return [], due
            rows = connection.execute(PROMOTE, (*skew, limit)).fetchall()
            return rows, connection.execute(NEXT_DUE, skew).fetchall()

        rows, due = self._database.run(work)
        return Promoted(lines_there(rows), due[0][0] if due else None)

    def save(self, notes: Sequence[Note]) -> list[Lease]:
        def work(connection: Connection, again: bool) -> list[Lease]:
            with connection.pipeline():
                saved = settling.save(connection, notes, self._clock.offset)
            return [lease for lease, cursor in saved if not cursor.fetchall()]

        return self._database.run(work)

    def stop_orders(self, holder: MemberId) -> list[StopOrder]:
        rows = self._database.run(
            lambda connection, again: connection.execute(STOP_ORDERS, (holder,)).fetchall()
        )
        return [StopOrder(id, fence, by) for id, fence, by in rows]

    def cancel(self, ids: Sequence[JobId], *, by: str) -> list[JobId]:
        def deed(connection: Connection, told: Lines) -> tuple[set[JobId], set[Line]]:
            return cancelling.cancel(connection, ids, by, self._clock.offset, self._turns, told)

        found, lines = do(self._database, deed)
        self._wakes.hint(lines)
        batches.finish_of(self._database, self._wakes, list(found))
        return [id for id in ids if id in found]

    def shed(self, queue: str, count: int, *, below: int | None = None) -> list[JobId]:
        """Found first, then cancelled by name: repeated after a lost answer, it sheds no others."""
        ids = self._database.run(pressure.to_shed, queue, count, below)

        def work(connection: Connection, again: bool) -> tuple[set[Line], set[JobId]]:
            with connection.transaction():
                freed = cancelling.lock_guards(connection, ids)
                connection.execute(runs.HOLD_ALL, (ids,))
                begun = {id for (id,) in connection.execute(runs.BEGUN, (ids,)).fetchall()}  # since we looked
                waiting = [id for id in ids if id not in begun]
                found, ended = settling.cancel_waiting(
                    connection, waiting, SHED, self._clock.offset, reason=SHED
                )
                lines = guarding.give_on(connection, ended, freed, self._turns)
                if again:
                    found |= {id for (id,) in connection.execute(pressure.WERE_SHED, (ids, SHED)).fetchall()}
                return lines, found

        if not ids:
            return []
        lines, found = self._database.run(work)
        self._wakes.hint(lines)
        return [id for id in ids if id in found]

    def resubmit(
        self, ids: Sequence[JobId], *, by: str, edits: Mapping[JobId, Edit] | None = None,
        delays: Mapping[JobId, timedelta] | None = None,
    ) -> list[JobId]:  # fmt: skip
        def deed(connection: Connection, told: Lines) -> tuple[set[JobId], set[Line]]:
            dead = connection.execute(DEAD_QUEUES, (list(ids),)).fetchall()
            sessions.lock(connection, [queue for (queue,) in dead])
            steps = runs.steps_among(connection, ids)
            own = [id for id in ids if id not in steps]
            told_of = editing.edited(connection, own, edits or {}, by, self._clock.now())
            wanted = list(told_of)
            runs.restart(connection, wanted)
            rows = [
                row
                for lot in editing.lots(told_of)
                for row in self._revive(connection, lot, told_of, delays or {})
            ]
            found = {id for id, _, _, _ in rows}
            replies = {id: reply for id, _, _, reply in rows if reply is not None}
            if replies:
                connection.execute(GIVE_BACK, (list(replies), list(replies.values())))
            if dead:
                sessions.let_go(connection, found, self._clock.offset)
            batches.reopen(connection, sorted(found))
            told.write("resubmit", map(str, found), by)
            return found, set(lines_there((queue, lane) for _, queue, lane, _ in rows))

        found, lines = do(self._database, deed)
        self._wakes.hint(lines)
        return [id for id in ids if id in found]

    def _revive(
        self, connection: Connection, lot: Sequence[JobId], told_of: Mapping[JobId, editing.Again], delays: Mapping[JobId, timedelta]
    ) -> Rows:  # fmt: skip
        late = [id for id in lot if id in delays]
        told = {
            "ids": Uuids(lot), "payloads": Blobs(told_of[id].payload for id in lot),
            "histories": Blobs(editing.histories(connection, lot, told_of)),
            "late": Uuids(late), "delays": [delays[id] for id in late], "skew": self._clock.offset,
        }  # fmt: skip
        return connection.execute(REVIVE, told).fetchall()

    def discard(self, ids: Sequence[JobId], *, by: str) -> Discarded:
        def deed(connection: Connection, told: Lines) -> Discarded:
            skew = self._clock.offset
            gone = discarding.discard(connection, ids, by, skew, told)
            left = discarding.kept(connection, [id for id in ids if id not in gone], skew)
            done = [id for id in dict.fromkeys(ids) if id in gone]
            return Discarded(ids=done, kept={id: why or Kept.OTHER for id, why in left.items()})

        return do(self._database, deed)

    def take_back(
        self, *, term: int, limit: int, alerts: Mapping[MemberId, Sequence[NewJob]] | None = None
    ) -> list[TakenBack]:
        taken = self._database.run(sweeping.take_back, self._clock, term, limit, self._turns, alerts)
        self._wakes.hint(
            {job.line for job in taken if job.line is not None} | lines_of(alerts_of(taken, alerts))
        )
        return taken

    def unblock(self, *, term: int, limit: int) -> int:
        return self._database.run(sweeping.unblock, self._clock, term, limit)

    def release_waiting(self, *, term: int, limit: int) -> list[Gap]:
        gaps, lines, self._looked_at = self._database.run(
            sweeping.release_waiting, self._clock, term, limit, self._looked_at, self._turns
        )
        self._wakes.hint(lines)
        return gaps
