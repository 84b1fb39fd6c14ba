"""What `app.task(…)` and `agent.task(…)` give: a decorator for sync and async functions alike."""

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar, overload

from lateshift.task import AsyncTask, Limits, Task

P = ParamSpec("P")
R = TypeVar("R")

Register = Callable[[Callable[..., Any], str | None, Limits], Task[..., Any]]


class Registrar:
    def __init__(self, register: Register, name: str | None, limits: Limits) -> None:
        self._register = register
        self._name = name
        self._limits = limits

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        return self._register(function, self._name, self._limits)
