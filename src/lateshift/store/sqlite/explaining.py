"""What surrounds one job, for an explanation, in SQLite. Read from one commit; every statement is bounded."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from lateshift.model.breaker import CircuitView
from lateshift.model.explaining.facts import (
    AHEAD_LOOKED_AT,
    OTHERS_LOOKED_AT,
    PROGRAMS_LOOKED_AT,
    Facts,
    Guard,
    Limit,
    Line,
    OfRun,
    Other,
    Paused,
    Room,
    Run,
    Session,
)
from lateshift.model.guard import FIRST_NUMBER, scopes_of
from lateshift.model.ids import JobId
from lateshift.model.instants import to_instant, to_number
from lateshift.model.job import Holds, JobView, State
from lateshift.model.member import MemberView, Program
from lateshift.model.sealed import MASK
from lateshift.model.workflow.run import Phase
from lateshift.store import gating
from lateshift.store.guards import IN_LINE
from lateshift.store.lines import lane_of
from lateshift.store.sqlite import breakers, gates
from lateshift.store.sqlite.database import Connection

# Where the job stands, beyond what JOB shows. Primary keys.
GUARD = """SELECT lane, holds, blocked_by, session, turn, sequence, tenant, limit_key, cancel_by, NULL FROM job WHERE id = ?1
 UNION ALL SELECT lane, holds, NULL, session, turn, sequence, tenant, limit_key, NULL, expires_at FROM settled
 WHERE id = ?1"""
# What the run of a workflow is at, and whether one of its steps has its job in a sensitive queue, or no job any more. Primary keys.
RUN_STANDS = """SELECT phase, why, waits_for, why IS NOT NULL AND EXISTS (SELECT 1 FROM sensitive)
 AND EXISTS (SELECT 1 FROM step WHERE step.run = run.id AND step.job IS NOT NULL
 AND (coalesce((SELECT queue FROM job WHERE job.id = step.job), (SELECT queue FROM settled WHERE settled.id = step.job))
 NOT IN (SELECT name FROM sensitive)) IS NOT TRUE) FROM run WHERE id = ?"""
PAUSED_BY = "SELECT paused_at, paused_by FROM queue WHERE name = ? AND paused_at IS NOT NULL"

# How many ready jobs go before it: those of higher priorities, and of its own the older ones. job_ready; of its tenant
# alone, job_tenant.
HIGHER = "SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 1 AND queue = ? AND lane = ? AND priority > ? LIMIT ?)"
OLDER = """SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 1 AND queue = ? AND lane = ? AND priority = ?
 AND (due_at, id) < (?, ?) LIMIT ?)"""
HIGHER_OF_TENANT = """SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 1 AND tenant IS NOT NULL AND queue = ?
 AND lane = ? AND tenant = ? AND priority > ? LIMIT ?)"""
OLDER_OF_TENANT = """SELECT count(*) FROM (SELECT 1 FROM job WHERE state = 1 AND tenant IS NOT NULL AND queue = ?
 AND lane = ? AND tenant = ? AND priority = ? AND (due_at, id) < (?, ?) LIMIT ?)"""

_OTHER = "id, task, state, due_at, leased_at, complete_by, holder, queue"
# Who has the turn in its session: the first in its line, if it runs or waits for another try. job_line.
HAS_TURN = f"""SELECT {_OTHER} FROM (SELECT {_OTHER} FROM job WHERE queue = ? AND session = ? AND {IN_LINE}
 ORDER BY turn, id LIMIT 1) WHERE state IN (0, 2)"""
# Those before it in the line of its session, in order. job_line.
BEFORE_IN_LINE = f"""SELECT {_OTHER} FROM job WHERE queue = ? AND session = ? AND {IN_LINE} AND state IN (1, 3)
 AND (turn, id) < (?, ?) ORDER BY turn, id LIMIT ?"""
SESSION = "SELECT held_by, held_why, gap_until, next_sequence FROM session WHERE queue = ? AND name = ?"
# The run that has a dead letter for a step, and its path while that can be resubmitted. Primary keys.
HELD_OF = """SELECT r.id, (SELECT s.path FROM step s WHERE s.run = r.id AND s.job = d.id AND s.state = 4
  AND r.phase NOT IN (1, 3) AND EXISTS (SELECT 1 FROM job j WHERE j.id = r.id))
 FROM settled d JOIN run r ON r.id = d.batch WHERE d.id = ?"""
# Who holds its exclusive key. job_exclusive.
EXCLUSIVE_HOLDER = f"SELECT {_OTHER} FROM job WHERE exclusive = ? AND state = 2 LIMIT 1"

# The rules that it counts against, and what fills them. Primary keys; job_limit_queue, job_limit_task,
# job_limit_key.
RULE = "SELECT concurrency, rate, per, burst, set_by FROM rule WHERE scope = ? AND name = ?"
BUCKET = "SELECT tokens, at, promised FROM bucket WHERE key = ?"
RUNNING_IN_QUEUE = f"SELECT {_OTHER} FROM job WHERE state = 2 AND in_limits IS NOT NULL AND queue = ? LIMIT ?"
RUNNING_OF_TASK = f"SELECT {_OTHER} FROM job WHERE state = 2 AND in_limits IS NOT NULL AND task = ? LIMIT ?"
RUNNING_OF_KEY = (
    f"SELECT {_OTHER} FROM job WHERE state = 2 AND limit_key IS NOT NULL AND limit_key = ? LIMIT ?"
)

# What stands before its task, and the bounded queues behind it. Primary key.
BREAKERS_BEFORE = "SELECT name FROM gate WHERE task = ? AND most IS NULL"
ROOMS_BEHIND = "SELECT name, most FROM gate WHERE task = ? AND queue = ? AND most IS NOT NULL"

# The code that live members run. A scan of the members.
PROGRAMS = """SELECT code, told FROM program WHERE code IN
 (SELECT code FROM member WHERE dead_at IS NULL AND expires_at > ?) LIMIT ?"""
LEADER = "SELECT expires_at FROM lock WHERE name = 'supervisor' AND owner IS NOT NULL"

_program = msgspec.json.Decoder(Program)
_RUNNING = {"queue": RUNNING_IN_QUEUE, "task": RUNNING_OF_TASK, "key": RUNNING_OF_KEY}


def gather(connection: Connection, job: JobView, members: list[MemberView], now: int) -> Facts:
    lane, holds, *row, kept = connection.execute(GUARD, (job.id.bytes,)).fetchall()[0]
    blocked_by, session, turn, sequence, tenant, limit_key, cancel_by = row
    guard = Guard(
        lane=lane_of(lane), holds=Holds(holds or 0), blocked_by=blocked_by, session=session, turn=turn, sequence=sequence, tenant=tenant,
        limit_key=limit_key, cancel_by=cancel_by, kept_until=_time(kept),
    )  # fmt: skip
    if job.state.settled:
        return Facts(at=to_instant(now), job=job, guard=guard, of_run=_of_run(connection, job))
    # Only jobs of a guarded lane are held by limits and gates.
    counted = guard.tenant is not None and job.state is not State.RUNNING
    leader = connection.execute(LEADER).fetchall()
    return Facts(
        at=to_instant(now),
        job=job,
        guard=guard,
        paused=_paused(connection, job.queue),
        run=_run(connection, job),
        session=_session(connection, job, guard),
        singleton=_singleton(connection, job),
        limits=_limits(connection, job, guard) if counted else [],
        breakers=_breakers(connection, job, guard) if counted else [],
        rooms=_rooms(connection, job) if counted else [],
        line=_line(connection, job, guard) if job.state is State.READY else None,
        members=members,
        programs=programs(connection, now),
        led_until=to_instant(leader[0][0]) if leader else None,
    )


def programs(connection: Connection, now: int) -> dict[str, Program]:
    rows = connection.execute(PROGRAMS, (now, PROGRAMS_LOOKED_AT)).fetchall()
    return {code: _program.decode(told) for code, told in rows}


def _paused(connection: Connection, queue: str) -> Paused | None:
    rows = connection.execute(PAUSED_BY, (queue,)).fetchall()
    return Paused(to_instant(rows[0][0]), rows[0][1]) if rows else None


def _run(connection: Connection, job: JobView) -> Run | None:
    rows = connection.execute(RUN_STANDS, (job.id.bytes,)).fetchall()
    if not rows:
        return None
    phase, why, waits_for, hides = rows[0]
    return Run(phase=Phase(phase), why=MASK if hides and why else why, waits_for=waits_for)


def _of_run(connection: Connection, job: JobView) -> JobId | None:
    if job.batch is None or not connection.execute(RUN_STANDS, (job.batch.bytes,)).fetchall():
        return None
    return job.batch


def _line(connection: Connection, job: JobView, guard: Guard) -> Line | None:
    if guard.lane is None:
        return None
    place, age = (job.queue, int(guard.lane)), (to_number(job.due_at), job.id.bytes)

    def count(higher: str, older: str, *before: Any) -> int:
        above: int = connection.execute(higher, (*before, job.priority, AHEAD_LOOKED_AT)).fetchall()[0][0]
        beside: int = connection.execute(older, (*before, job.priority, *age, AHEAD_LOOKED_AT)).fetchall()[0][
            0
        ]
        return min(above + beside, AHEAD_LOOKED_AT)

    return Line(
        ahead=count(HIGHER, OLDER, *place),
        of_tenant=None
        if guard.tenant is None
        else count(HIGHER_OF_TENANT, OLDER_OF_TENANT, *place, guard.tenant),
    )


def _session(connection: Connection, job: JobView, guard: Guard) -> Session | None:
    if guard.session is None or job.state is State.RUNNING:
        return None
    mine = (job.queue, guard.session)
    before = _others(connection.execute(HAS_TURN, mine).fetchall())
    if all(other.id != job.id for other in before):
        line = (*mine, guard.turn, job.id.bytes, OTHERS_LOOKED_AT)
        before += _others(connection.execute(BEFORE_IN_LINE, line).fetchall())
    else:  # the turn is its own
        before = []
    rows = connection.execute(SESSION, mine).fetchall()
    held_by, held_why, gap_until, expects = rows[0] if rows else (None, None, None, None)
    return Session(
        name=guard.session, before=before, held_by=UUID(bytes=held_by) if held_by else None, held_of=_held_of(connection, held_by), held_why=held_why,
        gap_until=_time(gap_until), expects=expects or FIRST_NUMBER,
    )  # fmt: skip


def _held_of(connection: Connection, held_by: bytes | None) -> OfRun | None:
    rows = connection.execute(HELD_OF, (held_by,)).fetchall() if held_by is not None else []
    return OfRun(UUID(bytes=rows[0][0]), rows[0][1]) if rows else None


def _singleton(connection: Connection, job: JobView) -> Other | None:
    if job.exclusive is None or job.state is State.RUNNING:
        return None
    found = _others(connection.execute(EXCLUSIVE_HOLDER, (job.exclusive,)).fetchall())
    return found[0] if found else None


def _limits(connection: Connection, job: JobView, guard: Guard) -> list[Limit]:
    found = []
    for scope, name, key in scopes_of(job.queue, job.task, guard.limit_key):
        for concurrency, rate, per, burst, set_by in connection.execute(RULE, (scope, name)).fetchall():
            tokens = connection.execute(BUCKET, (f"{scope}:{key}",)).fetchall()
            running = (
                []
                if concurrency is None
                else connection.execute(_RUNNING[scope], (key, OTHERS_LOOKED_AT)).fetchall()
            )
            found.append(
                Limit(
                    scope=scope, key=key, concurrency=concurrency, rate=rate, set_by=set_by, burst=burst or 1,
                    per=None if per is None else timedelta(microseconds=per), running=_others(running),
                    tokens=tokens[0][0] if tokens else None, tokens_at=to_instant(tokens[0][1]) if tokens else None,
                    promised=to_instant(tokens[0][2]) if tokens else None,
                )
            )  # fmt: skip
    return found


def _breakers(connection: Connection, job: JobView, guard: Guard) -> list[CircuitView]:
    before = connection.execute(BREAKERS_BEFORE, (job.task,)).fetchall()
    return breakers.views(connection, gating.holding(before, guard.blocked_by)) if before else []


def _rooms(connection: Connection, job: JobView) -> list[Room]:
    behind = connection.execute(ROOMS_BEHIND, (job.task, job.queue)).fetchall()
    return gating.full(behind, lambda queue, most: gates.waiting(connection, queue, most))


def _others(rows: list[tuple[Any, ...]]) -> list[Other]:
    return [
        Other(
            id=UUID(bytes=id), task=task, state=State(state), due_at=to_instant(due_at), started_at=_time(leased_at),
            complete_by=_time(complete_by), holder=UUID(bytes=holder) if holder else None, queue=queue,
        )
        for id, task, state, due_at, leased_at, complete_by, holder, queue in rows
    ]  # fmt: skip


def _time(value: int | None) -> datetime | None:
    return None if value is None else to_instant(value)
