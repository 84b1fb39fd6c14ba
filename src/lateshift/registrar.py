"""What `app.task(…)` and `agent.task(…)` take, in one place for both, and what they give: a decorator for sync and async functions alike."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, ParamSpec, TypedDict, TypeVar, overload

from lateshift.errors import OptionInvalid
from lateshift.model.breaker import Breaker
from lateshift.model.limit import Limit
from lateshift.model.retry import Retry
from lateshift.model.tags import tags_of
from lateshift.model.unique import Uniqueness
from lateshift.task import AsyncTask, Limits, Task

P = ParamSpec("P")
R = TypeVar("R")

Register = Callable[[Callable[..., Any], str | None, Limits], Task[..., Any]]


class AgentTaskOptions(TypedDict, total=False):
    """Of `@agent.task(…)`. What is left out is as in Limits, but for the time limit of an agent."""

    name: str | None
    retry: Retry | None
    time_limit: timedelta | None
    priority: int
    keep: timedelta
    process: bool
    memory: int | None
    unique: Uniqueness
    breaker: Breaker | None
    tags: Collection[str]
    reply_to: Any
    reply_on: Sequence[str] | None


class TaskOptions(AgentTaskOptions, total=False):
    """Of `@app.task(…)`."""

    queue: str
    singleton: bool
    limit: Limit | None


class Registrar:
    """`known`: the options that there are. `own`: what the caller says of the task, that is no option."""

    def __init__(
        self, register: Register, known: Collection[str], options: Mapping[str, Any], **own: Any
    ) -> None:
        for wrong in options.keys() - set(known):
            raise OptionInvalid(f"There is no option {wrong}= here. There are {', '.join(sorted(known))}.")
        given = {name: value for name, value in options.items() if name not in ("name", "retry", "tags")}
        self._register = register
        self._name = options.get("name")
        self._limits = Limits(
            retry=options.get("retry") or Retry(), tags=tags_of(options.get("tags", ())), **given, **own
        )

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        return self._register(function, self._name, self._limits)
