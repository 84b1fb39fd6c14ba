"""An agent: the tasks that call one remote service, in a queue of their own."""

from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, overload

from lateshift.model.breaker import Breaker
from lateshift.model.retry import Retry
from lateshift.model.tags import tags_of
from lateshift.model.unique import Uniqueness
from lateshift.registrar import Register, Registrar
from lateshift.task import AsyncTask, Limits, Task

P = ParamSpec("P")
R = TypeVar("R")

TIME_LIMIT = timedelta(minutes=1)  # of each attempt, unless said otherwise: a call, not a night's work


class Agent:
    """Made by `app.agent("payments")`; `@agent.task` registers what it can do. Its tasks run in the queue of its name, share its
    limits, and are parked while its breaker is open."""

    def __init__(self, name: str, breaker: Breaker | None, register: Register) -> None:
        self.name = name
        self.breaker = breaker
        self._register = register

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"

    @overload
    def task(self, function: Callable[P, Awaitable[R]], /) -> AsyncTask[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        time_limit: timedelta | None = TIME_LIMIT,
        priority: int = 0,
        keep: timedelta = timedelta(days=1),
        process: bool = False,
        memory: int | None = None,
        unique: Uniqueness = None,
        breaker: Breaker | None = None,
        tags: Collection[str] = (),
    ) -> Registrar: ...
    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        time_limit: timedelta | None = TIME_LIMIT,
        priority: int = 0,
        keep: timedelta = timedelta(days=1),
        process: bool = False,
        memory: int | None = None,
        unique: Uniqueness = None,
        breaker: Breaker | None = None,
        tags: Collection[str] = (),
    ) -> Any:
        """As `app.task`, with a shorter time limit. `breaker`: one of the task's own, beside the agent's."""
        limits = Limits(
            queue=self.name, retry=retry or Retry(), time_limit=time_limit, priority=priority, keep=keep, process=process,
            memory=memory, unique=unique, breaker=breaker, tags=tags_of(tags),
            agent=None if self.breaker is None else (self.name, self.breaker),
        )  # fmt: skip
        registrar = Registrar(self._register, name, limits)
        return registrar if function is None else registrar(function)
