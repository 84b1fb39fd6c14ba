"""What an app does about agents and their breakers."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lateshift.agent.agent import Agent
from lateshift.agent.alarm import Alarm
from lateshift.errors import OptionInvalid
from lateshift.model.breaker import Breaker
from lateshift.model.job import NewJob
from lateshift.model.limit import Limit
from lateshift.model.queue import QueueSettings, queue_name
from lateshift.store.contract import Store
from lateshift.task import Limits, Task

USUAL = Breaker()


class Agents:
    """See app.Lateshift."""

    _tasks: dict[str, Task[..., Any]]

    def __init__(self) -> None:
        super().__init__()
        self._agents: dict[str, Agent] = {}

    if TYPE_CHECKING:

        def _jobs(self, name: str, data: Any, trace: str | None = None) -> list[NewJob]: ...
        def queue(self, name: str, *, limit: Limit | None = None) -> QueueSettings: ...

    @property
    @abstractmethod
    def queues(self) -> Mapping[str, QueueSettings]: ...

    @property
    @abstractmethod
    def store(self) -> Store: ...

    @abstractmethod
    def _register(self, function: Callable[..., Any], name: str | None, limits: Limits) -> Task[..., Any]: ...

    def agent(self, name: str, *, breaker: Breaker | None = USUAL, limits: Limit | None = None) -> Agent:
        """One remote service, and the tasks that call it: `payments = app.agent("payments")`, then `@payments.task`. They run in the
        queue of this name.

        `breaker`: when calls fail, it opens for all workers: jobs are parked, none of their attempts is used up, and one of them
        probes from time to time whether the service is there again. None for no breaker. `limits`: how many of its jobs run at
        once and start in a time, over all machines.
        """
        queue_name(name)
        if breaker is not None and type(breaker) is not Breaker:
            raise OptionInvalid(
                f"app.agent: breaker is a Breaker, such as Breaker(failures=5), not {breaker!r}."
            )
        if limits is not None and type(limits) is not Limit:
            raise OptionInvalid(
                f"app.agent: limits is a Limit, such as Limit(concurrency=5), not {limits!r}."
            )
        if name in self._agents:
            raise OptionInvalid(f"There is an agent {name!r} already. Declare it once, and import it.")
        if name in self._tasks and self._tasks[name].limits.breaker is not None:
            raise OptionInvalid(f"The task {name!r} has a breaker of that name. Give the agent another name.")
        if limits is not None:
            self.queue(name, limit=limits)
        made = self._agents[name] = Agent(name, breaker, self._register)
        return made

    @property
    def has_breakers(self) -> bool:
        return any(task.breakers for task in self._tasks.values())

    def alarms(self) -> list[Alarm]:
        """What tells of breakers that have opened, if the app has any."""
        return [Alarm(self.store, self._jobs)] if self.has_breakers else []
