"""Workflows in SQLite."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.job import STRETCHES, Line, NewJob
from lateshift.model.pipeline.progress import Tally
from lateshift.model.workflow.run import (
    SIGNALS_MOST,
    Advance,
    Advanced,
    Loaded,
    Phase,
    RunRow,
    RunView,
    Signal,
)
from lateshift.model.workflow.step import LATE, Kind, StepOutline, StepState, StepView
from lateshift.store.contract import Wakes
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.sqlite import advancing, deeds, enqueue, mending, run_views, runs, tallying
from lateshift.store.sqlite.database import Database
from lateshift.store.sqlite.locks import TERM
from lateshift.store.workflow_contract import (
    Child,
    Kept,
    LateStep,
    Told,
    ToUndo,
    is_ready,
    known_by_key,
    refused,
    step_resubmitted,
)

# Primary keys; signal_key.
# Whether a job that has not ended, or has, is a run: it has begun as one, or has as many attempts as only runs have.
_IS_RUN = f"SELECT attempts = {STRETCHES} OR EXISTS (SELECT 1 FROM run r WHERE r.id = j.id) FROM {{}} j WHERE id = ?"
UNSETTLED = _IS_RUN.format("job")
SETTLED = _IS_RUN.format("settled")
IS_THERE = "SELECT 1 FROM job WHERE id = ?1 UNION ALL SELECT 1 FROM settled WHERE id = ?1"
KEY_USED = "SELECT name, data FROM signal INDEXED BY signal_key WHERE run = ? AND key = ?"
LAST_SIGNAL = "SELECT coalesce(max(number), 0), count(*) FROM signal WHERE run = ?"
KEEP_SIGNAL = "INSERT INTO signal (run, number, name, data, key, at) VALUES (?, ?, ?, ?, ?, ?)"

# Steps past their complete-by, the latest first to be done by. step_late; primary key.
OVERDUE_STEPS = """SELECT run, path, name, job FROM step WHERE job IS NOT NULL AND state = 1 AND complete_by <= ?
 ORDER BY complete_by LIMIT ?"""
FAIL_LATE = """UPDATE step SET state = 3, error = ?3, failures = failures + 1, ended_at = ?4
 WHERE run = ?1 AND path = ?2 AND state = 1"""

# What operators do. Primary keys.
DIRECT = """UPDATE run SET why = CASE WHEN ?2 = 0 AND phase = 3 THEN why ELSE ?3 END,
 phase = CASE WHEN ?2 = 0 AND phase = 3 OR EXISTS (SELECT 1 FROM step WHERE run = ?1 AND undo_state > 0) THEN 1 ELSE ?2 END
 WHERE id = ?1 AND (?2 <> 0 OR phase <> 1) AND EXISTS (SELECT 1 FROM job WHERE id = ?1) RETURNING 1"""
FORWARD = "UPDATE run SET phase = 0, why = NULL WHERE id = ?"
MEND = """UPDATE step SET state = 1, error = NULL, started_at = ?4, ended_at = NULL, place = NULL, job = NULL, complete_by = NULL, failures = 0,
 payload = coalesce(?3, payload), mended = CASE WHEN ?3 IS NULL THEN mended ELSE 1 END WHERE run = ?1 AND path = ?2 AND state = 4
 AND EXISTS (SELECT 1 FROM run WHERE id = ?1 AND phase NOT IN (1, 3) AND cancel_by IS NULL)
 AND EXISTS (SELECT 1 FROM job WHERE id = ?1) RETURNING path"""
# Steps that hold it begin anew, if it goes forward. Primary keys.
TRY_AGAIN = """UPDATE step SET state = 1, error = NULL, started_at = ?2, ended_at = NULL, place = NULL, job = NULL, complete_by = NULL, failures = 0
 WHERE run = ?1 AND state = 4 AND EXISTS (SELECT 1 FROM run WHERE id = ?1 AND phase = 0 AND cancel_by IS NULL) RETURNING path"""


class SqliteWorkflows:
    """See workflow_contract.Workflows."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def advance(self, advances: Sequence[Advance]) -> list[Advanced]:
        crashpoint("workflow.before_advance")
        jobs: list[NewJob] = []
        lines: set[Line] = set()
        with self._database.write() as connection:
            now = self._clock.microseconds()
            answers = []
            for one in advances:
                answer = advancing.advance(connection, one, now, jobs)
                answers.append(answer)
                if answer.asleep and is_ready(one):
                    lines.add(Line(one.lease.queue, one.lease.lane))
            fresh = [
                job
                for job in jobs
                if job.first or not connection.execute(IS_THERE, (job.id.bytes,)).fetchall()
            ]
            if fresh:
                enqueue.run(connection, enqueue.statements(fresh, now))
            crashpoint("workflow.before_commit")
        crashpoint("workflow.after_commit")
        self._wakes.hint(lines | lines_of(jobs))
        return answers

    def load(self, ids: Sequence[JobId]) -> list[Loaded]:
        with self._database.read() as connection:
            return run_views.load(connection, ids, self._clock.now())

    def overdue(self, *, term: int, limit: int) -> list[LateStep]:
        now = self._clock.microseconds()
        with self._database.read() as connection:
            if not connection.execute(OVERDUE_STEPS, (now, 1)).fetchall():
                return []  # the supervisor asks every second
        lines: set[Line] = set()
        with self._database.write() as connection:
            if not connection.execute(TERM, (term,)).fetchall():
                return []
            found = connection.execute(OVERDUE_STEPS, (now, limit)).fetchall()
            for run, path, _, _ in found:
                connection.execute(FAIL_LATE, (run, path, LATE, now))
                lines |= runs.wake(connection, run, now)
            crashpoint("workflow.before_late_commit")
        self._wakes.hint(lines)
        return _late(found)

    def late_steps(self, limit: int) -> list[LateStep]:
        with self._database.read() as connection:
            return _late(connection.execute(OVERDUE_STEPS, (self._clock.microseconds(), limit)).fetchall())

    def signal(self, id: JobId, name: str, data: bytes | None, *, key: str | None, by: str) -> Told:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            waiting = connection.execute(UNSETTLED, (id.bytes,)).fetchall()
            kept = [] if key is None else connection.execute(KEY_USED, (id.bytes, key)).fetchall()
            if (known := known_by_key(kept, name, data)) is not None:
                return known
            refusal = refused(waiting, [] if waiting else connection.execute(SETTLED, (id.bytes,)).fetchall())
            if refusal is not None:
                return refusal
            [(last, count)] = connection.execute(LAST_SIGNAL, (id.bytes,)).fetchall()
            if count >= SIGNALS_MOST:
                return Told.FULL
            connection.execute(KEEP_SIGNAL, (id.bytes, last + 1, name, data, key, now))
            lines = runs.wake(connection, id.bytes, now)
            deeds.write(connection, now, "signal", [f"{id} {name}"], by)
        self._wakes.hint(lines)
        return Told.KEPT

    def told(self, id: JobId, limit: int, *, after: int = 0, most: int | None = None) -> list[Signal]:
        with self._database.read() as connection:
            return run_views.told(connection, id, limit, after, most)

    def begun(self, ids: Sequence[JobId]) -> dict[JobId, RunRow]:
        with self._database.read() as connection:
            return run_views.begun(connection, ids)

    def view(self, id: JobId) -> RunView | None:
        with self._database.read() as connection:
            return run_views.view(connection, id)

    def look(
        self,
        id: JobId,
        *,
        after: str = "",
        limit: int,
        state: StepState | None = None,
        most: int | None = None,
    ) -> RunView | None:
        with self._database.read() as connection:
            return run_views.look(connection, id, after, limit, state, most)

    def outline(
        self,
        id: JobId,
        *,
        after: str = "",
        limit: int,
        state: StepState | None = None,
        kind: Kind | None = None,
        job: JobId | None = None,
    ) -> list[StepOutline]:
        with self._database.read() as connection:
            return run_views.outline(connection, id, after, limit, state, kind, job)

    def to_undo(self, ids: Sequence[JobId], *, limit: int) -> list[ToUndo]:
        with self._database.read() as connection:
            return run_views.to_undo(connection, ids, limit)

    def children(self, ids: Sequence[JobId], *, limit: int) -> list[Child]:
        with self._database.read() as connection:
            return run_views.children(connection, ids, limit)

    def step(self, id: JobId, path: str) -> StepView | None:
        with self._database.read() as connection:
            return run_views.step(connection, id, path)

    def queues_of(self, jobs: Sequence[JobId]) -> dict[JobId, str]:
        with self._database.read() as connection:
            return run_views.queues_of(connection, jobs)

    def newest(
        self, before: JobId | None, limit: int, *, name: str | None = None, phase: Phase | None = None
    ) -> list[RunView]:
        with self._database.read() as connection:
            return run_views.newest(connection, before, limit, name, phase)

    def direct(self, id: JobId, phase: Phase, *, why: str, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            if not connection.execute(DIRECT, (id.bytes, int(phase), why)).fetchall():
                return False
            lines: set[Line] = set()
            if phase is Phase.FORWARD:
                jobs = mending.held(connection, id.bytes)
                anew = connection.execute(TRY_AGAIN, (id.bytes, now)).fetchall()
                lines = mending.resolve(connection, jobs, anew, step_resubmitted(by), now)
            deeds.write(connection, now, f"workflow {phase.label}", [str(id)], by)
            lines |= runs.wake(connection, id.bytes, now)
        self._wakes.hint(lines)
        return True

    def mend(self, id: JobId, path: str, payload: bytes | None, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            jobs = mending.held(connection, id.bytes)
            anew = connection.execute(MEND, (id.bytes, path, payload, now)).fetchall()
            if not anew:
                return False
            connection.execute(FORWARD, (id.bytes,))
            lines = mending.resolve(connection, jobs, anew, step_resubmitted(by), now)
            deeds.write(connection, now, "resubmit step", [f"{id} {path}"], by)
            lines |= runs.wake(connection, id.bytes, now)
        self._wakes.hint(lines)
        return True

    def tally(self, name: str, queue: str, limit: int | None = None) -> Tally:
        with self._database.snapshot() as connection:
            return tallying.tally(connection, name, queue, limit)

    def pipelines(self, name: str | None = None, *, limit: int, after: str = "") -> list[Kept]:
        with self._database.read() as connection:
            return tallying.kept(connection, name, limit, after)


def _late(found: Sequence[Sequence[Any]]) -> list[LateStep]:
    return [LateStep(UUID(bytes=run), path, name, UUID(bytes=job)) for run, path, name, job in found]
