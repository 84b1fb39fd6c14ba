"""What a test can look up: every job that was enqueued, and every attempt that was settled."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lateshift.errors import SealBroken, SealKeysInvalid
from lateshift.model.history import read
from lateshift.model.ids import JobId
from lateshift.model.job import Enqueued, JobView, Lease, NewJob, Place
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome, Settlement
from lateshift.model.sealed import is_sealed
from lateshift.store.contract import Exchanged
from lateshift.task import Task


@dataclass(frozen=True, slots=True)
class Sent:
    """A job that was enqueued: `arguments` by name, with defaults left out that the caller left out."""

    id: JobId
    task: str
    arguments: Mapping[str, Any]
    queue: str
    priority: int
    delay: timedelta | None
    at: datetime | None
    key: str | None
    session: str | None = None
    sequence: int | None = None
    tenant: str | None = None
    limit_key: str | None = None

    def __str__(self) -> str:
        when = f", in {self.delay}" if self.delay else f", at {self.at}" if self.at else ""
        key = f", key {self.key!r}" if self.key is not None else ""
        return f"{called(self.task, self.arguments)} on {self.queue}{when}{key}"


@dataclass(frozen=True, slots=True)
class Ran:
    """An attempt that was settled. `ended` is completed, failed (it will be tried again), snoozed, dead or cancelled."""

    id: JobId
    task: str
    attempt: int
    ended: str
    result: Any = None
    error: str | None = None


class Ledger:
    """Looks on at the store's verbs, from whatever thread; see interposed.Around."""

    def __init__(self, tasks: Mapping[str, Task[..., Any]]) -> None:
        self.sent: list[Sent] = []
        self.ran: list[Ran] = []
        self.leased: list[str] = []  # the tasks of all leases
        self._ids: set[JobId] = set()
        self._tasks = tasks

    def __call__(self, verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        answer = call(*args, **kwargs)
        if verb == "jobs.enqueue":
            self._note_sent(args[0], answer)
        elif verb == "batches.add":
            self._note_sent(args[2], [Enqueued(job.id, created=True) for job in args[2]])
        elif verb == "workflows.advance":
            written = zip(args[0], answer, strict=True)
            jobs = [job for one, told in written if not (told.lost or told.stopped) for job in one.jobs]
            self._note_sent(jobs, [Enqueued(job.id, created=True) for job in jobs])
        elif verb == "jobs.exchange":
            self._note_exchange(args[1], answer)
        return answer

    def _note_sent(self, jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> None:
        for job, answer in zip(jobs, answers, strict=True):
            if answer.created and job.id not in self._ids:
                self._ids.add(job.id)
                self.sent.append(self._sent(job))

    def _sent(self, job: NewJob) -> Sent:
        spec, key = job.spec, None if job.key is None else job.key.text
        named = arguments_of(self._tasks.get(spec.task), job.id, job.payload)
        place = job.place or Place()
        guards = place.session, place.sequence, place.tenant or None, place.limit_key
        return Sent(job.id, spec.task, named, spec.queue, spec.priority, spec.delay, spec.at, key, *guards)

    def _note_exchange(self, settlements: Sequence[Settlement], answer: Exchanged) -> None:
        lost = {(lease.id, lease.fence) for lease in answer.lost}
        for settlement in settlements:
            lease = settlement.lease
            if (lease.id, lease.fence) not in lost:
                self.ran.append(self._ran(lease, settlement.outcome))
        self.leased += [lease.task for lease in answer.leases]
        self.note_found(answer.leases)

    def note_found(self, jobs: Sequence[Lease | JobView]) -> None:
        """Those that nobody was seen to enqueue are a batch's callbacks: the store does that by itself."""
        for job in jobs:
            if job.id not in self._ids:
                self._ids.add(job.id)
                named = arguments_of(self._tasks.get(job.task), job.id, job.payload)
                self.sent.append(Sent(job.id, job.task, named, job.queue, 0, None, None, None))

    def _ran(self, lease: Lease, outcome: Outcome) -> Ran:
        result = None
        if isinstance(outcome, Completed) and lease.task in self._tasks:
            task, result = self._tasks[lease.task], outcome.result
            if result is not None and is_sealed(result):
                result = task.sender.ring().of_job(lease.id).open("result", result)
            result = task.results.decode(result)
        history = None if isinstance(outcome, Completed) else read(outcome.history)
        last = history[-1] if history else None
        error = None if last is None else f"{last.error}: {last.message}" if last.error else last.message
        return Ran(lease.id, lease.task, lease.attempt, how(outcome), result, error)


def how(outcome: Outcome) -> str:
    """In a word."""
    match outcome:
        case Completed():
            return "completed"
        case DeadLettered():
            return "dead"
        case Cancelled():
            return "cancelled"
        case Later(counts=True):
            return "failed"
        case Later():
            return "snoozed"


def arguments_of(task: Task[..., Any] | None, id: JobId, payload: bytes) -> dict[str, Any]:
    """By name, as the task will get them; of a sealed job, if this program has its key."""
    if task is not None and is_sealed(payload) and task.sender.ring().opens(payload):
        with suppress(SealBroken, SealKeysInvalid):
            payload = task.sender.ring().of_job(id).open("payload", payload)
    if task is None or is_sealed(payload):
        return {"payload": payload.decode(errors="replace")}
    args, kwargs = task.arguments.decode(payload)
    return dict(zip(task.arguments.names, args, strict=False)) | kwargs


def called(task: str, arguments: Mapping[str, Any]) -> str:
    """As it would stand in a program."""
    return f"{task}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
