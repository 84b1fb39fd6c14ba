"""A pipeline: a workflow whose code is a chain of tasks. Each item that is put in is a run of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import update_wrapper
from inspect import Parameter, Signature
from typing import Any, NoReturn, ParamSpec, TypeVar

from lateshift.errors import WorkflowInvalid
from lateshift.model.job import Lease, NewJob
from lateshift.model.pipeline.ahead import ahead, shape_in
from lateshift.model.pipeline.building import Built
from lateshift.model.pipeline.chain import Chain
from lateshift.model.pipeline.progress import PipelineProgress, progress_of
from lateshift.model.pipeline.shape import shape_of
from lateshift.model.workflow.policy import Policy
from lateshift.model.workflow.run import Loaded, Phase
from lateshift.model.workflow.step import StepState
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store
from lateshift.task import Limits, Sender
from lateshift.workflow import steps
from lateshift.workflow.flow import Flow
from lateshift.workflow.graph.graph import Graph
from lateshift.workflow.passing import Passing
from lateshift.workflow.record import Record
from lateshift.workflow.run import Run
from lateshift.workflow.workflow import Workflow

P = ParamSpec("P")
R = TypeVar("R")

_FLOW = Parameter("__flow", Parameter.POSITIONAL_ONLY)


class Pipeline(Workflow[P, R]):
    """`enqueue` puts an item in: it has the parameters of the first filter. `chain`: what it goes through."""

    def __init__(
        self, name: str, chain: Chain[P, R], built: Built, limits: Limits, sender: Sender, *, tasks: Mapping[str, Any],
        store: Callable[[], Store], policy: Policy, version: Callable[[], str], now: Callable[[], datetime],
        jobs_of_event: Callable[[str, Any], Awaitable[list[NewJob]]],
    ) -> None:  # fmt: skip
        super().__init__(
            _code(name, chain, built), name, limits, sender, policy=policy, version=version, now=now,
            jobs_of_event=jobs_of_event,
        )  # fmt: skip
        self.chain = chain
        self._tasks = tasks
        self._store = store

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}: {self.chain}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        """Raises WorkflowInvalid: items are put in with `enqueue`, and go through in workers."""
        raise WorkflowInvalid(
            f"{self.name} is a pipeline: its filters run in workers. Put an item in with enqueue(…)."
        )

    def progress(self) -> PipelineProgress:
        """How many items wait, are under way, are held and have ended; and what stands at each filter. Costs the same whatever the
        history: a count stops at 10,000."""
        tally = self._store().workflows.tally(self.name, self.limits.queue)
        return progress_of(self.name, shape_of(self.chain), tally)

    async def aprogress(self) -> PipelineProgress:
        """The same from async code."""
        return await aside(self.progress)

    def graph(self) -> Graph:
        """Its filters, as data, Mermaid text and a picture."""
        from lateshift.workflow.graph.chains import drawn

        return drawn(self.name, self.chain)

    def gone(self, loaded: Loaded) -> list[str]:
        """Filters that an item still has to pass, and that this code has not."""
        shape = shape_in(loaded.steps)
        if shape is None:
            return []
        there = {filter.name for filter in self.chain.filters()} | self._tasks.keys()
        wanted = ahead(shape, {step.path: step for step in loaded.steps})
        return [name for name in dict.fromkeys(place.task for place in wanted) if name not in there]

    def read(self, lease: Lease) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """What an item was put in with is for the first filter to read; only before it begins is it looked at here."""
        return super().read(lease) if lease.fence == 1 else ((), {})

    def _flow(self, run: Run) -> Flow:
        return Passing(
            run,
            now=self._now,
            policy=self._policy,
            is_ours=self._is_ours,
            chain=self.chain,
            tasks=self._tasks,
        )

    async def _stay_held(self, record: Record) -> None:
        """An element of a fan_out that is held keeps none of the others."""
        if any(row.state is StepState.HELD for row in record.steps.values()):
            return
        if record.phase is Phase.HELD and any(map(steps.is_why(record.why), record.steps.values())):
            # An operator mended the last held step while the worker was writing that it holds the item still.
            record.say(phase=Phase.FORWARD)
        await super()._stay_held(record)


def _code(name: str, chain: Chain[..., Any], built: Built) -> Callable[..., Awaitable[Any]]:
    """The workflow's function, with the parameters of the first filter."""

    async def code(flow: Passing, /, *args: Any, **kwargs: Any) -> Any:
        return await flow.whole()

    first = next(chain.filters()).task.function
    update_wrapper(code, first)
    code.__name__ = code.__qualname__ = name
    code.__doc__ = str(chain)
    code.__annotations__ = dict(built.hints)
    if built.result is not Parameter.empty:
        code.__annotations__["return"] = built.result
    code.__signature__ = Signature([_FLOW, *built.parameters])  # type: ignore[attr-defined]
    return code
