"""What the supervisor does to jobs: read, decide, then write with the fence, so that a settlement in between wins."""

from collections.abc import Mapping, Sequence
from typing import Any

from lateshift.clock import Clock
from lateshift.model.guard import Turns, rule_of
from lateshift.model.ids import MemberId
from lateshift.model.job import CAREFUL, Line, NewJob, State
from lateshift.store.contract import Gap, TakenBack
from lateshift.store.crashpoints import crashpoint
from lateshift.store.figure_contract import lost_attempts
from lateshift.store.postgres import enqueue, figures, gates, guarding, rules, sessions
from lateshift.store.postgres.database import Connection
from lateshift.store.postgres.locks import TERM
from lateshift.store.postgres.settling import GONE, KEPT, READY_NEXT, WAIT_FOR_KEY, counted
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
# write, for they may have waited too. A scan of the members.
EXPIRED = """SELECT max(expires_at) FROM lateshift.member
 WHERE dead_at IS NULL AND expires_at <= clock_timestamp() + %(skew)s::interval"""
DECLARE_DEAD = """UPDATE lateshift.member SET dead_at = clock_timestamp() + %(skew)s::interval
 WHERE dead_at IS NULL AND expires_at <= %(expired)s"""

# Running jobs past their complete-by and the grace of their holder, or held by nobody alive. job_running, read whole:
# as long as what runs.
OVERDUE = """SELECT j.id, j.fence, j.queue, j.lane, j.attempt, j.attempts, j.losses, j.holder, m.id IS NULL, j.cancel_by,
 j.exclusive, j.history, j.task, j.session, j.limit_key
FROM lateshift.job j LEFT JOIN lateshift.member m ON m.id = j.holder AND m.dead_at IS NULL
WHERE j.state = 2 AND (m.id IS NULL OR j.complete_by <= clock_timestamp() + %(skew)s::interval - %(grace)s::interval)
LIMIT %(limit)s"""

# Taken back: ready again with what was learnt. Primary key.
READY_AGAIN = """UPDATE lateshift.job SET state = 1, due_at = clock_timestamp() + %(skew)s::interval, was_due = NULL, lane = %(lane)s::smallint,
 tenant = CASE %(lane)s::smallint WHEN 3 THEN coalesce(tenant, '') ELSE tenant END, losses = %(losses)s, history = %(history)s, holder = NULL, leased_at = NULL, complete_by = NULL
 WHERE id = %(id)s AND fence = %(fence)s AND state = 2 RETURNING 1"""

# Taken back for good. Primary keys.
_STATE = "%(state)s::smallint"
END_TAKEN = f"""WITH gone AS (DELETE FROM lateshift.job WHERE id = %(id)s AND fence = %(fence)s AND state = 2 RETURNING *),
{counted("count(*)", _STATE, f"count(*) FILTER (WHERE {_STATE} = 6)")}
INSERT INTO lateshift.settled ({KEPT}, history, state, settled_at, expires_at, reason)
SELECT {GONE.replace("gone.losses", "%(losses)s::smallint")}, %(history)s::bytea, %(state)s::smallint,
 clock_timestamp() + %(skew)s::interval, clock_timestamp() + %(skew)s::interval + %(keep)s::interval, %(reason)s::text
FROM gone RETURNING 1"""

# Keys without a holder that have a line with blocked jobs and no ready one. job_exclusive.
STRANDED = """SELECT DISTINCT exclusive
FROM (SELECT DISTINCT exclusive, queue, lane FROM lateshift.job WHERE exclusive IS NOT NULL AND state = 3
  AND blocked_by = exclusive) line
WHERE NOT EXISTS (SELECT 1 FROM lateshift.job h WHERE h.exclusive = line.exclusive AND h.state = 2)
 AND NOT EXISTS (SELECT 1 FROM lateshift.job r WHERE r.exclusive = line.exclusive AND r.state = 1
  AND r.queue = line.queue AND r.lane = line.lane)
LIMIT %s"""

NOW = "SELECT extract(epoch FROM clock_timestamp() + %s::interval)::float8"
# What jobs wait for, from one to the next. job_blocked.
WAITS = """WITH RECURSIVE wait AS (
  (SELECT blocked_by, queue, 1 AS place FROM lateshift.job
   WHERE state = 3 AND (blocked_by, queue) > (%(waits)s::text COLLATE "C", %(queue)s::text)
   ORDER BY blocked_by, queue LIMIT 1)
  UNION ALL
  SELECT next.blocked_by, next.queue, wait.place + 1 FROM wait, LATERAL (SELECT blocked_by, queue FROM lateshift.job
   WHERE state = 3 AND (blocked_by, queue) > (wait.blocked_by, wait.queue) ORDER BY blocked_by, queue LIMIT 1) next
  WHERE wait.place < %(limit)s)
SELECT blocked_by, queue FROM wait ORDER BY place"""


def take_back(
    connection: Connection,
    again: bool,
    clock: Clock,
    term: int,
    limit: int,
    turns: Turns,
    alerts: Mapping[MemberId, Sequence[NewJob]] | None,
) -> list[TakenBack]:
    """Writes only when there is something to write: the supervisor asks every second."""
    skew = {"skew": clock.offset}
    [(expired,)] = connection.execute(EXPIRED, skew).fetchall()
    if expired is not None:
        crashpoint("sweep.before_dead")
        with connection.transaction():
            if not connection.execute(TERM, (term,)).fetchall():
                return []
            connection.execute(DECLARE_DEAD, skew | {"expired": expired})
    rows = connection.execute(OVERDUE, skew | {"limit": limit, "grace": GRACE}).fetchall()
    crashpoint("sweep.after_read")
    at = clock.now()
    verdicts = [
        verdict(
            Overdue(
                id=row[0], fence=row[1], queue=row[2], lane=row[3], attempt=row[4], attempts=row[5],
                losses=row[6], holder=row[7], holder_gone=row[8], cancel_by=row[9], exclusive=row[10], history=row[11],
                task=row[12], session=row[13], limit_key=row[14],
            ),
            at,
        )
        for row in rows
    ]  # fmt: skip
    if not verdicts:
        return []
    taken: list[TakenBack] = []
    with connection.transaction():
        if not connection.execute(TERM, (term,)).fetchall():
            return []
        careful = [case for case in verdicts if case.job.lane >= CAREFUL]
        sessions.lock(connection, [case.job.queue for case in careful])
        ended = [case for case in careful if case.state is not State.READY]
        freed = guarding.lock_limits(connection, [left_by(case.job) for case in ended])
        keys = sorted({case.job.exclusive for case in verdicts if case.job.exclusive is not None})
        for key in keys:
            connection.execute(WAIT_FOR_KEY, (key,))
        # In the order of the ids, so that two sweeps never wait for each other in a circle.
        for number, case in enumerate(sorted(verdicts, key=lambda case: case.job.id)):
            if _carry_out(connection, case, skew):
                taken.append(taken_back(case))
            if number == len(verdicts) // 2:
                crashpoint("sweep.mid_batch")
        if taken:
            figures.put(connection, figures.now_of(connection, clock.offset), lost_attempts(taken))
        for key in keys:
            connection.execute(READY_NEXT, {"key": key})
        sessions.hold(connection, [case.job.id for case in ended if case.state is State.DEAD], clock.offset)
        guarding.give_on(connection, [left_by(case.job) for case in ended], freed, turns)
        if told := alerts_of(taken, alerts):
            enqueue.run(connection, enqueue.statements(told, clock.offset, again=again))
    return taken


def _carry_out(connection: Connection, case: Verdict, skew: dict[str, Any]) -> bool:
    row = {"id": case.job.id, "fence": case.job.fence, "losses": case.losses, "history": case.history, **skew}
    if case.state is State.READY:
        return bool(connection.execute(READY_AGAIN, {**row, "lane": case.lane}).fetchall())
    keep = KEEP_CANCELLED if case.state is State.CANCELLED else KEEP_DEAD
    end = {**row, "state": int(case.state), "keep": keep, "reason": case.reason}
    return bool(connection.execute(END_TAKEN, end).fetchall())


def unblock(connection: Connection, again: bool, clock: Clock, term: int, limit: int) -> int:
    keys = connection.execute(STRANDED, (limit,)).fetchall()
    if not keys:
        return 0
    with connection.transaction():
        if not connection.execute(TERM, (term,)).fetchall():
            return 0
        for (key,) in sorted(keys):
            connection.execute(WAIT_FOR_KEY, (key,))
            connection.execute(READY_NEXT, {"key": key})
    return len(keys)


def release_waiting(
    connection: Connection,
    again: bool,
    clock: Clock,
    term: int,
    limit: int,
    after: tuple[str, str],
    turns: Turns,
) -> tuple[list[Gap], set[Line], tuple[str, str]]:
    """What it found, the lines that have ready jobs now, and where to look on."""
    skew = clock.offset
    at = {"waits": after[0], "queue": after[1], "limit": limit}
    waits: list[tuple[str, str]] = connection.execute(WAITS, at).fetchall()
    missing = connection.execute(sessions.MISSING, {"skew": skew, "limit": limit}).fetchall()
    if not waits and not missing:
        return [], set(), ("", "")
    named = [(queue, name) for kind, name, queue in split(waits) if kind == "session"]
    with connection.transaction():
        if not connection.execute(TERM, (term,)).fetchall():
            return [], set(), after
        sessions.lock(connection, [*(queue for queue, _ in named), *(queue for queue, _, _ in missing)])
        known = rules.read(connection)
        limits = {name: rule_of(known, name) for kind, name, _ in split(waits) if kind == "limit"}
        rated = [name for kind, name, _ in split(waits) if kind == "rate"]
        if limits or rated:
            connection.execute(rules.LOCK_LIMITS)
        missing = [
            row
            for row in connection.execute(sessions.MISSING, {"skew": skew, "limit": limit}).fetchall()
            if row[0] in {queue for queue, _, _ in missing}
        ]  # again, now that nobody else changes them
        gaps = sessions.close_gaps(connection, missing, skew)
        lines = sessions.ready_next(connection, [(gap.queue, gap.session) for gap in gaps if not gap.held])
        lines |= sessions.ready_next(connection, named, numbers=False)
        lines |= rules.ready_next(connection, limits, turns)
        [(now,)] = connection.execute(NOW, (skew,)).fetchall()
        lines |= rules.ready_for_tokens(connection, rated, known, now, turns)
        lines |= gates.release(connection, waits, now, turns)
    return gaps, lines, waits[-1] if len(waits) >= limit else ("", "")
