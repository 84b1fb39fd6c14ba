"""What a caller can do: enqueue one or many, look a job up, cancel, resubmit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from lateshift.batches.sending import Making
from lateshift.errors import OptionInvalid, StoreError, StoreUnavailable
from lateshift.handle import Job
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.batch import BatchId
from lateshift.model.events import JobEvent
from lateshift.model.explaining.explain import explain
from lateshift.model.explaining.reason import Explanation
from lateshift.model.gate import Gate
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId
from lateshift.model.job import Enqueued, JobView, NewJob
from lateshift.model.limit import Limit
from lateshift.model.looking import LOOK_AFTER, first_look
from lateshift.model.queue import QueueSettings
from lateshift.model.sealed import START, is_sealed
from lateshift.model.watching import BEGINNING, Position
from lateshift.pressure import Pressure
from lateshift.replies.hub import Hub
from lateshift.replies.targets import Targets
from lateshift.runtime.aside import aside
from lateshift.runtime.together import OF_THE_STORE, Together
from lateshift.sealing.jobs import opened_logs, opened_view, readable_view
from lateshift.sealing.ring import NO_RING, Ring
from lateshift.store.contract import EnqueueHere, Store
from lateshift.store.crashpoints import crashpoint
from lateshift.store.reply_contract import LeftOut, Published
from lateshift.task import Call
from lateshift.telemetry.tracing import context, spans, with_context

R = TypeVar("R")

CHUNK = 1000  # jobs of enqueue_many in one durable commit
CHUNK_BYTES = 8 * 1024 * 1024  # of their payloads, about
WHOLE = 50  # jobs that are looked at together as they are: each may be large

NO_QUEUES: Mapping[str, QueueSettings] = MappingProxyType({})


class Client:
    """Speaks to the store for callers. Opening the store is put off until the first call."""

    def __init__(
        self,
        store: Callable[[], Store],
        key_window: timedelta,
        queues: Mapping[str, QueueSettings] = NO_QUEUES,
        app: str = "",
        ring: Callable[[], Ring] = lambda: NO_RING,
        targets: Targets | None = None,
    ) -> None:
        self.app = app
        self.ring = ring
        self.key_window = key_window
        self.queues = queues
        self.targets = targets or Targets({})
        self._pressure = Pressure(queues)
        self.limits: dict[str, Limit] = {}  # of each key of a kind
        # By task, its queues and those that its results go into, as pipelines join them; and by queue.
        self.feeds: dict[str, set[tuple[str, str]]] = {}
        self._fed: dict[str, set[str]] = {}
        self._open = store
        self._hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, Together[NewJob, Enqueued]] = (
            WeakKeyDictionary()
        )
        self._here: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Store, EnqueueHere]] = (
            WeakKeyDictionary()
        )
        self._looking: WeakKeyDictionary[
            asyncio.AbstractEventLoop, Mapping[bool, Together[JobId, JobView | None]]
        ] = WeakKeyDictionary()

    def kinds(self) -> Collection[str]:
        return self.limits.keys()

    def rules(self) -> list[Rule]:
        queues = {name: settings.limit for name, settings in self.queues.items()}
        limited = [
            limit.rule("queue", name) if limit else Rule("queue", name) for name, limit in queues.items()
        ]
        return [*(limit.rule("key", name) for name, limit in self.limits.items()), *limited]

    def rooms(self, task: str) -> list[Gate]:
        bounds = [
            (queue, into, self.queues[into].max_ready)
            for queue, into in sorted(self.feeds.get(task, ()))
            if into in self.queues
        ]
        return [Gate(task, into, most, queue) for queue, into, most in bounds if most is not None]

    def feed(self, task: str, queue: str, into: str) -> None:
        """What this task returns, on its queue, makes jobs in another."""
        self.feeds.setdefault(task, set()).add((queue, into))
        self._fed.setdefault(queue, set()).add(into)

    def leads(self, queue: str, to: str) -> bool:
        """Whether what runs in one queue makes jobs in the other, at last."""
        reached, left = {queue}, [queue]
        while left:
            new = self._fed.get(left.pop(), set()) - reached
            reached |= new
            left += new
        return to in reached

    def send(self, call: Call[R], connection: object | None) -> Job[R]:
        traced = spans()
        if traced is None:
            return self._send_in_turn(call, connection)
        with traced.enqueuing([call.job]):
            call.job = with_context(call.job, traced.context())
            return self._send_in_turn(call, connection)

    def _send_in_turn(self, call: Call[R], connection: object | None) -> Job[R]:
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
        traced = spans()
        if traced is None:
            return await self._asend_in_turn(call, connection)
        with traced.enqueuing([call.job]):
            call.job = with_context(call.job, traced.context())
            return await self._asend_in_turn(call, connection)

    async def _asend_in_turn(self, call: Call[R], connection: object | None) -> Job[R]:
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
            together = self._waiting[loop] = Together(self._enqueue, here=self._enqueue_here)
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
                        with _traced([call.take() for call in part.now]) as jobs:
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
                        with _traced([call.take() for call in part.now]) as jobs:
                            made += _made(jobs, await aside(store.jobs.enqueue, jobs)) if jobs else 0
                    chunk = part.later
        return made

    def send_batch(self, making: Making, calls: Iterable[Call[Any]]) -> BatchId:
        with _traced([]):
            return making.send(self._open, calls, context())

    async def asend_batch(self, making: Making, calls: Iterable[Call[Any]]) -> BatchId:
        with _traced([]):
            return await making.asend(self._open, calls, context())

    def view(self, job_id: JobId, *, whole: bool = True) -> JobView | None:
        reports = self._open().reports
        return reports.job(job_id) if whole else reports.named([job_id], whole=False)[0]

    def opened(self, view: JobView) -> JobView:
        return opened_view(view, self.ring()) if is_sealed(view.payload) else view

    def readable(self, view: JobView) -> JobView:
        return readable_view(view, self.ring()) if is_sealed(view.payload) else view

    async def aview(self, job_id: JobId, *, whole: bool = True) -> JobView | None:
        """Callers that look at the same time share a look. `whole`: else it is slim (model/sealed), for those who wait."""
        loop = asyncio.get_running_loop()
        looking = self._looking.get(loop)
        if looking is None:
            looking = self._looking[loop] = {
                True: Together(partial(self._look, whole=True), WHOLE),
                False: Together(partial(self._look, whole=False)),
            }
        return await looking[whole].put(job_id)

    def watch(self, job_id: JobId) -> AsyncIterator[JobEvent]:
        """On the running loop, of which one poller serves all that are watched."""
        return self._hub().jobs.events(job_id, BEGINNING)

    def watch_places(self, job_id: JobId, after: Position) -> AsyncIterator[tuple[Position, JobEvent]]:
        """The same with the place of each, after which somebody can go on."""
        return self._hub().jobs.told(job_id, after)

    def listen(self, after: int | None) -> AsyncIterator[Sequence[Published] | LeftOut]:
        """What all channels are told after this number, else from now on, page by page; and what may be gone."""
        return self._hub().channels.pages(after)

    async def aconcealed(self) -> frozenset[str]:
        """The queues that some program's code says are sensitive. Those who ask at the same time share a look."""
        return await self._hub().concealed()

    def _hub(self) -> Hub:
        return self._hubs.setdefault(asyncio.get_running_loop(), Hub(self._open))

    def explain(self, job_id: JobId) -> Explanation | None:
        facts = self._open().reports.facts(job_id)
        return None if facts is None else explain(facts)

    async def aexplain(self, job_id: JobId) -> Explanation | None:
        return await aside(self.explain, job_id)

    def logs(self, job_id: JobId) -> list[AttemptLog] | None:
        found = self._open().logs.of(job_id)
        if any(line.message.startswith(START) for log in found for line in log.lines):
            found = opened_logs(found, self.ring())
        return found if found or self.view(job_id) is not None else None

    async def alogs(self, job_id: JobId) -> list[AttemptLog] | None:
        return await aside(self.logs, job_id)

    def cancel(self, job_id: JobId, by: str = "the caller") -> bool:
        return bool(self._open().jobs.cancel([job_id], by=by))

    async def acancel(self, job_id: JobId) -> bool:
        return await aside(self.cancel, job_id)

    def resubmit(self, ids: Sequence[JobId], by: str = "the caller") -> list[JobId]:
        return self._open().jobs.resubmit(ids, by=by)

    def _look(self, ids: Sequence[JobId], *, whole: bool) -> list[JobView | None]:
        return self._open().reports.named(ids, whole=whole)

    @asynccontextmanager
    async def enqueuing_here(self) -> AsyncIterator[None]:
        """Meanwhile what is enqueued on the running loop needs no thread, where the store has a way."""
        loop, store = asyncio.get_running_loop(), await aside(self._open)
        before = self._here.get(loop)
        async with store.jobs.enqueuing_here() as here:
            self._here[loop] = store, here
            try:
                yield
            finally:
                if before is None:
                    self._here.pop(loop, None)
                else:
                    self._here[loop] = before

    def _enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return self._open().jobs.enqueue(jobs)

    async def _enqueue_here(self, jobs: Sequence[NewJob]) -> list[Enqueued] | None:
        store, here = self._here.get(asyncio.get_running_loop(), (None, None))
        if here is None or store is not self._open():  # a test has put another in its place
            return None
        given = await here(jobs)
        if not callable(given):
            return given
        try:
            return await aside(given)
        except OF_THE_STORE:
            raise
        except StoreError as error:  # one by one they would be sent as if they never were before
            raise StoreUnavailable(f"Whether it was enqueued is not known. {error}") from error

    def _shed(self, call: Call[R]) -> Job[R]:
        return Job(call.id, call.task.name, self, call.task.results.decode, created=False, shed=True)

    def _job(self, call: Call[R], answer: Enqueued) -> Job[R]:
        spec, decode = call.job.spec, call.task.results.decode
        at_once = spec.at is None and spec.delay is None
        first = LOOK_AFTER if at_once else first_look(spec, self._open().clock.now())
        return Job(answer.id, call.task.name, self, decode, answer.created, look_after=first)


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
def _traced(jobs: list[NewJob]) -> Iterator[list[NewJob]]:
    """They are written within the block, as they come out of it: with its context, where anything is traced."""
    traced = spans()
    if traced is None:
        yield jobs
        return
    with traced.enqueuing(jobs):
        trace = traced.context()
        yield [with_context(job, trace) for job in jobs]


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
