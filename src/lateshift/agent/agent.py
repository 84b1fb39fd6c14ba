"""An agent: the tasks that call one remote service, in a queue of their own."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from lateshift.model.breaker import Breaker
from lateshift.registrar import AgentTaskOptions, Register, Registrar
from lateshift.task import AsyncTask, Task

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
    def task(self, /, **options: Unpack[AgentTaskOptions]) -> Registrar: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Unpack[AgentTaskOptions]) -> Any:
        """As `app.task`, with a shorter time limit. `breaker`: one of the task's own, beside the agent's."""
        registrar = Registrar(
            self._register, AgentTaskOptions.__annotations__, {"time_limit": TIME_LIMIT, **options}, queue=self.name,
            agent=None if self.breaker is None else (self.name, self.breaker),
        )  # fmt: skip
        return registrar if function is None else registrar(function)
