"""What surrounds one job, for an explanation, in PostgreSQL. Read at one instant; every statement is bounded."""

from datetime import timedelta
from typing import Any

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
from lateshift.model.job import Holds, JobView, State
from lateshift.model.member import MemberView, Program
from lateshift.model.sealed import MASK
from lateshift.model.workflow.run import Phase
from lateshift.store import gating
from lateshift.store.guards import IN_LINE
from lateshift.store.lines import lane_of
from lateshift.store.postgres import breakers, gates
from lateshift.store.postgres.database import Connection

NOW = "SELECT clock_timestamp() + %s::interval"
# Where the job stands, beyond what JOB shows. Primary keys.
GUARD = """SELECT lane, holds, blocked_by, session, turn, sequence, tenant, limit_key, cancel_by, NULL::timestamptz
 FROM lateshift.job WHERE id = %(id)s
 UNION ALL SELECT lane, holds, NULL, session, turn, sequence, tenant, limit_key, NULL, expires_at
 FROM lateshift.settled WHERE id = %(id)s"""
# What the run of a workflow is at, and whether one of its steps has its job in a sensitive queue, or no job any more. Primary keys.
RUN_STANDS = """SELECT phase, why, waits_for, why IS NOT NULL AND EXISTS (SELECT 1 FROM lateshift.sensitive)
 AND EXISTS (SELECT 1 FROM lateshift.step WHERE step.run = run.id AND step.job IS NOT NULL
 AND (coalesce((SELECT queue FROM lateshift.job WHERE job.id = step.job), (SELECT queue FROM lateshift.settled WHERE settled.id = step.job))
 NOT IN (SELECT name FROM lateshift.sensitive)) IS NOT TRUE) FROM lateshift.run WHERE id = %s"""
PAUSED_BY = "SELECT paused_at, paused_by FROM lateshift.queue WHERE name = %s AND paused_at IS NOT NULL"

# How many ready jobs go before it: those of higher priorities, and of its own the older ones. job_ready; of its tenant
# alone, job_tenant.
_LINE = "state = 1 AND queue = %(queue)s AND lane = %(lane)s"
_TENANT = f"{_LINE} AND tenant IS NOT NULL AND tenant = %(tenant)s"
_HIGHER = "priority > %(priority)s LIMIT %(limit)s"
_OLDER = "priority = %(priority)s AND (due_at, id) < (%(due_at)s, %(id)s) LIMIT %(limit)s"
HIGHER = f"SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE {_LINE} AND {_HIGHER}) n"
OLDER = f"SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE {_LINE} AND {_OLDER}) n"
HIGHER_OF_TENANT = f"SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE {_TENANT} AND {_HIGHER}) n"
OLDER_OF_TENANT = f"SELECT count(*) FROM (SELECT 1 FROM lateshift.job WHERE {_TENANT} AND {_OLDER}) n"

_OTHER = "id, task, state, due_at, leased_at, complete_by, holder, queue"
# Who has the turn in its session: the first in its line, if it runs or waits for another try. job_line.
HAS_TURN = f"""SELECT {_OTHER} FROM (SELECT {_OTHER} FROM lateshift.job WHERE queue = %s AND session = %s AND {IN_LINE}
 ORDER BY turn, id LIMIT 1) AS first WHERE state IN (0, 2)"""
# Those before it in the line of its session, in order. job_line.
BEFORE_IN_LINE = f"""SELECT {_OTHER} FROM lateshift.job WHERE queue = %s AND session = %s AND {IN_LINE}
 AND state IN (1, 3) AND (turn, id) < (%s, %s) ORDER BY turn, id LIMIT %s"""
SESSION = """SELECT held_by, held_why, gap_until, next_sequence FROM lateshift.session WHERE queue = %s AND name = %s"""
# The run that has a dead letter for a step, and its path while that can be resubmitted. Primary keys.
HELD_OF = """SELECT r.id, (SELECT s.path FROM lateshift.step s WHERE s.run = r.id AND s.job = d.id AND s.state = 4
  AND r.phase NOT IN (1, 3) AND EXISTS (SELECT 1 FROM lateshift.job j WHERE j.id = r.id))
 FROM lateshift.settled d JOIN lateshift.run r ON r.id = d.batch WHERE d.id = %s"""
# Who holds its exclusive key. job_exclusive.
EXCLUSIVE_HOLDER = f"SELECT {_OTHER} FROM lateshift.job WHERE exclusive = %s AND state = 2 LIMIT 1"

# The rules that it counts against, and what fills them. Primary keys; job_limit_queue, job_limit_task,
# job_limit_key.
RULE = "SELECT concurrency, rate, per, burst, set_by FROM lateshift.rule WHERE scope = %s AND name = %s"
BUCKET = "SELECT tokens, at, promised FROM lateshift.bucket WHERE key = %s"
RUNNING_IN_QUEUE = f"""SELECT {_OTHER} FROM lateshift.job
 WHERE state = 2 AND in_limits IS NOT NULL AND queue <> '' AND queue = %s LIMIT %s"""
RUNNING_OF_TASK = f"""SELECT {_OTHER} FROM lateshift.job
 WHERE state = 2 AND in_limits IS NOT NULL AND task <> '' AND task = %s LIMIT %s"""
RUNNING_OF_KEY = f"""SELECT {_OTHER} FROM lateshift.job
 WHERE state = 2 AND limit_key IS NOT NULL AND limit_key = %s LIMIT %s"""

# What stands before its task, and the bounded queues behind it. Primary key.
BREAKERS_BEFORE = "SELECT name FROM lateshift.gate WHERE task = %s AND most IS NULL"
ROOMS_BEHIND = "SELECT name, most FROM lateshift.gate WHERE task = %s AND queue = %s AND most IS NOT NULL"

# The code that live members run. A scan of the members.
PROGRAMS = """SELECT code, told FROM lateshift.program WHERE code IN
 (SELECT code FROM lateshift.member WHERE dead_at IS NULL AND expires_at > clock_timestamp() + %s::interval) LIMIT %s"""
LEADER = "SELECT expires_at FROM lateshift.lock WHERE name = 'supervisor' AND owner IS NOT NULL"

_program = msgspec.json.Decoder(Program)
_RUNNING = {"queue": RUNNING_IN_QUEUE, "task": RUNNING_OF_TASK, "key": RUNNING_OF_KEY}


def gather(connection: Connection, job: JobView, members: list[MemberView], skew: timedelta) -> Facts:
    [[now]] = connection.execute(NOW, (skew,)).fetchall()
    lane, holds, *row, kept = connection.execute(GUARD, {"id": job.id}).fetchall()[0]
    blocked_by, session, turn, sequence, tenant, limit_key, cancel_by = row
    guard = Guard(
        lane=lane_of(lane), holds=Holds(holds or 0), blocked_by=blocked_by, session=session, turn=turn, sequence=sequence, tenant=tenant,
        limit_key=limit_key, cancel_by=cancel_by, kept_until=kept,
    )  # fmt: skip
    if job.state.settled:
        return Facts(at=now, job=job, guard=guard, of_run=_of_run(connection, job))
    # Only jobs of a guarded lane are held by limits and gates.
    counted = guard.tenant is not None and job.state is not State.RUNNING
    leader = connection.execute(LEADER).fetchall()
    return Facts(
        at=now,
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
        programs=programs(connection, skew),
        led_until=leader[0][0] if leader else None,
    )


def programs(connection: Connection, skew: timedelta) -> dict[str, Program]:
    rows = connection.execute(PROGRAMS, (skew, PROGRAMS_LOOKED_AT)).fetchall()
    return {code: _program.decode(told) for code, told in rows}


def _paused(connection: Connection, queue: str) -> Paused | None:
    rows = connection.execute(PAUSED_BY, (queue,)).fetchall()
    return Paused(*rows[0]) if rows else None


def _run(connection: Connection, job: JobView) -> Run | None:
    rows = connection.execute(RUN_STANDS, (job.id,)).fetchall()
    if not rows:
        return None
    phase, why, waits_for, hides = rows[0]
    return Run(phase=Phase(phase), why=MASK if hides and why else why, waits_for=waits_for)


def _of_run(connection: Connection, job: JobView) -> JobId | None:
    if job.batch is None or not connection.execute(RUN_STANDS, (job.batch,)).fetchall():
        return None
    return job.batch


def _line(connection: Connection, job: JobView, guard: Guard) -> Line | None:
    if guard.lane is None:
        return None
    place = {
        "queue": job.queue, "lane": int(guard.lane), "tenant": guard.tenant, "priority": job.priority,
        "due_at": job.due_at, "id": job.id, "limit": AHEAD_LOOKED_AT,
    }  # fmt: skip

    def count(*statements: str) -> int:
        counts: list[int] = [connection.execute(sql.encode(), place).fetchall()[0][0] for sql in statements]
        return min(sum(counts), AHEAD_LOOKED_AT)

    return Line(
        ahead=count(HIGHER, OLDER),
        of_tenant=None if guard.tenant is None else count(HIGHER_OF_TENANT, OLDER_OF_TENANT),
    )


def _session(connection: Connection, job: JobView, guard: Guard) -> Session | None:
    if guard.session is None or job.state is State.RUNNING:
        return None
    mine = (job.queue, guard.session)
    before = _others(connection.execute(HAS_TURN, mine).fetchall())
    if all(other.id != job.id for other in before):
        line = (*mine, guard.turn, job.id, OTHERS_LOOKED_AT)
        before += _others(connection.execute(BEFORE_IN_LINE, line).fetchall())
    else:  # the turn is its own
        before = []
    rows = connection.execute(SESSION, mine).fetchall()
    held_by, held_why, gap_until, expects = rows[0] if rows else (None, None, None, None)
    return Session(
        name=guard.session, before=before, held_by=held_by, held_of=_held_of(connection, held_by), held_why=held_why, gap_until=gap_until,
        expects=expects or FIRST_NUMBER,
    )  # fmt: skip


def _held_of(connection: Connection, held_by: JobId | None) -> OfRun | None:
    rows = connection.execute(HELD_OF, (held_by,)).fetchall() if held_by is not None else []
    return OfRun(rows[0][0], rows[0][1]) if rows else None


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
                else connection.execute(_RUNNING[scope].encode(), (key, OTHERS_LOOKED_AT)).fetchall()
            )
            found.append(
                Limit(
                    scope=scope, key=key, concurrency=concurrency, rate=rate, per=per, burst=burst or 1, set_by=set_by,
                    running=_others(running), tokens=tokens[0][0] if tokens else None,
                    tokens_at=tokens[0][1] if tokens else None, promised=tokens[0][2] if tokens else None,
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
            id=id, task=task, state=State(state), due_at=due_at, started_at=leased_at, complete_by=complete_by,
            holder=holder, queue=queue,
        )
        for id, task, state, due_at, leased_at, complete_by, holder, queue in rows
    ]  # fmt: skip
