"""Lateshift: registers tasks, opens the store, and is what a program talks to."""

import inspect
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, Unpack, overload
from weakref import WeakSet

import msgspec

from lateshift.app import embedded
from lateshift.app.agents import Agents
from lateshift.app.alerting import Alerting
from lateshift.app.check import Report, check
from lateshift.app.pipelines import Pipelines
from lateshift.app.replying import Replying
from lateshift.app.scheduling import Scheduling
from lateshift.app.triggering import Triggering
from lateshift.batches.handle import Batch
from lateshift.batches.sending import Callback, Making
from lateshift.client import Client
from lateshift.clock import SYSTEM, Clock
from lateshift.config import Settings, load
from lateshift.dead_letters.dead_letters import DeadLetters
from lateshift.errors import OptionInvalid, TaskInvalid, TaskUnknown, no_job
from lateshift.handle import Job
from lateshift.model import checks
from lateshift.model.batch import BatchId
from lateshift.model.ids import JobId, id_of
from lateshift.model.limit import Limit
from lateshift.model.member import VERSION_LIMIT, Program, program_of
from lateshift.model.placing import Then
from lateshift.model.queue import QueueSettings, WhenFull, declare, queue_name, sensitive_among
from lateshift.model.triggering.naming import ALERTS
from lateshift.registrar import Registrar, TaskOptions
from lateshift.replies.targets import Targets
from lateshift.runtime.aside import aside
from lateshift.runtime.lock import Lock
from lateshift.sealing.ring import Ring, ring_of
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.task import AsyncTask, Bound, Call, Limits, Task, task_name

LOCK_NAME_LIMIT = 200  # characters
LIMIT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,49}")

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")


class Lateshift(Agents, Scheduling, Triggering, Pipelines, Alerting, Replying):
    """An app: a name, its tasks and its store.

    `store` is a URL; without it LATESHIFT_STORE or lateshift.toml name one, else it is a file, ./lateshift.db.
    `version` is what its workers say they run, such as a release or a commit; without it, a digest of the tasks.
    """

    def __init__(
        self, name: str, *, store: str | None = None, version: str | None = None, clock: Clock = SYSTEM
    ) -> None:
        super().__init__()
        self.name = name
        self._version = None if version is None else checks.text("version", version, VERSION_LIMIT)
        self.settings: Settings = load(store=store)
        self.clock = clock
        self._queues: dict[str, QueueSettings] = {}
        self._ring: Ring | None = None
        self._tasks: dict[str, Task[..., Any]] = {}
        self.client = Client(
            lambda: self.store,
            self.settings.key_window,
            self._queues,
            name,
            self.ring,
            Targets(self._tasks, self._hearers),
        )
        self._starters: list[Callable[[], Any]] = []
        self._store: Store | None = None
        self._opening = threading.Lock()
        _apps.add(self)

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        return MappingProxyType(self._tasks)

    @property
    def queues(self) -> Mapping[str, QueueSettings]:
        """What was declared of queues; others have no settings."""
        return MappingProxyType(self._queues)

    @property
    def store(self) -> Store:
        """Opened and checked on first use."""
        if self._store is None:
            with self._opening:
                if self._store is None:
                    store = open_store(self.settings.store, self.clock)
                    store.ready()
                    store.queues.conceal(sensitive_among(self._queues))
                    self._store = store
        return self._store

    def ring(self) -> Ring:
        """The keys for sensitive queues that this program holds, read on first use. Raises SealKeysInvalid."""
        if self._ring is None:
            self._ring = ring_of(self.settings)
        return self._ring

    @property
    def version(self) -> str:
        """Which code this is."""
        return self.program().version

    def program(self) -> Program:
        """What its workers say of themselves: the app, its version, its tasks, its queues."""
        lanes = {name: task.lane for name, task in self._tasks.items()}
        return program_of(self.name, self._version, lanes, self.declared_queues())

    def _hearers(self) -> set[str]:
        """The tasks that hear alerts."""
        return {it.task.name for it in self._triggers.values() if it.about.startswith(ALERTS)}

    def declared_queues(self) -> set[str]:
        """By settings, or as the queue of a task."""
        return {*self._queues, *(task.limits.queue for task in self._tasks.values())}

    @overload
    def task(self, function: Callable[P, Awaitable[R]], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, /, **options: Unpack[TaskOptions]) -> Registrar: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]) -> Any:
        """Register a function as a task: `@app.task`, or `@app.task(queue="images", retry=Retry(attempts=5))`.

        `time_limit`: each attempt's complete-by, counted from its start; None for work that has no end.
        `keep`: how long a completed job and its result stay. `process`: run each attempt in a process of its own,
        killed at the complete-by, and over `memory` bytes. `singleton`: one running job over all machines.
        `limit`: how many run at once, and how many start in a time, over all machines. `unique`: which calls are one job.
        `breaker`: while it is open, its jobs are parked, over all machines. `tags`: of all its jobs, to find them by.
        `reply_to`, `reply_on`: who is told what becomes of its jobs, and of what, unless a call says otherwise; see `task.options`.
        """
        registrar = Registrar(self._register, TaskOptions.__annotations__, options)
        return registrar if function is None else registrar(function)

    def queue(
        self,
        name: str,
        *,
        max_ready: int | None = None,
        when_full: WhenFull = "raise",
        wait: timedelta = timedelta(0),
        duplicates: timedelta | None = None,
        limit: Limit | None = None,
        on_dead: Then = "go_on",
        on_gap: Then = "go_on",
        gap_after: timedelta | None = None,
        sensitive: bool = False,
        events: bool = False,
    ) -> QueueSettings:
        """Declare what a queue may hold. A queue need not be declared; but one that is, is declared alike everywhere, and
        before its first job.

        `max_ready`: so many jobs may be due and wait. At that, an enqueue waits up to `wait`, then does what `when_full`
        says: "raise" QueueFull, "shed_new", "shed_oldest" or "shed_lowest". `duplicates`: for so long, the same task with
        the same arguments gives the job that is there. `limit`: how many of its jobs run at once and start in a time, over
        all machines. `on_dead`, `on_gap`, `gap_after`: the rules of its sessions, where a call says nothing else.
        `sensitive`: what its jobs are given and leave behind is sealed with the key ring, and its workers run nothing else.
        `events`: what becomes of its jobs is told to the channel `jobs.QUEUE.TASK`, for `app.subscribe`.
        """
        queue_name(name)
        settings = QueueSettings(
            max_ready=max_ready, when_full=when_full, wait=wait, duplicates=duplicates, limit=limit, on_dead=on_dead,
            on_gap=on_gap, gap_after=gap_after, sensitive=sensitive, events=events,
        )  # fmt: skip
        used = [task.name for task in self._tasks.values() if task.limits.queue == name and task.used]
        fed = [*self.schedules_into(name), *self.triggers_into(name)]
        declare(self._queues, name, settings, used=used, fed=fed)
        if self._store is not None and sensitive:
            self._store.queues.conceal([name])
        return settings

    def limit(self, name: str, limit: Limit) -> None:
        """Limit the jobs of each key that callers name: `app.limit("vendor", Limit(concurrency=5))`, then
        `task.options(limit_key="vendor:acme")`. Each key is counted by itself, over all queues, tasks and machines."""
        if type(limit) is not Limit:
            raise OptionInvalid(f"app.limit takes a Limit, such as Limit(concurrency=5), not {limit!r}.")
        if not LIMIT_NAME.fullmatch(str(name)):
            raise OptionInvalid(f"{name!r} is no name for a limit: 1 to 50 letters, digits and any of _ . -")
        if self.client.limits.setdefault(name, limit) != limit:
            raise OptionInvalid(f"The limit {name!r} is declared already, and otherwise. Declare it once.")

    def on_start(self, function: Callable[[], F]) -> Callable[[], F]:
        """Call `function` (plain or async, without arguments) when `lateshift up` or `lateshift work` starts this
        program, before its workers begin. Every start calls it, on every machine: what it enqueues wants a key."""
        self._starters.append(function)
        return function

    async def start(self) -> None:
        """Call what `on_start` registered, in that order. Whoever runs the app's workers does so first."""
        for function in self._starters:
            if inspect.iscoroutinefunction(function):
                await function()
            else:
                await aside(function)

    def enqueue_many(self, calls: Iterable[Call[Any]]) -> int:
        """Enqueue any number of calls in bounded memory: one durable commit for each thousand. Gives how many jobs were made; a call that
        was sent before is not counted. If it raises, the thousands before stay; repeating the same calls makes nothing twice."""
        return self.client.send_many(calls)

    async def aenqueue_many(self, calls: Iterable[Call[Any]]) -> int:
        return await self.client.asend_many(calls)

    def batch(
        self,
        calls: Iterable[Call[Any]],
        *,
        then: Callback = None,
        on_failure: Callback = None,
        name: str | None = None,
        key: str | None = None,
    ) -> Batch:
        """Enqueue any number of calls, in bounded memory, as one batch: `app.batch(thumbnail.call(path) for path in paths)`.
        All of them are checked before the first is written.

        `then`: a call to enqueue, once, when all have ended and none has failed. `on_failure`: a call to enqueue, once, as
        soon as one has failed. Either may be a function that makes the call of the batch's id. `key`: repeating the same
        calls and callbacks with it gives the same batch, and goes on where it stands if it was interrupted.
        """
        made = self.client.send_batch(Making(self._tasks, then, on_failure, name, key), calls)
        return Batch(made, lambda: self.store, self._tasks)

    async def abatch(
        self,
        calls: Iterable[Call[Any]],
        *,
        then: Callback = None,
        on_failure: Callback = None,
        name: str | None = None,
        key: str | None = None,
    ) -> Batch:
        """The same from async code."""
        made = await self.client.asend_batch(Making(self._tasks, then, on_failure, name, key), calls)
        return Batch(made, lambda: self.store, self._tasks)

    def find_batch(self, batch_id: BatchId | str) -> Batch:
        """A batch by its id."""
        found = Batch(id_of(batch_id, "batch"), lambda: self.store, self._tasks)
        found.progress()  # raises if there is none
        return found

    def job(self, job_id: JobId | str) -> Job[Any]:
        """A job by its id."""
        wanted = id_of(job_id, "job")
        view = self.store.reports.job(wanted)
        if view is None:
            raise no_job(wanted)
        task = self._tasks.get(view.task)
        return Job(wanted, view.task, self.client, task.results.decode if task else _raw)

    def dead_letters(
        self,
        *,
        task: str | None = None,
        queue: str | None = None,
        reason: str | None = None,
        like: str | None = None,
    ) -> DeadLetters:
        """Dead letters to look at, to group and to resubmit; `like` is a fingerprint, as their groups have it."""
        return DeadLetters(
            self.store, self._tasks, self.clock, task=task, queue=queue, reason=reason, like=like
        )  # fmt: skip

    def check(self) -> Report:
        """Whether this code can run what is in the store: tasks that are gone, arguments that do not fit any more; and whether its
        triggers can be read."""
        return check(self.store, self._tasks, app=self.name, triggers=self.triggers)

    def find_task(self, name: str) -> Task[..., Any]:
        if name not in self._tasks:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise TaskUnknown(f"The app {self.name} has no task {name!r}. Its tasks: {known}.")
        return self._tasks[name]

    def lock(
        self, name: str, *, ttl: timedelta = timedelta(seconds=30), wait: timedelta | None = None
    ) -> Lock:
        """`with` or `async with app.lock("stock")`: one holder over all machines, with a fence token for what it writes.
        `wait` bounds the waiting; the lock is renewed while it is held."""
        checks.text("The name of a lock", name, LOCK_NAME_LIMIT)
        if checks.duration("ttl", ttl) <= timedelta(0):
            raise OptionInvalid("ttl must be longer than nothing.")
        if wait is not None:
            checks.duration("wait", wait)
        return Lock(lambda: self.store.locks, name, ttl, wait)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """`async with app.running():` works and supervises in this process, beside a web application or in a test."""
        store = await aside(lambda: self.store)
        async with embedded.running(
            store,
            self._tasks,
            self.settings,
            self.clock,
            program=self.program,
            beside=[self.ticker(), self.courier(), *self.readers(), *self.alarms()],
            losses=self.losses(),
        ):
            yield

    @contextmanager
    def using(self, store: Store) -> Iterator[None]:
        """`with app.using(store):` this app works on another store, by that store's clock; it is closed at the end, and what
        the app had before is there again. For tests: see lateshift.testing."""
        before = self._store, self.clock, self.settings
        store.queues.conceal(sensitive_among(self._queues))
        self._store, self.clock = store, store.clock
        self.settings = replace(self.settings, store=store.url)
        try:
            yield
        finally:
            self.close()
            self._store, self.clock, self.settings = before

    def close(self) -> None:
        """Close the store's connections. The next call opens them again."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _register(self, function: Callable[..., Any], name: str | None, limits: Limits) -> Task[..., Any]:
        given: Any = function
        if isinstance(given, Task | Bound):
            name = given.name if isinstance(given, Task) else given.task.name
            raise TaskInvalid(
                f"{name} is a task already: a decorator below @app.task, such as @app.on_file, has made it one. Write @app.task "
                "below the others, next to the function."
            )
        known = task_name(function, name, self._tasks)
        if limits.breaker is not None and known in self._agents:
            raise TaskInvalid(
                f"The agent {known!r} has a breaker of that name. Give the task another name=, or no breaker."
            )
        kind = AsyncTask if inspect.iscoroutinefunction(function) else Task
        task: Task[..., Any] = kind(function, known, limits, self.client)
        self._tasks[known] = task
        return task


def app_of(task: Task[..., Any]) -> Lateshift:
    """The app that a task is registered in."""
    for app in _apps:
        if app.tasks.get(task.name) is task:
            return app
    raise TaskUnknown(f"No app has the task {task.name} any more. Keep the app for as long as its tasks.")


_apps: WeakSet[Lateshift] = WeakSet()


def _raw(result: bytes | None) -> Any:
    return None if result is None else msgspec.json.decode(result)
