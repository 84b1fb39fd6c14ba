"""What is inside of a message: kombu's envelope, or the bytes of somebody who does not know kombu."""

import base64
import gzip
import zlib
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lateshift.triggers.brokers.broker import Delivery
from lateshift.triggers.brokers.envelopes import (
    CHARSETS,
    UNPACKED_LIMIT,
    body_again,
    body_of,
    cleaned,
    delivered,
    opened,
    own_id,
)

BODY = b'{"n":1}'


def envelope(body: str, headers: dict[str, Any] | None = None, **properties: Any) -> bytes:
    told = {"delivery_tag": "tag-1", "delivery_info": {"exchange": "", "routing_key": "q"}, **properties}
    return msgspec.json.encode(
        {
            "body": body, "content-type": "application/json", "content-encoding": "utf-8", "headers": headers or {},
            "properties": told,
        }
    )  # fmt: skip


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in base64"])
def test_an_envelope_is_opened(wrapped: bool) -> None:
    raw = envelope(base64.b64encode(BODY).decode(), {"a": 1}, body_encoding="base64")
    came = base64.b64encode(raw) if wrapped else raw
    seen = opened(came, tag=7, id="of the broker")
    assert seen == Delivery(
        tag=7, raw=came, body=BODY, wrapped=True, id="tag-1", headers={"a": 1}, content_type="application/json",
        encoding="utf-8",
    )  # fmt: skip
    assert body_of(seen) == BODY


@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_a_body_that_is_text_is_taken_as_it_is(encoding: str | None) -> None:
    assert opened(envelope('{"ä":1}', body_encoding=encoding), tag=1).body == '{"ä":1}'.encode()


@pytest.mark.parametrize(
    ("headers", "properties", "id"),
    [
        ({"id": "h", "task": "t"}, {"message_id": "m"}, "m"),
        ({"id": "h", "task": "t"}, {}, "h"),
        ({"id": 5, "task": "t"}, {}, "5"),
        ({"id": "", "task": "t"}, {"message_id": None}, "tag-1"),
        ({"id": ["no", "id"], "task": "t"}, {}, "tag-1"),
        ({"id": "of a customer"}, {}, "tag-1"),
    ],
)
def test_it_is_known_by_its_publishers_id_before_that_of_its_envelope(
    headers: dict[str, Any], properties: dict[str, Any], id: str
) -> None:
    assert opened(envelope("1", headers, **properties), tag=1, id="of the broker").id == id


@pytest.mark.parametrize(
    "raw",
    [
        BODY,
        b"",
        b"no JSON",
        b"\xff\x00",
        b"abcd",  # is base64, but of nothing that is JSON
        b'{"body":"x","properties":{"colour":"red"}}',  # looks alike, and is somebody's own
        b'{"body":7,"properties":{"delivery_tag":"t","delivery_info":{}}}',
        b'["properties"]',
        b"[" * 5000,
    ],
)
def test_what_is_no_envelope_is_taken_as_it_is_under_the_brokers_id(raw: bytes) -> None:
    seen = opened(raw, tag=1, id="of the broker")
    assert seen == Delivery(tag=1, raw=raw, body=raw, wrapped=True, id="of the broker")
    assert body_of(seen) == raw


def test_json_that_came_in_base64_is_read() -> None:
    assert opened(base64.b64encode(BODY), tag=1).body == BODY


@pytest.mark.parametrize(("encoding", "told"), [("base64", "no base64"), ("rot13", "body_encoding 'rot13'")])
def test_an_envelope_that_cannot_be_opened_is_wrong_and_keeps_all_that_came(encoding: str, told: str) -> None:
    raw = envelope("no base64!", body_encoding=encoding)
    seen = opened(raw, tag=1)
    assert seen.raw == raw
    with pytest.raises(ValueError, match=told):
        body_of(seen)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (BODY, None),
        (BODY, "UTF-8"),
        (BODY, "binary"),
        (BODY.decode().encode("utf-16"), "utf-16"),
        (gzip.compress(BODY, mtime=0), "gzip"),
        (zlib.compress(BODY), "deflate"),
    ],
)
def test_a_content_encoding_is_undone(body: bytes, encoding: str | None) -> None:
    seen = delivered(body, {}, "application/json", encoding, tag=1, id=None)
    assert (body_of(seen), seen.raw) == (BODY, body)


@pytest.mark.parametrize("charset", sorted(CHARSETS))
def test_every_charset_that_is_read_is_one(charset: str) -> None:
    body = BODY.decode().encode(charset)
    assert body_of(delivered(body, {}, None, charset.replace("_", "-"), tag=1, id=None)).endswith(BODY)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("ISO-8859-1", "é"), ("latin1", "é"), ("iso_8859-15", "€"), ("Windows-1252", "€"), ("cp1251", "ж"), ("KOI8-R", "ж"),
        ("Shift_JIS", "日"), ("EUC-JP", "日"), ("iso-2022-jp", "日"), ("EUC-KR", "한"), ("GB2312", "中"), ("gb18030", "中"), ("Big5", "中"),
        ("macintosh", "é"), ("UTF-16LE", "é"), ("utf16", "é"), ("UTF-32", "é"),
    ],
)  # fmt: skip
def test_charsets_are_known_by_the_names_that_publishers_use(encoding: str, text: str) -> None:
    seen = delivered(text.encode(encoding), {}, None, f" {encoding} ", tag=1, id=None)
    assert body_of(seen) == text.encode()


@pytest.mark.parametrize(
    "codec",
    ["punycode", "idna", "rot13", "unicode_escape", "raw-unicode-escape", "utf-7", "undefined", "zlib_codec", "bz2", "x" * 10**6],
    ids=lambda codec: codec[:20],
)  # fmt: skip
def test_a_codec_that_is_no_charset_is_not_run(codec: str) -> None:
    """Of some, a few megabytes take hours."""
    with pytest.raises(ValueError, match="is none that is read here"):
        body_of(delivered(b"a-" * 1_000_000, {}, None, codec, tag=1, id=None))


@pytest.mark.parametrize(
    ("body", "encoding", "told"),
    [
        (BODY, "klingon", "content encoding 'klingon' is none"),
        (BODY, "hex", "content encoding 'hex' is none"),  # a codec, but none of text
        (b"\xff", "utf-16", "utf-16"),
        (BODY, "gzip", "it is not gzip"),
        (gzip.compress(BODY, mtime=0)[:-9], "gzip", "cut off"),
    ],
)
def test_a_wrong_content_encoding_is_told_and_all_that_came_is_kept(
    body: bytes, encoding: str, told: str
) -> None:
    seen = delivered(body, {}, None, encoding, tag=1, id="m")
    assert (seen.raw, seen.id) == (body, "m")
    with pytest.raises(ValueError, match=told):
        body_of(seen)


def test_what_kombu_compressed_is_unpacked_up_to_a_limit() -> None:
    headers = {"compression": "application/x-gzip"}  # as kombu calls zlib
    assert body_of(delivered(zlib.compress(BODY), headers, None, "utf-8", tag=1, id=None)) == BODY
    most = bytes(UNPACKED_LIMIT)
    assert body_of(delivered(zlib.compress(most), headers, None, None, tag=1, id=None)) == most
    bomb = delivered(zlib.compress(most + b"0"), headers, None, None, tag=1, id=None)
    with pytest.raises(ValueError, match="more than 1,048,576 bytes"):
        body_of(bomb)
    other = delivered(BODY, {"compression": "application/x-bz2"}, None, None, tag=1, id=None)
    with pytest.raises(ValueError, match="send it with gzip or zlib"):
        body_of(other)


def test_nothing_is_unpacked_before_it_is_asked_for() -> None:
    bomb = zlib.compress(bytes(UNPACKED_LIMIT))
    seen = delivered(bomb, {"compression": "application/x-gzip"}, None, None, tag=1, id=None)
    assert len(seen.raw) == len(seen.body) < 10_000


@pytest.mark.parametrize(
    "seen",
    [
        delivered(BODY, {}, None, None, tag=1, id=None),
        delivered(gzip.compress(BODY), {}, None, "gzip", tag=1, id=None),
        delivered(zlib.compress(BODY), {"compression": "zlib"}, None, "utf-8", tag=1, id=None),
        delivered(BODY.decode().encode("utf-16"), {}, None, "utf-16", tag=1, id=None),
        opened(BODY, tag=1),
        opened(base64.b64encode(BODY), tag=1),
        opened(envelope(BODY.decode()), tag=1),
        opened(base64.b64encode(envelope(base64.b64encode(BODY).decode(), body_encoding="base64")), tag=1),
    ],
)
def test_what_was_kept_as_it_came_is_read_again(seen: Delivery) -> None:
    assert body_again(seen.raw, seen.headers, wrapped=seen.wrapped, encoding=seen.encoding) == BODY


@pytest.mark.parametrize(
    ("named", "id"), [("a", "a"), (7, "7"), (True, None), (None, None), ("", None), ({}, None)]
)
def test_an_id_is_text_or_a_number(named: Any, id: str | None) -> None:
    assert own_id({"message_id": named}, {}) == id
    assert own_id({}, {"id": named, "task": "t"}) == id


def test_a_header_id_is_that_of_the_message_in_celerys_form_alone() -> None:
    """Two messages about one customer are two, and neither is lost."""
    assert own_id({}, {"id": "customer 7"}) is None
    assert own_id({}, {"id": "6b0f", "task": "shop.tell"}) == "6b0f"


def test_headers_are_made_such_that_every_store_can_keep_them() -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = {"in": deep}
    headers = {
        "lone \ud800": "\udfff", "nul": "\0", "bytes": b"\xff", "big": 2**70, 5: datetime(2026, 1, 1, tzinfo=UTC),
        "deep": deep, "list": (1, [2.5, None, True]),
    }  # fmt: skip
    kept = msgspec.json.decode(msgspec.json.encode(cleaned(headers)))
    assert (kept["bytes"], kept["big"], kept["list"]) == ("\\xff", str(2**70), [1, [2.5, None, True]])
    assert kept["5"].startswith("2026-01-01")


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    seen = opened(raw, tag=1, id="x")
    assert seen.wrong is None
    assert seen.body == raw or base64.b64encode(seen.body).rstrip(b"=") == raw.strip().rstrip(b"=")
