"""What both stores do alike about triggers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.triggering.trigger import (
    RATE_WINDOW,
    SILENCE,
    Arrival,
    NewTrigger,
    Subscription,
    TriggerView,
)
from lateshift.store.schedule_contract import Declared
from lateshift.store.trigger_contract import Received

VIEW = """name, app, kind, about, task, position, made, repeated, refused, rate, lag, last_at, looked_at, error, error_at,
 failing_since, paused_at, paused_by, counted_since, counted"""  # then how many are refused now, and whether somebody holds its term


_encode = msgspec.msgpack.Encoder().encode
_subscriptions = msgspec.msgpack.Decoder(Subscription)


class News(Struct, frozen=True):
    """What a declaration is to change."""

    write: list[NewTrigger]
    declared: Declared


def owners(triggers: Sequence[NewTrigger], there: Mapping[str, tuple[Any, ...]], app: str) -> dict[str, str]:
    """Which of these names other apps have. `there`: as in `news`."""
    known = [new.name for new in triggers if new.name in there]
    return {name: there[name][0] for name in known if there[name][0] != app and not there[name][-1]}


def news(
    triggers: Sequence[NewTrigger], there: Mapping[str, tuple[Any, ...]], app: str, alive: set[str], *, whole: bool
) -> News:  # fmt: skip
    """`there`: of every trigger in the store its app, what was told of it, and whether it was removed. `alive`: apps that have
    a worker; another one's name is taken over, as when an app was renamed. `whole`: these are all, as they are to be; else only
    what is not there is written."""
    others = owners(triggers, there, app)
    taken = {name: other for name, other in others.items() if other in alive}
    inherited = {name: other for name, other in others.items() if other not in alive}
    triggers = [new for new in triggers if new.name not in taken]
    told = {new.name: (app, *row(new), False) for new in triggers}
    added = [name for name in told if name not in there]
    changed = [name for name in told if name in there and there[name] != told[name]]
    removed = [
        name for name, (owner, *_, gone) in there.items() if owner == app and name not in told and not gone
    ]
    if not whole:  # beside another release, which may have them otherwise: only what is not there
        changed, removed = [name for name in changed if there[name][-1] or name in inherited], []
    write = [new for new in triggers if new.name in {*added, *changed}]
    return News(write, Declared(added, changed, removed, taken, inherited))


def row(new: NewTrigger) -> tuple[str, str, str, bytes | None]:
    subscription = None if new.subscription is None else _encode(new.subscription)
    return new.kind, new.about, new.task, subscription


def subscription_of(kept: bytes) -> Subscription:
    return _subscriptions.decode(kept)


def last_of_each(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Of an event that is there several times, the last version."""
    return list({arrival.event: arrival for arrival in arrivals}.values())


def mark_of(arrival: Arrival, job: JobId | None) -> str:
    """What a receipt keeps of what became of an event that was brought to us."""
    if arrival.refused is not None:
        return f"refused {arrival.refused.id}"
    return "" if job is None else f"job {job}"


def received(mark: str, *, new: bool) -> Received:
    kind, _, id = mark.partition(" ")
    return Received(
        new, job=UUID(id) if kind == "job" else None, refused=UUID(id) if kind == "refused" else None
    )


def seen(row: Sequence[Any], now: datetime) -> TriggerView:
    """`row`: as VIEW has it, with instants."""
    *columns, refused_now, read_now = row
    told = dict(zip([name.strip() for name in VIEW.split(",")], columns, strict=True))
    told["rate"] = _rate(
        told.pop("rate"), told.pop("counted"), told.pop("counted_since"), told["last_at"], now
    )
    if told["position"] is not None:
        told["position"] = _readable(bytes(told["position"]))
    looked_at, error_at = told["looked_at"], told["error_at"]
    if told["paused_at"] is not None or looked_at is None or now - looked_at >= SILENCE:
        told["lag"] = None  # nobody knows it now
    told["last_error"] = told["error"]
    # Somebody has looked since.
    well = error_at is not None and looked_at is not None and error_at < looked_at
    # Its server is gone.
    forgotten = told["kind"] == "webhook" and error_at is not None and now - error_at >= SILENCE
    if well or forgotten:
        told["error"] = told["failing_since"] = None
    return TriggerView(**told, refused_now=refused_now, read_now=bool(read_now))


def _rate(last: float, counted: int, since: datetime, last_at: datetime | None, now: datetime) -> float:
    """`last`: of the window before the one that began at `since`."""
    if last_at is None or (now - last_at).total_seconds() >= RATE_WINDOW:
        return 0.0
    seconds = (now - since).total_seconds()
    if seconds >= RATE_WINDOW or not last:  # this window is long enough, or there was none before it
        return counted / max(seconds, RATE_WINDOW)
    return last


def _readable(position: bytes) -> Any:
    try:
        return msgspec.json.decode(position)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return position.hex()
