"""`app.emit("order.placed", {…})`: one job for every task that subscribed to it, in the emitter's transaction."""

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lateshift.clock import Clock
from lateshift.errors import EventInvalid, QueueFull
from lateshift.model.depth import JSON_DEPTH, PAYLOAD_DEPTH, depth_of
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import PAYLOAD_LIMIT, NewJob
from lateshift.model.queue import PLAIN, QueueSettings
from lateshift.model.triggering.events import Event
from lateshift.model.triggering.naming import event_name, matches
from lateshift.model.triggering.trigger import Subscription
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store
from lateshift.telemetry.context import parent
from lateshift.telemetry.tracing import context, with_context
from lateshift.triggers.trigger import Trigger

HEARD_FOR = 1.0  # seconds that what other programs subscribed to is taken to be as it was


class Emitting:
    """What an app does about its own events."""

    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self._heard: tuple[float, list[tuple[str, str, Subscription]]] | None = None

    if TYPE_CHECKING:

        @property
        def triggers(self) -> Mapping[str, Trigger]: ...

    @property
    @abstractmethod
    def queues(self) -> Mapping[str, QueueSettings]: ...

    @property
    @abstractmethod
    def store(self) -> Store: ...

    def emit(self, name: str, data: Any = None, *, connection: object | None = None) -> list[JobId]:
        """Tell of something that has happened: every task that subscribed to the name, in this program or another on the same
        store, gets one job, all of them in one commit. `connection`: in the caller's own open transaction. Gives the jobs."""
        return self._emit(name, data, connection, context())

    def _emit(self, name: str, data: Any, connection: object | None, trace: str | None) -> list[JobId]:
        jobs = self._jobs(name, data, trace)
        if jobs and connection is None:
            return [answer.id for answer in self.store.jobs.enqueue(jobs)]
        return [answer.id for answer in self.store.enqueue_on(connection, jobs)] if jobs else []

    async def aemit(self, name: str, data: Any = None, *, connection: object | None = None) -> list[JobId]:
        """The same from async code."""
        trace = context()
        if connection is None:
            return await aside(self._emit, name, data, None, trace)
        jobs = await aside(self._jobs, name, data, trace)
        answers = await self.store.aenqueue_on(connection, jobs) if jobs else []
        return [answer.id for answer in answers]

    def _jobs(self, name: str, data: Any, trace: str | None = None) -> list[NewJob]:
        event = Event(name=event_name(name), data=data, at=self.clock.now())
        calls = [trigger.call(event) for trigger in self.triggers.values() if trigger.hears(name)]
        jobs = [call.take() for call in calls if call is not None]
        others = [told for _, known, told in self._subscriptions() if known not in self.triggers]
        jobs += [_job(told, event) for told in others if matches(name, told.pattern)]
        self._refuse_full({job.spec.queue for job in jobs})
        return [with_context(job, trace) for job in jobs]

    def _subscriptions(self) -> list[tuple[str, str, Subscription]]:
        """Of this store, whoever's: a program that is newer, or another one, may have subscribed."""
        if self._heard is None or time.monotonic() - self._heard[0] > HEARD_FOR:
            self._heard = (time.monotonic(), self.store.triggers.subscriptions())
        return self._heard[1]

    def _refuse_full(self, queues: Iterable[str]) -> None:
        for queue in queues:
            most = self.queues.get(queue, PLAIN).max_ready
            if most is not None and self.store.queues.waiting(queue, most) >= most:
                raise QueueFull(
                    f"The queue {queue} of a subscriber holds its max_ready, {most:,}. Nothing was enqueued. Emit it again later."
                )


def _job(told: Subscription, event: Event) -> NewJob:
    try:
        payload = msgspec.json.encode({told.parameter: event if told.whole else event.data})
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise EventInvalid(
            f"The data of the event {event.name} cannot be written as JSON: {error}"
        ) from error
    if len(payload) > PAYLOAD_LIMIT:
        raise EventInvalid(
            f"The data of the event {event.name} is {len(payload):,} bytes, over the limit of {PAYLOAD_LIMIT:,}."
        )
    if depth_of(payload, PAYLOAD_DEPTH) > PAYLOAD_DEPTH:
        raise EventInvalid(
            f"The data of the event {event.name} has more than {JSON_DEPTH} lists and objects inside one another. Write it flat."
        )
    return NewJob(new_job_id(), told.spec, payload, None, True, told.place, tags=told.tags, parent=parent())
