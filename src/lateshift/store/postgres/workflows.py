"""Workflows in PostgreSQL."""

from collections.abc import Sequence
from typing import Any

from lateshift.model.ids import JobId
from lateshift.model.job import STRETCHES, Line
from lateshift.model.pipeline.progress import Tally
from lateshift.model.workflow.run import (
    LOST,
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
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.postgres import advancing, mending, run_views, runs, tallying
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.locks import TERM
from lateshift.store.postgres.wakes import NotifyWakes
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

_NOW = "clock_timestamp() + %(skew)s::interval"
# Primary keys; signal_key.
# Whether a job that has not ended, or has, is a run: it has begun as one, or has as many attempts as only runs have.
_IS_RUN = f"""SELECT attempts = {STRETCHES} OR EXISTS (SELECT 1 FROM lateshift.run r WHERE r.id = j.id)
 FROM lateshift.{{}} j WHERE id = %(id)s"""
UNSETTLED = f"{_IS_RUN.format('job')} FOR NO KEY UPDATE"
SETTLED = _IS_RUN.format("settled")
KEY_USED = "SELECT name, data FROM lateshift.signal WHERE run = %s AND key = %s"
LAST_SIGNAL = "SELECT coalesce(max(number), 0), count(*) FROM lateshift.signal WHERE run = %s"
KEEP_SIGNAL = f"""INSERT INTO lateshift.signal (run, number, name, data, key, at)
 VALUES (%(id)s, %(number)s, %(name)s, %(data)s, %(key)s, {_NOW})"""

# Steps past their complete-by, the latest first to be done by. step_late; primary key.
OVERDUE_STEPS = f"""SELECT run, path, name, job FROM lateshift.step WHERE job IS NOT NULL AND state = 1
 AND complete_by <= (SELECT {_NOW}) ORDER BY complete_by LIMIT %(limit)s"""
FAIL_LATE = f"""UPDATE lateshift.step SET state = 3, error = %(error)s, failures = failures + 1, ended_at = {_NOW}
 WHERE run = %(id)s AND path = %(path)s AND state = 1 RETURNING 1"""

# What operators do. Primary keys.
DIRECT = """UPDATE lateshift.run SET why = CASE WHEN %(phase)s = 0 AND phase = 3 THEN why ELSE %(why)s END,
 phase = CASE WHEN %(phase)s = 0 AND phase = 3 OR EXISTS
  (SELECT 1 FROM lateshift.step WHERE run = %(id)s AND undo_state > 0) THEN 1 ELSE %(phase)s END
 WHERE id = %(id)s AND (%(phase)s <> 0 OR phase <> 1) AND EXISTS (SELECT 1 FROM lateshift.job j WHERE j.id = %(id)s) RETURNING 1"""
FORWARD = "UPDATE lateshift.run SET phase = 0, why = NULL WHERE id = %(id)s"
MEND = f"""UPDATE lateshift.step SET state = 1, error = NULL, started_at = {_NOW}, ended_at = NULL, place = NULL, job = NULL, complete_by = NULL, failures = 0,
 payload = coalesce(%(payload)s, payload), mended = mended OR %(payload)s::bytea IS NOT NULL WHERE run = %(id)s AND path = %(path)s AND state = 4
 AND EXISTS (SELECT 1 FROM lateshift.run WHERE id = %(id)s AND phase NOT IN (1, 3) AND cancel_by IS NULL)
 AND EXISTS (SELECT 1 FROM lateshift.job j WHERE j.id = %(id)s) RETURNING path"""
# Steps that hold it begin anew, if it goes forward. Primary keys.
TRY_AGAIN = f"""UPDATE lateshift.step SET state = 1, error = NULL, started_at = {_NOW}, ended_at = NULL, place = NULL, job = NULL, complete_by = NULL, failures = 0
 WHERE run = %(id)s AND state = 4 AND EXISTS (SELECT 1 FROM lateshift.run WHERE id = %(id)s AND phase = 0 AND cancel_by IS NULL)
 RETURNING path"""


class PostgresWorkflows:
    """See workflow_contract.Workflows."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def advance(self, advances: Sequence[Advance]) -> list[Advanced]:
        crashpoint("workflow.before_advance")

        def work(connection: Connection, again: bool) -> dict[JobId, Advanced]:
            with connection.transaction():
                answers = advancing.advance(connection, again, advances, self._clock.offset)
                crashpoint("workflow.before_commit")
            return answers

        if len({one.lease.id for one in advances}) < len(
            advances
        ):  # two leases of one run: fences are compared one by one
            return [answer for one in advances for answer in self.advance([one])]
        answers = self._database.run(work)
        crashpoint("workflow.after_commit")
        written = [one for one in advances if one.lease.id in answers]
        lines = lines_of([job for one in written for job in one.jobs])
        lines |= {
            Line(one.lease.queue, one.lease.lane)
            for one in written
            if answers[one.lease.id].asleep and is_ready(one)
        }
        if lines:
            self._wakes.hint(lines)
        return [answers.get(one.lease.id, LOST) for one in advances]

    def load(self, ids: Sequence[JobId]) -> list[Loaded]:
        return self._database.run(
            lambda connection, again: run_views.load(connection, ids, self._clock.offset)
        )

    def overdue(self, *, term: int, limit: int) -> list[LateStep]:
        def look(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            return connection.execute(OVERDUE_STEPS, {"skew": self._clock.offset, "limit": limit}).fetchall()

        def work(connection: Connection, again: bool) -> tuple[list[tuple[Any, ...]], set[Line]]:
            failed: list[tuple[Any, ...]] = []
            lines: set[Line] = set()
            with connection.transaction():
                if not connection.execute(TERM, (term,)).fetchall():
                    return [], set()
                for row in sorted(found):
                    told = {"id": row[0], "path": row[1], "error": LATE, "skew": self._clock.offset}
                    connection.execute(runs.HOLD, told)
                    if connection.execute(FAIL_LATE, told).fetchall() or again:
                        failed.append(row)
                        lines |= runs.wake(connection, row[0], self._clock.offset)
                crashpoint("workflow.before_late_commit")
            return failed, lines

        found = self._database.run(look)
        if not found:
            return []
        failed, lines = self._database.run(work)
        self._wakes.hint(lines)
        return [LateStep(*row) for row in failed]

    def late_steps(self, limit: int) -> list[LateStep]:
        def work(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            return connection.execute(OVERDUE_STEPS, {"skew": self._clock.offset, "limit": limit}).fetchall()

        return [LateStep(*row) for row in self._database.run(work)]

    def signal(self, id: JobId, name: str, data: bytes | None, *, key: str | None, by: str) -> Told:
        def deed(connection: Connection, lines: Lines) -> tuple[Told, set[Line]]:
            skew = self._clock.offset
            told = {"id": id, "skew": skew}
            waiting = connection.execute(UNSETTLED, told).fetchall()
            kept = [] if key is None else connection.execute(KEY_USED, (id, key)).fetchall()
            if (known := known_by_key(kept, name, data)) is not None:
                return known, set()
            refusal = refused(waiting, [] if waiting else connection.execute(SETTLED, told).fetchall())
            if refusal is not None:
                return refusal, set()
            [(last, count)] = connection.execute(LAST_SIGNAL, (id,)).fetchall()
            if count >= SIGNALS_MOST:
                return Told.FULL, set()
            said = {"number": last + 1, "name": name, "data": data, "key": key}
            connection.execute(KEEP_SIGNAL, told | said)
            lines.write("signal", [f"{id} {name}"], by)
            return Told.KEPT, runs.wake(connection, id, skew)

        told, woken = do(self._database, deed)
        self._wakes.hint(woken)
        return told

    def told(self, id: JobId, limit: int, *, after: int = 0, most: int | None = None) -> list[Signal]:
        return self._database.run(
            lambda connection, again: run_views.told(connection, id, limit, after, most)
        )

    def begun(self, ids: Sequence[JobId]) -> dict[JobId, RunRow]:
        return self._database.run(lambda connection, again: run_views.begun(connection, ids))

    def view(self, id: JobId) -> RunView | None:
        return self._database.run(lambda connection, again: run_views.view(connection, id))

    def look(
        self,
        id: JobId,
        *,
        after: str = "",
        limit: int,
        state: StepState | None = None,
        most: int | None = None,
    ) -> RunView | None:
        return self._database.run(
            lambda connection, again: run_views.look(connection, id, after, limit, state, most)
        )

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
        return self._database.run(
            lambda connection, again: run_views.outline(connection, id, after, limit, state, kind, job)
        )

    def to_undo(self, ids: Sequence[JobId], *, limit: int) -> list[ToUndo]:
        return self._database.run(lambda connection, again: run_views.to_undo(connection, ids, limit))

    def children(self, ids: Sequence[JobId], *, limit: int) -> list[Child]:
        return self._database.run(lambda connection, again: run_views.children(connection, ids, limit))

    def step(self, id: JobId, path: str) -> StepView | None:
        return self._database.run(lambda connection, again: run_views.step(connection, id, path))

    def queues_of(self, jobs: Sequence[JobId]) -> dict[JobId, str]:
        return self._database.run(lambda connection, again: run_views.queues_of(connection, jobs))

    def newest(
        self, before: JobId | None, limit: int, *, name: str | None = None, phase: Phase | None = None
    ) -> list[RunView]:
        return self._database.run(
            lambda connection, again: run_views.newest(connection, before, limit, name, phase)
        )

    def direct(self, id: JobId, phase: Phase, *, why: str, by: str) -> bool:
        told = {"id": id, "phase": int(phase), "why": why}
        more = (TRY_AGAIN,) if phase is Phase.FORWARD else ()
        return self._operate((DIRECT, *more), told, f"workflow {phase.label}", str(id), by)

    def mend(self, id: JobId, path: str, payload: bytes | None, *, by: str) -> bool:
        told = {"id": id, "path": path, "payload": payload}
        return self._operate((MEND, FORWARD), told, "resubmit step", f"{id} {path}", by)

    def tally(self, name: str, queue: str, limit: int | None = None) -> Tally:
        return self._database.run(lambda connection, again: tallying.tally(connection, name, queue, limit))

    def pipelines(self, name: str | None = None, *, limit: int, after: str = "") -> list[Kept]:
        return self._database.run(lambda connection, again: tallying.kept(connection, name, limit, after))

    def _operate(
        self, sql: tuple[str, ...], told: dict[str, Any], action: str, subject: str, by: str
    ) -> bool:
        """The rest follows if the first finds something. Of steps that begin anew, what their jobs left is settled."""

        def deed(connection: Connection, lines: Lines) -> set[Line] | None:
            skew = self._clock.offset
            said = told | {"skew": skew}
            jobs = mending.held(connection, told["id"])
            connection.execute(runs.HOLD, told)
            found = connection.execute(sql[0], said).fetchall()
            if not found:
                return None
            anew = found if sql[0] is MEND else []
            for more in sql[1:]:
                cursor = connection.execute(more, said)
                anew = cursor.fetchall() if more is TRY_AGAIN else anew
            woken = mending.resolve(connection, jobs, anew, step_resubmitted(by), skew)
            lines.write(action, [subject], by)
            return woken | runs.wake(connection, told["id"], skew)

        woken = do(self._database, deed)
        self._wakes.hint(woken or set())
        return woken is not None
