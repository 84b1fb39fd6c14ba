"""Other arguments for a step that is held: whether they would help, and whether its task takes them."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from lateshift.dead_letters.resubmission import refuse_own
from lateshift.errors import ArgumentsInvalid, TaskUnknown
from lateshift.model.ids import JobId
from lateshift.model.pipeline.ahead import SHAPE_AT, beyond, shape_in
from lateshift.model.pipeline.building import parameter_of
from lateshift.model.pipeline.shape import Place
from lateshift.model.workflow.step import Kind, StepOutline, StepView, path_of
from lateshift.operating.names import others
from lateshift.store.contract import Store
from lateshift.store.outlines import outlines

_elements = msgspec.json.Decoder(list[Raw])


def refuse_misfit(store: Store, app: Any, run: JobId, step: StepView, payload: bytes | None) -> None:
    """Whether the program's tasks take these arguments, or without other ones those that the step had; of a function nobody can say. Raises
    ArgumentsInvalid, TaskUnknown if the program has no such task."""
    if is_task(step):
        _refuse_arguments(store, app, step, payload)
    elif step.kind is Kind.GATHER and payload is not None:
        _refuse_list(store, app, run, step, payload)


def _refuse_arguments(store: Store, app: Any, step: StepView, payload: bytes | None) -> None:
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


def _refuse_list(store: Store, app: Any, run: JobId, step: StepView, payload: bytes) -> None:
    """Each element of a list that a fan_out is given, as far as the run's steps tell which task it goes to."""
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


def is_checked(step: StepOutline) -> bool:
    """Whether a program's types say what it takes."""
    return is_task(step) or step.kind is Kind.GATHER
