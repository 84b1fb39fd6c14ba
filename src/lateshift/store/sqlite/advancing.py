"""Runs that go a step on, in SQLite: many in one commit."""

import sys
from datetime import datetime, timedelta
from typing import Any

from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND, to_instant, to_number
from lateshift.model.job import NewJob
from lateshift.model.workflow.run import (
    LOST,
    Advance,
    Advanced,
    Phase,
)
from lateshift.model.workflow.step import StepRow
from lateshift.store.sqlite.database import Connection

# Whether the lease holds, and whether it is to be cancelled. Primary key.
MINE = "SELECT cancel_by FROM job WHERE id = ? AND fence = ? AND state = 2"
# What it was told before it began is news. Primary keys.
BEGIN = """INSERT INTO run (id, name, version, news, started_at)
 VALUES (?1, ?2, ?3, (SELECT count(*) FROM signal WHERE run = ?1), ?4) ON CONFLICT DO NOTHING"""
SAY = """UPDATE run SET status = coalesce(?2, status), phase = CASE WHEN ?3 = 2 AND phase IN (1, 3) THEN phase ELSE coalesce(?3, phase) END,
 why = CASE WHEN ?3 IS NULL OR ?3 = 2 AND phase IN (1, 3) THEN why ELSE ?4 END WHERE id = ?1"""
CANCEL_LATER = "UPDATE run SET cancel_by = coalesce(cancel_by, ?2) WHERE id = ?1"
CANCEL_TOLD = "UPDATE job SET cancel_by = NULL WHERE id = ?"
# A step as it is now. One that has completed is written once; only how it is undone still changes, of whatever has its place
# among those that were done. One whose job has failed does not run again by being begun a second time, as after a lost answer. Primary key.
STEP_COLUMNS = """run, path, kind, name, state, payload, result, error, place, failures, job, due_at, complete_by, started_at, ended_at,
 undo, undo_state, undo_failures, undo_error, undo_job, undone_at"""
PUT = f"""INSERT INTO step ({STEP_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
 CASE WHEN ?5 > 1 THEN ?14 END, ?15, ?16, ?17, ?18, ?19, CASE WHEN ?16 = 2 THEN ?14 END)
 ON CONFLICT (run, path) DO UPDATE SET state = excluded.state, payload = coalesce(excluded.payload, payload),
 result = excluded.result, error = excluded.error, place = excluded.place, failures = excluded.failures, job = excluded.job,
 due_at = coalesce(excluded.due_at, due_at),
 complete_by = CASE WHEN excluded.job IS job THEN coalesce(excluded.complete_by, complete_by) ELSE excluded.complete_by END,
 ended_at = excluded.ended_at, undo = excluded.undo
 WHERE state <> 2 AND NOT (state > 2 AND excluded.state = 1 AND job IS NOT NULL AND excluded.job IS job)"""
PUT_UNDO = """UPDATE step SET undo_state = ?3, undo_failures = ?4, undo_error = ?5, undo_job = ?6,
 undone_at = CASE WHEN ?3 = 2 THEN ?7 END WHERE run = ?1 AND path = ?2 AND state > 1 AND place > 0 AND undo_state <> 2"""
TAKE = "UPDATE signal SET taken = ?3 WHERE run = ?1 AND number = ?2 AND taken IS NULL"
# The lease is given up, unless something came that it does not know of. Primary keys.
SLEEP = """UPDATE job SET state = CASE WHEN ?3 > ?4 THEN 0 ELSE 1 END, due_at = ?3, was_due = NULL, attempt = attempt - 1, losses = 0,
 lane = CASE lane WHEN 3 THEN 0 ELSE lane END, tenant = CASE lane WHEN 3 THEN NULL ELSE tenant END,
 holder = NULL, leased_at = NULL, complete_by = NULL
 WHERE id = ?1 AND state = 2 AND (SELECT news FROM run WHERE id = ?1) = ?2 RETURNING queue, lane, state"""
WAITS_FOR = "UPDATE run SET waits_for = ? WHERE id = ?"
STANDS = "SELECT news, phase, cancel_by FROM run WHERE id = ?"


def advance(connection: Connection, one: Advance, now: int, jobs: list[NewJob]) -> Advanced:
    id = one.lease.id.bytes
    held = connection.execute(MINE, (id, one.lease.fence)).fetchall()
    if not held:
        return LOST
    if one.forward and (stopped := _stopped(connection, id, held[0][0], now)) is not None:
        return stopped
    if one.begin is not None:
        connection.execute(BEGIN, (id, *one.begin, now))
    if held[0][0] is not None:  # a stop order, as any job gets it: from now on it is the run's own affair
        connection.execute(CANCEL_LATER, (id, held[0][0]))
        connection.execute(CANCEL_TOLD, (id,))
    if one.status is not None or one.phase is not None:
        phase = None if one.phase is None else int(one.phase)
        connection.execute(SAY, (id, one.status, phase, one.why))
    connection.executemany(PUT, [_row(id, step, now) for step in one.steps])
    undone = [step for step in one.steps if step.undo_state]
    connection.executemany(PUT_UNDO, [_undo_row(id, step, now) for step in undone])
    connection.executemany(TAKE, [(id, number, path) for number, path in one.taken])
    jobs += one.jobs
    asleep = False
    if one.sleep is not None:
        until = min(now + one.sleep.wait // MICROSECOND, _number(one.sleep.until))
        asleep = bool(connection.execute(SLEEP, (id, one.sleep.news, until, now)).fetchall())
        if asleep:
            connection.execute(WAITS_FOR, (one.sleep.waits_for, id))
    [(news, phase, cancel_by)] = connection.execute(STANDS, (id,)).fetchall()
    return Advanced(to_instant(now), False, asleep, news, Phase(phase), cancel_by)


def _stopped(connection: Connection, id: bytes, told: str | None, now: int) -> Advanced | None:
    """Of a run that is to begin nothing more. `told`: who cancelled it, if it has not heard of that."""
    stands = connection.execute(STANDS, (id,)).fetchall()
    news, phase, by = stands[0] if stands else (0, Phase.FORWARD, None)
    found = Advanced(to_instant(now), False, False, news, Phase(phase), by or told, stopped=True)
    return found if found.phase.is_undone or found.cancel_by is not None else None


def _row(run: bytes, step: StepRow, now: int) -> tuple[Any, ...]:
    return (
        run, step.path, int(step.kind), step.name, int(step.state), step.payload, step.result, step.error, step.place,
        step.failures, _bytes(step.job), _after(now, step.wait), _after(now, step.limit), now, step.undo,
        int(step.undo_state), step.undo_failures, step.undo_error, _bytes(step.undo_job),
    )  # fmt: skip


def _undo_row(run: bytes, step: StepRow, now: int) -> tuple[Any, ...]:
    kept = (int(step.undo_state), step.undo_failures, step.undo_error, _bytes(step.undo_job))
    return run, step.path, *kept, now


def _number(instant: datetime | None) -> int:
    return sys.maxsize if instant is None else to_number(instant)


def _bytes(id: JobId | None) -> bytes | None:
    return None if id is None else id.bytes


def _after(now: int, wait: timedelta | None) -> int | None:
    return None if wait is None else now + wait // MICROSECOND
