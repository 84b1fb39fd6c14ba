"""What both stores do alike when schedules are due: decide for each, make the jobs, and say what is to be written."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, structs

from lateshift.model.edit import named, written
from lateshift.model.ids import new_job_id
from lateshift.model.instants import to_number
from lateshift.model.job import Enqueued, NewJob
from lateshift.model.scheduling.plan import Decision, Outcome, Plan, decide, due_at
from lateshift.model.scheduling.schedule import RECENT_LIMIT, Reader, last_jobs, record

JOBS_AT_ONCE = 2000  # of one commit; a schedule that catches up may make as many itself


class Due(Struct, frozen=True):
    """A schedule whose time has come, as the store has it."""

    name: str
    plan: bytes
    spec: bytes
    payload: bytes
    guards: bytes | None
    generation: int
    next_at: Hashable  # as the store has it
    recent: bytes


TickRow = tuple[int, str, int, int, int, int, bytes | None]
"""One tick, or some in a row, to be written once: at, schedule, generation, until, how many, outcome, job. Instants are
microseconds since 1970."""

Moved = tuple[str, int, int | None, bytes]
"""A schedule goes on: its name, the last tick that is decided, the next one, and what is remembered."""


class _Verdict(Struct, frozen=True):
    """A decision, in the numbers that are written; shared by all schedules that are alike."""

    fire: list[tuple[datetime, int]]
    skip: list[tuple[int, int, int, Outcome]]
    cursor: int
    next_at: int | None


class Firing:
    """One commit. `look` at schedules that are due, enqueue `jobs`, then write what `written` gives."""

    def __init__(self, now: datetime, instant: Callable[[Any], datetime]) -> None:
        self.jobs: list[NewJob] = []
        self.overtaken: list[bytes] = []
        self._now = now
        self._instant = instant
        self._reader = Reader()
        self._verdicts: dict[tuple[bytes, Hashable, int], _Verdict] = {}
        self._looked: list[tuple[Due, _Verdict, int]] = []

    def asks(self, rows: Iterable[Due]) -> list[bytes]:
        """The jobs of which it must know whether they have ended."""
        plan = self._reader.plan
        return [job for due in rows if plan(due.plan).overlap != "allow" for job in last_jobs(due.recent)]

    def look(self, rows: Iterable[Due], unsettled: set[bytes]) -> None:
        """As long as there is room. Those whose jobs are alike one after the other, for they are inserted together."""
        for due in sorted(rows, key=_spec):
            if len(self.jobs) < JOBS_AT_ONCE:
                self._look(due, unsettled)

    def _look(self, due: Due, unsettled: set[bytes]) -> None:
        plan = self._reader.plan(due.plan)
        busy = sum(job in unsettled for job in last_jobs(due.recent)) if unsettled else 0
        key = due.plan, due.next_at, busy
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = _in_numbers(
                decide(plan, self._instant(due.next_at), self._now, busy)
            )
        if plan.overlap == "cancel" and busy and verdict.fire:
            self.overtaken += [job for job in last_jobs(due.recent) if job in unsettled]
        self._looked.append((due, verdict, len(self.jobs)))
        self.jobs += [self._job(due, plan, tick) for tick, _ in verdict.fire]

    def written(self, answers: Sequence[Enqueued]) -> tuple[list[TickRow], list[Moved]]:
        """What to write, now that the jobs are in: a tick whose call is unique may have found its job there."""
        rows: list[TickRow] = []
        moved: list[Moved] = []
        for due, verdict, first in self._looked:
            mine: list[TickRow] = []
            for place, (_, at) in enumerate(verdict.fire, first):
                answer = answers[place]
                outcome = Outcome.FIRED if answer.created else Outcome.DUPLICATE
                mine.append((at, due.name, due.generation, at, 1, outcome, answer.id.bytes))
            for at, until, count, why in verdict.skip:
                mine.append((at, due.name, due.generation, until, count, why, None))
            if len(mine) > 1:
                mine.sort()
            rows += mine
            moved.append((due.name, verdict.cursor, verdict.next_at, remember(due.recent, mine)))
        return rows, moved

    def _job(self, due: Due, plan: Plan, tick: datetime) -> NewJob:
        payload = due.payload if plan.tick_as is None else with_tick(due.payload, plan.tick_as, tick)
        job = self._reader.job(new_job_id(), due.spec, payload, due.guards)
        return job if not plan.jitter else at(job, due_at(plan, due.name, tick))


def _in_numbers(decision: Decision) -> _Verdict:
    return _Verdict(
        [(tick, to_number(tick)) for tick in decision.fire],
        [(to_number(skip.first), to_number(skip.last), skip.count, skip.why) for skip in decision.skip],
        to_number(decision.cursor),
        None if decision.next_at is None else to_number(decision.next_at),
    )


def remember(recent: bytes, rows: Iterable[TickRow]) -> bytes:
    """What is remembered of a schedule's newest ticks, with these."""
    for at, _, _, _, count, outcome, job in rows:
        recent = record(at, count, outcome, job) + recent
    return recent[:RECENT_LIMIT]


def with_tick(payload: bytes, name: str, tick: datetime) -> bytes:
    """The arguments, with the tick's time as one of them."""
    return written(named(payload) | {name: msgspec.json.encode(tick)})


def at(job: NewJob, when: datetime) -> NewJob:
    return structs.replace(job, spec=structs.replace(job.spec, at=when))


def _spec(due: Due) -> bytes:
    return due.spec
