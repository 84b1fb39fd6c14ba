"""Where the events of a job go: its routes, as `options(reply_to=…)` made them and the job's row keeps them."""

import re
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.events import KINDS, Kind
from lateshift.model.job import OWN, PRIORITIES, STRETCHES, TASK_NAME_LIMIT, Spec
from lateshift.model.outcome import plain
from lateshift.model.queue import QUEUE_NAME
from lateshift.model.retry import LONGEST_DELAY

CORRELATION_LIMIT = 200  # characters
CHANNEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]{0,255}")
CHANNEL = "channel:"
GIVEN = {"url"}  # what a receiver is given besides the event
QUEUE_CHANNELS = "jobs."  # how the channels begin that tell of the jobs of queues
TASK = "task:"
ROUTES_MOST = 10  # receivers of one job
URL_LIMIT = 2048  # characters of where a webhook goes
REPLY_LIMIT = 128 * 1024  # characters of all routes of one job
DELIVERIES = "replies."  # how the queues begin in which Lateshift's own tasks deliver
DELIVERING = (f"{OWN}reply_webhook.", f"{OWN}reply_broker.")  # and how those tasks do
ALL_KINDS = (1 << len(Kind)) - 1
TOLD_UNLESS_ASKED = ("received", "started", "retrying", "completed", "failed", "cancelled")


class Target(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One receiver. `to`: what it is called, without secrets. `spec`: of the job that each event becomes, with the event as its
    argument `parameter` beside those that are `given`; of a channel there is none."""

    to: str
    spec: Spec | None = None
    parameter: str = "event"
    given: dict[str, Any] = {}


class Route(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A receiver, and what it is told. `kinds`: one bit for each."""

    target: Target
    kinds: int
    correlation_id: str | None = None

    def wants(self, kind: Kind) -> bool:
        return bool(self.kinds >> kind & 1)

    @property
    def channel(self) -> str | None:
        to = self.target.to
        return to.removeprefix(CHANNEL) if self.target.spec is None else None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Route])


def written(routes: Sequence[Route]) -> str | None:
    return _encoder.encode(routes).decode() if routes else None


def read(kept: str) -> list[Route]:
    """Nothing if it cannot be read, for whatever reason (how deep it is raises no DecodeError): what waits behind it must not wait for ever."""
    if len(kept) > REPLY_LIMIT:
        return []
    try:
        routes = _decoder.decode(kept)
    except Exception:
        return []
    return routes if len(routes) <= ROUTES_MOST + 1 else []  # one is the channel of its queue


def fault_of(route: Route, queue: str, task: str, hearers: Collection[str] = ()) -> str | None:
    """Why nothing can be sent there, of a route that no call of Lateshift has made: whoever may add jobs has written it, and what is made of
    it is made with a worker's rights. So it is judged as such a job itself is; in PostgreSQL see also judging.py. `queue`, `task`: of the
    job that is told of. `hearers`: the tasks that hear alerts."""
    target, spec = route.target, route.target.spec
    if not 0 < route.kinds <= ALL_KINDS:
        return f"there are no such kinds of events as {route.kinds}"
    if route.correlation_id is not None and not _is_text(route.correlation_id, CORRELATION_LIMIT):
        return "its correlation_id cannot be stored, or is too long"
    if spec is None:
        return "a channel is given nothing" if target.given else _channel_fault(target.to, queue, task)
    if not target.given.keys() <= GIVEN or not all(_is_text(url, URL_LIMIT) for url in target.given.values()):
        return f"task {spec.task[:100]!r} is given more than the event and where it goes"
    if not _is_text(target.parameter, TASK_NAME_LIMIT):
        return f"{target.parameter[:100]!r} is no parameter"
    return _spec_fault(spec, hearers)


def _channel_fault(to: str, queue: str, task: str) -> str | None:
    name = to.removeprefix(CHANNEL)
    if name == queue_channel(queue, task):
        return None
    if not to.startswith(CHANNEL) or not CHANNEL_NAME.fullmatch(name):
        return f"{to[:100]!r} is no channel"
    return f"the channel {name[:100]} is of another queue" if name.startswith(QUEUE_CHANNELS) else None


def _spec_fault(spec: Spec, hearers: Collection[str]) -> str | None:
    delivers = spec.task.startswith(DELIVERING) and spec.queue.startswith(DELIVERIES)
    if spec.task in hearers or (spec.task.startswith(OWN) and not delivers):
        return f"task {spec.task[:100]!r} is started by nobody"
    if spec.queue.startswith(DELIVERIES) and not delivers:
        return f"the queue {spec.queue[:100]!r} is of deliveries"
    if not _is_text(spec.task, TASK_NAME_LIMIT):
        return f"{spec.task[:100]!r} is no task's name"
    if not QUEUE_NAME.fullmatch(spec.queue):
        return f"{spec.queue[:100]!r} is no queue name"
    if spec.lane.room is spec.lane:
        return f"lane {spec.lane.label} keeps no order"
    if spec.batch is not None:
        return "its job is in a batch"
    if spec.exclusive is not None:
        return "its job is exclusive"
    if spec.priority not in PRIORITIES:
        return f"priority {spec.priority} is not from {PRIORITIES[0]} to {PRIORITIES[-1]}"
    if not 0 < spec.attempts <= STRETCHES:
        return f"attempts {spec.attempts} is not from 1 to {STRETCHES}"
    if spec.time_limit is not None and not timedelta(0) < spec.time_limit <= LONGEST_DELAY:
        return f"time_limit {spec.time_limit} is not up to {LONGEST_DELAY}"
    if spec.delay is not None and not timedelta(0) <= spec.delay <= LONGEST_DELAY:
        return f"delay {spec.delay} is not up to {LONGEST_DELAY}"
    if spec.at is not None and spec.at.tzinfo is None:
        return "its time has no time zone"
    return (
        None
        if spec.reply in (None, written([of_queue(spec.queue, spec.task)]))
        else "what is told tells others"
    )


def _is_text(text: Any, limit: int) -> bool:
    return isinstance(text, str) and 0 < len(text) <= limit and plain(text) == text


def channel_name(name: Any) -> str:
    """Of one that somebody replies to. Raises OptionInvalid."""
    if not isinstance(name, str) or not CHANNEL_NAME.fullmatch(name):
        raise OptionInvalid(
            f"{name!r} is no name for a channel: 1 to 256 letters, digits and any of _ . : - with a letter or digit first."
        )
    if name.startswith(QUEUE_CHANNELS):
        raise OptionInvalid(
            f"The channel {name} is of a queue with events=True, which alone tells it anything: reply to another, such as orders."
        )
    return name


def queue_channel(queue: str, task: str) -> str:
    """Where the jobs of a queue with events=True are told of. A task's name may hold what a channel's may not."""
    return f"{QUEUE_CHANNELS}{queue}.{re.sub(r'[^A-Za-z0-9_.:-]', '_', task)}"


def of_queue(queue: str, task: str) -> Route:
    return Route(target=Target(to=CHANNEL + queue_channel(queue, task)), kinds=mask(tuple(KINDS)))


def mask(kinds: Any) -> int:
    """The bits of these kinds; raises OptionInvalid."""
    asked = [kinds] if isinstance(kinds, str) else list(kinds) if isinstance(kinds, Collection) else None
    if not asked or not set(asked) <= KINDS.keys():
        raise OptionInvalid(f"reply_on is some of {', '.join(KINDS)}, not {kinds!r}.", "reply_on")
    return sum(1 << KINDS[kind] for kind in set(asked))


def reply_of(
    targets: Sequence[Target], correlation_id: Any, reply_on: Any, publishes: tuple[str, str] | None
) -> str | None:
    """What the spec of a call keeps. `publishes`: its queue and task, if that queue tells of all its jobs."""
    routes = routes_to(targets, correlation_id, reply_on)
    return written([*routes, of_queue(*publishes)] if publishes else routes)


def routes_to(targets: Sequence[Target], correlation_id: Any, reply_on: Any) -> list[Route]:
    """As they were asked for with options."""
    if not targets:
        if correlation_id is not None or reply_on is not None:
            raise OptionInvalid("correlation_id and reply_on are for replies: give reply_to too.", "reply_to")
        return []
    if len(targets) > ROUTES_MOST:
        raise OptionInvalid(
            f"reply_to names {len(targets)} receivers, over the limit of {ROUTES_MOST}.", "reply_to"
        )
    if correlation_id is not None:
        checks.text("correlation_id", correlation_id, CORRELATION_LIMIT)
    kinds = mask(TOLD_UNLESS_ASKED if reply_on is None else reply_on)
    return [Route(target=target, kinds=kinds, correlation_id=correlation_id) for target in targets]
