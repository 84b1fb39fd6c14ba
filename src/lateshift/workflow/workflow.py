"""A workflow: a task whose attempts go on where the last one stood."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, update_wrapper
from typing import Any, ParamSpec, TypeVar

from lateshift.errors import OptionInvalid, StepFailed, TaskInvalid, WorkflowInvalid
from lateshift.model.history import append
from lateshift.model.job import AttemptRecord, Lease, NewJob, Place, Spec
from lateshift.model.outcome import MESSAGE_LIMIT, Cancelled, DeadLettered, Decided, Deciding, clip, said
from lateshift.model.queue import PLAIN
from lateshift.model.remote import name_of
from lateshift.model.workflow.policy import Policy
from lateshift.model.workflow.run import Loaded, Phase
from lateshift.model.workflow.step import shown_path
from lateshift.runtime.log import log
from lateshift.task import Bound, Limits, Sender, Task
from lateshift.workflow.control import Diverged, Evicted, Stop, leaves
from lateshift.workflow.flow import Flow
from lateshift.workflow.graph.graph import Graph
from lateshift.workflow.journal import Journal
from lateshift.workflow.record import Lost, Record
from lateshift.workflow.run import Run
from lateshift.workflow.undoing import resolve, undo_all

STILL_UNDONE = "; it is to be undone, but "  # between why, and why it is held

P = ParamSpec("P")
R = TypeVar("R")


class Workflow(Task[P, R]):
    """`enqueue` starts a run. Its job is leased for each stretch of it, and holds no worker in between."""

    is_workflow = True

    def __init__(
        self, function: Callable[..., Awaitable[R]], name: str, limits: Limits, sender: Sender, *, policy: Policy,
        version: Callable[[], str], now: Callable[[], datetime],
        jobs_of_event: Callable[[str, Any], Awaitable[list[NewJob]]],
    ) -> None:  # fmt: skip
        super().__init__(_without_flow(name, function), name, limits, sender)
        self._code = function
        self._policy = policy
        self._version = version
        self._now = now
        self._jobs_of_event = jobs_of_event

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"

    @cached_property
    def spec(self) -> Spec:
        spec = super().spec
        self._refuse_guards(spec.queue, None)
        return spec

    def options(self, **options: Any) -> Bound[P, R]:
        """As a task's, without session, tenant and limit_key: a run that sleeps would hold its turn for as long. Its steps may have
        them."""
        bound = super().options(**options)
        self._refuse_guards(bound.spec.queue, bound.place)
        return bound

    def _refuse_guards(self, queue: str, place: Place | None) -> None:
        if place is not None or self.sender.queues.get(queue, PLAIN).limit is not None:
            raise OptionInvalid(
                f"The workflow {self.name} has no session, tenant or limit, nor may its queue {queue}: a run that sleeps would hold "
                "its turn for as long. Give them to the tasks that are its steps, and the workflow another queue."
            )

    def graph(self) -> Graph:
        """What it may do, read from its code; nothing of it is run. Raises WorkflowInvalid if the source is not there."""
        from lateshift.workflow.graph.reading import read

        return read(self.name, self._code)

    def read(self, lease: Lease) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """A run that has begun is no dead letter because of new code: it is held when it starts."""
        try:
            return super().read(lease)
        except Exception as error:
            if lease.fence == 1:
                raise
            return [_Unreadable(error)], {}

    async def start(self, attempt: Any) -> Any:
        """One stretch: until it ends, or waits."""
        journal: Journal = attempt.desk.journal
        record = Record(attempt.lease, journal, self.name, self._version(), attempt.desk.now)
        run = Run(attempt, record, self._jobs_of_event)
        if attempt.lease.fence > 1:
            await record.load()
        try:
            await self._stay_held(record)
            return await self._go(attempt, run, journal)
        except Diverged as difference:
            await self._hold(run, str(difference), difference.why_held)
        except (Evicted, Lost):
            pass
        if attempt.lost:
            raise asyncio.CancelledError
        raise Deciding(Decided(None))

    async def look(self, loaded: Loaded, payload: bytes, journal: Any) -> None:
        """Run the code over what is recorded, and begin nothing. Raises Diverged."""
        looking = _Looking(self, loaded, payload)
        record = Record(looking.lease, journal, self.name, loaded.run.version, time.monotonic)
        await record.load()
        run = Run(looking, record, self._jobs_of_event, looks=True)
        flow = self._flow(run)
        args, kwargs = self.read(looking.lease)
        _refuse_unreadable(args)
        try:
            await run.drive(lambda: self._code(flow, *args, **kwargs))
        except (Evicted, Stop):
            return
        except (Exception, SystemExit):
            pass  # so it would end; what it has recorded until there is looked at
        self._refuse_unmet(run)

    def _flow(self, run: Run) -> Flow:
        return Flow(run, now=self._now, policy=self._policy, is_ours=self._is_ours)

    def _is_ours(self, task: Task[..., Any]) -> bool:
        """Of the same app."""
        return task.sender is self.sender

    async def _go(self, attempt: Any, run: Run, journal: Journal) -> Any:
        flow = self._flow(run)
        record, error = run.record, None
        _refuse_unreadable(attempt.args)
        try:
            result = await run.drive(lambda: self._code(flow, *attempt.args, **attempt.kwargs))
            if not run.stops:
                self._refuse_unmet(run)
                run.asked.refuse_any()
                if run.in_flight():  # begun, and not waited for
                    await run.drive(lambda: resolve(run, journal))
                self.results.encode(result)
                await run.commit()
                return result
        except Stop:
            pass
        except (Exception, SystemExit) as raised:
            error = raised
            if not record.phase.is_undone:  # else it was told before
                # What a step raised stands at the step, where it is hidden from those who may not see its queue.
                told = f"step {raised.step} did" if isinstance(raised, StepFailed) else said(raised)
                log.error(
                    "workflow %s %s has failed: %s: %s", self.name, run.record.lease.id, name_of(raised), told
                )
        asked = (record.why or "").partition(STILL_UNDONE)[0] if record.phase.is_undone else ""
        why = asked or _why(error, record.cancel_by)
        if asked and asked != record.why:
            record.say(phase=Phase.UNDOING, why=why)  # it is not held any more
        undone = await run.drive(lambda: undo_all(run, journal, why))
        raise Deciding(self._ended(run, why, undone=undone))

    def _refuse_unmet(self, run: Run) -> None:
        unmet = run.unmet()
        if unmet is not None:
            raise Diverged(
                f"it has recorded step {shown_path(unmet.path)} {unmet.name}, and the code ended without asking for it"
            )

    def _ended(self, run: Run, why: str, *, undone: bool) -> Decided:
        record, keep = run.record, self.limits.keep_dead
        history = append(
            record.lease.history,
            AttemptRecord(
                attempt=record.lease.attempt, fence=record.lease.fence, at=self._now(), reason="failed" if undone else "compensation_failed",
                message=clip(why, MESSAGE_LIMIT),
            ),
        )  # fmt: skip
        if not undone:
            return Decided(DeadLettered("compensation_failed", history, keep), why)
        if record.cancel_by is not None:
            return Decided(Cancelled(f"cancelled by {record.cancel_by}", keep, history), why)
        reason = "undone" if any(row.undo for row in record.steps.values()) else "failed"
        return Decided(DeadLettered(reason, history, keep), why)

    async def _stay_held(self, record: Record) -> None:
        """One that is held goes on when somebody says so."""
        while record.phase.is_held and record.cancel_by is None:
            answer = await record.sleep((), "an operator")
            if answer.asleep:
                raise Evicted
            await record.load()

    async def _hold(self, run: Run, why: str, of: str) -> None:
        """The code is not the one that made this record: nothing goes on until somebody has looked. That it is to be undone is kept,
        also if somebody says so just now."""
        record = run.record
        log.error(
            "workflow %s %s is held: %s. Deploy code that fits, and `lateshift workflows resume` it",
            self.name, record.lease.id, why,
        )  # fmt: skip
        why = f"{of}{why}"
        if not record.phase.is_held:
            await run.alert("workflow_held", why)
        with suppress(Lost):
            while True:
                _say_held(record, why)
                if (await record.sleep((), "an operator")).asleep:
                    return
                await record.load()


def _say_held(record: Record, why: str) -> None:
    if record.phase.is_undone:
        asked = (record.why or "an operator wants it undone").partition(STILL_UNDONE)[0]
        record.say(phase=Phase.UNDO_HELD, why=f"{asked}{STILL_UNDONE}{why}")
    else:
        record.say(phase=Phase.HELD, why=why)


class _Unreadable:
    """Instead of arguments that new code cannot read."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _refuse_unreadable(args: Sequence[Any]) -> None:
    if args and isinstance(args[0], _Unreadable):
        raise Diverged(f"its arguments: {args[0].error}")


class _Looking:
    """An attempt that only looks."""

    def __init__(self, workflow: Workflow[..., Any], loaded: Loaded, payload: bytes) -> None:
        spec = workflow.spec
        self.lease = Lease(loaded.run.id, 0, workflow.name, payload, 0, 0, None, spec.queue, spec.lane)
        self.cancelled_by: str | None = None
        self.stopping = False
        self.lost = False


def _without_flow(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as its callers see it: its first parameter is not theirs to give."""
    if not inspect.iscoroutinefunction(function):
        raise WorkflowInvalid(f"The workflow {name} must be an async function: `async def {name}(flow, …)`.")
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise TaskInvalid(
            f"The workflow {name} takes the flow as its first parameter: `async def {name}(flow, …)`."
        )
    if any(each.name == "flow" or each.annotation in (Flow, "Flow") for each in parameters[1:]):
        raise TaskInvalid(
            f"The workflow {name} gets the flow as its first parameter, which is {parameters[0].name}: write `async def {name}(flow, …)`."
        )

    async def called(*args: Any, **kwargs: Any) -> Any:
        raise WorkflowInvalid(f"{name} is a workflow: it runs in a worker. Start it with {name}.enqueue(…).")

    update_wrapper(called, function)
    called.__signature__ = signature.replace(parameters=parameters[1:])  # type: ignore[attr-defined]
    called.__annotations__ = {
        known: kind for known, kind in function.__annotations__.items() if known != parameters[0].name
    }
    return called


def _why(error: BaseException | None, cancelled_by: str | None) -> str:
    if error is not None:
        return clip("; ".join(f"{name_of(each)}: {said(each)}" for each in leaves(error)), MESSAGE_LIMIT)
    return f"cancelled by {cancelled_by}" if cancelled_by is not None else "an operator wants it undone"
