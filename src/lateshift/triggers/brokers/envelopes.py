"""What is inside of a message: kombu's envelope, or plain bytes of a program that does not know kombu."""

import base64
import binascii
import codecs
import zlib
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.model.outcome import plain
from lateshift.triggers.brokers.broker import Delivery

UNPACKED_LIMIT = 64 * 2**20  # bytes of a body that came compressed
DEPTH_LIMIT = 16  # of headers within headers
_ALREADY = {"", "identity", "binary", "utf-8", "utf8", "us-ascii", "ascii"}
_COMPRESSED = {"gzip", "x-gzip", "deflate", "zlib", "application/x-gzip"}  # kombu says x-gzip and means zlib


class _Envelope(Struct, rename="kebab"):
    """What kombu writes where a broker knows bytes alone."""

    body: str
    properties: dict[str, Any]
    headers: dict[str, Any] | None = None
    content_type: str | None = None
    content_encoding: str | None = None


def opened(raw: bytes, *, tag: Any, id: str | None = None, headers: dict[str, Any] | None = None) -> Delivery:
    """A message of a broker that knows bytes alone, with the broker's own id and headers, if it has some."""
    body = _unwrapped(raw)
    envelope = _envelope(body)
    if envelope is None:
        return Delivery(tag=tag, body=body, id=id, headers=cleaned(headers or {}))
    properties = envelope.properties
    told = {**(headers or {}), **(envelope.headers or {})}
    own = own_id(properties, told) or properties["delivery_tag"]  # made anew for each message that is sent
    match properties.get("body_encoding"):
        case None | "utf-8":
            content = envelope.body.encode()
        case "base64":
            try:
                content = base64.b64decode(envelope.body, validate=True)
            except (binascii.Error, ValueError) as error:
                return Delivery(tag=tag, body=raw, id=own, wrong=f"its body is no base64: {error}")
        case other:
            return Delivery(tag=tag, body=raw, id=own, wrong=f"nobody knows its body_encoding {other!r}")
    return delivered(content, told, envelope.content_type, envelope.content_encoding, tag=tag, id=own)


def delivered(
    body: bytes,
    headers: dict[str, Any],
    content_type: str | None,
    encoding: str | None,
    *,
    tag: Any,
    id: str | None,
) -> Delivery:
    """Unpacked, and as UTF-8 where it says that it is text of another kind."""
    headers, wrong = cleaned(headers), None
    try:
        packed = headers.get("compression")
        unpacked = _unpacked(body, str(packed)) if packed else body
        body = _as_utf8(unpacked, (encoding or "").strip().lower())
    except ValueError as error:
        wrong = str(error)
    return Delivery(tag=tag, body=body, id=id, headers=headers, content_type=content_type, wrong=wrong)


def own_id(properties: dict[str, Any], headers: dict[str, Any]) -> str | None:
    """What its publisher calls it."""
    for named in (properties.get("message_id"), headers.get("id")):
        if isinstance(named, str | int) and not isinstance(named, bool) and named != "":
            return str(named)
    return None


def cleaned(value: Any, depth: int = 0) -> Any:
    """As every store can keep it, whatever somebody put into a header."""
    if depth > DEPTH_LIMIT:
        return "…"
    match value:
        case str():
            return plain(value)
        case dict():
            return {plain(str(name)): cleaned(each, depth + 1) for name, each in value.items()}
        case list() | tuple():
            return [cleaned(each, depth + 1) for each in value]
        case bool() | float() | None:
            return value
        case int() if -(2**63) <= value < 2**64:
            return value
        case bytes() | bytearray() | memoryview():
            return plain(bytes(value).decode(errors="backslashreplace"))
    return plain(str(value))


def _unwrapped(raw: bytes) -> bytes:
    """JSON that came as base64, as SQS and Azure Storage often have it; else as it is."""
    if _json(raw) is not None:
        return raw
    try:
        inner = base64.b64decode(raw.strip(), validate=True)
    except (binascii.Error, ValueError):
        return raw
    return inner if _json(inner) is not None else raw


def _json(text: bytes) -> msgspec.Raw | None:
    try:
        return msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _envelope(body: bytes) -> _Envelope | None:
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    properties = envelope.properties
    is_one = isinstance(properties.get("delivery_tag"), str) and isinstance(
        properties.get("delivery_info"), dict
    )
    return envelope if is_one else None


def _as_utf8(body: bytes, encoding: str) -> bytes:
    if encoding in _ALREADY:
        return body
    if encoding in _COMPRESSED:
        return _unpacked(body, encoding)
    try:
        codecs.lookup(encoding)
        return body.decode(encoding).encode()
    except LookupError as error:  # also of codecs that are not for text
        raise ValueError(f"nobody knows its content encoding {encoding!r}") from error


def _unpacked(body: bytes, how: str) -> bytes:
    if how not in _COMPRESSED:
        raise ValueError(
            f"it is compressed by {how!r}, which is not unpacked here: send it with gzip or zlib"
        )
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        content = unpacking.decompress(body, UNPACKED_LIMIT)
    except zlib.error as error:
        raise ValueError(f"it is not {how}: {error}") from error
    if not unpacking.eof:
        raise ValueError(f"it is cut off, or holds more than {UNPACKED_LIMIT:,} bytes")
    return content
