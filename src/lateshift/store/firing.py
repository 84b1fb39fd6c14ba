"""What both stores do alike when schedules are due: decide for each, make the jobs, and say what is to be written."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, structs

from lateshift.model.edit import named, written
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import Enqueued, NewJob
from lateshift.model.scheduling.plan import Decision, Outcome, Plan, decide, due_at
from lateshift.model.scheduling.schedule import Reader, Tick, last_jobs, remember

JOBS_AT_ONCE = 1000  # of one commit; a schedule that catches up may make as many itself


class Due(Struct, frozen=True):
    """A schedule whose time has come, as the store has it."""

    name: str
    plan: bytes
    spec: bytes
    payload: bytes
    guards: bytes | None
    generation: int
    cursor: datetime
    recent: bytes


class TickRow(Struct, frozen=True):
    """One tick, or some in a row, to be written once."""

    at: datetime
    schedule: str
    generation: int
    until: datetime
    count: int
    outcome: Outcome
    job: JobId | None


class Moved(Struct, frozen=True):
    """A schedule goes on."""

    name: str
    cursor: datetime
    next_at: datetime | None
    recent: bytes


class Firing:
    """One commit. `look` at schedules that are due, enqueue `jobs`, then write what `written` gives."""

    def __init__(self, now: datetime) -> None:
        self.jobs: list[NewJob] = []
        self.overtaken: list[bytes] = []
        self._now = now
        self._reader = Reader()
        self._decided: dict[tuple[bytes, datetime, int], Decision] = {}
        self._looked: list[tuple[Due, Decision, int]] = []

    def plan(self, due: Due) -> Plan:
        return self._reader.plan(due.plan)

    def asks(self, rows: Iterable[Due]) -> list[bytes]:
        """The jobs of which it must know whether they have ended."""
        return [job for due in rows if self.plan(due).overlap != "allow" for job in last_jobs(due.recent)]

    def look(self, rows: Iterable[Due], unsettled: set[bytes]) -> None:
        """As long as there is room. Those whose jobs are alike one after the other, for they are inserted together."""
        for due in sorted(rows, key=_spec):
            if len(self.jobs) < JOBS_AT_ONCE:
                self._look(due, unsettled)

    def _look(self, due: Due, unsettled: set[bytes]) -> None:
        plan = self.plan(due)
        busy = sum(job in unsettled for job in last_jobs(due.recent)) if unsettled else 0
        key = due.plan, due.cursor, busy
        decision = self._decided.get(key)
        if decision is None:
            decision = self._decided[key] = decide(plan, due.cursor, self._now, busy)
        if plan.overlap == "cancel" and busy and decision.fire:
            self.overtaken += [job for job in last_jobs(due.recent) if job in unsettled]
        self._looked.append((due, decision, len(self.jobs)))
        self.jobs += [self._job(due, plan, tick) for tick in decision.fire]

    def written(self, answers: Sequence[Enqueued]) -> tuple[list[TickRow], list[Moved]]:
        """What to write, now that the jobs are in: a tick whose call is unique may have found its job there."""
        rows: list[TickRow] = []
        moved: list[Moved] = []
        for due, decision, first in self._looked:
            made = answers[first : first + len(decision.fire)]
            mine = [
                TickRow(tick, due.name, due.generation, tick, 1, _outcome(answer), answer.id)
                for tick, answer in zip(decision.fire, made, strict=True)
            ]
            mine += [
                TickRow(skip.first, due.name, due.generation, skip.last, skip.count, skip.why, None)
                for skip in decision.skip
            ]
            if len(mine) > 1:
                mine.sort(key=_time)
            news = [Tick(at=row.at, outcome=row.outcome, count=row.count, job=row.job) for row in mine]
            moved.append(Moved(due.name, decision.cursor, decision.next_at, remember(due.recent, *news)))
            rows += mine
        return rows, moved

    def _job(self, due: Due, plan: Plan, tick: datetime) -> NewJob:
        payload = due.payload if plan.tick_as is None else with_tick(due.payload, plan.tick_as, tick)
        job = self._reader.job(new_job_id(), due.spec, payload, due.guards)
        return job if not plan.jitter else at(job, due_at(plan, due.name, tick))


def with_tick(payload: bytes, name: str, tick: datetime) -> bytes:
    """The arguments, with the tick's time as one of them."""
    return written(named(payload) | {name: msgspec.json.encode(tick)})


def at(job: NewJob, when: datetime) -> NewJob:
    return structs.replace(job, spec=structs.replace(job.spec, at=when))


def _outcome(answer: Enqueued) -> Outcome:
    return Outcome.FIRED if answer.created else Outcome.DUPLICATE


def _spec(due: Due) -> bytes:
    return due.spec


def _time(row: TickRow) -> datetime:
    return row.at
