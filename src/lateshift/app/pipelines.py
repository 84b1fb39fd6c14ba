"""What an app does about pipelines: it builds them of its tasks, and knows which filter feeds which queue."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Never, ParamSpec, TypeVar

from lateshift.app.workflows import Workflows
from lateshift.errors import PipelineInvalid
from lateshift.model import checks
from lateshift.model.job import PRIORITIES, STRETCHES
from lateshift.model.pipeline.building import build
from lateshift.model.pipeline.chain import Chain, Filter, Joins, chain_of, several
from lateshift.model.queue import PLAIN, QueueSettings
from lateshift.model.retry import Retry
from lateshift.model.workflow.policy import OnFailure, Policy
from lateshift.task import Limits
from lateshift.workflow.flow import policy_of
from lateshift.workflow.pipeline import Pipeline

PIPELINE_NAME_LIMIT = 200  # characters

P = ParamSpec("P")
R = TypeVar("R")


class Pipelines(Workflows):
    """See app.Lateshift."""

    name: str
    _queues: Mapping[str, QueueSettings]

    def pipeline(
        self,
        chain: Joins[P, R],
        /,
        *more: Never,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        keep: timedelta = timedelta(days=1),
        on_failure: OnFailure | Policy = "hold",
    ) -> Pipeline[P, R]:
        """Join tasks to a pipeline: `app.pipeline(parse | enrich | store)`. `pipeline.enqueue(…)`, with the arguments of the first task,
        puts an item in; what a task returns is the argument of the next, each runs as a job on its own queue. That their types fit
        is checked here.

        `name`: stays the same when the chain changes; without it, the app's name and ".pipeline". `queue`: of the items while they wait
        to begin; without it the first filter's, so that its `max_ready` bounds both. `priority`: of the items; without it one more than the
        first filter's, so that those under way go on before others begin. `on_failure`: what a filter does that has
        failed for good: "hold" the item until an operator mends it, "raise" to make the item a dead letter, or a Policy. `keep`: how
        long a completed item stays.
        """
        if more:
            raise several("app.pipeline", (chain, *more))
        known = f"{self.name}.pipeline" if name is None else name
        checks.text("The name of a pipeline", known, PIPELINE_NAME_LIMIT)
        if known in self._tasks:
            raise PipelineInvalid(
                f"There is a pipeline or a task {known!r} already. Give one of the two another name=."
            )
        joined: Chain[P, R] = chain_of(chain)
        built = build(known, joined, self._tasks)
        if priority is None:
            priority = min(next(joined.filters()).task.limits.priority + 1, PRIORITIES[-1])
        limits = Limits(
            queue=self._queue_of(known, joined) if queue is None else queue, retry=Retry(attempts=STRETCHES), time_limit=None,
            priority=priority, keep=keep,
        )  # fmt: skip
        made: Pipeline[P, R] = Pipeline(
            known, joined, built, limits, self.client, tasks=self._tasks, store=lambda: self.store, policy=policy_of(on_failure),
            version=lambda: self.version, now=self._now, jobs_of_event=self._jobs_of_event,
        )  # fmt: skip
        self._tasks[known] = made
        self._feed(joined)
        return made

    def _queue_of(self, name: str, chain: Chain[..., Any]) -> str:
        first = next(chain.filters())
        if self._queues.get(first.queue, PLAIN).limit is not None:
            raise PipelineInvalid(
                f"The pipeline {name}: the queue {first.queue} of its first filter {first.name} has a limit, and items that sleep between two "
                'filters would hold their turn for as long. Give the items a queue of their own: app.pipeline(…, queue="items").'
            )
        return first.queue

    def _feed(self, chain: Chain[..., Any]) -> None:
        """So that a filter waits while the queue after it is full. Not where that would make a circle of queues, over all pipelines:
        each could wait for the other for ever."""
        for giver, taker in chain.edges():
            for each in _ends(giver):
                if each.queue != taker.queue and not self.client.leads(taker.queue, each.queue):
                    self.client.feed(each.name, each.queue, taker.queue)


def _ends(filter: Filter) -> Iterator[Filter]:
    """The tasks whose jobs end what this filter does. A run is never kept from going on: of a pipeline the last filters are, of another
    workflow none."""
    if isinstance(filter.task, Pipeline):
        for last in filter.task.chain.ends():
            yield from _ends(last)
    elif not filter.task.is_workflow:
        yield filter
