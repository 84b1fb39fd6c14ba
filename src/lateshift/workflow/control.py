"""How a workflow's code is stopped, how its steps are numbered, and what the engine knows of the attempt and of each undo."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from lateshift.model.job import Lease

T = TypeVar("T")


class Evicted(BaseException):
    """The run has given its worker up: its code does not go on here."""


class Stop(BaseException):
    """The run is to be undone: its code begins nothing more."""


class Diverged(BaseException):
    """The code asks for another step than the one that is recorded."""


class CancelledItself(Exception):
    """The code of a workflow ended as if it had been cancelled."""


async def without_exit(code: Callable[[], Awaitable[T]]) -> T:
    """sys.exit() ends the run, not the worker and its other jobs."""
    try:
        return await code()
    except SystemExit as error:
        raise RuntimeError(f"the workflow's code called sys.exit({error.code!r})") from error


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


class Undoable(Struct, frozen=True):
    """How a step is undone: by what, with the step's arguments, and its result if that is wanted."""

    undo: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    wants_result: bool
    decode: Callable[[bytes | None], Any]
