"""Runs of workflows in SQLite, read: whole, to go on with them, and for those who look at them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.instants import to_instant
from lateshift.model.job import State
from lateshift.model.workflow.run import Loaded, Phase, RunRow, RunView, Signal
from lateshift.model.workflow.step import Kind, StepOutline, StepState, StepView, Undo
from lateshift.store.sqlite.advancing import STEP_COLUMNS
from lateshift.store.sqlite.database import Connection
from lateshift.store.workflow_contract import Child, ToUndo

_RUN = "id, name, version, phase, why, news, status, cancel_by, waits_for, started_at"
# Primary keys.
RUN = f"SELECT {_RUN} FROM run WHERE id = ?"
STEPS = f"SELECT {STEP_COLUMNS}, mended FROM step WHERE run = ? ORDER BY path"
STEPS_AFTER = f"""SELECT {STEP_COLUMNS}, mended FROM step WHERE run = ?1 AND path > ?2 AND (?4 IS NULL OR state = ?4)
 ORDER BY path LIMIT ?3"""
SIGNALS = "SELECT number, name, data FROM signal WHERE run = ? AND taken IS NULL ORDER BY number"
FIRST_SIGNALS = """SELECT number, name, data FROM signal WHERE run = ?1 AND number > ?2 AND taken IS NULL
 ORDER BY number LIMIT ?3"""
# One step of a run; and those of it without what they hold. Primary keys.
STEP = f"SELECT {STEP_COLUMNS}, mended FROM step WHERE run = ? AND path = ?"
OUTLINE = """SELECT path, kind, name, state, place, failures, job, due_at, complete_by, started_at, ended_at, undo, undo_state,
 undo_failures, undo_job, undone_at, mended FROM step WHERE run = ?1 AND path > ?2 AND (?4 IS NULL OR state = ?4)
 AND (?5 IS NULL OR kind = ?5) AND (?6 IS NULL OR job = ?6 OR undo_job = ?6) ORDER BY path LIMIT ?3"""
# In which ways steps of a run would be undone. Primary key.
_UNDOES = "undo IS NOT NULL AND undo_state <> 2 AND (state IN (1, 2) OR coalesce(place, 0) > 0)"
TO_UNDO = f"""SELECT min(path), undo, job, count(*) FROM (SELECT path, CASE WHEN {_UNDOES} THEN undo END AS undo,
  CASE WHEN {_UNDOES} THEN undo_job END AS job FROM step WHERE run = ?1 LIMIT ?2) GROUP BY undo, job ORDER BY 1"""
# Those that are runs under way. step_job; primary key.
RUNS_BELOW = """SELECT s.path, s.name, s.job FROM step s INDEXED BY step_job CROSS JOIN run r ON r.id = s.job
 WHERE s.run = ?1 AND s.job IS NOT NULL AND s.state = 1 ORDER BY s.path LIMIT ?2"""
# As many as hold no more than so many bytes together, and the first one in any case. Primary keys.
_FIT = """SELECT {0} FROM (SELECT {0}, sum(size) OVER (ORDER BY {0}) AS so_far, row_number() OVER (ORDER BY {0}) AS place
  FROM ({1})) WHERE so_far <= {2} OR place = 1"""
_SIZES = """SELECT path, coalesce(length(payload), 0) + coalesce(length(result), 0) + coalesce(length(error), 0)
  + coalesce(length(undo_error), 0) AS size FROM step WHERE run = ?1 AND path > ?2 AND (?4 IS NULL OR state = ?4)
  ORDER BY path LIMIT ?3"""
STEPS_WITHIN = f"""SELECT {STEP_COLUMNS}, mended FROM step WHERE run = ?1
 AND path IN ({_FIT.format("path", _SIZES, "?5")}) ORDER BY path"""
_TOLD = """SELECT number, coalesce(length(data), 0) AS size FROM signal WHERE run = ?1 AND number > ?2 AND taken IS NULL
  ORDER BY number LIMIT ?3"""
SIGNALS_WITHIN = f"""SELECT number, name, data FROM signal WHERE run = ?1
 AND number IN ({_FIT.format("number", _TOLD, "?4")}) ORDER BY number"""
# Where a job stands. Primary keys.
QUEUE_OF = "SELECT queue FROM job WHERE id = ?1 UNION ALL SELECT queue FROM settled WHERE id = ?1"

# With the job that it is, in whichever table that stands. Primary keys; run_name, run_phase.
_JOB = "SELECT state, {}, queue, batch, due_at, {} FROM {} WHERE id = ?"
JOB = _JOB.format("NULL", "NULL", "job")
SETTLED_JOB = _JOB.format("reason", "settled_at", "settled")
NEWEST = f"SELECT {_RUN} FROM run WHERE id < ?1 {{}} ORDER BY id DESC LIMIT ?2"
NEWEST_ALL = NEWEST.format("")
NEWEST_OF = NEWEST.format("AND name = ?3")
NEWEST_IN = NEWEST.format("AND phase = ?3 AND phase > 0")
NEWEST_FORWARD = NEWEST.format("AND phase = 0")
NEWEST_OF_IN = NEWEST.format("AND name = ?3 AND phase = ?4")
_LAST = UUID(int=2**128 - 1)


def load(connection: Connection, ids: Sequence[JobId], now: datetime) -> list[Loaded]:
    found = [_loaded(connection, id, now) for id in ids]
    return [one for one in found if one is not None]


def told(connection: Connection, id: JobId, limit: int, after: int, most: int | None) -> list[Signal]:
    asked: tuple[str, tuple[Any, ...]] = FIRST_SIGNALS, (id.bytes, after, limit)
    if most is not None:
        asked = SIGNALS_WITHIN, (id.bytes, after, limit, most)
    return [Signal(*row) for row in connection.execute(*asked).fetchall()]


def begun(connection: Connection, ids: Sequence[JobId]) -> dict[JobId, RunRow]:
    rows = [row for id in dict.fromkeys(ids) for row in connection.execute(RUN, (id.bytes,)).fetchall()]
    return {run.id: run for run in map(_run_of, rows)}


def view(connection: Connection, id: JobId) -> RunView | None:
    return _view(connection, id, (STEPS, (id.bytes,)))


def look(
    connection: Connection, id: JobId, after: str, limit: int, state: StepState | None, most: int | None
) -> RunView | None:
    told = (id.bytes, after, limit, None if state is None else int(state))
    return _view(connection, id, (STEPS_AFTER, told) if most is None else (STEPS_WITHIN, (*told, most)))


def outline(
    connection: Connection,
    id: JobId,
    after: str,
    limit: int,
    state: StepState | None,
    kind: Kind | None,
    job: JobId | None,
) -> list[StepOutline]:
    narrowed = (
        None if state is None else int(state), None if kind is None else int(kind), None if job is None else job.bytes
    )  # fmt: skip
    rows = connection.execute(OUTLINE, (id.bytes, after, limit, *narrowed)).fetchall()
    return [_outline_of(row) for row in rows]


def to_undo(connection: Connection, ids: Sequence[JobId], limit: int) -> list[ToUndo]:
    found: list[ToUndo] = []
    for id in ids:
        rows = connection.execute(TO_UNDO, (id.bytes, limit)).fetchall()
        found += [
            ToUndo(id, path, undo, None if job is None else UUID(bytes=job), steps)
            for path, undo, job, steps in rows
        ]
        limit -= sum(steps for *_, steps in rows)
        if limit <= 0:
            break
    return found


def children(connection: Connection, ids: Sequence[JobId], limit: int) -> list[Child]:
    found: list[Child] = []
    for id in ids:
        rows = connection.execute(RUNS_BELOW, (id.bytes, limit - len(found))).fetchall()
        found += [Child(id, path, name, UUID(bytes=job)) for path, name, job in rows]
        if len(found) >= limit:
            break
    return found


def step(connection: Connection, id: JobId, path: str) -> StepView | None:
    rows = connection.execute(STEP, (id.bytes, path)).fetchall()
    return _step_of(rows[0]) if rows else None


def queues_of(connection: Connection, jobs: Sequence[JobId]) -> dict[JobId, str]:
    found = {id: connection.execute(QUEUE_OF, (id.bytes,)).fetchall() for id in dict.fromkeys(jobs)}
    return {id: rows[0][0] for id, rows in found.items() if rows}


def newest(
    connection: Connection, before: JobId | None, limit: int, name: str | None, phase: Phase | None
) -> list[RunView]:
    start = ((before or _LAST).bytes, limit)
    asked: tuple[str, tuple[Any, ...]] = NEWEST_ALL, start
    if name is not None and phase is not None:
        asked = NEWEST_OF_IN, (*start, name, int(phase))
    elif name is not None:
        asked = NEWEST_OF, (*start, name)
    elif phase is Phase.FORWARD:
        asked = NEWEST_FORWARD, start
    elif phase is not None:
        asked = NEWEST_IN, (*start, int(phase))
    seen = [_with_job(connection, _run_of(row)) for row in connection.execute(*asked).fetchall()]
    return [view for view in seen if view is not None]


def _loaded(connection: Connection, id: JobId, now: datetime) -> Loaded | None:
    rows = connection.execute(RUN, (id.bytes,)).fetchall()
    if not rows:
        return None
    steps = [_step_of(row) for row in connection.execute(STEPS, (id.bytes,)).fetchall()]
    signals = [Signal(*row) for row in connection.execute(SIGNALS, (id.bytes,)).fetchall()]
    return Loaded(_run_of(rows[0]), steps, signals, now)


def _view(connection: Connection, id: JobId, asked: tuple[str, tuple[Any, ...]]) -> RunView | None:
    """`asked`: for which of its steps."""
    rows = connection.execute(RUN, (id.bytes,)).fetchall()
    return _with_job(connection, _run_of(rows[0]), asked) if rows else None


def _with_job(
    connection: Connection, run: RunRow, asked: tuple[str, tuple[Any, ...]] | None = None
) -> RunView | None:
    """`asked`: for which of its steps."""
    id = (run.id.bytes,)
    rows = connection.execute(JOB, id).fetchall() or connection.execute(SETTLED_JOB, id).fetchall()
    if not rows:
        return None
    [(state, reason, queue, parent, due_at, settled_at)] = rows
    steps = [] if asked is None else [_step_of(row) for row in connection.execute(*asked).fetchall()]
    return RunView(
        run=run, state=State(state), reason=reason, queue=queue, parent=None if parent is None else UUID(bytes=parent),
        due_at=to_instant(due_at), settled_at=_instant(settled_at), steps=steps,
    )  # fmt: skip


def _run_of(row: Sequence[Any]) -> RunRow:
    id, name, version, phase, why, news, status, cancel_by, waits_for, started_at = row
    return RunRow(
        id=UUID(bytes=id), name=name, version=version, phase=Phase(phase), why=why, news=news, status=status,
        cancel_by=cancel_by, waits_for=waits_for, started_at=to_instant(started_at),
    )  # fmt: skip


_KINDS, _STATES, _UNDOS = tuple(Kind), {int(state): state for state in StepState}, tuple(Undo)


def _step_of(row: Sequence[Any]) -> StepView:
    return StepView(
        path=row[1], kind=_KINDS[row[2]], name=row[3], state=_STATES[row[4]], payload=row[5], result=row[6], error=row[7],
        place=row[8], failures=row[9], job=None if row[10] is None else UUID(bytes=row[10]), due_at=_instant(row[11]),
        complete_by=_instant(row[12]), started_at=to_instant(row[13]), ended_at=_instant(row[14]), undo=row[15],
        undo_state=_UNDOS[row[16]], undo_failures=row[17], undo_error=row[18],
        undo_job=None if row[19] is None else UUID(bytes=row[19]), undone_at=_instant(row[20]), mended=bool(row[21]),
    )  # fmt: skip


def _outline_of(row: Sequence[Any]) -> StepOutline:
    return StepOutline(
        path=row[0], kind=_KINDS[row[1]], name=row[2], state=_STATES[row[3]], place=row[4], failures=row[5],
        job=None if row[6] is None else UUID(bytes=row[6]), due_at=_instant(row[7]), complete_by=_instant(row[8]),
        started_at=to_instant(row[9]), ended_at=_instant(row[10]), undo=row[11], undo_state=_UNDOS[row[12]], undo_failures=row[13],
        undo_job=None if row[14] is None else UUID(bytes=row[14]), undone_at=_instant(row[15]), mended=bool(row[16]),
    )  # fmt: skip


def _instant(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else to_instant(microseconds)
