"""Where the events of a job go: its routes, as `options(reply_to=…)` made them and the job's row keeps them."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.events import KINDS, Kind
from lateshift.model.job import PRIORITIES, STRETCHES, Spec
from lateshift.model.outcome import plain
from lateshift.model.queue import QUEUE_NAME

CORRELATION_LIMIT = 200  # characters
CHANNEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:\-]{0,255}")
CHANNEL = "channel:"
GIVEN = {"url"}  # what a receiver is given besides the event
QUEUE_CHANNELS = "jobs."  # how the channels begin that tell of the jobs of queues
TASK = "task:"
ROUTES_MOST = 10  # receivers of one job
RECEIVER_LIMIT = 1000  # characters of a receiver's name, a task's or a channel's, as a job's row may have it
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
    """Nothing if it cannot be read: what waits behind it must not wait for ever."""
    try:
        return _decoder.decode(kept)
    except msgspec.DecodeError:
        return []


def fault_of(route: Route) -> str | None:
    """Why nothing can be sent there, of a route that no call of Lateshift has made: its row was written otherwise."""
    spec = route.target.spec
    if spec is None:
        return _text_fault("channel", route.channel or "")
    if spec.priority not in PRIORITIES:
        return f"priority {spec.priority} is not from {PRIORITIES[0]} to {PRIORITIES[-1]}"
    if not 0 < spec.attempts <= STRETCHES:
        return f"attempts {spec.attempts} is not from 1 to {STRETCHES}"
    if not QUEUE_NAME.fullmatch(spec.queue):
        return f"{spec.queue[:100]!r} is no queue name"
    if not route.target.given.keys() <= GIVEN:
        return f"task {spec.task[:100]!r} is given more than the event and where it goes"
    fault = _text_fault("task", spec.task)
    return fault if fault or spec.exclusive is None else _text_fault("exclusive", spec.exclusive)


def _text_fault(what: str, text: str) -> str | None:
    if 0 < len(text) <= RECEIVER_LIMIT and plain(text) == text:
        return None
    return f"{what} {text[:100]!r} cannot be stored, or has not 1 to {RECEIVER_LIMIT} characters"


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
