"""How a workflow's code is stopped, how its steps are numbered, and what the engine knows of the attempt and of each undo."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from lateshift.model.job import Lease
from lateshift.model.workflow.holding import INVALID, NO_FIT

T = TypeVar("T")


class Evicted(BaseException):
    """The run has given its worker up: its code does not go on here."""


class Stop(BaseException):
    """The run is to be undone: its code begins nothing more."""


class Diverged(BaseException):
    """The code asks for another step than the one that is recorded."""

    why_held = NO_FIT


class Forgotten(Diverged):
    """The code asked for a step and never awaited it: it would be lost without a word."""

    why_held = INVALID


STOPS = (Evicted, Diverged, Stop)  # the first that is met goes before the others


class CancelledItself(Exception):
    """The code of a workflow ended as if it had been cancelled."""


async def without_exit(code: Callable[[], Awaitable[T]]) -> T:
    """sys.exit() ends the run, not the worker and its other jobs. What stops the code comes through a TaskGroup as what it is."""
    try:
        return await code()
    except SystemExit as error:
        raise RuntimeError(f"the workflow's code called sys.exit({error.code!r})") from error
    except BaseExceptionGroup as group:
        raise stop_in(group) or group from None


def stop_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """How the code was stopped, among what the tasks of a TaskGroup raised; None if it was not."""
    found = [error for kind in STOPS for error in leaves(group) if isinstance(error, kind)]
    return found[0] if found else None


def leaves(error: BaseException) -> list[BaseException]:
    """The errors of a group, and of groups in it; of another one, itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for part in error.exceptions for leaf in leaves(part)]


def drop(branches: Iterable[object]) -> None:
    """Those that never began, as when the run was given up at once: nobody will await them."""
    for branch in branches:
        if inspect.iscoroutine(branch) and inspect.getcoroutinestate(branch) == inspect.CORO_CREATED:
            branch.close()


class Stint(Protocol):
    """What the worker knows of the attempt."""

    lease: Lease
    cancelled_by: str | None
    stopping: bool
    lost: bool


class Branch:
    """Numbers the steps of one line of code: the workflow itself, or one branch of a gather."""

    __slots__ = ("chances", "number", "prefix")

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.number = 0
        self.chances = 0


class Unawaited:
    """Steps that the code has made, and that nobody has awaited yet; each with how it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, str] = {}
        self._dropped: str | None = None

    def made(self, path: str, said: str) -> None:
        self._made[path] = said

    def awaited(self, path: str) -> None:
        self._made.pop(path, None)

    def pardon(self) -> None:
        """A step failed: the code may go another way now, without what it made until here."""
        self._made.clear()

    def drop(self, path: str) -> None:
        """It is out of reach: if it was not awaited, it never will be."""
        self._dropped = self._dropped or self._made.get(path)

    def refuse_dropped(self) -> None:
        if self._dropped is not None:
            raise Forgotten(f"{self._dropped} was never awaited: write `await {self._dropped}`")

    def refuse_any(self) -> None:
        """The code has ended: what was not awaited until now never will be."""
        self._dropped = self._dropped or next(iter(self._made.values()), None)
        self.refuse_dropped()


class Wants(Enum):
    """What an undo wants beside its step's arguments."""

    NOTHING = "nothing"
    RESULT = "result"
    RESULT_OR_DEFAULT = "result or default"


class Undoable(Struct, frozen=True):
    """How a step is undone: by what, with the step's arguments as they were when it was asked for, and its result if that is
    wanted. `mended`: reads the arguments that an operator gave it instead."""

    undo: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    wants: Wants
    decode: Callable[[bytes | None], Any]
    mended: Callable[[bytes], tuple[Sequence[Any], Mapping[str, Any]]]
