"""Runs that go a step on, in PostgreSQL: many in one commit, in as many statements as one run would need."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND, to_number
from lateshift.model.job import NewJob
from lateshift.model.workflow.run import Advance, Advanced, Phase
from lateshift.model.workflow.step import StepRow
from lateshift.store.postgres import enqueue
from lateshift.store.postgres.arrays import BigInts, Blobs, Instants, Texts, Uuids
from lateshift.store.postgres.database import Connection
from lateshift.store.postgres.run_views import STEP_COLUMNS

_NOW = "clock_timestamp() + %(skew)s::interval"
# Leases that hold, and whether they are to be cancelled; nobody takes them back until we commit. Primary key.
MINE = f"""SELECT id, cancel_by, {_NOW} FROM lateshift.job WHERE id = ANY(%(ids)b::uuid[]) AND holder IS NOT NULL
 AND fence = (%(fences)b::bigint[])[width_bucket(id, %(ids)b::uuid[])] ORDER BY id FOR NO KEY UPDATE"""
# What they were told before they began is news. Primary keys.
BEGIN = """INSERT INTO lateshift.run (id, name, version, news, started_at)
 SELECT id, name, version, (SELECT count(*) FROM lateshift.signal WHERE run = n.id), %(now)s::timestamptz
 FROM unnest(%(ids)b::uuid[], %(names)b::text[], %(versions)b::text[]) AS n (id, name, version) ON CONFLICT DO NOTHING"""
SAY = """UPDATE lateshift.run SET status = coalesce(%(status)s, status),
 phase = CASE WHEN %(phase)s::smallint = 2 AND phase IN (1, 3) THEN phase ELSE coalesce(%(phase)s::smallint, phase) END,
 why = CASE WHEN %(phase)s::smallint IS NULL OR %(phase)s::smallint = 2 AND phase IN (1, 3) THEN why ELSE %(why)s END WHERE id = %(id)s"""
CANCEL_LATER = "UPDATE lateshift.run SET cancel_by = coalesce(cancel_by, %(by)s) WHERE id = %(id)s"
CANCEL_TOLD = "UPDATE lateshift.job SET cancel_by = NULL WHERE id = %(id)s"
# Steps as they are now. One that has completed is written once; only how it is undone still changes, of whatever has its place
# among those that were done. One whose job has failed does not run again by being begun a second time, as after a lost answer. In arrays without NULL: nil, empty and -1 stand for it. Primary key.
_NIL = "'00000000-0000-0000-0000-000000000000'::uuid"
_SAID = """unnest(%(runs)b::uuid[], %(paths)b::text[], %(kinds)b::bigint[], %(names)b::text[], %(states)b::bigint[], %(payloads)b::bytea[],
 %(results)b::bytea[], %(errors)b::bytea[], %(places)b::bigint[], %(failures)b::bigint[], %(jobs)b::uuid[], %(waits)b::bigint[],
 %(limits)b::bigint[], %(undos)b::text[]) AS n (run, path, kind, name, state, payload, result, error, place, failures, job, wait,
 most, undo)"""
_LATER = "CASE WHEN {0} >= 0 THEN %(now)s::timestamptz + {0} * interval '1 microsecond' END"
PUT = f"""INSERT INTO lateshift.step AS s ({STEP_COLUMNS}) SELECT run, path, kind, name, state, payload, result, error,
 nullif(place, -1), failures, nullif(job, {_NIL}), {_LATER.format("wait")}, {_LATER.format("most")}, %(now)s::timestamptz,
 CASE WHEN state > 1 THEN %(now)s::timestamptz END, nullif(undo, ''), 0, 0, NULL, NULL, NULL FROM {_SAID}
 ON CONFLICT (run, path) DO UPDATE SET state = excluded.state, payload = coalesce(excluded.payload, s.payload),
 result = excluded.result, error = excluded.error, place = excluded.place, failures = excluded.failures, job = excluded.job,
 due_at = coalesce(excluded.due_at, s.due_at),
 complete_by = CASE WHEN excluded.job IS NOT DISTINCT FROM s.job THEN coalesce(excluded.complete_by, s.complete_by)
  ELSE excluded.complete_by END,
 ended_at = excluded.ended_at, undo = excluded.undo
 WHERE s.state <> 2 AND (s.state > 2 AND excluded.state = 1 AND excluded.job = s.job) IS NOT TRUE"""
PUT_UNDO = """UPDATE lateshift.step SET undo_state = %(state)s, undo_failures = %(failures)s, undo_error = %(error)s, undo_job = %(job)s,
 undone_at = CASE WHEN %(state)s = 2 THEN %(now)s::timestamptz END
 WHERE run = %(run)s AND path = %(path)s AND state > 1 AND place > 0 AND undo_state <> 2"""
TAKE = "UPDATE lateshift.signal SET taken = %s WHERE run = %s AND number = %s AND taken IS NULL"
# The leases are given up, unless something came that they do not know of. Primary keys.
_UNTIL = "least(%(now)s::timestamptz + n.wait * interval '1 microsecond', n.until)"
SLEEP = f"""UPDATE lateshift.job j SET state = CASE WHEN {_UNTIL} > %(now)s::timestamptz THEN 0 ELSE 1 END, due_at = {_UNTIL}, was_due = NULL, attempt = j.attempt - 1, losses = 0,
 lane = CASE j.lane WHEN 3 THEN 0 ELSE j.lane END, tenant = CASE j.lane WHEN 3 THEN NULL ELSE j.tenant END,
 holder = NULL, leased_at = NULL, complete_by = NULL
 FROM unnest(%(ids)b::uuid[], %(news)b::bigint[], %(waits)b::bigint[], %(untils)b::timestamptz[]) AS n (id, news, wait, until)
 WHERE j.id = n.id AND j.state = 2 AND (SELECT r.news FROM lateshift.run r WHERE r.id = n.id) = n.news RETURNING j.id"""
WAITS_FOR = """UPDATE lateshift.run r SET waits_for = n.waits_for FROM unnest(%(ids)b::uuid[], %(waits)b::text[]) AS n (id, waits_for)
 WHERE r.id = n.id AND r.waits_for IS DISTINCT FROM n.waits_for"""
STANDS = "SELECT id, news, phase, cancel_by FROM lateshift.run WHERE id = ANY(%(ids)b::uuid[])"
# Which of these jobs were written before. Primary keys.
ARE_THERE = """SELECT id FROM lateshift.job WHERE id = ANY(%(ids)s::uuid[])
 UNION ALL SELECT id FROM lateshift.settled WHERE id = ANY(%(ids)s::uuid[])"""

_NONE = UUID(int=0)


def advance(
    connection: Connection, again: bool, advances: Sequence[Advance], skew: timedelta
) -> dict[JobId, Advanced]:
    """Of those whose leases hold."""
    ordered = sorted(advances, key=lambda one: one.lease.id.int)
    ids = Uuids(one.lease.id for one in ordered)
    fences = BigInts(one.lease.fence for one in ordered)
    rows = connection.execute(MINE, {"ids": ids, "fences": fences, "skew": skew}).fetchall()
    if not rows:
        return {}
    held, now = {id: by for id, by, _ in rows}, rows[-1][2]
    stopped = _stopped(connection, [one.lease.id for one in ordered if one.forward], held, now)
    mine = [one for one in ordered if one.lease.id in held and one.lease.id not in stopped]
    if not mine:
        return stopped
    jobs: list[NewJob] = [job for one in mine for job in one.jobs]
    doubtful = [job.id for job in jobs if again or not job.first]
    if doubtful:  # written before, if its answer was lost
        there = {id for (id,) in connection.execute(ARE_THERE, {"ids": doubtful}).fetchall()}
        jobs = [job for job in jobs if job.id not in there]
    if jobs:
        enqueue.run(connection, enqueue.statements(jobs, skew))
    with connection.pipeline():
        _write(connection, mine, held, now)
        sleepers = [(one.lease.id, one.sleep) for one in mine if one.sleep is not None]
        slept = None
        if sleepers:
            names = Uuids(id for id, _ in sleepers)
            slept = connection.execute(
                SLEEP,
                {
                    "ids": names, "news": BigInts(sleep.news for _, sleep in sleepers), "now": now,
                    "waits": BigInts(_microseconds(sleep.wait) for _, sleep in sleepers),
                    "untils": Instants(_number(sleep.until) for _, sleep in sleepers),
                },
            )  # fmt: skip
            waits = Texts(sleep.waits_for for _, sleep in sleepers)
            connection.execute(WAITS_FOR, {"ids": names, "waits": waits})
        stands = connection.execute(STANDS, {"ids": Uuids(one.lease.id for one in mine)})
    asleep = {id for (id,) in slept.fetchall()} if slept is not None else set()
    return stopped | {
        id: Advanced(now, False, id in asleep, news, Phase(phase), by)
        for id, news, phase, by in stands.fetchall()
    }


def _stopped(
    connection: Connection, forward: Sequence[JobId], held: dict[JobId, str | None], now: datetime
) -> dict[JobId, Advanced]:
    """Those of the runs that go forward and are to begin nothing more. Asked when their jobs are ours: whoever cancels one holds that."""
    wanted = Uuids(id for id in forward if id in held)
    stands = connection.execute(STANDS, {"ids": wanted}).fetchall() if wanted else []
    known = {id: (news, Phase(phase), by) for id, news, phase, by in stands}
    found = {}
    for id in wanted:
        news, phase, by = known.get(id, (0, Phase.FORWARD, None))
        if phase.is_undone or (by or held[id]) is not None:
            found[id] = Advanced(now, False, False, news, phase, by or held[id], stopped=True)
    return found


def _write(
    connection: Connection, mine: Sequence[Advance], held: dict[JobId, str | None], now: datetime
) -> None:
    begun = [(one.lease.id, *one.begin) for one in mine if one.begin is not None]
    if begun:
        named = {
            "ids": Uuids(id for id, _, _ in begun), "names": Texts(name for _, name, _ in begun),
            "versions": Texts(version for *_, version in begun),
        }  # fmt: skip
        connection.execute(BEGIN, named | {"now": now})
    steps = [(one.lease.id, step) for one in mine for step in one.steps]
    if steps:
        connection.execute(PUT, _arrays(steps) | {"now": now})
    for run, step in steps:
        if step.undo_state:
            said = {"state": int(step.undo_state), "failures": step.undo_failures, "error": step.undo_error}
            told = {"run": run, "path": step.path, "job": step.undo_job, "now": now}
            connection.execute(PUT_UNDO, said | told)
    for one in mine:
        id, by = one.lease.id, held[one.lease.id]
        if by is not None:  # a stop order, as any job gets it: from now on it is the run's own affair
            connection.execute(CANCEL_LATER, {"id": id, "by": by})
            connection.execute(CANCEL_TOLD, {"id": id})
        if one.status is not None or one.phase is not None:
            phase = None if one.phase is None else int(one.phase)
            connection.execute(SAY, {"id": id, "status": one.status, "phase": phase, "why": one.why})
        for number, path in one.taken:
            connection.execute(TAKE, (path, id, number))


def _arrays(steps: Sequence[tuple[JobId, StepRow]]) -> dict[str, Any]:
    rows = [step for _, step in steps]
    return {
        "runs": Uuids(run for run, _ in steps), "paths": Texts(row.path for row in rows),
        "kinds": BigInts(int(row.kind) for row in rows), "names": Texts(row.name for row in rows),
        "states": BigInts(int(row.state) for row in rows), "payloads": Blobs(row.payload for row in rows),
        "results": Blobs(row.result for row in rows), "errors": Blobs(row.error for row in rows),
        "places": BigInts(-1 if row.place is None else row.place for row in rows),
        "failures": BigInts(row.failures for row in rows), "jobs": Uuids(row.job or _NONE for row in rows),
        "waits": BigInts(_microseconds(row.wait) for row in rows),
        "limits": BigInts(_microseconds(row.limit) for row in rows), "undos": Texts(row.undo or "" for row in rows),
    }  # fmt: skip


def _number(instant: datetime | None) -> int | None:
    return None if instant is None else to_number(instant)


def _microseconds(wait: timedelta | None) -> int:
    return -1 if wait is None else max(0, wait // MICROSECOND)
