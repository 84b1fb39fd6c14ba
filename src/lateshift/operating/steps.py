"""Other arguments for a step that is held: whether they would help, and whether its task takes them."""

from typing import Any

from lateshift.errors import OptionInvalid, RunEnded, TaskUnknown
from lateshift.model.workflow.step import Kind, StepOutline, StepView, shown_path
from lateshift.operating.names import others
from lateshift.resubmission import refuse_own
from lateshift.store.contract import Store


def refuse_unmendable(step: StepView, *, given: bool) -> None:
    """Where nothing would be otherwise the next time. Raises RunEnded."""
    named = f"Step {shown_path(step.path)} {step.name}"
    if step.kind is Kind.FIXED:
        raise RunEnded(
            f"{named} holds its run for what the filters before it gave, and takes no arguments: it would be held again. "
            "`lateshift workflows undo` gives the run up; `resume` lets it go on with other code."
        )
    if step.kind is Kind.GATHER and not given:
        raise RunEnded(
            f"{named} would get the same list, and be held again. Give it another: --args '[…]'; or `lateshift workflows undo` it."
        )


def refuse_misfit(store: Store, app: Any, step: StepView, payload: bytes | None) -> None:
    """Whether the program's task takes these arguments, or without other ones those that the step had. Raises ArgumentsInvalid, TaskUnknown if
    the program has no such task, OptionInvalid if the step is no task."""
    if not is_task(step):
        raise OptionInvalid(
            f"Step {shown_path(step.path)} {step.name} is no task, so that --app has no types to check its arguments by: leave --app out."
        )
    job = None if step.job is None else store.reports.job(step.job)
    name = step.name if job is None else job.task  # the step may have a name of its own
    task = app.tasks.get(name)
    if task is None:
        raise TaskUnknown(f"{app.name} has no task {name}.{others(name, sorted(app.tasks))}")
    if payload is not None:
        refuse_own(task)
    given = step.payload if payload is None else payload
    if given is not None:
        task.arguments.decode(given)


def is_task(step: StepOutline) -> bool:
    return step.kind in (Kind.JOB, Kind.CHILD)
