"""What a caller can do: enqueue one or many, look a job up, cancel, resubmit."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from lateshift.batches.sending import Making
from lateshift.errors import OptionInvalid
from lateshift.handle import Job
from lateshift.model.batch import BatchId
from lateshift.model.explaining.explain import explain
from lateshift.model.explaining.reason import Explanation
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId
from lateshift.model.job import Enqueued, JobView, NewJob
from lateshift.model.limit import Limit
from lateshift.model.queue import QueueSettings
from lateshift.pressure import Pressure
from lateshift.runtime.aside import aside
from lateshift.runtime.together import Together
from lateshift.store.contract import Store
from lateshift.store.crashpoints import crashpoint
from lateshift.task import Call

R = TypeVar("R")

CHUNK = 1000  # jobs of enqueue_many in one durable commit
CHUNK_BYTES = 8 * 1024 * 1024  # of their payloads, about

NO_QUEUES: Mapping[str, QueueSettings] = MappingProxyType({})


class Client:
    """Speaks to the store for callers. Opening the store is put off until the first call."""

    def __init__(
        self,
        store: Callable[[], Store],
        key_window: timedelta,
        queues: Mapping[str, QueueSettings] = NO_QUEUES,
        app: str = "",
    ) -> None:
        self.app = app
        self.key_window = key_window
        self.queues = queues
        self._pressure = Pressure(queues)
        self.limits: dict[str, Limit] = {}  # of each key of a kind
        self._open = store
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, Together[NewJob, Enqueued]] = (
            WeakKeyDictionary()
        )

    def kinds(self) -> Collection[str]:
        return self.limits.keys()

    def rules(self) -> list[Rule]:
        queues = {name: settings.limit for name, settings in self.queues.items()}
        limited = [
            limit.rule("queue", name) if limit else Rule("queue", name) for name, limit in queues.items()
        ]
        return [*(limit.rule("key", name) for name, limit in self.limits.items()), *limited]

    def send(self, call: Call[R], connection: object | None) -> Job[R]:
        store = self._open()
        if not (self.queues and self._pressure.concerns(call.job.spec)):
            return self._send(store, call, connection)
        # Inside a caller's transaction nobody waits: its locks would be kept waiting too.
        with self._pressure.part(store, [call], waits=connection is None) as part:
            return self._send(store, call, connection) if part.now else self._shed(call)

    def _send(self, store: Store, call: Call[R], connection: object | None) -> Job[R]:
        if connection is None:
            [answer] = store.jobs.enqueue([call.take()])
        else:
            [answer] = store.enqueue_on(connection, [call.take()])
        crashpoint("client.after_send")
        return self._job(call, answer)

    async def asend(self, call: Call[R], connection: object | None) -> Job[R]:
        if not (self.queues and self._pressure.concerns(call.job.spec)):
            return await self._asend(call, connection)
        store = await aside(self._open)
        with await self._pressure.apart(store, [call], waits=connection is None) as part:
            return await self._asend(call, connection) if part.now else self._shed(call)

    async def _asend(self, call: Call[R], connection: object | None) -> Job[R]:
        if connection is not None:
            store = await aside(self._open)
            [answer] = await store.aenqueue_on(connection, [call.take()])
            return self._job(call, answer)
        loop = asyncio.get_running_loop()
        together = self._waiting.get(loop)
        if together is None:
            together = self._waiting[loop] = Together(self._enqueue)
        return self._job(call, await together.put(call.take()))

    def send_many(self, calls: Iterable[Call[Any]]) -> int:
        """Bounded memory, one durable commit for each CHUNK; gives how many jobs were made. A call that was sent before
        is not counted."""
        store = self._open()
        made = 0
        with _counting(lambda: made):
            for chunk in _chunks(calls):
                while chunk:
                    with self._pressure.part(store, chunk) as part:
                        jobs = [call.take() for call in part.now]
                        made += _made(jobs, store.jobs.enqueue(jobs)) if jobs else 0
                    chunk = part.later
        return made

    async def asend_many(self, calls: Iterable[Call[Any]]) -> int:
        store = await aside(self._open)
        made = 0
        with _counting(lambda: made):
            for chunk in _chunks(calls):
                while chunk:
                    with await self._pressure.apart(store, chunk) as part:
                        jobs = [call.take() for call in part.now]
                        made += _made(jobs, await aside(store.jobs.enqueue, jobs)) if jobs else 0
                    chunk = part.later
        return made

    def send_batch(self, making: Making, calls: Iterable[Call[Any]]) -> BatchId:
        return making.send(self._open, calls)

    async def asend_batch(self, making: Making, calls: Iterable[Call[Any]]) -> BatchId:
        return await making.asend(self._open, calls)

    def view(self, job_id: JobId) -> JobView | None:
        return self._open().reports.job(job_id)

    async def aview(self, job_id: JobId) -> JobView | None:
        return await aside(self.view, job_id)

    def explain(self, job_id: JobId) -> Explanation | None:
        facts = self._open().reports.facts(job_id)
        return None if facts is None else explain(facts)

    async def aexplain(self, job_id: JobId) -> Explanation | None:
        return await aside(self.explain, job_id)

    def cancel(self, job_id: JobId, by: str = "the caller") -> bool:
        return bool(self._open().jobs.cancel([job_id], by=by))

    async def acancel(self, job_id: JobId) -> bool:
        return await aside(self.cancel, job_id)

    def resubmit(self, ids: Sequence[JobId], by: str = "the caller") -> list[JobId]:
        return self._open().jobs.resubmit(ids, by=by)

    def _enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return self._open().jobs.enqueue(jobs)

    def _shed(self, call: Call[R]) -> Job[R]:
        return Job(call.id, call.task.name, self, call.task.results.decode, created=False, shed=True)

    def _job(self, call: Call[R], answer: Enqueued) -> Job[R]:
        return Job(answer.id, call.task.name, self, call.task.results.decode, answer.created)


def _chunks(calls: Iterable[Call[Any]]) -> Iterator[Sequence[Call[Any]]]:
    """Bounded in number and in bytes. A call is taken when it is sent, and not marked as sent if `calls` raises before."""
    chunk: list[Call[Any]] = []
    size = 0
    for call in calls:
        if not isinstance(call, Call):
            raise OptionInvalid(f"enqueue_many takes calls, such as task.call(1, 2), not {call!r}.")
        chunk.append(call)
        size += len(call.job.payload)
        if len(chunk) >= CHUNK or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@contextmanager
def _counting(made: Callable[[], int]) -> Iterator[None]:
    """What went before an error stays: the error says how much that was."""
    try:
        yield
    except Exception as error:
        error.add_note(
            f"{made():,} jobs were enqueued before this, and stay. Repeating these very calls (a list that you have kept) makes none "
            "of them twice; calls that are made anew are other jobs, unless each has a key=."
        )
        raise


def _made(chunk: Sequence[NewJob], answers: list[Enqueued]) -> int:
    return sum([job.first and answer.created for job, answer in zip(chunk, answers, strict=True)])
