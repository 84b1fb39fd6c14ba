"""What a workflow's code asks for: steps, and whatever else must be the same when the code is run again."""

import random
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, Generic, TypeAlias, TypeVar, overload

from msgspec import UNSET, UnsetType

from lateshift.errors import OptionInvalid, WorkflowInvalid
from lateshift.model import checks
from lateshift.model.ids import JobId
from lateshift.model.job import NewJob
from lateshift.model.outcome import plain
from lateshift.model.retry import NO_RETRY, Retry
from lateshift.model.triggering.naming import event_name
from lateshift.model.workflow.policy import OnFailure, Policy
from lateshift.model.workflow.run import SIGNAL_NAME_LIMIT, STATUS_LIMIT
from lateshift.model.workflow.step import Kind, path_of
from lateshift.task import HOUR, Bound, Task
from lateshift.workflow import steps
from lateshift.workflow.calls import Inline, bound_undo, decoded, named
from lateshift.workflow.control import Branch, Undoable
from lateshift.workflow.run import Run

T = TypeVar("T")

STEP_NAME_LIMIT = 200  # characters
Then: TypeAlias = OnFailure | Policy | None
Limit: TypeAlias = timedelta | UnsetType | None

_branch: ContextVar[Branch] = ContextVar("lateshift_branch")


class Step(Generic[T]):
    """A step that was asked for, and begins when it is awaited. It has its number from the moment it was asked for."""

    __slots__ = ("_begin", "_body")

    def __init__(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._begin = begin
        self._body: Coroutine[Any, Any, T] | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        if self._body is not None:
            raise WorkflowInvalid("A step is awaited once. Keep its result, and use that.")
        self._body = self._begin()
        return self._body.__await__()


class Flow:
    """The first argument of a workflow. Between steps, the code must do the same whenever it is run again: what it asks of the world,
    the time and chance, it asks through this."""

    def __init__(self, run: Run, *, now: Callable[[], datetime], policy: Policy) -> None:
        self._run = run
        self._now = now
        self._policy = policy
        _branch.set(Branch())

    @property
    def id(self) -> JobId:
        """The run's id, which is its job's."""
        return self._run.record.lease.id

    @overload
    def step(
        self, function: "Task[..., T] | Bound[..., T]", *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None,
        retry: Retry | None = None, time_limit: Limit = UNSET, on_failure: Then = None, **kwargs: Any,
    ) -> Step[T]: ...  # fmt: skip
    @overload
    def step(
        self, function: Callable[..., Awaitable[T]], *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None,
        retry: Retry | None = None, time_limit: Limit = UNSET, on_failure: Then = None, **kwargs: Any,
    ) -> Step[T]: ...  # fmt: skip
    @overload
    def step(
        self, function: Callable[..., T], *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None,
        retry: Retry | None = None, time_limit: Limit = UNSET, on_failure: Then = None, **kwargs: Any,
    ) -> Step[T]: ...  # fmt: skip
    def step(
        self, function: Any, *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None, retry: Retry | None = None,
        time_limit: Limit = UNSET, on_failure: Then = None, **kwargs: Any,
    ) -> Step[Any]:  # fmt: skip
        """Run a function once and keep its result: `await flow.step(reserve, order_id, undo=release)`. A task runs as a job of its own
        on its queue, and the workflow waits without a worker; any other function runs here.

        `undo`: called with the same arguments, and with the step's result if it has a parameter `result`, when the run is undone.
        `retry`: of a function; a task has its own. `time_limit`: of each try of a function, an hour unless said; of a task the complete-by of the whole
        step, with its queueing and its retries, none unless said. `on_failure`: "raise" StepFailed here, "hold" the run for an
        operator, or a Policy, by which a task is asked for again first.
        """
        if not (isinstance(function, Bound) or callable(function)):
            raise WorkflowInvalid(
                f"flow.step takes a function and its arguments, flow.step(charge, 7), not {function!r}."
            )
        task = function.task if isinstance(function, Bound) else function
        known = checks.text("The name of a step", name, STEP_NAME_LIMIT) if name is not None else named(task)
        limit = (
            (None if isinstance(task, Task) else HOUR) if isinstance(time_limit, UnsetType) else time_limit
        )
        rules = self._rules(retry, limit, on_failure, undo)
        if isinstance(task, Task):
            if retry is not None:
                raise OptionInvalid(f"The step {known} is a task, which has its own retry: leave retry= out.")
            return self._of_task(function, known, args, kwargs, rules, undo, Kind.JOB)
        inline = Inline(function, args, kwargs)
        payload = inline.payload()
        path = self._run.number(_branch.get(), Kind.CALL, known, payload)
        if undo is not None:
            wants = bound_undo(undo, known, args, kwargs)
            self._run.undos[path] = Undoable(
                undo, args, kwargs, wants, lambda result: decoded(function, result)
            )
        return Step(lambda: steps.call(self._run, path, known, inline, payload, rules))

    def child(
        self, workflow: "Task[..., T]", *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None,
        time_limit: timedelta | None = None, on_failure: Then = None, **kwargs: Any,
    ) -> Step[T]:  # fmt: skip
        """Run another workflow, and wait for its result. If this run is undone before that, the child is cancelled."""
        if not getattr(workflow, "is_workflow", False):
            raise WorkflowInvalid(
                f"flow.child takes a workflow, not {workflow!r}. For tasks there is flow.step."
            )
        known = (
            checks.text("The name of a step", name, STEP_NAME_LIMIT) if name is not None else workflow.name
        )
        rules = self._rules(None, time_limit, on_failure, undo)
        return self._of_task(workflow, known, args, kwargs, rules, undo, Kind.CHILD)

    def sleep(self, time: timedelta) -> Step[None]:
        """Wait so long, without a worker."""
        wait = checks.duration("flow.sleep", time)
        path = self._run.number(_branch.get(), Kind.SLEEP, "")
        return Step(lambda: steps.sleep(self._run, path, wait))

    def wait_for(
        self, name: str, *, timeout: timedelta | None = None, type: type[T] | Any = Any
    ) -> Step[Any]:
        """Wait for `app.signal(run, name, data)`, and give its data. One that came before is taken at once. Raises TimeoutError after
        `timeout`."""
        known = checks.text("The name of a signal", name, SIGNAL_NAME_LIMIT)
        if timeout is not None:
            checks.duration("timeout", timeout)
        path = self._run.number(_branch.get(), Kind.SIGNAL, known)
        return Step(lambda: steps.signal(self._run, path, known, timeout, type))

    async def gather(self, *branches: Awaitable[Any]) -> list[Any]:
        """All of these at once: steps, or coroutines that make steps. Waits until each has ended; then raises the first error, if
        there was one."""
        path = self._run.number(_branch.get(), Kind.GATHER, str(len(branches)))
        steps.mark(self._run, path, Kind.GATHER, str(len(branches)))
        prefix = path_of(path, 1)
        return await self._run.together(
            [_in_branch(Branch(path_of(prefix, number)), each) for number, each in enumerate(branches, 1)]
        )

    def now(self) -> datetime:
        """The time, the same whenever the code is run again."""
        return steps.moment(self._run, self._run.number(_branch.get(), Kind.NOW, ""), self._now())

    def random(self) -> random.Random:
        """Chance that is the same whenever the code is run again."""
        branch = _branch.get()
        branch.chances += 1
        return random.Random(f"{self.id} {branch.prefix} {branch.chances}")

    def emit(self, name: str, data: Any = None) -> Step[None]:
        """Tell of something that has happened, once: see `app.emit`."""
        known = event_name(name)
        path = self._run.number(_branch.get(), Kind.EMIT, known)
        return Step(lambda: steps.emit(self._run, path, known, lambda: self._run.jobs_of_event(known, data)))

    def status(self, text: str) -> None:
        """Say what the run is at: `lateshift workflows list` shows it."""
        self._run.record.say(status=plain(checks.text("The status of a workflow", text, STATUS_LIMIT)))

    def patched(self, name: str) -> bool:
        """Whether this run goes by code that has this patch: not if it passed here before there was one. For both, old runs and
        new: `if flow.patched("2026-12-refund"): … else: …`. When no old run is left, the old branch and the patch may go."""
        known = checks.text("The name of a patch", name, STEP_NAME_LIMIT)
        branch = _branch.get()
        if self._run.next_is(branch, Kind.PATCH, known) is False:
            return False
        steps.mark(self._run, self._run.number(branch, Kind.PATCH, known), Kind.PATCH, known)
        return True

    def _rules(
        self, retry: Retry | None, limit: timedelta | None, on_failure: Then, undo: Callable[..., Any] | None
    ) -> steps.Rules:  # fmt: skip
        policy = self._policy if on_failure is None else policy_of(on_failure)
        if limit is not None and checks.duration("time_limit", limit) <= timedelta(0):
            raise OptionInvalid("time_limit must be longer than nothing, or None for no limit.")
        if retry is not None and not isinstance(retry, Retry):
            raise OptionInvalid(f"retry is a Retry, such as Retry(attempts=3), not {retry!r}.")
        return steps.Rules(
            retry=retry or NO_RETRY,
            limit=limit,
            policy=policy,
            undo=None if undo is None else named(undo),
        )

    def _of_task(
        self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], rules: steps.Rules,
        undo: Callable[..., Any] | None, kind: Kind,
    ) -> Step[Any]:  # fmt: skip
        task = function.task if isinstance(function, Bound) else function
        new = function.call(*args, **kwargs).job
        path = self._run.number(_branch.get(), kind, name, new.payload)
        if undo is not None:
            wants = bound_undo(undo, name, args, kwargs)
            self._run.undos[path] = Undoable(undo, args, kwargs, wants, task.results.decode)

        def make(payload: bytes | None, wait: timedelta) -> NewJob:
            return steps.of_run(new, self.id, payload, wait)

        return Step(lambda: steps.job(self._run, path, kind, name, make, task.results.decode, rules))


async def _in_branch(branch: Branch, body: Awaitable[T]) -> T:
    """Each branch is a task, with a context of its own."""
    _branch.set(branch)
    return await body


def policy_of(on_failure: OnFailure | Policy) -> Policy:
    if isinstance(on_failure, Policy):
        return on_failure
    if on_failure not in ("raise", "hold"):
        raise OptionInvalid(f'on_failure is "raise", "hold" or a Policy, not {on_failure!r}.')
    return Policy(then=on_failure)
