"""What is inside of a message: kombu's envelope, or plain bytes of a program that does not know kombu."""

import base64
import binascii
import zlib
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.model.outcome import plain
from lateshift.triggers.brokers.broker import Delivery

UNPACKED_LIMIT = 2**20  # bytes of a body that came compressed: four times what the arguments of a job may be
DEPTH_LIMIT = 16  # of headers within headers
# Charsets of text, as Python's modules are named. No others are even looked up: its codecs are more than charsets, some of them
# take quadratic time (punycode), and each name that it does not know stays in its memory.
CHARSETS = frozenset({
    "utf_8", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "ascii", "latin_1",
    *(f"iso8859_{number}" for number in (*range(2, 12), *range(13, 17))), *(f"cp{number}" for number in range(1250, 1259)),
    "cp437", "cp850", "cp852", "cp858", "cp866", "cp874", "tis_620", "koi8_r", "koi8_u", "mac_roman", "mac_cyrillic",
    "shift_jis", "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "gb2312", "gbk", "gb18030", "big5", "cp950",
})  # fmt: skip
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
        return Delivery(tag=tag, raw=raw, body=body, wrapped=True, id=id, headers=cleaned(headers or {}))
    properties = envelope.properties
    told = {**(headers or {}), **(envelope.headers or {})}
    own = own_id(properties, told) or properties["delivery_tag"]  # made anew for each message that is sent
    content, wrong = raw, None
    match properties.get("body_encoding"):
        case None | "utf-8":
            content = envelope.body.encode()
        case "base64":
            try:
                content = base64.b64decode(envelope.body, validate=True)
            except (binascii.Error, ValueError) as error:
                wrong = f"its body is no base64: {error}"
        case other:
            wrong = f"nobody knows its body_encoding {other!r}"
    headers = cleaned(told)
    return Delivery(
        tag=tag, raw=raw, body=content, wrapped=True, id=own, headers=headers, content_type=envelope.content_type,
        encoding=envelope.content_encoding, packed=_packed(headers), wrong=wrong,
    )  # fmt: skip


def delivered(
    body: bytes,
    headers: dict[str, Any],
    content_type: str | None,
    encoding: str | None,
    *,
    tag: Any,
    id: str | None,
) -> Delivery:
    """A message of a broker that tells by itself what is about it."""
    headers = cleaned(headers)
    return Delivery(
        tag=tag, raw=body, body=body, id=id, headers=headers, content_type=content_type, encoding=encoding,
        packed=_packed(headers),
    )  # fmt: skip


def body_of(delivery: Delivery) -> bytes:
    """Unpacked, and as UTF-8 where it says that it is text of another kind. Raises ValueError, which says what is wrong."""
    if delivery.wrong is not None:
        raise ValueError(delivery.wrong)
    body = delivery.body if delivery.packed is None else _unpacked(delivery.body, delivery.packed)
    return _as_utf8(body, (delivery.encoding or "").strip().lower())


def body_again(raw: bytes, headers: dict[str, Any], *, wrapped: bool, encoding: str | None) -> bytes:
    """Of a message that was kept as it came. Raises ValueError."""
    if wrapped:
        return body_of(opened(raw, tag=None, headers=headers))
    return body_of(delivered(raw, headers, None, encoding, tag=None, id=None))


def own_id(properties: dict[str, Any], headers: dict[str, Any]) -> str | None:
    """What its publisher calls it. A header `id` is that of a message in Celery's form alone: elsewhere it may be of whatever
    the message is about, and two messages about one thing are two."""
    for named in (properties.get("message_id"), headers.get("id") if "task" in headers else None):
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
    module = normalize_encoding(encoding)
    module = aliases.get(module, module)
    if module not in CHARSETS:
        raise ValueError(f"its content encoding {encoding!r} is none that is read here: send it as UTF-8")
    return body.decode(module).encode()


def _packed(headers: dict[str, Any]) -> str | None:
    packed = headers.get("compression")
    return str(packed) if packed else None


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
