"""What a step was asked for: a function or a task with its arguments, however they are bound, apart from the options of the step."""

import inspect
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct

from lateshift.errors import WorkflowInvalid
from lateshift.model.job import NewJob
from lateshift.model.queue import is_sensitive
from lateshift.task import Bound, Call, Task
from lateshift.workflow.calls import named


class Asked(Struct, frozen=True):
    """`what`: the function, the task, or the task with options. `call`: of a task, if the caller has made it already."""

    what: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    call: NewJob | None = None

    @property
    def task(self) -> Task[..., Any] | None:
        task = self.what.task if isinstance(self.what, Bound) else self.what
        return task if isinstance(task, Task) else None

    def job(self) -> NewJob:
        """Of a task. Raises ArgumentsInvalid, or WorkflowInvalid if its queue is sensitive."""
        refuse_sensitive(self.what)
        if self.call is not None:
            return self.call
        job: NewJob = self.what.call(*self.args, **self.kwargs).job
        return job


def refuse_sensitive(what: "Task[..., Any] | Bound[..., Any]") -> None:
    """A run keeps the arguments and the results of its steps as they are, for its replays. Raises WorkflowInvalid."""
    task = what.task if isinstance(what, Bound) else what
    if is_sensitive(task.sender.queues, what.spec.queue):
        raise WorkflowInvalid(
            f"{task.name} is in the sensitive queue {what.spec.queue}, and a run keeps what its steps are given and return, unsealed. "
            "Enqueue it from a step, and pass a reference on instead of what it returns."
        )


def asked(what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Sequence[str]) -> Asked:
    """`options`: of the step, those that were given. One that the function has for a parameter could be meant for either: that is
    refused, unless the function has its own already, or is a partial or a call, which say what is whose. Raises WorkflowInvalid."""
    if isinstance(what, Call):
        if args or kwargs:
            raise WorkflowInvalid(
                f"flow.step({what.task.name}.call(…)) has its arguments: give them all to call(…), and none to flow.step."
            )
        args, kwargs = what.task.arguments.decode(what.job.payload)
        return Asked(what.task, args, kwargs, what.job)
    if isinstance(what, partial):
        options = ()
    while isinstance(what, partial):  # what it binds is recorded like the rest
        what, args, kwargs = what.func, (*what.args, *args), {**what.keywords, **kwargs}
    if not (isinstance(what, Bound) or callable(what)):
        raise WorkflowInvalid(
            f"flow.step takes a function and its arguments, flow.step(charge, 7), not {what!r}."
        )
    if options:
        _refuse_ambiguous(what, args, kwargs, options)
    return Asked(what, args, kwargs)


def _refuse_ambiguous(
    what: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Sequence[str]
) -> None:
    task = what.task if isinstance(what, Bound) else what
    signature = _signature(getattr(task, "function", task))
    both = [] if signature is None else [option for option in options if option in signature.parameters]
    if signature is None or not both:
        return
    try:
        given = signature.bind_partial(*args, **kwargs).arguments
    except TypeError:
        return  # which is told when it is called
    for option in both:
        if option not in given:
            name = named(task)
            bind = (
                f"{name}.call(…, {option}=…)"
                if isinstance(task, Task)
                else f"functools.partial({name}, {option}=…)"
            )
            raise WorkflowInvalid(
                f"{option}= is an option of the step, and {name} has a parameter of that name: it could be meant for either. Give the "
                f"function its own first, by position or as flow.step({bind}); what flow.step is given by that name is then its own."
            )


@lru_cache(maxsize=1000)
def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
