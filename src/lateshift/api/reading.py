"""What a request says, read within bounds and checked against types; what is wrong names the field."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import ClientDisconnect

from lateshift.api.bounds import DISCARDED, JSON_DEPTH, LAST_EVENT_LIMIT, Bounds
from lateshift.api.budget import Share
from lateshift.api.head import head_of
from lateshift.api.pinpointing import has_half, pinpointed
from lateshift.api.problem import Refused
from lateshift.api.route import Route
from lateshift.model import mismatch
from lateshift.model.depth import depth_of
from lateshift.task import KEY_LIMIT

if TYPE_CHECKING:
    from starlette.requests import Request

JSON = "application/json"
READING = "lateshift.reading"  # in the scope of a request: whether its body is being read
HALF = "a character is written by half, as \\ud800 without the escape that belongs to it"
_CONDITIONS = ((b"if-match", "If-Match"), (b"if-unmodified-since", "If-Unmodified-Since"))
_KEY = re.compile(rf"[\x21-\x7e]{{1,{KEY_LIMIT}}}")


async def body_of(request: "Request", route: Route, bounds: Bounds, share: Share | None = None) -> Any:
    """Raises Refused. A route that takes no body takes an empty one, and `{}`."""
    raw = await bytes_of(request, bounds.body, share)
    if route.raw:
        return raw
    if not raw.strip():
        raw = b"{}"
    else:
        _refuse_other_media(request)
    if depth_of(raw) > JSON_DEPTH:
        raise Refused(
            422, "too-deep", f"The body has objects or lists more than {JSON_DEPTH} deep inside one another."
        )
    return _fitting(raw, route.takes or NoBody)


def _refuse_other_media(request: "Request") -> None:
    """JSON is in UTF-8, and comes as it is. Raises Refused: what is read otherwise than it was written is another request."""
    head = head_of(request.scope)
    given = head.first(b"content-type")
    if given == JSON and b"content-encoding" not in head:
        return
    kind, *more = [part.strip().lower() for part in given.split(";")]
    if kind != JSON:
        raise Refused(
            415, "unsupported-media-type", f"The body is JSON, so its Content-Type is {JSON}, not {given or 'left out'}.",
            field="Content-Type",
        )  # fmt: skip
    charsets = [value.strip().strip('"') for name, _, value in (part.partition("=") for part in more) if name.strip() == "charset"]  # fmt: skip
    if any(charset not in ("utf-8", "utf8") for charset in charsets):
        raise Refused(
            415, "unsupported-media-type", f"JSON is in UTF-8, and this is said to be in {charsets[0]}. Write it in UTF-8.",
            field="Content-Type",
        )  # fmt: skip
    coded = ",".join(head.all(b"content-encoding")).lower()
    if any(each.strip() not in ("", "identity") for each in coded.split(",")):
        raise Refused(
            415, "unsupported-media-type", f"The body is said to be encoded ({coded}), and is not unpacked here. Send it as it is.",
            field="Content-Encoding", headers={"Accept-Encoding": "identity"},
        )  # fmt: skip


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing is to be said."""


async def bytes_of(request: "Request", limit: int, share: Share | None = None) -> bytes:
    """Never more than the limit in memory, whatever the length is said to be. A little over it is read to the end and thrown
    away, as a client that still sends would not hear the answer. `share`: of what is held of all bodies together."""
    said = head_of(request.scope).first(b"content-length")
    if said.isdigit() and int(said) > limit + DISCARDED:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    request.scope[READING] = True
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > limit + DISCARDED:
            break
        if size > limit:
            parts.clear()
            if share is not None:
                share.end()
        elif part:
            if share is not None:
                share.take(len(part))
            parts.append(part)
    request.scope[READING] = False
    if size > limit:
        raise _too_large(limit)
    return b"".join(parts)


def is_sent_late(request: "Request", error: Exception) -> bool:
    """Whether the time was over while the body was still to come."""
    return isinstance(error, TimeoutError) and bool(request.scope.get(READING))


def _too_large(limit: int) -> Refused:
    # What is left of the body is not read: the connection ends with the answer.
    return Refused(
        413, "body-too-large", f"The body is over {limit:,} bytes. Keep the data elsewhere, and send its name.",
        headers={"Connection": "close"},
    )  # fmt: skip


def refuse_conditions(request: "Request") -> None:
    """What changes something cannot be asked under a condition here: it is said so, as one that was passed over would be a change that
    somebody believes was not made. Raises Refused."""
    head = head_of(request.scope)
    for name, written in _CONDITIONS:
        if name in head:
            raise Refused(
                400, "condition-unsupported",
                f"{written} is not looked at where something is changed, so nothing was done. Look again, then ask without it.",
                field=written,
            )  # fmt: skip


def last_event_of(request: "Request") -> str | None:
    """What a client of a stream has last received. Raises Refused."""
    given = head_of(request.scope).first(b"last-event-id")
    if len(given) > LAST_EVENT_LIMIT:
        raise Refused(
            400,
            "last-event-unknown",
            f"A Last-Event-ID has at most {LAST_EVENT_LIMIT} characters.",
            field="Last-Event-ID",
        )
    return given or None


def _fitting(raw: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _unfit(error, "body", kind, raw) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = HALF if has_half(raw) else mismatch.told(error)[1]
        raise Refused(400, "json-invalid", f"The body cannot be read: {said}.") from None


def fitting_form(typed: Any, kind: Any) -> Any:
    """What a form says, which is text in every field. Raises Refused."""
    try:
        return msgspec.convert(typed, kind or NoBody, strict=False)
    except msgspec.ValidationError as error:
        raise _unfit(error, "form", kind) from None


def _unfit(error: msgspec.ValidationError, what: str, kind: Any, raw: bytes = b"") -> Refused:
    """Of what is wrong with the whole, the fields that it may have are named."""
    where, why = mismatch.told(error, kind)
    where, why = pinpointed(raw, where), mismatch.plainly(why)
    fields = "" if where else ", ".join(getattr(kind, "__struct_fields__", ()))
    field = ".".join(part for part in (where, _named_in(str(error))) if part) or None
    return Refused(
        422,
        "body-invalid",
        f"The {what}{f' at {where!r}' if where else ''}: {why}.{f' Its fields: {fields}.' if fields else ''}",
        field=field,
    )


def _named_in(said: str) -> str:
    """The field that is missing, or that is unknown."""
    found = re.search(r"field `([^`]*)`", said)
    return found.group(1) if found else ""


@lru_cache
def _asks_nothing(kind: Any) -> Any:
    """What a query without parameters says, where it needs none."""
    return msgspec.convert({}, kind, strict=False)


def query_of(pairs: Collection[tuple[str, str]], kind: Any) -> Any:
    """Raises Refused. A parameter stands once; one that is unknown is refused, as it would be a filter that narrows nothing, and those that there are
    are named; not where only the value of one is wrong."""
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise Refused(422, "query-invalid", f"{name!r} stands twice in the query.", field=name)
        given[name] = value
    kind = kind or NoBody
    try:
        return msgspec.convert(given, kind, strict=False) if given else _asks_nothing(kind)
    except msgspec.ValidationError as error:
        where, what = mismatch.told(error, kind)
        field = where or _named_in(str(error)) or None
        known = "" if where else f" Its parameters: {', '.join(kind.__struct_fields__) or 'none'}."
        raise Refused(
            422,
            "query-invalid",
            f"The query{f' at {where!r}' if where else ''}: {mismatch.plainly(what)}.{known}",
            field=field,
        ) from None


def key_of(request: "Request") -> str | None:
    """The Idempotency-Key, if there is one. Raises Refused."""
    given = head_of(request.scope).all(b"idempotency-key")
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise Refused(
            400, "key-invalid", f"Idempotency-Key stands once, with 1 to {KEY_LIMIT} printable characters of ASCII without spaces.",
            field="Idempotency-Key",
        )  # fmt: skip
    return given[0]


def address_of(request: "Request") -> str:
    """The socket's, whatever a header says."""
    client = request.scope.get("client")
    return str(client[0]) if client else ""


def paths_of(request: "Request") -> dict[str, str]:
    if "\0" in request.scope["path"]:
        raise Refused(404, "not-found", "No name has a NUL in it.")
    return {name: str(value) for name, value in request.path_params.items()}
