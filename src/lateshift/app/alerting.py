"""`app.alert_webhook(…)`: alerts go to a URL. To a function they go with `@app.on("alert.*")`, and to the log in any case."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from lateshift.clock import Clock
from lateshift.errors import OptionInvalid
from lateshift.model.job import NewJob
from lateshift.model.retry import Retry
from lateshift.model.triggering.events import Event
from lateshift.model.triggering.naming import ALERTS
from lateshift.replies.webhook import Endpoint
from lateshift.store.contract import Store
from lateshift.supervisor.losses import Losses
from lateshift.task import Limits, Task
from lateshift.worker.current import current

ALERT_WEBHOOK = "lateshift.alert_webhook"
# After 5 seconds, and twice as long each time: over about two days.
ALERT_WAITS = tuple(timedelta(seconds=5) * 2**again for again in range(15))
ALERT_RETRY = Retry(attempts=len(ALERT_WAITS) + 1, waits=ALERT_WAITS, patient=True)
ALERT_TIME = timedelta(minutes=1)  # of each try, the time in which its name is looked up included


class Alerting:
    """See app.Lateshift."""

    clock: Clock

    @property
    @abstractmethod
    def store(self) -> Store: ...

    if TYPE_CHECKING:

        def _jobs(self, name: str, data: Any) -> list[NewJob]: ...

        def _register(
            self, function: Callable[..., Any], name: str | None, limits: Limits
        ) -> Task[..., Any]: ...
        def on(
            self, pattern: str, *, name: str | None = None
        ) -> Callable[[Task[..., Any]], Task[..., Any]]: ...

    def losses(self) -> Losses:
        """What tells of workers that were lost with jobs: a supervisor asks it."""
        return Losses(self.store, self._jobs)

    def alert_webhook(
        self,
        url: str,
        *,
        secret: str | Sequence[str],
        pattern: str = "alert.*",
        name: str = ALERT_WEBHOOK,
        queue: str = "default",
        internal: bool = False,
    ) -> Task[..., Any]:
        """Each alert is a job that POSTs it to the URL as JSON, signed by the rules of Standard Webhooks, and is tried again for about
        two days until the receiver takes it. Gives the task.

        `secret`: `whsec_…`, or `env:NAME` for that variable of the workers' environment; several, while one takes another's place. It stays in this process. `pattern`: which alerts. `name`: of the
        task, where an app has several such URLs. `internal`: the receiver is on this machine or in its network; http is allowed there.
        """
        if not pattern.startswith(ALERTS):
            raise OptionInvalid(
                f"The pattern of alerts begins with {ALERTS}, such as alert.* or alert.workflow_held, not {pattern!r}."
            )
        endpoint = Endpoint(url, secret, internal=internal)

        def alert_webhook(event: Event) -> None:
            id = str(current().job_id)
            told = {"id": id, "type": event.name, "timestamp": event.at, "data": event.data}
            endpoint.post(id, msgspec.json.encode(told), self.clock.now())

        limits = Limits(queue=queue, retry=ALERT_RETRY, time_limit=ALERT_TIME, own=True)
        return self.on(pattern)(self._register(alert_webhook, name, limits))
