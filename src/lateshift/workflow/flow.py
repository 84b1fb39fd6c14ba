"""What a workflow's code asks for: steps, and whatever else must be the same when the code is run again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextvars import ContextVar
from datetime import datetime, timedelta
from inspect import isawaitable
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
from lateshift.task import HOUR, Bound, Call, Task
from lateshift.workflow import steps
from lateshift.workflow.asked import Asked, asked
from lateshift.workflow.calls import Inline, decoded, is_cancelled, named, undoable
from lateshift.workflow.control import Branch, drop
from lateshift.workflow.run import Run

T = TypeVar("T")

STEP_NAME_LIMIT = 200  # characters
Then: TypeAlias = OnFailure | Policy | None
Limit: TypeAlias = timedelta | UnsetType | None

_branch: ContextVar[Branch] = ContextVar("lateshift_branch")


class Step(Generic[T]):
    """A step that was asked for, and begins when it is awaited. It has its number from the moment it was asked for. Only the run itself
    calls it off: code that did so, by the worker's clock or because another step failed first, would do otherwise when it is run again."""

    __slots__ = ("_begin", "_body", "_name", "_path", "_run")

    def __init__(
        self, run: Run, path: str, name: str, begin: Callable[[], Coroutine[Any, Any, T]], said: str | None = None
    ) -> None:  # fmt: skip
        self._run = run
        self._path = path
        self._name = name
        self._begin = begin
        self._body: Coroutine[Any, Any, T] | None = None
        run.asked.made(path, said or name)

    def __del__(self) -> None:
        if getattr(self, "_body", self) is None:
            self._run.dropped(self._path)

    def __await__(self) -> Generator[Any, Any, T]:
        if self._body is not None:
            raise WorkflowInvalid("A step is awaited once. Keep its result, and use that.")
        self._run.asked.awaited(self._path)
        self._body = self._begin()
        try:
            return (yield from self._body.__await__())
        except asyncio.CancelledError as error:
            if self._run.evicted or self._run.over or not is_cancelled(error):
                raise
            raise WorkflowInvalid(
                f"{self._name} was cancelled while the workflow waited for it, as asyncio.timeout does, or asyncio.TaskGroup when another of "
                "its tasks fails. Give the step a time_limit=, wait_for a timeout=, and parallel steps to flow.gather."
            ) from None
        except Exception:
            self._run.asked.pardon()
            raise


class Flow:
    """The first argument of a workflow. Between steps, the code must do the same whenever it is run again: what it asks of the world,
    the time and chance, it asks through this."""

    def __init__(
        self, run: Run, *, now: Callable[[], datetime], policy: Policy, is_ours: Callable[[Task[..., Any]], bool]
    ) -> None:  # fmt: skip
        self._run = run
        self._is_ours = is_ours
        self._now = now
        self._policy = policy
        _branch.set(Branch())

    @property
    def id(self) -> JobId:
        """The run's id, which is its job's."""
        return self._run.record.lease.id

    @overload
    def step(
        self, function: "Task[..., T] | Bound[..., T] | Call[T]", *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None,
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
        step, with its queueing and its retries, none unless said. A function with a parameter of one of these names gets its own by
        position, by a functools.partial, or in `task.call(…)`. `on_failure`: "raise" StepFailed here, "hold" the run for an
        operator, or a Policy, by which a task is asked for again first.
        """
        options = _given(undo=undo, name=name, retry=retry, on_failure=on_failure, time_limit=time_limit)
        step = asked(function, args, kwargs, options)
        known = (
            checks.text("The name of a step", name, STEP_NAME_LIMIT)
            if name is not None
            else named(step.task or step.what)
        )
        limit = (None if step.task is not None else HOUR) if isinstance(time_limit, UnsetType) else time_limit
        rules = self._rules(retry, limit, on_failure, undo)
        if step.task is not None:
            if retry is not None:
                raise OptionInvalid(f"The step {known} is a task, which has its own retry: leave retry= out.")
            return self._of_task(step, step.task, known, rules, undo, Kind.JOB)
        inline = Inline(step.what, step.args, step.kwargs)
        payload = inline.payload()
        path = self._next(Kind.CALL, known, payload)
        if undo is not None:
            self._run.undos[path] = undoable(
                undo,
                known,
                step.what,
                step.args,
                step.kwargs,
                decode=lambda result: decoded(step.what, result),
                mended=inline.arguments,
            )
        begin = lambda: steps.call(self._run, path, known, inline, payload, rules)  # noqa: E731
        return Step(self._run, path, known, begin, f"flow.step({known}, …)")

    def child(
        self, workflow: "Task[..., T] | Bound[..., T] | Call[T]", *args: Any, undo: Callable[..., Any] | None = None, name: str | None = None,
        time_limit: timedelta | None = None, on_failure: Then = None, **kwargs: Any,
    ) -> Step[T]:  # fmt: skip
        """Run another workflow, and wait for its result. If this run is undone before that, the child is cancelled."""
        options = _given(undo=undo, name=name, on_failure=on_failure, time_limit=time_limit)
        step = asked(workflow, args, kwargs, options)
        task = step.task
        if task is None or not task.is_workflow:
            raise WorkflowInvalid(
                f"flow.child takes a workflow, not {workflow!r}. For tasks there is flow.step."
            )
        known = checks.text("The name of a step", name, STEP_NAME_LIMIT) if name is not None else task.name
        rules = self._rules(None, time_limit, on_failure, undo)
        return self._of_task(step, task, known, rules, undo, Kind.CHILD)

    def sleep(self, time: timedelta) -> Step[None]:
        """Wait so long, without a worker."""
        wait = checks.duration("flow.sleep", time)
        path = self._next(Kind.SLEEP, "")
        begin = lambda: steps.sleep(self._run, path, wait)  # noqa: E731
        return Step(self._run, path, "flow.sleep", begin, "flow.sleep(…)")

    def wait_for(
        self, name: str, *, timeout: timedelta | None = None, type: type[T] | Any = Any
    ) -> Step[Any]:
        """Wait for `app.signal(run, name, data)`, and give its data. One that came before is taken at once. Raises TimeoutError after
        `timeout`."""
        known = checks.text("The name of a signal", name, SIGNAL_NAME_LIMIT)
        if timeout is not None:
            checks.duration("timeout", timeout)
        path = self._next(Kind.SIGNAL, known)
        begin = lambda: steps.signal(self._run, path, known, timeout, type)  # noqa: E731
        return Step(self._run, path, f"flow.wait_for {known}", begin, f"flow.wait_for({known!r})")

    async def gather(self, *branches: Awaitable[Any]) -> list[Any]:
        """All of these at once: steps, or coroutines that make steps. Waits until each has ended; then raises the first error, if
        there was one."""
        try:
            self._refuse_other(branches)
            path = self._next(Kind.GATHER, str(len(branches)))
            steps.mark(self._run, path, Kind.GATHER, str(len(branches)))
            prefix = path_of(path, 1)
            parts = [
                _in_branch(Branch(path_of(prefix, number)), each) for number, each in enumerate(branches, 1)
            ]
            return await Step(self._run, path, "flow.gather", lambda: self._run.together(parts))
        finally:
            drop(branches)

    def _refuse_other(self, branches: tuple[object, ...]) -> None:
        for each in branches:
            if isawaitable(each):
                continue
            self._run.asked.pardon()  # what is wrong is not that they were forgotten
            if isinstance(each, Iterable):
                raise WorkflowInvalid(
                    "flow.gather takes steps one by one: flow.gather(*steps), not a list of them."
                )
            raise WorkflowInvalid(
                f"flow.gather takes steps, or coroutines that make steps: flow.gather(flow.step(charge, 7), …), not {each!r}."
            )

    def now(self) -> datetime:
        """The time, the same whenever the code is run again."""
        return steps.moment(self._run, self._next(Kind.NOW, ""), self._now())

    def random(self) -> random.Random:
        """Chance that is the same whenever the code is run again."""
        branch = _branch.get()
        branch.chances += 1
        return random.Random(f"{self.id} {branch.prefix} {branch.chances}")

    def emit(self, name: str, data: Any = None) -> Step[None]:
        """Tell of something that has happened, once: see `app.emit`."""
        known = event_name(name)
        path = self._next(Kind.EMIT, known)
        made = lambda: self._run.jobs_of_event(known, data)  # noqa: E731
        begin = lambda: steps.emit(self._run, path, known, made)  # noqa: E731
        return Step(self._run, path, f"flow.emit {known}", begin, f"flow.emit({known!r}, …)")

    def status(self, text: str) -> None:
        """Say what the run is at: `lateshift workflows list` shows it."""
        self._run.record.say(status=plain(checks.text("The status of a workflow", text, STATUS_LIMIT)))

    def patched(self, name: str) -> bool:
        """Whether this run goes by code that has this patch: not if it passed here before there was one. For both, old runs and
        new: `if flow.patched("2026-12-refund"): … else: …`. When no old run is left, the old branch and the patch may go."""
        known = checks.text("The name of a patch", name, STEP_NAME_LIMIT)
        if self._next_is(Kind.PATCH, known) is False:
            return False
        steps.mark(self._run, self._next(Kind.PATCH, known), Kind.PATCH, known)
        return True

    def _next(self, kind: Kind, name: str, payload: bytes | None = None) -> str:
        """The path of the step that comes next in this branch."""
        return self._run.number(_branch.get(), kind, name, payload)

    def _branch(self) -> str:
        """The path of the branch that asks."""
        return _branch.get().prefix

    def _next_is(self, kind: Kind, name: str) -> bool | None:
        """Whether it is recorded so; None if nothing is recorded there."""
        return self._run.next_is(_branch.get(), kind, name)

    def _rules(
        self, retry: Retry | None, limit: timedelta | None, on_failure: Then, undo: Callable[..., Any] | None
    ) -> steps.Rules:  # fmt: skip
        policy = self._policy if on_failure is None else policy_of(on_failure)
        if limit is not None and checks.duration("time_limit", limit) <= timedelta(0):
            raise OptionInvalid("time_limit must be longer than nothing, or None for no limit.")
        if undo is not None and not callable(undo):
            raise WorkflowInvalid(f"undo= is a function or a task, such as undo=refund, not {undo!r}.")
        if isinstance(undo, Task):
            self._refuse_foreign(undo)
        if retry is not None and not isinstance(retry, Retry):
            raise OptionInvalid(f"retry is a Retry, such as Retry(attempts=3), not {retry!r}.")
        return steps.Rules(
            retry=retry or NO_RETRY,
            limit=limit,
            policy=policy,
            undo=None if undo is None else named(undo),
        )

    def _refuse_foreign(self, task: Task[..., Any]) -> None:
        if not self._is_ours(task):
            raise WorkflowInvalid(
                f"{task.name} is a task of another app: a workflow's steps are functions, and tasks of its own app. Register it with this "
                f"app, or enqueue it in a step: a function that calls {task.name}.enqueue(…)."
            )

    def _of_task(
        self, step: Asked, task: Task[..., Any], name: str, rules: steps.Rules, undo: Callable[..., Any] | None, kind: Kind,
    ) -> Step[Any]:  # fmt: skip
        self._refuse_foreign(task)
        new = step.job()
        path = self._next(kind, name, new.payload)
        if undo is not None:
            self._run.undos[path] = undoable(
                undo, name, task.function, step.args, step.kwargs,
                decode=task.results.decode, mended=task.arguments.decode,
            )  # fmt: skip

        def make(payload: bytes | None, wait: timedelta) -> NewJob:
            return steps.of_run(new, self.id, payload, wait)

        begin = lambda: steps.job(self._run, path, kind, name, make, task.results.decode, rules)  # noqa: E731
        said = "flow.child" if kind is Kind.CHILD else "flow.step"
        return Step(self._run, path, name, begin, f"{said}({name}, …)")


def _given(**options: object) -> list[str]:
    """The names of those that were."""
    return [name for name, value in options.items() if value is not None and value is not UNSET]


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
