"""What both stores do alike about triggers."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.model.triggering.trigger import RATE_WINDOW, Arrival, NewTrigger, Subscription, TriggerView

VIEW = """name, app, kind, about, task, position, made, repeated, refused, rate, lag, last_at, looked_at, error, error_at,
 paused_at, paused_by, counted_since, counted"""

FIRST_COUNT = 10.0  # seconds over which the first jobs of a trigger are taken to have come, at least

_encode = msgspec.msgpack.Encoder().encode
_subscriptions = msgspec.msgpack.Decoder(Subscription)


class News(Struct, frozen=True):
    """What a declaration is to change."""

    write: list[NewTrigger]
    added: list[str]
    changed: list[str]
    removed: list[str]


def news(
    triggers: Sequence[NewTrigger], there: Mapping[str, tuple[Any, ...]], app: str, *, whole: bool
) -> News:
    """`there`: of every trigger in the store its app, what was told of it, and whether it was removed. Another app's name is
    taken over: the last to declare it has it. `whole`: these are all, as they are to be;
    else only what is not there is written."""
    told = {new.name: (app, *row(new), False) for new in triggers}
    added = [name for name in told if name not in there]
    changed = [name for name in told if name in there and there[name] != told[name]]
    removed = [
        name for name, (owner, *_, gone) in there.items() if owner == app and name not in told and not gone
    ]
    if not whole:  # beside another release, which may have them otherwise: only what is not there
        changed, removed = [name for name in changed if there[name][-1]], []
    write = [new for new in triggers if new.name in {*added, *changed}]
    return News(write, added, changed, removed)


def row(new: NewTrigger) -> tuple[str, str, str, bytes | None]:
    subscription = None if new.subscription is None else _encode(new.subscription)
    return new.kind, new.about, new.task, subscription


def subscription_of(kept: bytes) -> Subscription:
    return _subscriptions.decode(kept)


def last_of_each(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Of an event that is there several times, the last version."""
    return list({arrival.event: arrival for arrival in arrivals}.values())


def seen(row: Sequence[Any], seconds: float) -> TriggerView:
    """`row`: as VIEW has it, with instants. `seconds`: since when it counts, for its rate."""
    *columns, _, counted = row
    names = [name.strip() for name in VIEW.split(",")][:-2]
    told = dict(zip(names, columns, strict=True))
    if told["position"] is not None:
        told["position"] = _readable(bytes(told["position"]))
    if seconds >= RATE_WINDOW or not told["rate"]:  # nothing has come for so long, or this is its first count
        told["rate"] = counted / max(seconds, FIRST_COUNT)
    return TriggerView(**told)


def _readable(position: bytes) -> Any:
    try:
        return msgspec.json.decode(position)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return position.hex()
