"""Other arguments for a step that is held: whether they would help, and whether its task takes them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from lateshift.dead_letters.resubmission import refuse_own
from lateshift.errors import ArgumentsInvalid, OptionInvalid, RunEnded, TaskUnknown
from lateshift.model.ids import JobId
from lateshift.model.pipeline.ahead import SHAPE_AT, beyond, shape_in
from lateshift.model.pipeline.building import parameter_of
from lateshift.model.pipeline.shape import Place
from lateshift.model.workflow.step import Kind, StepOutline, StepView, path_of, shown_path
from lateshift.operating.names import others
from lateshift.store.contract import Store
from lateshift.store.outlines import outlines

_elements = msgspec.json.Decoder(list[Raw])


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
    task = _task(app, name)
    if payload is not None:
        refuse_own(task)
    given = step.payload if payload is None else payload
    if given is not None:
        task.arguments.decode(given)


def leads_of(store: Store, run: JobId, paths: Sequence[str]) -> dict[str, Sequence[Place]]:
    """Where the lists that these steps of an item stand for lead to, from their fan_out on; nothing where that is not known. Reads those of the
    run's steps that may be lists, without what they hold, and its shape, which is the first of all."""
    there = {step.path: step for page in outlines(store.workflows, run, kind=Kind.GATHER) for step in page}
    kept = store.workflows.step(run, path_of("", SHAPE_AT))
    shape = None if kept is None else shape_in([kept])
    return {path: beyond(shape or (), there, path) for path in paths}


def refuse_misfit_list(store: Store, app: Any, run: JobId, step: StepView, payload: bytes) -> None:
    """Whether the program's task takes each element of a list that a fan_out is given, as far as the run's steps tell which it is. Raises
    ArgumentsInvalid, TaskUnknown if the program has no such task."""
    leads = leads_of(store, run, [step.path])[step.path]
    if leads:
        _refuse_elements(app, leads[0], payload, "")


def _refuse_elements(app: Any, fan_out: Place, given: bytes, within: str) -> None:
    first = fan_out.inner[0]
    task = None if first.inner else _task(app, first.task)
    if task is not None:
        refuse_own(task)
    for number, element in enumerate(_elements.decode(given), 1):
        at = f"element {number}{within}"
        try:
            if task is None:
                _refuse_elements(app, first, bytes(element), f" of {at}")
            else:
                name = msgspec.json.encode(parameter_of(task))
                task.arguments.decode(b"{" + name + b":" + bytes(element) + b"}")
        except msgspec.DecodeError:
            raise ArgumentsInvalid(f"The fan_out takes a list, and {at} is none.", "arguments") from None
        except ArgumentsInvalid as error:
            said = str(error) if task is None else f"{at}: {error}"
            raise ArgumentsInvalid(said, "arguments") from error


def _task(app: Any, name: str) -> Any:
    if (task := app.tasks.get(name)) is None:
        raise TaskUnknown(f"{app.name} has no task {name}.{others(name, sorted(app.tasks))}")
    return task


def is_task(step: StepOutline) -> bool:
    return step.kind in (Kind.JOB, Kind.CHILD)
