"""Runs of workflows in PostgreSQL, as part of a larger transaction: what wakes one, what cancels one, and the end of a step's
job. Whoever writes to a run holds the row of its job first."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lateshift.model import history
from lateshift.model.ids import JobId
from lateshift.model.job import STRETCHES, Line, State
from lateshift.model.outcome import RESULT_NOT_KEPT
from lateshift.model.workflow.run import GOES_ON
from lateshift.model.workflow.step import StepState, Undo, error_of_job, written_error
from lateshift.store.lines import lines_there
from lateshift.store.postgres.database import Connection

_NOW = "clock_timestamp() + %(skew)s::interval"
# Primary key.
HOLD = "SELECT 1 FROM lateshift.job WHERE id = %(id)s FOR NO KEY UPDATE"
# Something came from outside: the run knows by its news, and one that sleeps is ready. Primary keys.
NEWS = "UPDATE lateshift.run SET news = news + 1 WHERE id = %(id)s RETURNING 1"
WAKE = f"UPDATE lateshift.job SET state = 1, due_at = {_NOW} WHERE id = %(id)s AND state = 0 RETURNING queue, lane"
# Which of these jobs are runs that have begun. Primary keys.
BEGUN = "SELECT id FROM lateshift.run WHERE id = ANY(%s::uuid[])"
HOLD_ALL = "SELECT 1 FROM lateshift.job WHERE id = ANY(%s::uuid[]) ORDER BY id FOR NO KEY UPDATE"
CANCEL = """UPDATE lateshift.run r SET cancel_by = coalesce(r.cancel_by, %(by)s)
 WHERE id = %(id)s AND EXISTS (SELECT 1 FROM lateshift.job j WHERE j.id = r.id) RETURNING 1"""

# How the jobs of a run's steps ended, and those of its undos. step_job, step_undo_job; primary key.
_END = "s.path, j.state, j.result, j.reason, j.history FROM lateshift.step s JOIN lateshift.settled j"
ENDED = f"SELECT {_END} ON j.id = s.job WHERE s.run = %s AND s.job IS NOT NULL AND s.state = 1"
UNDONE = (
    f"SELECT {_END} ON j.id = s.undo_job WHERE s.run = %s AND s.undo_job IS NOT NULL AND s.undo_state = 1"
)
END = f"""UPDATE lateshift.step SET state = %(state)s, result = %(result)s, error = %(error)s, ended_at = {_NOW},
 failures = failures + %(failures)s, place = CASE WHEN %(done)s THEN
 greatest((extract(epoch FROM {_NOW}) * 1000000)::bigint,
  (SELECT coalesce(max(place), 0) + 1 FROM lateshift.step WHERE run = %(id)s)) END
 WHERE run = %(id)s AND path = %(path)s AND state = 1"""
END_UNDO = f"""UPDATE lateshift.step SET undo_state = %(state)s, undo_error = %(error)s,
 undone_at = CASE WHEN %(state)s = {int(Undo.DONE)} THEN {_NOW} END, undo_failures = undo_failures + %(failures)s
 WHERE run = %(id)s AND path = %(path)s AND undo_state = 1"""

# Which settled jobs were steps of runs. See model.workflow.run.is_step. Primary keys.
ARE_STEPS = f"""SELECT s.id FROM lateshift.settled s WHERE s.id = ANY(%s::uuid[])
 AND (SELECT true FROM lateshift.run r WHERE r.id = s.batch) IS TRUE
 AND NOT (s.attempts = {STRETCHES} AND s.reason IN {GOES_ON!r})"""
# Undone runs that are resubmitted begin from nothing. Primary keys.
RESTART = f"""SELECT r.id FROM lateshift.settled s JOIN lateshift.run r ON r.id = s.id WHERE r.id = ANY(%s::uuid[]) AND (r.phase = 1) IS TRUE
 AND s.state IN ({int(State.CANCELLED)}, {int(State.DEAD)}) AND (s.state = {int(State.CANCELLED)} OR s.reason IN ('undone', 'failed'))"""
# What could not be undone is tried again. Primary key.
UNDO_AGAIN = """UPDATE lateshift.step SET undo_state = 0, undo_failures = 0, undo_job = NULL
 WHERE run = ANY(%s::uuid[]) AND undo_state = 3"""
FORGET = (
    "DELETE FROM lateshift.step WHERE run = ANY(%s::uuid[])",
    "DELETE FROM lateshift.signal WHERE run = ANY(%s::uuid[])",
    "DELETE FROM lateshift.run WHERE id = ANY(%s::uuid[])",
)


def steps_among(connection: Connection, ids: Sequence[JobId]) -> set[JobId]:
    """Settled jobs that were steps of runs."""
    return {id for (id,) in connection.execute(ARE_STEPS, (list(ids),)).fetchall()}


def wake(connection: Connection, id: JobId, skew: timedelta) -> set[Line]:
    """Tell a run, whose job is held, that there is something new. Gives its line if it slept."""
    told = {"id": id, "skew": skew}
    if not connection.execute(NEWS, told).fetchall():
        return set()
    return set(lines_there(connection.execute(WAKE, told).fetchall()))


def cancel(
    connection: Connection, ids: Sequence[JobId], by: str, skew: timedelta
) -> tuple[set[JobId], set[Line]]:
    """Runs that have begun are not ended by others: they undo what they did. Gives which of these are such, and the lines of
    those that slept."""
    connection.execute(HOLD_ALL, (list(ids),))  # none begins meanwhile
    found: set[JobId] = set()
    lines: set[Line] = set()
    for (id,) in connection.execute(BEGUN, (list(ids),)).fetchall():
        if connection.execute(CANCEL, {"id": id, "by": by}).fetchall():
            found.add(id)
            lines |= wake(connection, id, skew)
    return found, lines


def collect(connection: Connection, id: JobId, skew: timedelta) -> set[Line]:
    """Write the ends of a run's jobs into its steps, and wake it. Nothing if this is no run."""
    connection.execute(HOLD, {"id": id})
    ended = connection.execute(ENDED, (id,)).fetchall()
    undone = connection.execute(UNDONE, (id,)).fetchall()
    for row in ended:
        state, result, error, failures, done = end_of(row)
        said = {"state": int(state), "result": result, "error": error, "failures": failures, "done": done}
        connection.execute(END, {"id": id, "path": row[0], "skew": skew, **said})
    for row in undone:
        _, _, error, failures, done = end_of(row)
        undo = Undo.DONE if done else Undo.FAILED
        said = {"state": int(undo), "error": error, "failures": failures}
        connection.execute(END_UNDO, {"id": id, "path": row[0], "skew": skew, **said})
    return wake(connection, id, skew) if ended or undone else set()


def restart(connection: Connection, ids: Sequence[JobId]) -> None:
    """Runs that are resubmitted."""
    connection.execute(UNDO_AGAIN, (list(ids),))
    found = connection.execute(RESTART, (list(ids),)).fetchall()
    if found:
        forget(connection, [id for (id,) in found])


def forget(connection: Connection, ids: Sequence[JobId]) -> None:
    for sql in FORGET:
        connection.execute(sql, (list(ids),))


def end_of(row: Sequence[Any]) -> tuple[StepState, bytes | None, bytes | None, int, bool]:
    """The state, the result, the error, whether it counts as a failure, and whether it was done all the same."""
    _, state, result, reason, kept = row
    if state == State.COMPLETED:
        return StepState.COMPLETED, result, None, 0, True
    error = written_error(
        error_of_job(State(state), reason, history.read(None if kept is None else bytes(kept)))
    )
    return StepState.FAILED, None, error, 1, reason == RESULT_NOT_KEPT
