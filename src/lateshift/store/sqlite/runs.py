"""Runs of workflows in SQLite, as part of a larger transaction: what wakes one, what cancels one, and the end of a step's job."""

from collections.abc import Iterable, Sequence
from typing import Any

from lateshift.model import history
from lateshift.model.job import STRETCHES, Line, State
from lateshift.model.outcome import RESULT_NOT_KEPT
from lateshift.model.workflow.run import GOES_ON
from lateshift.model.workflow.step import StepState, Undo, error_of_job, written_error
from lateshift.store.lines import lines_there
from lateshift.store.sqlite.database import Connection

# Something came from outside: the run knows by its news, and one that sleeps is ready. Primary keys.
NEWS = "UPDATE run SET news = news + 1 WHERE id = ? RETURNING 1"
WAKE = "UPDATE job SET state = 1, due_at = ?2 WHERE id = ?1 AND state = 0 RETURNING queue, lane"
# Primary key.
CANCEL = "UPDATE run SET cancel_by = coalesce(cancel_by, ?2) WHERE id = ?1 AND EXISTS (SELECT 1 FROM job WHERE id = ?1)"

# How the jobs of a run's steps ended, and those of its undos. step_job, step_undo_job; primary key.
_END = "SELECT s.path, j.state, j.result, j.reason, j.history FROM step s INDEXED BY {} CROSS JOIN settled j ON j.id = s.{}"
ENDED = f"{_END.format('step_job', 'job')} WHERE s.run = ? AND s.job IS NOT NULL AND s.state = 1"
UNDONE = f"{_END.format('step_undo_job', 'undo_job')} WHERE s.run = ? AND s.undo_job IS NOT NULL AND s.undo_state = 1"
END = """UPDATE step SET state = ?3, result = ?4, error = ?5, ended_at = ?6, failures = failures + ?7,
 place = CASE WHEN ?8 THEN max(?6, (SELECT coalesce(max(place), 0) + 1 FROM step WHERE run = ?1)) END
 WHERE run = ?1 AND path = ?2 AND state = 1"""
END_UNDO = """UPDATE step SET undo_state = ?3, undo_error = ?4, undone_at = ?5, undo_failures = undo_failures + ?6
 WHERE run = ?1 AND path = ?2 AND undo_state = 1"""

# Whether a settled job was a step of a run. See model.workflow.run.is_step. Primary keys.
IS_STEP = f"""SELECT 1 FROM settled s CROSS JOIN run r ON r.id = s.batch WHERE s.id = ?
 AND NOT (s.attempts = {STRETCHES} AND s.reason IN {GOES_ON!r})"""
# An undone run that is resubmitted begins from nothing. Primary keys.
RESTART = f"""SELECT id FROM run WHERE id = ?1 AND phase = 1 AND EXISTS (SELECT 1 FROM settled
 WHERE id = ?1 AND state IN ({int(State.CANCELLED)}, {int(State.DEAD)}) AND (state = {int(State.CANCELLED)} OR reason IN ('undone', 'failed')))"""
# What could not be undone is tried again. Primary key.
UNDO_AGAIN = (
    "UPDATE step SET undo_state = 0, undo_failures = 0, undo_job = NULL WHERE run = ? AND undo_state = 3"
)
FORGET = (
    "DELETE FROM step WHERE run = ?",
    "DELETE FROM signal WHERE run = ?",
    "DELETE FROM run WHERE id = ?",
)


def steps_among(connection: Connection, ids: Iterable[bytes]) -> set[bytes]:
    """Settled jobs that were steps of runs."""
    return {id for id in ids if connection.execute(IS_STEP, (id,)).fetchall()}


def wake(connection: Connection, id: bytes, now: int) -> set[Line]:
    """Tell a run that there is something new. Gives its line if it slept."""
    if not connection.execute(NEWS, (id,)).fetchall():
        return set()
    return set(lines_there(connection.execute(WAKE, (id, now)).fetchall()))


def cancel(connection: Connection, id: bytes, by: str, now: int) -> tuple[bool, set[Line]]:
    """A run that has begun is not ended by others: it undoes what it did. False if this is none."""
    before = connection.total_changes()
    connection.execute(CANCEL, (id, by))
    found = connection.total_changes() > before
    return found, wake(connection, id, now) if found else set()


def collect(connection: Connection, id: bytes, now: int) -> set[Line]:
    """Write the ends of a run's jobs into its steps, and wake it. Nothing if this is no run."""
    ended = connection.execute(ENDED, (id,)).fetchall()
    undone = connection.execute(UNDONE, (id,)).fetchall()
    connection.executemany(END, [(id, row[0], *end_of(row, now)) for row in ended])
    connection.executemany(END_UNDO, [(id, row[0], *_undo_of(row, now)) for row in undone])
    return wake(connection, id, now) if ended or undone else set()


def restart(connection: Connection, id: bytes) -> None:
    """A run that is resubmitted."""
    connection.execute(UNDO_AGAIN, (id,))
    for row in connection.execute(RESTART, (id,)).fetchall():
        forget(connection, [row])


def forget(connection: Connection, ids: Sequence[tuple[Any, ...]]) -> None:
    for sql in FORGET:
        connection.executemany(sql, ids)


def end_of(row: Sequence[Any], now: Any) -> tuple[Any, ...]:
    """The state, the result, the error, when, whether it counts as a failure, and whether it was done all the same."""
    _, state, result, reason, kept = row
    if state == State.COMPLETED:
        return int(StepState.COMPLETED), result, None, now, 0, True
    error = written_error(
        error_of_job(State(state), reason, history.read(None if kept is None else bytes(kept)))
    )
    return int(StepState.FAILED), None, error, now, 1, reason == RESULT_NOT_KEPT


def _undo_of(row: Sequence[Any], now: int) -> tuple[Any, ...]:
    _, _, error, at, failures, done = end_of(row, now)
    return int(Undo.DONE if done else Undo.FAILED), error, at if done else None, failures
