"""What an app does about workflows: it registers them, starts them like tasks, and tells them things."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload
from uuid import UUID

import msgspec

from lateshift.client import Client
from lateshift.clock import Clock
from lateshift.errors import KeyConflict, OptionInvalid, PayloadTooLarge, RunEnded, RunUnknown, no_run
from lateshift.model import checks
from lateshift.model.depth import refuse_deep, too_deep
from lateshift.model.ids import JobId, id_of
from lateshift.model.job import PAYLOAD_LIMIT, STRETCHES, NewJob
from lateshift.model.retry import Retry
from lateshift.model.workflow.policy import OnFailure, Policy
from lateshift.model.workflow.run import SIGNAL_NAME_LIMIT, SIGNALS_MOST
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store
from lateshift.store.workflow_contract import Told
from lateshift.task import KEY_LIMIT, Limits, Task, task_name
from lateshift.telemetry.tracing import context
from lateshift.workflow.flow import Flow, policy_of
from lateshift.workflow.workflow import Workflow

P = ParamSpec("P")
R = TypeVar("R")


class WorkflowRegistrar:
    """What `app.workflow(…)` gives: a decorator."""

    def __init__(self, register: Callable[[Callable[..., Any]], Any]) -> None:
        self._register = register

    def __call__(self, function: Callable[Concatenate[Flow, P], Awaitable[R]]) -> Workflow[P, R]:
        made: Workflow[P, R] = self._register(function)
        return made


class Workflows:
    """See app.Lateshift."""

    clock: Clock
    client: Client
    _tasks: dict[str, Task[..., Any]]

    if TYPE_CHECKING:

        def _jobs(self, name: str, data: Any, trace: str | None = None) -> list[NewJob]: ...

    @property
    @abstractmethod
    def version(self) -> str: ...

    @property
    @abstractmethod
    def store(self) -> Store: ...

    @overload
    def workflow(self, function: Callable[Concatenate[Flow, P], Awaitable[R]], /) -> Workflow[P, R]: ...
    @overload
    def workflow(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        keep: timedelta = timedelta(days=1),
        on_failure: OnFailure | Policy = "raise",
        reply_to: Any = None,
        reply_on: Sequence[str] | None = None,
    ) -> WorkflowRegistrar: ...
    def workflow(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        keep: timedelta = timedelta(days=1),
        on_failure: OnFailure | Policy = "raise",
        reply_to: Any = None,
        reply_on: Sequence[str] | None = None,
        **others: Any,
    ) -> Any:
        """Register an async function as a workflow: `@app.workflow` over `async def fulfil(flow, order_id)`. It is started like a task,
        `fulfil.enqueue(7)`; the job's id is the run's.

        `on_failure`: what a step does that has failed for good, unless it says otherwise: "raise" StepFailed in the code, which
        undoes the run if nobody catches it; "hold" the run until an operator mends the step; or a Policy. `keep`: how long a completed
        run and its steps stay. `reply_to`, `reply_on`: who is told what becomes of a run, and of what, unless a call says otherwise.
        """
        for other in others:
            raise OptionInvalid(
                f"A workflow has no {other}=: it has name, queue, priority, keep, on_failure, reply_to and reply_on. What else a task may have is given to the "
                "tasks that are its steps; retry= and time_limit= to flow.step."
            )
        policy = policy_of(on_failure)
        limits = Limits(
            queue=queue, retry=Retry(attempts=STRETCHES), time_limit=None, priority=priority, keep=keep, reply_to=reply_to,
            reply_on=reply_on,
        )  # fmt: skip

        def register(body: Callable[..., Any]) -> Workflow[..., Any]:
            known = task_name(body, name, self._tasks)
            made: Workflow[..., Any] = Workflow(
                body, known, limits, self.client, policy=policy, version=lambda: self.version,
                now=self._now, jobs_of_event=self._jobs_of_event,
            )  # fmt: skip
            self._tasks[known] = made
            return made

        return WorkflowRegistrar(register) if function is None else register(function)

    def signal(
        self, run: UUID | str, name: str, data: Any = None, *, key: str | None = None, by: str = "the caller"
    ) -> bool:
        """Tell a run something: its `flow.wait_for(name)` gives the data. One that comes before the wait is kept. `key`: the same key
        again is the same signal. False if it was told before. Raises KeyConflict if the key was used for another signal, RunEnded if nobody
        will take it, and RunUnknown if there is no such run."""
        return tell(self.store, id_of(run, "run"), name, data, key=key, by=by)

    async def asignal(
        self, run: UUID | str, name: str, data: Any = None, *, key: str | None = None, by: str = "the caller"
    ) -> bool:
        """The same from async code."""
        return await aside(self.signal, run, name, data, key=key, by=by)

    def _now(self) -> datetime:
        """By the clock that the app has now: `using` gives it another."""
        return self.clock.now()

    async def _jobs_of_event(self, name: str, data: Any) -> list[NewJob]:
        return await aside(self._jobs, name, data, context())


def tell(store: Store, id: JobId, name: str, data: Any, *, key: str | None, by: str) -> bool:
    """See Workflows.signal: for whoever has a store, and no app."""
    checks.text("The name of a signal", name, SIGNAL_NAME_LIMIT)
    if key is not None:
        checks.text("key", key, KEY_LIMIT)
    told = store.workflows.signal(id, name, _encoded(name, data), key=key, by=by)
    match told:
        case Told.UNKNOWN:
            raise no_run(id)
        case Told.NO_RUN:
            raise RunUnknown(
                f"The job {id} is no run of a workflow: nobody in it waits for a signal. Nothing was kept. `lateshift jobs show` says what it is."
            )
        case Told.CONFLICT:
            raise KeyConflict(
                f"The key {key!r} was used for a signal to the run {id} with another name or other data. Nothing was kept. Use another key "
                "for another signal."
            )
        case Told.ENDED:
            raise RunEnded(f"The run {id} has ended: nobody will take the signal {name!r}. Nothing was kept.")
        case Told.FULL:
            raise RunEnded(
                f"The run {id} has {SIGNALS_MOST:,} signals, as many as one may have. Start another run."
            )
    return told is Told.KEPT


def _encoded(name: str, data: Any) -> bytes | None:
    try:
        kept = None if data is None else msgspec.json.encode(data)
    except RecursionError as error:
        raise too_deep(f"The data of the signal {name!r} has") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionInvalid(f"The data of the signal {name!r} cannot be written as JSON: {error}") from error
    if kept is not None and len(kept) > PAYLOAD_LIMIT:
        raise PayloadTooLarge(
            f"The data of the signal {name!r} is {len(kept):,} bytes, over the limit of {PAYLOAD_LIMIT:,}."
        )
    if kept is not None:
        refuse_deep(kept, f"The data of the signal {name!r} has")
    return kept
