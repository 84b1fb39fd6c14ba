"""What a step calls: how its arguments and its result are kept, and how it is run here."""

import asyncio
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from copy import deepcopy
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any

import msgspec

from lateshift.errors import PayloadTooLarge, WorkflowInvalid
from lateshift.model.arguments import Arguments, Results
from lateshift.model.depth import PAYLOAD_DEPTH, depth_of
from lateshift.model.job import PAYLOAD_LIMIT
from lateshift.model.outcome import MESSAGE_LIMIT, ResultNotKept, clip, plain, said, trace_of
from lateshift.model.remote import name_of
from lateshift.model.workflow.step import StepError, written_error
from lateshift.workflow.control import Undoable, Wants

THREADS = 100  # on which plain functions of workflows run, in one process

_threads: ThreadPoolExecutor | None = None
_encode = msgspec.json.Encoder(order="deterministic").encode


class Inline:
    """A function that the workflow's own worker calls."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def payload(self) -> bytes | None:
        """The arguments, for those who look at the step. None where they cannot be shown: only this program needs them."""
        try:
            payload = _encode(
                {"args": self.args, "kwargs": self.kwargs} if self.kwargs else {"args": self.args}
            )
        except (TypeError, ValueError, RecursionError, OverflowError):
            return None
        shown = len(payload) <= PAYLOAD_LIMIT and depth_of(payload, PAYLOAD_DEPTH) <= PAYLOAD_DEPTH
        return payload if shown else None

    def mended(self, payload: bytes) -> "Inline":
        """The same function with the arguments that an operator gave it, by name."""
        return Inline(self.function, *self.arguments(payload))

    def arguments(self, payload: bytes) -> tuple[Sequence[Any], Mapping[str, Any]]:
        return Arguments(named(self.function), self.function).decode(payload)

    async def run(self, limit: timedelta | None) -> Any:
        """A plain function runs on a thread, which cannot be stopped: past its limit nobody waits for it."""
        seconds = None if limit is None else limit.total_seconds()
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(self.function):
                return await self.function(*self.args, **self.kwargs)
            result = await _on_a_thread(partial(self.function, *self.args, **self.kwargs))
            return await result if inspect.isawaitable(result) else result


def is_cancelled(error: BaseException) -> bool:
    """Whether it was told from outside to stop; a function may raise CancelledError by itself, which is a failure like others."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def _on_a_thread(call: Callable[[], Any]) -> Any:
    """As many at once as a worker runs workflows, as a rule: asyncio's own threads are a handful."""
    global _threads
    if _threads is None:
        _threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lateshift-step")
    return await asyncio.get_running_loop().run_in_executor(_threads, copy_context().run, call)


def _forget_inherited() -> None:
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_forget_inherited)


def named(function: Any) -> str:
    """The name of a step that runs it."""
    name = getattr(function, "name", None) or getattr(function, "__name__", None)
    if name is None and isinstance(function, partial):
        return named(function.func)
    if not isinstance(name, str) or not name:
        raise WorkflowInvalid(f'{function!r} has no name: give the step one, flow.step(…, name="charge").')
    return name


@lru_cache(maxsize=1000)
def results_of(function: Callable[..., Any]) -> Results:
    """How what it returns is kept and read: by its annotation."""
    return Results(named(function), function)


def encoded(function: Callable[..., Any], result: Any) -> bytes | None:
    try:
        return results_of(function).encode(result)
    except (PayloadTooLarge, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ResultNotKept(
            f"it was done, but the result of {named(function)} cannot be kept: {error}. If the run is undone, so is this step, unless its undo "
            "needs the result."
        ) from error


def decoded(function: Callable[..., Any], result: bytes | None) -> Any:
    return results_of(function).decode(result)


def kept(error: BaseException) -> bytes:
    """What is kept of an error."""
    return written_error(
        StepError(
            error=plain(name_of(error)), message=clip(said(error), MESSAGE_LIMIT), traceback=trace_of(error)
        )
    )


def undoable(
    undo: Callable[..., Any], step: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *,
    decode: Callable[[bytes | None], Any], mended: Callable[[bytes], tuple[Sequence[Any], Mapping[str, Any]]],
) -> Undoable:  # fmt: skip
    """`function`: the step's own. Raises WorkflowInvalid if the undo does not fit the step's arguments. They are copied, for the step and
    the code after it may change what they were given; what cannot be copied is given as it is."""
    wants = _wants(undo, step, args, kwargs)
    with suppress(Exception):
        args, kwargs = deepcopy((args, kwargs))

    def shaped(payload: bytes) -> tuple[Sequence[Any], Mapping[str, Any]]:
        return _as_called(function, args, kwargs, mended(payload), undo)

    return Undoable(undo, args, kwargs, wants, decode, shaped)


def _as_called(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any],
    given: tuple[Sequence[Any], Mapping[str, Any]], undo: Callable[..., Any],
) -> tuple[Sequence[Any], Mapping[str, Any]]:  # fmt: skip
    """What an operator gave a step, handed over as its call did: by position what was given so, by name the rest. What he left out is
    what the step had instead, its default. What the call did not have goes by name to an undo that takes it."""
    parameters = inspect.signature(function).parameters
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters.values()):
        return given
    values = dict(zip(parameters, given[0], strict=False)) | dict(given[1])
    known = {name: each.default for name, each in parameters.items()} | values
    by_position = list(parameters)[: len(args)]
    added = {name: value for name, value in values.items() if name not in {*by_position, *kwargs}}
    by_name = {name: known[name] for name in kwargs}
    return [known[name] for name in by_position], {**_taken(undo, len(args), added), **by_name}


def _taken(undo: Callable[..., Any], by_position: int, added: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of the arguments that it has a parameter for, beside those that it gets by position."""
    parameters = list(inspect.signature(_function_of(undo)).parameters.values())
    free = {each.name for each in parameters[by_position:] if each.kind is not each.POSITIONAL_ONLY}
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        free |= added.keys() - {each.name for each in parameters}
    return {name: value for name, value in added.items() if name in free}


def _wants(undo: Callable[..., Any], step: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Wants:
    try:
        signature = inspect.signature(_function_of(undo))
    except (TypeError, ValueError) as error:
        raise WorkflowInvalid(f"The step {step}: undo={undo!r} cannot be called: {error}") from error
    result = signature.parameters.get("result")
    wants = result is not None and "result" not in kwargs
    try:
        signature.bind(*args, **kwargs, **({"result": None} if wants else {}))
    except TypeError as error:
        raise WorkflowInvalid(
            f"The step {step} cannot be undone by {named(undo)}: {error}. An undo gets the step's arguments, and its result if it has a "
            "parameter of that name."
        ) from error
    if result is None or not wants:
        return Wants.NOTHING
    return Wants.RESULT if result.default is result.empty else Wants.RESULT_OR_DEFAULT


def _function_of(undo: Callable[..., Any]) -> Callable[..., Any]:
    """Its own, if it is a task."""
    function: Callable[..., Any] = getattr(undo, "function", undo)
    return function
