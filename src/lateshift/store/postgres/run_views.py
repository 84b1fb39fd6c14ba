"""Runs of workflows in PostgreSQL, read: whole, to go on with them, and for those who look at them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.job import State
from lateshift.model.workflow.run import Loaded, Phase, RunRow, RunView, Signal
from lateshift.model.workflow.step import Kind, StepOutline, StepState, StepView, Undo
from lateshift.store.postgres.arrays import Uuids
from lateshift.store.postgres.database import Connection
from lateshift.store.workflow_contract import Child, ToUndo

STEP_COLUMNS = """run, path, kind, name, state, payload, result, error, place, failures, job, due_at, complete_by, started_at, ended_at,
 undo, undo_state, undo_failures, undo_error, undo_job, undone_at"""
_RUN = "id, name, version, phase, why, news, status, cancel_by, waits_for, started_at"
# Primary keys.
RUNS = f"SELECT {_RUN} FROM lateshift.run WHERE id = ANY(%(ids)b::uuid[])"
STEPS = (
    f"SELECT {STEP_COLUMNS}, mended FROM lateshift.step WHERE run = ANY(%(ids)b::uuid[]) ORDER BY run, path"
)
STEPS_AFTER = f"""SELECT {STEP_COLUMNS}, mended FROM lateshift.step WHERE run = %(id)s AND path > %(after)s
 AND (%(state)s::smallint IS NULL OR state = %(state)s::smallint) ORDER BY path LIMIT %(limit)s"""
SIGNALS = """SELECT run, number, name, data FROM lateshift.signal WHERE run = ANY(%(ids)b::uuid[]) AND taken IS NULL
 ORDER BY run, number"""
FIRST_SIGNALS = """SELECT number, name, data FROM lateshift.signal WHERE run = %(id)s AND number > %(after)s AND taken IS NULL
 ORDER BY number LIMIT %(limit)s"""
# One step of a run; and those of it without what they hold. Primary keys.
STEP = f"SELECT {STEP_COLUMNS}, mended FROM lateshift.step WHERE run = %s AND path = %s"
OUTLINE = """SELECT path, kind, name, state, place, failures, job, due_at, complete_by, started_at, ended_at, undo, undo_state,
 undo_failures, undo_job, undone_at, mended FROM lateshift.step WHERE run = %(id)s AND path > %(after)s
 AND (%(state)s::smallint IS NULL OR state = %(state)s::smallint) AND (%(kind)s::smallint IS NULL OR kind = %(kind)s::smallint)
 AND (%(job)s::uuid IS NULL OR job = %(job)s::uuid OR undo_job = %(job)s::uuid) ORDER BY path LIMIT %(limit)s"""
# In which ways steps of runs would be undone. Primary key.
_UNDOES = "undo IS NOT NULL AND undo_state <> 2 AND (state IN (1, 2) OR coalesce(place, 0) > 0)"
TO_UNDO = f"""SELECT run, min(path), undo, job, count(*) FROM (SELECT run, path, CASE WHEN {_UNDOES} THEN undo END AS undo,
  CASE WHEN {_UNDOES} THEN undo_job END AS job FROM lateshift.step WHERE run = ANY(%(ids)b::uuid[]) LIMIT %(limit)s) looked_at
 GROUP BY run, undo, job ORDER BY 1, 2"""
# Those that are runs under way, of one run after the other: of all at once they would be looked for among all steps under way. step_job; primary key.
RUNS_BELOW = """SELECT s.run, s.path, s.name, s.job FROM unnest(%(ids)b::uuid[]) AS of (run) CROSS JOIN LATERAL
 (SELECT run, path, name, job FROM lateshift.step WHERE run = of.run AND job IS NOT NULL AND state = 1 OFFSET 0) s
 JOIN lateshift.run r ON r.id = s.job ORDER BY s.run, s.path LIMIT %(limit)s"""
# As many as hold no more than so many bytes together, and the first one in any case. Primary keys.
_FIT = """SELECT {0} FROM (SELECT {0}, sum(size) OVER (ORDER BY {0}) AS so_far, row_number() OVER (ORDER BY {0}) AS place
  FROM ({1}) sized) summed WHERE so_far <= %(most)s::bigint OR place = 1"""
_SIZES = """SELECT path, coalesce(octet_length(payload), 0) + coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0)
  + coalesce(octet_length(undo_error), 0) AS size FROM lateshift.step WHERE run = %(id)s AND path > %(after)s
  AND (%(state)s::smallint IS NULL OR state = %(state)s::smallint) ORDER BY path LIMIT %(limit)s"""
STEPS_WITHIN = f"""SELECT {STEP_COLUMNS}, mended FROM lateshift.step WHERE run = %(id)s
 AND path IN ({_FIT.format("path", _SIZES)}) ORDER BY path"""
_TOLD = """SELECT number, coalesce(octet_length(data), 0) AS size FROM lateshift.signal WHERE run = %(id)s AND number > %(after)s
  AND taken IS NULL ORDER BY number LIMIT %(limit)s"""
SIGNALS_WITHIN = f"""SELECT number, name, data FROM lateshift.signal WHERE run = %(id)s
 AND number IN ({_FIT.format("number", _TOLD)}) ORDER BY number"""
# Where jobs stand. Primary keys.
QUEUES_OF = """SELECT id, queue FROM lateshift.job WHERE id = ANY(%(ids)b::uuid[])
 UNION ALL SELECT id, queue FROM lateshift.settled WHERE id = ANY(%(ids)b::uuid[])"""
NOW = "SELECT clock_timestamp() + %(skew)s::interval"

# With the job that it is, in whichever table that stands. Primary keys; run_name, run_phase.
JOBS = """SELECT id, state, NULL AS reason, queue, batch, due_at, NULL::timestamptz AS settled_at FROM lateshift.job
  WHERE id = ANY(%(ids)b::uuid[])
 UNION ALL SELECT id, state, reason, queue, batch, due_at, settled_at FROM lateshift.settled WHERE id = ANY(%(ids)b::uuid[])"""
NEWEST = f"SELECT {_RUN} FROM lateshift.run WHERE id < %(before)s {{}} ORDER BY id DESC LIMIT %(limit)s"
NEWEST_ALL = NEWEST.format("")
NEWEST_OF = NEWEST.format("AND name = %(name)s")
NEWEST_IN = NEWEST.format("AND phase = %(phase)s AND phase > 0")
NEWEST_FORWARD = NEWEST.format("AND phase = 0")
NEWEST_OF_IN = NEWEST.format("AND name = %(name)s AND phase = %(phase)s")
_LAST = UUID(int=2**128 - 1)


def load(connection: Connection, ids: Sequence[JobId], skew: timedelta) -> list[Loaded]:
    """The news first: what comes between this and the steps is then news once more, and nothing is slept over."""
    asked = {"ids": Uuids(ids)}
    with connection.pipeline():
        clock = connection.execute(NOW, {"skew": skew})
        found = connection.execute(RUNS, asked)
        kept = connection.execute(STEPS, asked)
        told = connection.execute(SIGNALS, asked)
    steps: dict[JobId, list[StepView]] = {}
    for row in kept.fetchall():
        steps.setdefault(row[0], []).append(_step_of(row))
    signals: dict[JobId, list[Signal]] = {}
    for run, number, name, data in told.fetchall():
        signals.setdefault(run, []).append(Signal(number, name, data))
    [(now,)] = clock.fetchall()
    rows = [_run_of(row) for row in found.fetchall()]
    return [Loaded(run, steps.get(run.id, []), signals.get(run.id, []), now) for run in rows]


def told(connection: Connection, id: JobId, limit: int, after: int, most: int | None) -> list[Signal]:
    asked = {"id": id, "limit": limit, "after": after, "most": most}
    sql = FIRST_SIGNALS if most is None else SIGNALS_WITHIN
    return [Signal(*row) for row in connection.execute(sql, asked).fetchall()]


def begun(connection: Connection, ids: Sequence[JobId]) -> dict[JobId, RunRow]:
    rows = connection.execute(RUNS, {"ids": Uuids(ids)}).fetchall()
    return {run.id: run for run in map(_run_of, rows)}


def view(connection: Connection, id: JobId) -> RunView | None:
    return _view(connection, id, STEPS, {"ids": Uuids([id])})


def look(
    connection: Connection, id: JobId, after: str, limit: int, state: StepState | None, most: int | None
) -> RunView | None:
    asked = _asked(id, after, limit, state) | {"most": most}
    return _view(connection, id, STEPS_AFTER if most is None else STEPS_WITHIN, asked)


def outline(
    connection: Connection,
    id: JobId,
    after: str,
    limit: int,
    state: StepState | None,
    kind: Kind | None,
    job: JobId | None,
) -> list[StepOutline]:
    asked = _asked(id, after, limit, state) | {"kind": None if kind is None else int(kind), "job": job}
    return [_outline_of(row) for row in connection.execute(OUTLINE, asked).fetchall()]


def to_undo(connection: Connection, ids: Sequence[JobId], limit: int) -> list[ToUndo]:
    rows = connection.execute(TO_UNDO, {"ids": Uuids(ids), "limit": limit}).fetchall()
    return [ToUndo(*row) for row in rows]


def children(connection: Connection, ids: Sequence[JobId], limit: int) -> list[Child]:
    rows = connection.execute(RUNS_BELOW, {"ids": Uuids(ids), "limit": limit}).fetchall()
    return [Child(*row) for row in rows]


def step(connection: Connection, id: JobId, path: str) -> StepView | None:
    rows = connection.execute(STEP, (id, path)).fetchall()
    return _step_of(rows[0]) if rows else None


def queues_of(connection: Connection, jobs: Sequence[JobId]) -> dict[JobId, str]:
    return dict(connection.execute(QUEUES_OF, {"ids": Uuids(jobs)}).fetchall())


def newest(
    connection: Connection, before: JobId | None, limit: int, name: str | None, phase: Phase | None
) -> list[RunView]:
    asked = {
        "before": before or _LAST, "limit": limit, "name": name, "phase": None if phase is None else int(phase)
    }  # fmt: skip
    if name is not None and phase is not None:
        sql = NEWEST_OF_IN
    elif name is not None:
        sql = NEWEST_OF
    elif phase is not None:
        sql = NEWEST_FORWARD if phase is Phase.FORWARD else NEWEST_IN
    else:
        sql = NEWEST_ALL
    found = [_run_of(row) for row in connection.execute(sql, asked).fetchall()]
    return _views(connection, found, {})


def _asked(id: JobId, after: str, limit: int, state: StepState | None) -> dict[str, Any]:
    return {"id": id, "after": after, "limit": limit, "state": None if state is None else int(state)}


def _view(connection: Connection, id: JobId, sql: str, asked: dict[str, Any]) -> RunView | None:
    """`sql`: for which of its steps."""
    with connection.pipeline():
        found = connection.execute(RUNS, {"ids": Uuids([id])})
        kept = connection.execute(sql, asked, binary=True)  # as text what they hold is twice as long
    steps = {id: [_step_of(row) for row in kept.fetchall()]}
    seen = _views(connection, [_run_of(row) for row in found.fetchall()], steps)
    return seen[0] if seen else None


def _views(
    connection: Connection, found: Sequence[RunRow], steps: dict[JobId, list[StepView]]
) -> list[RunView]:
    asked = {"ids": Uuids(run.id for run in found)}
    jobs = {row[0]: row[1:] for row in connection.execute(JOBS, asked).fetchall()}
    views: list[RunView] = []
    for run in found:
        if run.id in jobs:
            state, reason, queue, parent, due_at, settled_at = jobs[run.id]
            views.append(
                RunView(
                    run=run, state=State(state), reason=reason, queue=queue, parent=parent, due_at=due_at,
                    settled_at=settled_at, steps=steps.get(run.id, []),
                )
            )  # fmt: skip
    return views


def _run_of(row: Sequence[Any]) -> RunRow:
    id, name, version, phase, why, news, status, cancel_by, waits_for, started_at = row
    return RunRow(
        id=id, name=name, version=version, phase=Phase(phase), why=why, news=news, status=status, cancel_by=cancel_by,
        waits_for=waits_for, started_at=started_at,
    )  # fmt: skip


_KINDS, _STATES, _UNDOS = tuple(Kind), {int(state): state for state in StepState}, tuple(Undo)


def _step_of(row: Sequence[Any]) -> StepView:
    return StepView(
        path=row[1], kind=_KINDS[row[2]], name=row[3], state=_STATES[row[4]], payload=row[5], result=row[6], error=row[7],
        place=row[8], failures=row[9], job=row[10], due_at=row[11], complete_by=row[12], started_at=row[13], ended_at=row[14],
        undo=row[15], undo_state=_UNDOS[row[16]], undo_failures=row[17], undo_error=row[18], undo_job=row[19],
        undone_at=row[20], mended=row[21],
    )  # fmt: skip


def _outline_of(row: Sequence[Any]) -> StepOutline:
    return StepOutline(
        path=row[0], kind=_KINDS[row[1]], name=row[2], state=_STATES[row[3]], place=row[4], failures=row[5], job=row[6], due_at=row[7],
        complete_by=row[8], started_at=row[9], ended_at=row[10], undo=row[11], undo_state=_UNDOS[row[12]], undo_failures=row[13],
        undo_job=row[14], undone_at=row[15], mended=row[16],
    )  # fmt: skip
