"""A task: a function registered under a stable name, with its limits and its retry rule, and typed enqueue."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, update_wrapper
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, cast

from msgspec import Struct

from lateshift.errors import OptionInvalid, TaskInvalid
from lateshift.handle import Job
from lateshift.model import checks
from lateshift.model.arguments import Arguments, Results, refuse_stars
from lateshift.model.breaker import Breaker
from lateshift.model.calling import priority_of, when
from lateshift.model.gate import Gate
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import STRETCHES, Identity, Key, Lane, Lease, NewJob, Place, Spec
from lateshift.model.pipeline.chain import Joins
from lateshift.model.placing import Then
from lateshift.model.placing import place as placed
from lateshift.model.queue import PLAIN, QueueSettings, is_sensitive, queue_name, refuse_in_the_clear
from lateshift.model.reply import Target, reply_of
from lateshift.model.running import HOUR as HOUR
from lateshift.model.running import Limits as Limits
from lateshift.model.running import check
from lateshift.model.tags import Tags, tags_of
from lateshift.model.unique import Unique, Uniqueness, rule_of
from lateshift.sealing.jobs import sealed
from lateshift.sealing.ring import Ring
from lateshift.telemetry.context import parent

P = ParamSpec("P")
R = TypeVar("R")

KEY_LIMIT = 200


class Call(Struct, Generic[R], eq=False, gc=False):
    """One call of a task, ready to be enqueued; its job will have the id it has now, however often it is sent."""

    task: "Task[..., R]"
    job: NewJob
    sent: bool = False

    def take(self) -> NewJob:
        """The job to send now, sealed if its queue is sensitive. From the second time on it says that it may be there already."""
        job, asker, first = self.job, parent(), not self.sent
        if not first or asker is not None:
            job = NewJob(
                job.id,
                job.spec,
                job.payload,
                job.key,
                first,
                job.place,
                job.unique,
                job.trace,
                job.tags,
                asker,
            )
        if self.is_sensitive:
            job = sealed(job, self.task.sender.ring())
        self.sent = True
        return job

    @property
    def id(self) -> JobId:
        return self.job.id

    @property
    def is_sensitive(self) -> bool:
        return is_sensitive(self.task.sender.queues, self.job.spec.queue)


class Receivers(Protocol):
    """What `reply_to` may name."""

    def find(self, reply_to: Any) -> list[Target]: ...


class Sender(Protocol):
    """What a task needs of a client."""

    app: str
    key_window: timedelta
    queues: Mapping[str, QueueSettings]

    @property
    def targets(self) -> Receivers: ...

    def kinds(self) -> Collection[str]:
        """The limits that callers may name keys of."""

    def rules(self) -> Sequence[Rule]:
        """What limits more than one task."""

    def rooms(self, task: str) -> Sequence[Gate]:
        """The bounded queues that a task feeds."""

    def ring(self) -> Ring: ...
    def send(self, call: Call[R], connection: object | None) -> Job[R]: ...
    async def asend(self, call: Call[R], connection: object | None) -> Job[R]: ...


class Bound(Joins[P, R]):
    """A task with options for the calls that follow. Made by `task.options(…)`. `|` makes it a filter of a pipeline."""

    def __init__(
        self, task: "Task[P, R]", spec: Spec, place: Place | None, key: str | None, window: timedelta,
        connection: object, unique: Unique | Literal[False] | None = None, replies: bool = False, tags: Tags = (),
    ) -> None:  # fmt: skip
        self.task = task
        self.spec = spec
        self.place = place
        self.key = key
        self._window = window
        self.connection = connection
        self.replies = replies
        self._unique = unique
        self.tags = tags

    @property
    def is_numbered(self) -> bool:
        return self.place is not None and self.place.sequence is not None

    @property
    def bare(self) -> bool:
        """Whether a call of it is its arguments and its spec, and nothing else."""
        unique = self.task.has_identity(self.spec.queue, self._unique)
        return not (self.place or self.key is not None or self.connection or self.tags or unique)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        return self.task.sender.send(self.call(*args, **kwargs), self.connection)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        return await self.task.sender.asend(self.call(*args, **kwargs), self.connection)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        return self._call(self.task.arguments.encode(args, kwargs))

    def call_of(self, raw: bytes) -> Call[R]:
        """A call whose arguments came as JSON, by name: checked by the same types."""
        return self._call(self.task.arguments.given(raw))

    def _call(self, payload: bytes) -> Call[R]:
        key = None
        if self.key is not None:
            key = Key(self.key, self.task.arguments.digest(payload), self._window)
        unique = self.task.identity(payload, self.spec.queue, self._unique)
        return Call(
            self.task,
            NewJob(new_job_id(), self.spec, payload, key, True, self.place, unique, None, self.tags),
        )


class Task(Joins[P, R]):
    """Calling it runs the function here and now; `enqueue` makes a job of the call; `|` makes it a filter of a pipeline."""

    is_workflow = False

    def __init__(self, function: Callable[P, Any], name: str, limits: Limits, sender: Sender) -> None:
        update_wrapper(self, function)
        self.function = function
        self.name = name
        self.limits = limits
        self.sender = sender
        self.is_async = inspect.iscoroutinefunction(function)
        check(name, limits, is_async=self.is_async)
        if limits.retry.attempts >= STRETCHES and not self.is_workflow:
            raise OptionInvalid(
                f"{name}: a job has fewer than {STRETCHES:,} attempts; only a workflow's has so many."
            )
        refuse_stars(name, function)
        self._unique = rule_of(name, limits.unique, list(inspect.signature(function).parameters))

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast(R, self.function(*args, **kwargs))

    def read(self, lease: Lease) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments of a job. Raises whatever is wrong with them."""
        return self.arguments.decode(lease.payload)

    def start(self, attempt: Any) -> Any:
        """Run the body of an attempt."""
        return self.function(*attempt.args, **attempt.kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Durably accepted when this returns. The arguments are checked first; a wrong one raises."""
        return self.sender.send(self.call(*args, **kwargs), None)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """The same from async code; calls that wait together share a commit."""
        return await self.sender.asend(self.call(*args, **kwargs), None)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A call to hand to `app.enqueue_many`."""
        return self._call(self.arguments.encode(args, kwargs))

    def call_of(self, raw: bytes) -> Call[R]:
        """A call whose arguments came as JSON, by name: checked by the same types."""
        return self._call(self.arguments.given(raw))

    def _call(self, payload: bytes) -> Call[R]:
        unique = None
        if self._unique is not None or self.sender.queues:
            unique = self.identity(payload, self.spec.queue)
        return Call(self, NewJob(new_job_id(), self.spec, payload, None, True, None, unique, None, self.tags))

    def options(
        self,
        *,
        queue: str | None = None,
        delay: timedelta | None = None,
        at: datetime | None = None,
        priority: int | None = None,
        key: str | None = None,
        key_window: timedelta | None = None,
        session: str | None = None,
        sequence: int | None = None,
        gap_after: timedelta | None = None,
        on_gap: Then | None = None,
        on_dead: Then | None = None,
        tenant: str | None = None,
        limit_key: str | None = None,
        connection: object | None = None,
        unique: Uniqueness = None,
        reply_to: Any = None,
        correlation_id: str | None = None,
        reply_on: Sequence[str] | None = None,
        tags: Collection[str] | None = None,
    ) -> Bound[P, R]:
        """The same task with other settings for the calls made on what this returns.

        `key`: within `key_window`, the same key and arguments give the same job, other arguments are refused.
        `session`: its jobs run one at a time, in the order of enqueueing or of their `sequence`, over all workers. A number
        that is missing is waited for until `gap_after`; then `on_gap`, and at a dead letter `on_dead`, say whether the
        session goes on or is held, unless said as its queue does. `tenant`: tenants have turns in the queue. `limit_key`: a key of a limit that
        `app.limit` has declared, such as "vendor:acme". `connection`: enqueue in the caller's own open transaction.
        `unique`: instead of the task's; False for none. `tags`: to find it by, besides the task's. `reply_to`: who is told what
        becomes of the job, with `correlation_id`: a task, "channel:NAME", or a webhook or broker that the app declared; or several.
        Instead of the task's; [] for nobody. `reply_on`: of what, else as the task says, else of all but progress.
        """
        spec = self.spec
        if queue is not None:
            refuse_in_the_clear(self.sender.queues, self.name, spec.queue, queue_name(queue))
            spec = _changed(spec, queue=queue)
        settings = self.sender.queues.get(spec.queue, PLAIN)
        rules = settings if session is not None else PLAIN
        numbers = rules if sequence is not None else PLAIN
        place = placed(
            session=session, sequence=sequence, gap_after=numbers.gap_after if gap_after is None else gap_after,
            on_gap=numbers.on_gap if on_gap is None else on_gap,
            on_dead=rules.on_dead if on_dead is None else on_dead, tenant=tenant, limit_key=limit_key,
            kinds=() if limit_key is None else self.sender.kinds(),
        )  # fmt: skip
        if place is not None and place.session is not None and self.limits.singleton:
            raise OptionInvalid(
                f"{self.name} is a singleton: its jobs run one at a time as it is. Leave session out.",
                "session",
            )
        reply = self._reply(spec.queue, reply_to, correlation_id, reply_on)
        if reply != spec.reply:
            spec = _changed(spec, reply=reply)
        if place is not None or settings.limit is not None or reply is not None:
            spec = _changed(spec, lane=spec.lane.guarded)
        if delay is not None or at is not None:
            spec = _changed(spec, **when(delay, at))
        if priority is not None:
            spec = _changed(spec, priority=priority_of(priority))
        if key is not None:
            checks.text("key", key, KEY_LIMIT)
        elif key_window is not None:
            raise OptionInvalid("key_window says how long a key counts: give a key too.")
        window = self.sender.key_window if key_window is None else checks.duration("key_window", key_window)
        if window <= timedelta(0):
            raise OptionInvalid("key_window must be longer than nothing.")
        rule = rule_of(self.name, unique, self.arguments.names)
        both = self.tags if tags is None else tags_of([*self.tags, *tags_of(tags)])
        replies = self.replies if reply_to is None else bool(reply_to)
        return Bound(self, spec, place, key, window, connection, rule, replies, both)

    def _reply(
        self, queue: str, reply_to: Any = None, correlation_id: str | None = None,
        reply_on: Sequence[str] | None = None,
    ) -> str | None:  # fmt: skip
        """The task's own where the call says nothing."""
        targets = self.sender.targets.find(self.limits.reply_to if reply_to is None else reply_to)
        if reply_on is None and targets:
            reply_on = self.limits.reply_on
        publishes = self.sender.queues.get(queue, PLAIN).events
        return reply_of(targets, correlation_id, reply_on, (queue, self.name) if publishes else None)

    @property
    def replies(self) -> bool:
        """Whether somebody is told what becomes of its jobs, because it says so itself."""
        return bool(self.limits.reply_to)

    @property
    def tags(self) -> Tags:
        return self.limits.tags

    @property
    def bare(self) -> bool:
        """Whether a call of it is its arguments and its spec, and nothing else."""
        return not (self.tags or self.has_identity(self.spec.queue))

    @property
    def is_sensitive(self) -> bool:
        """Whether its own queue is: then its jobs are sealed in whatever queue they are."""
        return is_sensitive(self.sender.queues, self.limits.queue)

    def has_identity(self, queue: str, rule: Unique | Literal[False] | None = None) -> bool:
        """Whether other calls may be duplicates of one."""
        rule = self._unique if rule is None else rule
        return bool(self.sender.queues.get(queue, PLAIN).duplicates if rule is None else rule)

    def identity(
        self, payload: bytes, queue: str, rule: Unique | Literal[False] | None = None
    ) -> Identity | None:
        """What makes other calls duplicates of this one: by the call's own rule, else the task's, else the queue's."""
        if rule is None:
            rule = self._unique
        if rule is None and queue in self.sender.queues:
            window = self.sender.queues[queue].duplicates
            return Unique(window=window).identity(self.arguments, payload, queue) if window else None
        return rule.identity(self.arguments, payload) if rule else None

    @cached_property
    def arguments(self) -> Arguments:
        """Made on first use, when every name in the annotations is defined."""
        return Arguments(self.name, self.function)

    @cached_property
    def results(self) -> Results:
        return Results(self.name, self.function)

    @property
    def breakers(self) -> dict[str, Breaker]:
        """Those that it is parked behind while they are open: its agent's, and its own."""
        found = dict([self.limits.agent] if self.limits.agent else [])
        return found | ({self.name: self.limits.breaker} if self.limits.breaker else {})

    @cached_property
    def spec(self) -> Spec:
        limits, queue = self.limits, self.sender.queues.get(self.limits.queue, PLAIN)
        reply = self._reply(limits.queue)
        guarded = limits.guarded or queue.limit is not None or reply is not None
        return Spec(
            task=self.name,
            queue=limits.queue,
            lane=self.lane.guarded if guarded else self.lane,
            priority=limits.priority,
            attempts=limits.retry.attempts,
            time_limit=limits.time_limit,
            exclusive=f"task:{self.name}" if limits.singleton else None,
            reply=reply,
        )

    @property
    def used(self) -> bool:
        """Whether its spec is fixed: calls were made of it."""
        return "spec" in self.__dict__

    @cached_property
    def lane(self) -> Lane:
        """Where its body runs."""
        if self.limits.process:
            return Lane.PROCESS
        return Lane.COROUTINE if self.is_async else Lane.THREAD


class AsyncTask(Task[P, R]):
    """A task made of an `async def`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:  # type: ignore[override]
        return cast(Awaitable[R], self.function(*args, **kwargs))


def task_name(function: Callable[..., Any], name: str | None, taken: Collection[str]) -> str:
    """Under what a function is registered: as it is called, unless said otherwise. Raises TaskInvalid."""
    known = name or str(getattr(function, "__name__", ""))
    if not known or known == "<lambda>" or not known.isprintable():
        raise TaskInvalid(f"{function!r} cannot be a task: give a named function, or a name=.")
    if known in taken:
        raise TaskInvalid(f"There is a task {known!r} already. Give one of the two another name=.")
    return known


def _changed(spec: Spec, **changes: Any) -> Spec:
    values = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return Spec(**values | changes)
