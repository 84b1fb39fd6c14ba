"""What both stores do alike when schedules are due: decide for each, make the jobs, and say what is to be written.

Most that are due together are alike, and each makes one job: those go `quick`, in columns. The others, whose jobs something
guards, that have several ticks or skip some, go one by one."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from lateshift.model.edit import named, written
from lateshift.model.ids import new_job_id, new_job_ids
from lateshift.model.instants import to_number
from lateshift.model.job import Enqueued, Line, NewJob, Spec
from lateshift.model.scheduling.plan import Decision, Outcome, Plan, decide, delays, due_at, told
from lateshift.model.scheduling.schedule import NO_JOB, RECENT_LIMIT, Reader, last_jobs, record
from lateshift.store.hints import lines_of

JOBS_AT_ONCE = 2000  # of one commit; a schedule that catches up may make as many itself
OVERTAKEN = "the next tick of its schedule"  # who cancelled a job that the next one takes the place of
FIRED = int(Outcome.FIRED)
_kind = itemgetter(2, 1, 4, 6)  # of a row: its spec, plan, guards and next tick


class Due(NamedTuple):
    """A schedule whose time has come, as the store has it. `place`: by what the store finds its row again, if not by its
    name."""

    name: str
    plan: bytes
    spec: bytes
    payload: bytes
    guards: bytes | None
    generation: int
    next_at: Any
    recent: bytes
    place: Any


DueRow = tuple[str, bytes, bytes, bytes, bytes | None, int, Any, bytes, Any]
"""The same, bare: of thousands that are due at once none is worth a name."""

TickRow = tuple[int, str, int, int, int, int, bytes | None]
"""One tick, or some in a row, to be written once: at, schedule, generation, until, how many, outcome, job. Instants are
microseconds since 1970."""

Moved = tuple[Any, int, int | None, bytes]
"""A schedule goes on: its place or name, the last tick that is decided, the next one, and what is remembered."""


class _Verdict(Struct, frozen=True):
    """A decision, in the numbers that are written; shared by all schedules that are alike."""

    fire: list[tuple[datetime, int]]
    skip: list[tuple[int, int, int, Outcome]]
    cursor: int
    next_at: int | None


class Quick:
    """Schedules that make one plain job each, of one spec, in columns: where each is, its tick, its job, and how it goes on."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.places: list[Any] = []
        self.names: list[str] = []
        self.generations: list[int] = []
        self.at: list[int] = []
        self.ids: list[bytes] = []
        self.due: list[int] = []
        self.payloads: list[bytes] = []
        self.next_at: list[int | None] = []
        self.recent: list[bytes] = []
        self.moments: set[tuple[int, int | None]] = set()  # the ticks, and the ones after them

    def add(self, plan: Plan, verdict: _Verdict, rows: Sequence[DueRow]) -> None:
        """Of one plan, for the same tick."""
        [(tick, at)], count = verdict.fire, len(rows)
        names, _, _, payloads, _, generations, _, recent, places = zip(*rows, strict=True)
        ids = new_job_ids(count)
        head = record(at, 1, FIRED, None)[: -len(NO_JOB)]
        self.places += places
        self.names += names
        self.generations += generations
        self.at += [at] * count
        self.ids += ids
        self.due += [at + delay for delay in delays(plan, names, tick)] if plan.jitter else [at] * count
        self.payloads += (
            payloads if plan.tick_as is None else [with_tick(each, plan, tick) for each in payloads]
        )
        self.next_at += [verdict.next_at] * count
        self.moments.add((at, verdict.next_at))
        self.recent += [(head + id + before)[:RECENT_LIMIT] for id, before in zip(ids, recent, strict=True)]


class Firing:
    """One commit. `look` at schedules that are due; write those that are `quick`; for the others end the jobs that are
    `overtaken`, enqueue `jobs`, and write what `written` gives."""

    def __init__(self, now: datetime, instant: Callable[[Any], datetime]) -> None:
        self.jobs: list[NewJob] = []
        self.overtaken: list[bytes] = []
        self._now = now
        self._instant = instant
        self._room = JOBS_AT_ONCE
        self._reader = Reader()
        self._verdicts: dict[tuple[bytes, Any, int], _Verdict] = {}
        self._quick: dict[bytes, Quick] = {}
        self._looked: list[tuple[Due, _Verdict, int]] = []

    @property
    def quick(self) -> list[Quick]:
        return list(self._quick.values())

    @property
    def count(self) -> int:
        """How many schedules it has decided."""
        return len(self._looked) + sum(len(quick.ids) for quick in self.quick)

    @property
    def lines(self) -> set[Line]:
        """In which its jobs stand."""
        return {quick.spec.line for quick in self.quick} | lines_of(self.jobs)

    def asks(self, rows: Iterable[DueRow]) -> list[bytes]:
        """The jobs of which it must know whether they have ended."""
        plan = self._reader.plan
        return [
            job for row in rows if row[7] and plan(row[1]).overlap != "allow" for job in last_jobs(row[7])
        ]

    def look(self, rows: Iterable[DueRow], unsettled: set[bytes]) -> None:
        """As long as there is room. Those whose jobs are alike one after the other, for they are inserted together."""
        alike: defaultdict[tuple[bytes, bytes, bool, Any, int], list[DueRow]] = defaultdict(list)
        for (spec, plan, guards, next_at), run in groupby(rows, _kind):
            if unsettled:
                for row in run:
                    busy = sum(job in unsettled for job in last_jobs(row[7]))
                    alike[spec, plan, guards is None, next_at, busy].append(row)
            else:
                alike[spec, plan, guards is None, next_at, 0] += run
        for key in sorted(alike, key=_spec):
            self._look(key, alike[key], unsettled)

    def _look(
        self, key: tuple[bytes, bytes, bool, Any, int], rows: list[DueRow], unsettled: set[bytes]
    ) -> None:
        kept, kept_plan, unguarded, next_at, busy = key
        plan, spec = self._reader.plan(kept_plan), self._reader.spec(kept)
        verdict = self._verdicts.get((kept_plan, next_at, busy))
        if verdict is None:
            verdict = _in_numbers(decide(plan, self._instant(next_at), self._now, busy))
            self._verdicts[kept_plan, next_at, busy] = verdict
        fits = rows[: -(-self._room // max(1, len(verdict.fire)))] if self._room > 0 else []
        self._room -= len(fits) * len(verdict.fire)
        if plan.overlap == "cancel" and busy and verdict.fire:
            self.overtaken += [job for row in fits for job in last_jobs(row[7]) if job in unsettled]
        plain = unguarded and not spec.lane.careful
        if plain and fits and len(verdict.fire) == 1 and not verdict.skip:
            self._quick.setdefault(kept, Quick(spec)).add(plan, verdict, fits)
            return
        for due in map(Due._make, fits):
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
            mine.sort()
            rows += mine
            moved.append((due.place or due.name, verdict.cursor, verdict.next_at, remember(due.recent, mine)))
        return rows, moved

    def _job(self, due: Due, plan: Plan, tick: datetime) -> NewJob:
        job = self._reader.job(new_job_id(), due.spec, with_tick(due.payload, plan, tick), due.guards)
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


def with_tick(payload: bytes, plan: Plan, tick: datetime) -> bytes:
    """The arguments, with the tick's time as one of them if the plan says so."""
    if plan.tick_as is None:
        return payload
    return written(named(payload) | {plan.tick_as: msgspec.json.encode(told(plan, tick))})


def at(job: NewJob, when: datetime) -> NewJob:
    return structs.replace(job, spec=structs.replace(job.spec, at=when))


def _spec(key: tuple[bytes, bytes, bool, Any, int]) -> bytes:
    return key[0]
