"""What is kept of an event that no job can be made of, and how it is seen again when somebody retries it."""

from typing import Any

import msgspec

from lateshift.errors import EventInvalid
from lateshift.model.depth import PAYLOAD_DEPTH, refuse_deep, shown
from lateshift.model.ids import new_job_id
from lateshift.model.outcome import clip
from lateshift.model.triggering.events import KINDS, Message, Seen
from lateshift.model.triggering.trigger import ERROR_LIMIT, REFUSED_LIMIT, Refused, RefusedView
from lateshift.triggers.brokers.envelopes import body_again
from lateshift.triggers.source import Incoming


def refused(incoming: Incoming, why: str, queue: str, *, ours: bool) -> Refused:
    """`queue`: in which its job would be, as what a sensitive one holds is shown to nobody. `ours`: whether the words are Lateshift's,
    and not an exception of the program, which is nothing for its sender."""
    raw, rest = _raw(incoming), _rest(incoming, queue, ours)
    came = max(len(raw), len(rest))
    if came <= REFUSED_LIMIT:
        return Refused(id=new_job_id(), raw=raw, rest=rest, reason=clip(why, ERROR_LIMIT))
    cut = f" (of {came:,} bytes that came, the first {REFUSED_LIMIT:,} are kept: it cannot be retried)"
    rest = msgspec.json.encode(
        {"kind": type(incoming.seen).__name__, "seen": {}, "queue": queue, "ours": ours, "cut": True}
    )
    reason = clip(why, ERROR_LIMIT - len(cut)) + cut
    return Refused(id=new_job_id(), raw=raw[:REFUSED_LIMIT], rest=rest, reason=reason)


def seen_again(raw: bytes, rest: bytes) -> Seen:
    """What was refused, as it was seen. Raises EventInvalid where that cannot be."""
    told = msgspec.json.decode(rest)
    if told.get("cut"):
        raise EventInvalid(
            "only its beginning was kept, for it was too large: have it sent again, or discard it."
        )
    if told["kind"] == Message.__name__:
        return Message(body=_body(raw, told), **told["seen"])
    [kind] = [kind for kind in KINDS if kind.__name__ == told["kind"]]
    try:
        return msgspec.json.decode(raw, type=kind)
    except RecursionError as error:
        raise EventInvalid("it is too deep to be read: discard it.") from error


def _body(raw: bytes, told: dict[str, Any]) -> bytes:
    if told.get("how") is None:
        return raw
    try:
        return body_again(raw, told["seen"].get("headers", {}), **told["how"])
    except ValueError as error:
        raise EventInvalid(str(error)) from error


def _raw(incoming: Incoming) -> bytes:
    """As it came. What cannot even be written (a lone surrogate, a thousand folds) in words: it must not keep the next ones."""
    seen = incoming.seen
    try:
        return seen.raw if incoming.raw is None else incoming.raw
    except Exception as error:
        return f"{type(seen).__name__} that cannot be written: {type(error).__name__}: {error}".encode(
            errors="backslashreplace"
        )


def for_sender(view: RefusedView) -> str | None:
    """Why, as whoever sent it may be told; None where nothing is to be told, or an older release does not say whose words they are."""
    told = shown(view.rest)
    return view.reason if isinstance(told, dict) and told.get("ours") else None


def _rest(incoming: Incoming, queue: str, ours: bool) -> bytes:
    seen = incoming.seen
    told = {
        name: getattr(seen, name) for name in seen.__struct_fields__ if name != "body"
    }  # headers may hold anything
    more = {"queue": queue, "ours": ours} | ({} if incoming.how is None else {"how": incoming.how})
    try:
        rest = msgspec.json.encode({"kind": type(seen).__name__, "seen": told, **more}, enc_hook=str)
        refuse_deep(rest, "what came with it has", PAYLOAD_DEPTH)
        return rest
    except Exception:
        return msgspec.json.encode({"kind": type(seen).__name__, "seen": {}, **more})
