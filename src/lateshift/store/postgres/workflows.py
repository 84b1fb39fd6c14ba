"""Workflows in PostgreSQL: many runs go one step on in one commit, in as many statements as one run would need."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND, to_number
from lateshift.model.job import STRETCHES, Line, NewJob
from lateshift.model.pipeline.progress import Tally
from lateshift.model.workflow.run import (
    LOST,
    SIGNALS_MOST,
    Advance,
    Advanced,
    Loaded,
    Phase,
    RunView,
    Signal,
)
from lateshift.model.workflow.step import LATE, StepRow, StepState
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.postgres import enqueue, mending, run_views, runs, tallying
from lateshift.store.postgres.arrays import BigInts, Blobs, Instants, Texts, Uuids
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.locks import TERM
from lateshift.store.postgres.run_views import STEP_COLUMNS
from lateshift.store.postgres.wakes import NotifyWakes
from lateshift.store.workflow_contract import Kept, LateStep, Told, is_ready, refused, step_resubmitted

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
SLEEP = f"""UPDATE lateshift.job j SET state = CASE WHEN {_UNTIL} > %(now)s::timestamptz THEN 0 ELSE 1 END, due_at = {_UNTIL}, attempt = j.attempt - 1, losses = 0,
 lane = CASE j.lane WHEN 3 THEN 0 ELSE j.lane END, tenant = CASE j.lane WHEN 3 THEN NULL ELSE j.tenant END,
 holder = NULL, leased_at = NULL, complete_by = NULL
 FROM unnest(%(ids)b::uuid[], %(news)b::bigint[], %(waits)b::bigint[], %(untils)b::timestamptz[]) AS n (id, news, wait, until)
 WHERE j.id = n.id AND j.state = 2 AND (SELECT r.news FROM lateshift.run r WHERE r.id = n.id) = n.news RETURNING j.id"""
WAITS_FOR = """UPDATE lateshift.run r SET waits_for = n.waits_for FROM unnest(%(ids)b::uuid[], %(waits)b::text[]) AS n (id, waits_for)
 WHERE r.id = n.id AND r.waits_for IS DISTINCT FROM n.waits_for"""
STANDS = "SELECT id, news, phase, cancel_by FROM lateshift.run WHERE id = ANY(%(ids)b::uuid[])"

# Primary keys; signal_key.
# Whether a job that has not ended, or has, is a run: it has begun as one, or has as many attempts as only runs have.
_IS_RUN = f"""SELECT attempts = {STRETCHES} OR EXISTS (SELECT 1 FROM lateshift.run r WHERE r.id = j.id)
 FROM lateshift.{{}} j WHERE id = %(id)s"""
UNSETTLED = f"{_IS_RUN.format('job')} FOR NO KEY UPDATE"
SETTLED = _IS_RUN.format("settled")
ARE_THERE = """SELECT id FROM lateshift.job WHERE id = ANY(%(ids)s::uuid[])
 UNION ALL SELECT id FROM lateshift.settled WHERE id = ANY(%(ids)s::uuid[])"""
KEY_USED = "SELECT 1 FROM lateshift.signal WHERE run = %s AND key = %s"
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
MEND = """UPDATE lateshift.step SET state = 1, error = NULL, ended_at = NULL, place = NULL, job = NULL, complete_by = NULL, failures = 0,
 payload = coalesce(%(payload)s, payload), mended = mended OR %(payload)s::bytea IS NOT NULL WHERE run = %(id)s AND path = %(path)s AND state = 4
 AND EXISTS (SELECT 1 FROM lateshift.run WHERE id = %(id)s AND phase NOT IN (1, 3))
 AND EXISTS (SELECT 1 FROM lateshift.job j WHERE j.id = %(id)s) RETURNING path"""
# Steps that hold it begin anew, if it goes forward. Primary keys.
TRY_AGAIN = """UPDATE lateshift.step SET state = 1, error = NULL, ended_at = NULL, place = NULL, job = NULL, complete_by = NULL, failures = 0
 WHERE run = %(id)s AND state = 4 AND EXISTS (SELECT 1 FROM lateshift.run WHERE id = %(id)s AND phase = 0 AND cancel_by IS NULL)
 RETURNING path"""
AUDIT = f"INSERT INTO lateshift.audit (at, action, subject, actor) VALUES ({_NOW}, %(action)s, %(subject)s, %(by)s)"

_NONE = UUID(int=0)


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
                answers = _advance(connection, again, advances, self._clock.offset)
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
        def work(connection: Connection, again: bool) -> tuple[Told, set[Line]]:
            told = {"id": id, "skew": self._clock.offset}
            with connection.transaction():
                waiting = connection.execute(UNSETTLED, told).fetchall()
                refusal = refused(waiting, [] if waiting else connection.execute(SETTLED, told).fetchall())
                if refusal is not None:
                    return refusal, set()
                if key is not None and connection.execute(KEY_USED, (id, key)).fetchall():
                    return Told.REPEATED, set()
                [(last, count)] = connection.execute(LAST_SIGNAL, (id,)).fetchall()
                if count >= SIGNALS_MOST:
                    return Told.FULL, set()
                said = {"number": last + 1, "name": name, "data": data, "key": key}
                connection.execute(KEEP_SIGNAL, told | said)
                connection.execute(
                    AUDIT, {"action": "signal", "subject": f"{id} {name}", "by": by, "skew": told["skew"]}
                )
                return Told.KEPT, runs.wake(connection, id, self._clock.offset)

        told, lines = self._database.run(work)
        self._wakes.hint(lines)
        return told

    def told(self, id: JobId, limit: int) -> list[Signal]:
        def work(connection: Connection, again: bool) -> list[Signal]:
            rows = connection.execute(run_views.FIRST_SIGNALS, (id, limit)).fetchall()
            return [Signal(*row) for row in rows]

        return self._database.run(work)

    def begun(self, ids: Sequence[JobId]) -> set[JobId]:
        def work(connection: Connection, again: bool) -> set[JobId]:
            return {id for (id,) in connection.execute(runs.BEGUN, (list(ids),)).fetchall()}

        return self._database.run(work)

    def view(self, id: JobId) -> RunView | None:
        def work(connection: Connection, again: bool) -> list[RunView]:
            loaded = run_views.load(connection, [id], self._clock.offset)
            return run_views.views(
                connection, [one.run for one in loaded], {one.run.id: one.steps for one in loaded}
            )

        found = self._database.run(work)
        return found[0] if found else None

    def look(
        self, id: JobId, *, after: str = "", limit: int, state: StepState | None = None
    ) -> RunView | None:
        return self._database.run(
            lambda connection, again: run_views.look(connection, id, after, limit, state)
        )

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

    def pipelines(self, name: str | None = None, *, limit: int) -> list[Kept]:
        return self._database.run(lambda connection, again: tallying.kept(connection, name, limit))

    def _operate(
        self, sql: tuple[str, ...], told: dict[str, Any], action: str, subject: str, by: str
    ) -> bool:
        """The rest follows if the first finds something. Of steps that begin anew, what their jobs left is settled."""

        def work(connection: Connection, again: bool) -> set[Line] | None:
            skew = self._clock.offset
            with connection.transaction():
                jobs = mending.held(connection, told["id"])
                connection.execute(runs.HOLD, told)
                found = connection.execute(sql[0], told).fetchall()
                if not found:
                    return None
                anew = found if sql[0] is MEND else []
                for more in sql[1:]:
                    cursor = connection.execute(more, told)
                    anew = cursor.fetchall() if more is TRY_AGAIN else anew
                lines = mending.resolve(connection, jobs, anew, step_resubmitted(by), skew)
                connection.execute(AUDIT, {"action": action, "subject": subject, "by": by, "skew": skew})
                return lines | runs.wake(connection, told["id"], skew)

        lines = self._database.run(work)
        self._wakes.hint(lines or set())
        return lines is not None


def _advance(
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
