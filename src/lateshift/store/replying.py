"""What both stores do alike about events of jobs: what each becomes."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lateshift.errors import StoreError
from lateshift.model import reply
from lateshift.model.events import Told, event_of
from lateshift.model.ids import new_job_id
from lateshift.model.job import NewJob, Place

EVENTS_KEPT = timedelta(hours=1)  # how long what was told to a channel can be read again

T = TypeVar("T")

log = logging.getLogger("lateshift")
_encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """Something among several events cannot be kept."""


class Sent(Struct, frozen=True):
    """What events become: jobs of their receivers, and messages to channels (name, queue of the job, event)."""

    jobs: list[NewJob]
    published: list[tuple[str, str, bytes]]


def sent(events: Sequence[Told], now: datetime, hidden: Collection[str], hearers: Collection[str]) -> Sent:
    """In the order of the events. `hidden`: the queues that are sensitive. `hearers`: the tasks that hear alerts. The jobs for one receiver of one job are a session, so that they run in that order."""
    jobs: list[NewJob] = []
    published: list[tuple[str, str, bytes]] = []
    for told, until in zip(events, _followed(events, now), strict=True):
        routes = reply.read(told.reply)
        if not routes:
            log.error("an event of the job %s is sent to nobody, for its routes cannot be read", told.job)
        for place, route in enumerate(routes):
            if not route.wants(told.kind):
                continue
            if fault := reply.fault_of(route, told.queue, told.task, hearers):
                log.error(
                    "an event of the job %s cannot be sent to %r: %s", told.job, route.target.to[:100], fault
                )
                continue
            event = event_of(told, until, route.correlation_id, hide=told.queue in hidden)
            target = route.target
            if route.channel is not None:
                published.append((route.channel, told.queue, _encode(replace(event, channel=route.channel))))
            elif target.spec is not None:
                payload = _encode({**target.given, target.parameter: event})
                session = Place(session=f"reply:{told.job.hex}:{place}")
                jobs.append(NewJob(new_job_id(), target.spec, payload, None, True, session))
    return Sent(jobs, published)


def _followed(events: Sequence[Told], now: datetime) -> list[datetime]:
    """Up to when each may have been: the time of the next that is known of the same job, else now."""
    next_of: dict[UUID, datetime] = {}
    until: list[datetime] = []
    for told in reversed(events):
        until.append(min(now, next_of.get(told.job, now)))
        if told.at is not None:
            next_of[told.job] = told.at
    return until[::-1]


def halving(send: Callable[[int], T], limit: int) -> T:
    """Of fewer and fewer events, until none of them is refused. `send` sets a refused one aside if it is alone."""
    while True:
        try:
            return send(limit)
        except Refused:
            limit //= 2


def is_fault_of_event(
    error: Exception, *, said: type[Exception], refused: tuple[type[Exception], ...]
) -> bool:
    """Whether what was raised while jobs and messages were made of events is theirs, and would be raised again for ever, with all that stands
    behind them. `said`: by the database, of which only what it refuses is theirs. Of the rest nothing is, that is over when the store or the
    memory is there again."""
    if isinstance(error, said):
        return isinstance(error, refused)
    return not isinstance(error, StoreError | MemoryError)


def set_aside(number: int, job: object, error: Exception) -> None:
    """Tell of an event that is not sent on, for everything behind it would wait for ever."""
    log.error(
        "the event %s of the job %s is set aside, for it cannot be kept: %s: %s",
        number,
        job,
        type(error).__name__,
        error,
    )
