"""`app.reply_webhook(…)`, `app.reply_broker(…)`, `app.subscribe(…)`: who is told what becomes of jobs, as a program declares it."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from lateshift.client import Client
from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.errors import EventsLeftOut, OptionInvalid, Permanent, WebhookFailed, WebhookGone, no_event
from lateshift.model.events import JobEvent
from lateshift.model.ids import JobId, new_member_id
from lateshift.model.queue import PLAIN, QueueSettings, queue_name
from lateshift.model.sealed import WEBHOOK
from lateshift.replies.courier import Courier
from lateshift.replies.delivering import DELAYS, DELIVERED_KEPT, DELIVERY_RETRY, DELIVERY_TIME, publish
from lateshift.replies.targets import BROKER, origin_of
from lateshift.replies.webhook import Endpoint
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.store.contract import Store
from lateshift.store.reply_contract import LeftOut, Published
from lateshift.task import Limits, Task
from lateshift.worker.current import current

CHANNEL_PATTERN = re.compile(r"[A-Za-z0-9_.:\-*?]{1,256}")
UNDELIVERABLE = "alert.reply_undeliverable"
GONE = "alert.reply_gone"

_events = msgspec.json.Decoder(JobEvent)


class Replying:
    """See app.Lateshift."""

    clock: Clock
    client: Client
    settings: Settings

    if TYPE_CHECKING:

        def _register(
            self, function: Callable[..., Any], name: str | None, limits: Limits
        ) -> Task[..., Any]: ...
        def emit(self, name: str, data: Any = None) -> list[JobId]: ...
        @property
        def store(self) -> Store: ...
        @property
        def queues(self) -> Mapping[str, QueueSettings]: ...
        @property
        def tasks(self) -> Mapping[str, Task[..., Any]]: ...

    def courier(self) -> Courier:
        """Sends on what jobs have told. Whoever runs the app's parts turns it."""
        return Courier(self.store, new_member_id(), self.clock, heartbeat=self.settings.heartbeat)

    def reply_webhook(
        self, url: str, *, secret: str | Sequence[str], name: str | None = None, internal: bool = False
    ) -> Task[..., Any]:
        """Events of jobs may go to URLs of this origin: `reply_to="https://hooks.example.com/orders"`. Each is a POST, signed by the
        rules of Standard Webhooks, and tried again for about three days. Gives the task that delivers them.

        `secret`: `whsec_…`, or `env:NAME` for that variable of the workers' environment; several, while one takes another's place. `name`: the deliveries' queue is `replies.NAME`, else named by
        the host. `internal`: the receiver is on this machine or in its network; http is allowed there.
        """
        origin = origin_of(url)
        if origin in self.client.targets.webhooks:
            raise OptionInvalid(f"The webhooks of {origin} are declared twice. Declare them once.")
        Endpoint(origin, secret, internal=internal)
        queue = queue_name(f"replies.{name or Endpoint(origin, secret, internal=internal).host}")

        def reply_webhook(event: dict[str, Any], url: str) -> None:
            if origin_of(url) != origin:  # the secret is of this receiver
                raise Permanent(f"{origin_of(url)} is not {origin}, for which these deliveries are.")
            endpoint = Endpoint(url, secret, internal=internal)
            body = {"type": f"job.{event['kind']}", "timestamp": event["at"], "data": event}
            try:
                endpoint.post(event["id"], msgspec.json.encode(body), self.clock.now())
            except WebhookGone as error:  # of this URL alone: those of other jobs may be taken
                self._tell_gone(event, queue, str(endpoint), error)
                raise
            except WebhookFailed as error:
                self._tell_last(event, str(endpoint), error)
                raise

        task = self._register(reply_webhook, f"{WEBHOOK}{name or origin}", _limits(queue))
        self.client.targets.webhooks[origin] = task
        return task

    def reply_broker(self, name: str, url: str, *, queue: str) -> Task[..., Any]:
        """Events of jobs may go to a queue of a broker that kombu speaks to: `reply_to="broker:NAME"`. Gives the task that delivers
        them, in the queue `replies.NAME`. The URL stays in this process; with it what it holds of secrets."""
        if name in self.client.targets.brokers:
            raise OptionInvalid(f"The broker {name!r} is declared twice. Give one of them another name.")
        deliveries = queue_name(f"replies.{name}")

        def reply_broker(event: dict[str, Any]) -> None:
            try:
                publish(url, queue, event)
            except OptionInvalid:
                raise
            except Exception as error:  # each kind of broker has its own
                failed = WebhookFailed(f"the broker {name} did not take it: {type(error).__name__}")
                self._tell_last(event, BROKER + name, failed)
                raise failed from None

        task = self._register(reply_broker, f"lateshift.reply_broker.{name}", _limits(deliveries))
        self.client.targets.brokers[name] = task
        return task

    def subscribe(self, pattern: str, *, after: int | None = None) -> AsyncIterator[JobEvent]:
        """`async for event in app.subscribe("jobs.images.*"):` what channels are told, from now on; or after the `number` of the last
        event that was seen, for as long as it is kept. In a pattern `*` is any characters. Raises EventsLeftOut where some may be gone."""
        self.check_channel(pattern)
        return self._heard_on(pattern, after)

    async def _heard_on(self, pattern: str, after: int | None) -> AsyncIterator[JobEvent]:
        if after is not None:
            await aside(self._refuse_untold, after)
        async for page in self.client.listen(after):
            if isinstance(page, LeftOut):
                raise _left_out(page)
            for heard in page:
                if fnmatchcase(heard.channel, pattern):
                    yield event_of(heard)

    def _refuse_untold(self, after: int) -> None:
        """Whoever goes on after what never was would hear nothing for ever."""
        newest = self.store.replies.newest()
        if after > newest:
            raise no_event(after, newest, "leave after= out, and you hear what comes from now on.")

    def check_channel(self, pattern: str) -> None:
        """Raises OptionInvalid for a pattern that is none, and for a queue that tells of nothing."""
        if not CHANNEL_PATTERN.fullmatch(str(pattern)):
            raise OptionInvalid(f"{pattern!r} is no pattern of channels, such as orders or jobs.images.*")
        known = {task.limits.queue for task in self.tasks.values()} | set(self.queues)
        named = [queue for queue in known if pattern.startswith(f"jobs.{queue}.")]
        if named and not any(self.queues.get(queue, PLAIN).events for queue in named):
            raise OptionInvalid(
                f"The queue {max(named, key=len)} does not tell what becomes of its jobs. Declare it with app.queue(…, events=True)."
            )

    def _tell_last(self, event: dict[str, Any], where: str, error: Exception) -> None:
        """After the last try nobody tries again: the delivery is a dead letter, for an operator to resubmit."""
        if current().attempt <= len(DELAYS):
            return
        log.error("the event %s could not be delivered to %s: %s", event["id"], where, error)
        self.emit(
            UNDELIVERABLE, {"event": event["id"], "job": event["job_id"], "to": where, "why": str(error)}
        )

    def _tell_gone(self, event: dict[str, Any], queue: str, where: str, error: Exception) -> None:
        """What wants no more of it is not asked for the same again, unless an operator resubmits the delivery."""
        log.error("the event %s will not be delivered to %s: %s", event["id"], where, error)
        self.emit(
            GONE,
            {"event": event["id"], "job": event["job_id"], "to": where, "queue": queue, "why": str(error)},
        )


def event_of(heard: Published) -> JobEvent:
    return msgspec.structs.replace(_events.decode(heard.told), number=heard.number)


def _limits(queue: str) -> Limits:
    return Limits(queue=queue, retry=DELIVERY_RETRY, time_limit=DELIVERY_TIME, keep=DELIVERED_KEPT, own=True)


def _left_out(gap: LeftOut) -> EventsLeftOut:
    last = gap.before - 1
    return EventsLeftOut(
        f"Events between the numbers {gap.after} and {gap.before} may have been told, and are gone: they are kept for an hour. Look anew at what "
        f"matters to you, then go on with after={last}.", last,
    )  # fmt: skip
