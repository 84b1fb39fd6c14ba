"""What both stores do alike about the runs of one name, counted: what their rows say, and which pipelines there are."""

from collections.abc import Callable, Iterable
from typing import Any

from lateshift.model.job import State
from lateshift.model.pipeline.progress import StepTally, Tally
from lateshift.model.workflow.run import Phase
from lateshift.store.contract import Rows
from lateshift.store.workflow_contract import Kept


def pipelines_kept(
    name: str | None,
    limit: int,
    after: str = "",
    *,
    following: Callable[[str], Rows],
    shapes: Callable[[str], Rows],
) -> list[Kept]:
    """The pipeline of this name, or those behind a name, from one name of runs to the next. `shapes`: the queue and the shape of the newest run."""
    found: list[Kept] = []
    at = [(name,)] if name is not None else following(after)
    while at and len(found) < limit:
        found += [Kept(at[0][0], queue, shape) for queue, shape in shapes(at[0][0]) if queue]
        at = [] if name is not None else following(at[0][0])
    return found


def tallied(
    *, runs: Iterable[tuple[Any, ...]], held: int, not_begun: int, in_flight: Iterable[tuple[Any, ...]],
    held_steps: Iterable[tuple[Any, ...]], failed_steps: Iterable[tuple[Any, ...]],
) -> Tally:  # fmt: skip
    """From what a store has counted: runs by phase and by state of the job; steps by name, and by state of the job."""
    steps: dict[str, StepTally] = {}
    found = Tally(waiting=not_begun, held=held, steps=steps)
    for phase, state, count in runs:
        match state:
            case State.COMPLETED:
                found.completed += count
            case State.CANCELLED:
                found.cancelled += count
            case State.DEAD:
                found.failed += count
            case None:  # its job has passed its retention just now
                pass
            case _ if not Phase(phase).is_held:
                found.under_way += count
    for name, state, count in in_flight:
        at = steps.setdefault(name, StepTally())
        if state == State.RUNNING:
            at.running += count
        elif state is not None:  # else it has ended just now
            at.waiting += count
    for name, count in held_steps:
        steps.setdefault(name, StepTally()).held += count
    for name, count in failed_steps:
        steps.setdefault(name, StepTally()).failed += count
    return found
