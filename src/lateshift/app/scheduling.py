"""`app.schedule(report, cron="0 2 * * *")`: schedules as a program makes them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import structs

from lateshift.errors import ArgumentsInvalid, OptionInvalid, ScheduleInvalid, TaskUnknown, UsageError
from lateshift.model import checks
from lateshift.model.queue import is_sensitive
from lateshift.model.scheduling.plan import CATCH_UP_MOST, GRACE, CatchUp, Overlap, Plan, plan_of, told
from lateshift.model.scheduling.schedule import SCHEDULE_NAME_LIMIT, NewSchedule
from lateshift.model.scheduling.timing import EPOCH, Timing, next_tick, timing_of
from lateshift.scheduler.ticker import Ticker
from lateshift.schedules import Schedule, one_at_a_time
from lateshift.store.contract import Store
from lateshift.store.firing import with_tick
from lateshift.task import Bound, Call, Task

Scheduled: TypeAlias = Task[..., Any] | Bound[..., Any] | Call[Any]


class Scheduling:
    """What an app does about schedules."""

    name: str

    def __init__(self) -> None:
        super().__init__()
        self._schedules: dict[str, NewSchedule] = {}

    @property
    @abstractmethod
    def tasks(self) -> Mapping[str, Task[..., Any]]: ...

    @property
    @abstractmethod
    def store(self) -> Store: ...

    def schedule(
        self,
        what: Scheduled,
        /,
        *,
        cron: str | None = None,
        every: timedelta | None = None,
        at: datetime | None = None,
        timezone: str = "UTC",
        overlap: Overlap = "skip",
        catch_up: CatchUp = "last",
        most: int = CATCH_UP_MOST,
        grace: timedelta = GRACE,
        jitter: timedelta | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        tick_as: str | None = None,
    ) -> Schedule:
        """Make a job at each tick: of a cron expression (five fields, or six with the seconds first) in a time zone, of an
        interval, or once. `what`: a task, `task.options(…)`, or `task.call(…)` with its arguments. The store learns of it when
        a scheduler of this app starts; `name`, else the task's, is what it is known by.

        `overlap`: if its last job has not ended, "skip" the tick, "queue" one, "cancel" the old one, or "allow" both.
        `catch_up`: of the ticks that nobody was there for, fire "none", the "last", or "all", `most` at most; a tick is late
        after `grace`. `jitter`: each job starts within so long after its tick. `start`, `end`: no tick before, none after.
        `tick_as`: the parameter that is given the tick's time: a datetime in UTC, its text, or the date in its time zone.
        """
        timing = timing_of(cron=cron, every=every, at=at, timezone=timezone, start=start, end=end)
        plan = plan_of(
            timing, overlap=overlap, catch_up=catch_up, most=most, grace=grace, jitter=jitter, tick_as=tick_as
        )  # fmt: skip
        new = new_schedule(what, name, plan, args, kwargs)
        if new.job.spec.task not in self.tasks:
            raise TaskUnknown(f"The task {new.job.spec.task!r} is not one of this app.")
        if new.name in self._schedules:
            raise ScheduleInvalid(
                f"There are two schedules {new.name!r} in this app. Give one of them another name=."
            )
        self._schedules[new.name] = new
        return Schedule(new.name, lambda: self.store)

    @property
    def schedules(self) -> Mapping[str, NewSchedule]:
        """Those that this app's code makes, by name."""
        return MappingProxyType(self._schedules)

    def schedules_into(self, queue: str) -> list[str]:
        """Those whose jobs go into a queue, in words."""
        return [
            f"the schedule {name}" for name, new in self._schedules.items() if new.job.spec.queue == queue
        ]

    def ticker(self) -> Ticker:
        """What fires schedules, for whoever runs the parts of this app."""
        return Ticker(self.store, self.name, lambda: list(self._schedules.values()))

    def find_schedule(self, name: str) -> Schedule:
        """A schedule in the store, whoever made it."""
        found = Schedule(name, lambda: self.store)
        found.view()  # raises if there is none
        return found


def new_schedule(
    what: Scheduled, name: str | None, plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> NewSchedule:
    """Looked at: the arguments fit the task, and each tick can make a job of them."""
    _refuse_no_arguments(args, kwargs)
    call, plan = _fitting(what, plan, args, dict(kwargs or {}))
    name = schedule_name(call.task.name if name is None else name)
    job = one_at_a_time(call.job, name) if plan.overlap in ("queue", "cancel") else call.job
    return NewSchedule(name=name, plan=plan, job=job)


def refuse_past(timing: Timing, now: datetime) -> None:
    """Of a schedule that somebody makes now: it must have a tick to come."""
    if next_tick(timing, now) is None:
        last = timing.at if timing.at is not None else timing.end
        raise ScheduleInvalid(
            f"It never fires: {last:%Y-%m-%d %H:%M} UTC has passed. Name a time to come; enqueue the task for a job now."
        )


def schedule_name(name: str) -> str:
    return checks.line("The name of a schedule", name, SCHEDULE_NAME_LIMIT)


def _fitting(
    what: Scheduled, plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Call[Any], Plan]:
    """The call, and the plan with the form of the tick that its parameter takes: the instant, else the date."""
    try:
        return _call(what, plan, args, kwargs), plan
    except UsageError:
        if plan.tick_as is None:
            raise
        dated = structs.replace(plan, tick_form="date")
        with suppress(UsageError):
            return _call(what, dated, args, kwargs), dated
        raise


def _call(what: Scheduled, plan: Plan, args: Sequence[Any], kwargs: dict[str, Any]) -> Call[Any]:
    if not isinstance(what, Task | Bound | Call):
        raise OptionInvalid(f"A schedule takes a task, task.options(…) or task.call(…), not {what!r}.")
    _refuse_no_parameter(what if isinstance(what, Task) else what.task, plan.tick_as)
    if not isinstance(what, Call):
        tick = {} if plan.tick_as is None else {plan.tick_as: told(plan, _some_tick(plan))}
        call = what.call(*args, **kwargs | tick)
    elif args or kwargs:
        raise ScheduleInvalid("A call has its arguments: leave args= and kwargs= out.")
    else:
        call = what
    _refuse_unfit(call, plan)
    return call


def _refuse_no_arguments(args: Any, kwargs: Any) -> None:
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise ScheduleInvalid(f"args is a list or a tuple of arguments, not {args!r}.")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise ScheduleInvalid(f"kwargs is a dict of arguments by name, not {kwargs!r}.")


def _some_tick(plan: Plan) -> datetime:
    found = next_tick(plan.timing, EPOCH)
    return EPOCH if found is None else found


def _refuse_no_parameter(task: Task[..., Any], name: str | None) -> None:
    if name is not None and name not in task.arguments.names:
        known = ", ".join(task.arguments.names) or "none"
        raise ScheduleInvalid(
            f"tick_as={name!r}: {task.name} has no parameter of that name. It has: {known}."
        )


def _refuse_unfit(call: Call[Any], plan: Plan) -> None:
    job = call.job
    if is_sensitive(call.task.sender.queues, job.spec.queue):
        raise ScheduleInvalid(
            f"{call.task.name} is in the sensitive queue {job.spec.queue}, and the store makes the jobs of a schedule, without a key. Schedule a "
            "task of another queue that enqueues it."
        )
    if job.key is not None:
        raise ScheduleInvalid(
            "A key would make one job of all ticks. Leave key= out: each tick makes one job as it is."
        )
    if job.spec.delay is not None or job.spec.at is not None:
        raise ScheduleInvalid(
            "The schedule says when its jobs start: leave delay= and at= out; jitter= spreads them."
        )
    if job.place is not None and job.place.sequence is not None:
        raise ScheduleInvalid(
            "A number in a session is used once, and a schedule makes many jobs. Leave sequence= out."
        )
    if plan.tick_as is None:
        return
    if job.unique is not None:
        raise ScheduleInvalid(
            "tick_as= makes every call another one, so that unique= has no say. Leave one out."
        )
    try:
        call.task.arguments.decode(with_tick(job.payload, plan, _some_tick(plan)))
    except ArgumentsInvalid as error:
        raise ScheduleInvalid(
            f"tick_as={plan.tick_as!r}: a tick is a datetime in UTC, or a date. {error}"
        ) from None
