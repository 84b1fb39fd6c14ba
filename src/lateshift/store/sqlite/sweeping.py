"""What the supervisor does to jobs: read, decide, then write with the fence, so that a settlement in between wins."""

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from lateshift.model.guard import Turns, rule_of
from lateshift.model.ids import MemberId
from lateshift.model.instants import MICROSECOND
from lateshift.model.job import CAREFUL, Line, NewJob, State
from lateshift.store.contract import Gap, TakenBack
from lateshift.store.crashpoints import crashpoint
from lateshift.store.figure_contract import lost_attempts
from lateshift.store.guards import BEGUN
from lateshift.store.sqlite import batches, enqueue, figures, gates, guarding, rules, sessions
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.locks import TERM
from lateshift.store.sqlite.replies import tell_ended
from lateshift.store.sqlite.settling import COPY, READY_NEXT
from lateshift.store.taking import (
    GRACE,
    KEEP_CANCELLED,
    KEEP_DEAD,
    Overdue,
    Verdict,
    alerts_of,
    left_by,
    split,
    taken_back,
    verdict,
)

# Members whose heartbeat had run out when we looked are dead, and stay so; not those who fell silent while we waited to
# write, for they waited too. A scan of the members.
EXPIRED = "SELECT max(expires_at) FROM member WHERE dead_at IS NULL AND expires_at <= ?"
DECLARE_DEAD = "UPDATE member SET dead_at = ? WHERE dead_at IS NULL AND expires_at <= ?"

# Running jobs past their complete-by and the grace of their holder, or held by nobody alive. job_running, read whole:
# as long as what runs.
OVERDUE = """SELECT id, fence, queue, lane, attempt, attempts, losses, holder,
 holder NOT IN (SELECT id FROM member WHERE dead_at IS NULL), cancel_by, exclusive, history, task, session,
 limit_key FROM job
 WHERE state = 2 AND (complete_by <= ?1 OR holder NOT IN (SELECT id FROM member WHERE dead_at IS NULL)) LIMIT ?2"""

# Taken back: ready again with what was learnt. Primary key.
READY_AGAIN = f"""UPDATE job SET state = 1, due_at = ?3, was_due = NULL, lane = ?4, turn = {BEGUN},
 tenant = CASE ?4 WHEN 3 THEN coalesce(tenant, '') ELSE tenant END, losses = ?5, history = ?6, holder = NULL,
 leased_at = NULL, complete_by = NULL WHERE id = ?1 AND fence = ?2 AND state = 2 RETURNING 1"""
COPY_TAKEN = f"{COPY} RETURNING batch"
DROP_TAKEN = "DELETE FROM job WHERE id = ? AND fence = ? AND state = 2"
COUNT_LOSS = "UPDATE job SET losses = ? WHERE id = ? AND fence = ? AND state = 2"

# Keys without a holder that have a line with blocked jobs and no ready one. job_exclusive.
STRANDED = """SELECT DISTINCT exclusive
FROM (SELECT DISTINCT exclusive, queue, lane FROM job WHERE exclusive IS NOT NULL AND state = 3
  AND blocked_by = exclusive) line
WHERE NOT EXISTS (SELECT 1 FROM job h WHERE h.exclusive = line.exclusive AND h.state = 2)
 AND NOT EXISTS (SELECT 1 FROM job r WHERE r.exclusive = line.exclusive AND r.state = 1
  AND r.queue = line.queue AND r.lane = line.lane)
LIMIT ?"""

# What jobs wait for, from one to the next. job_blocked.
NEXT_WAIT = """SELECT blocked_by, queue FROM job WHERE state = 3 AND (blocked_by, queue) > (?, ?)
 ORDER BY blocked_by, queue LIMIT 1"""


def take_back(
    database: Database,
    term: int,
    limit: int,
    turns: Turns,
    alerts: Mapping[MemberId, Sequence[NewJob]] | None,
) -> list[TakenBack]:
    """Writes only when there is something to write: the supervisor asks every second."""
    with database.read() as connection:
        [(expired,)] = connection.execute(EXPIRED, (database.clock.microseconds(),)).fetchall()
    if expired is not None:
        crashpoint("sweep.before_dead")
        with database.write() as connection:
            if not connection.execute(TERM, (term,)).fetchall():
                return []
            connection.execute(DECLARE_DEAD, (database.clock.microseconds(), expired))
    with database.read() as connection:
        rows = connection.execute(
            OVERDUE, (database.clock.microseconds() - GRACE // MICROSECOND, limit)
        ).fetchall()
    crashpoint("sweep.after_read")
    at = database.clock.now()
    verdicts = [
        verdict(
            Overdue(
                id=UUID(bytes=row[0]), fence=row[1], queue=row[2], lane=row[3], attempt=row[4], attempts=row[5],
                losses=row[6], holder=UUID(bytes=row[7]) if row[7] else None, holder_gone=bool(row[8]),
                cancel_by=row[9], exclusive=row[10], history=row[11],
                task=row[12], session=row[13], limit_key=row[14],
            ),
            at,
        )
        for row in rows
    ]  # fmt: skip
    if not verdicts:
        return []
    with database.write() as connection:
        if not connection.execute(TERM, (term,)).fetchall():
            return []
        now = database.clock.microseconds()
        taken: list[TakenBack] = []
        counts: Counter[batches.Ending] = Counter()
        for number, case in enumerate(verdicts):
            if _carry_out(connection, case, now, counts):
                taken.append(taken_back(case))
            if number == len(verdicts) // 2:
                crashpoint("sweep.mid_batch")
        figures.put(connection, now, lost_attempts(taken))
        for key in {case.job.exclusive for case in verdicts} - {None}:
            connection.execute(READY_NEXT, (key,))
        ended = [case for case in verdicts if case.state is not State.READY and case.job.lane >= CAREFUL]
        sessions.hold(connection, [case.job.id.bytes for case in ended if case.state is State.DEAD], now)
        guarding.give_on(connection, [left_by(case.job) for case in ended], turns)
        batches.count(connection, counts, now)
        if told := alerts_of(taken, alerts):
            enqueue.run(connection, enqueue.statements(told, now))
    return taken


def _carry_out(connection: Connection, case: Verdict, now: int, counts: Counter[batches.Ending]) -> bool:
    job = case.job
    if case.state is State.READY:
        row = (job.id.bytes, job.fence, now, case.lane, case.losses, case.history)
        return bool(connection.execute(READY_AGAIN, row).fetchall())
    keep = (KEEP_CANCELLED if case.state is State.CANCELLED else KEEP_DEAD) // MICROSECOND
    connection.execute(COUNT_LOSS, (case.losses, job.id.bytes, job.fence))
    end = (job.id.bytes, job.fence, now, int(case.state), keep, case.history, None, case.reason, None)
    moved = connection.execute(COPY_TAKEN, end).fetchall()
    tell_ended(connection, [job.id.bytes])
    connection.execute(DROP_TAKEN, (job.id.bytes, job.fence))
    for (batch,) in moved:
        if batch is not None:
            counts[batch, int(case.state)] += 1
    return bool(moved)


def unblock(database: Database, term: int, limit: int) -> int:
    with database.read() as connection:
        keys = connection.execute(STRANDED, (limit,)).fetchall()
    if not keys:
        return 0
    with database.write() as connection:
        if not connection.execute(TERM, (term,)).fetchall():
            return 0
        for key in keys:
            connection.execute(READY_NEXT, key)
    return len(keys)


def release_waiting(
    database: Database, term: int, limit: int, after: tuple[str, str], turns: Turns
) -> tuple[list[Gap], set[Line], tuple[str, str]]:
    """What it found, the lines that have ready jobs now, and where to look on."""
    now = database.clock.microseconds()
    with database.read() as connection:
        waits: list[tuple[str, str]] = []
        while len(waits) < limit and (
            rows := connection.execute(NEXT_WAIT, waits[-1] if waits else after).fetchall()
        ):
            waits += rows
        missing = connection.execute(sessions.MISSING, (now, 1)).fetchall()
    if not waits and not missing:
        return [], set(), ("", "")
    with database.write() as connection:
        if not connection.execute(TERM, (term,)).fetchall():
            return [], set(), after
        gaps = sessions.close_gaps(connection, limit, now)
        lines = sessions.ready_next(connection, [(gap.queue, gap.session) for gap in gaps if not gap.held])
        named = [(queue, name) for kind, name, queue in split(waits) if kind == "session"]
        lines |= sessions.ready_next(connection, named, numbers=False)
        known = rules.read(connection)
        limits = {name: rule_of(known, name) for kind, name, _ in split(waits) if kind == "limit"}
        lines |= rules.ready_next(connection, limits, turns)
        rated = [name for kind, name, _ in split(waits) if kind == "rate"]
        lines |= rules.ready_for_tokens(connection, rated, known, now / rules.SECOND, turns)
        lines |= gates.release(connection, waits, now, turns)
    return gaps, lines, waits[-1] if len(waits) >= limit else ("", "")
