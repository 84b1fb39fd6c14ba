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
from lateshift.triggers.brokers.envelopes import UNPACKED_LIMIT, cleaned, delivered, opened, own_id

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
    seen = opened(base64.b64encode(raw) if wrapped else raw, tag=7, id="of the broker")
    assert seen == Delivery(
        tag=7, body=BODY, id="tag-1", headers={"a": 1}, content_type="application/json", wrong=None
    )


@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_a_body_that_is_text_is_taken_as_it_is(encoding: str | None) -> None:
    assert opened(envelope('{"ä":1}', body_encoding=encoding), tag=1).body == '{"ä":1}'.encode()


@pytest.mark.parametrize(
    ("headers", "properties", "id"),
    [
        ({"id": "h"}, {"message_id": "m"}, "m"),
        ({"id": "h"}, {}, "h"),
        ({"id": 5}, {}, "5"),
        ({"id": ""}, {"message_id": None}, "tag-1"),
        ({"id": ["no", "id"]}, {}, "tag-1"),
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
    assert opened(raw, tag=1, id="of the broker") == Delivery(tag=1, body=raw, id="of the broker")


def test_json_that_came_in_base64_is_read() -> None:
    assert opened(base64.b64encode(BODY), tag=1).body == BODY


@pytest.mark.parametrize(("encoding", "told"), [("base64", "no base64"), ("rot13", "body_encoding 'rot13'")])
def test_an_envelope_that_cannot_be_opened_is_wrong_and_keeps_all_that_came(encoding: str, told: str) -> None:
    raw = envelope("no base64!", body_encoding=encoding)
    seen = opened(raw, tag=1)
    assert seen.body == raw
    assert told in (seen.wrong or "")


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
    assert (seen.body, seen.wrong) == (BODY, None)


@pytest.mark.parametrize(
    ("body", "encoding", "told"),
    [
        (BODY, "klingon", "content encoding 'klingon'"),
        (BODY, "hex", "content encoding 'hex'"),  # a codec, but none of text
        (b"\xff", "utf-16", "utf-16"),
        (BODY, "gzip", "it is not gzip"),
        (gzip.compress(BODY, mtime=0)[:-9], "gzip", "cut off"),
    ],
)
def test_a_wrong_content_encoding_is_told_and_all_that_came_is_kept(
    body: bytes, encoding: str, told: str
) -> None:
    seen = delivered(body, {}, None, encoding, tag=1, id="m")
    assert (seen.body, seen.id) == (body, "m")
    assert told in (seen.wrong or "")


def test_what_kombu_compressed_is_unpacked_up_to_a_limit() -> None:
    headers = {"compression": "application/x-gzip"}  # as kombu calls zlib
    assert delivered(zlib.compress(BODY), headers, None, "utf-8", tag=1, id=None).body == BODY
    bomb = zlib.compress(bytes(UNPACKED_LIMIT + 1))
    seen = delivered(bomb, headers, None, None, tag=1, id=None)
    assert seen.body == bomb
    assert "more than" in (seen.wrong or "")
    other = delivered(BODY, {"compression": "application/x-bz2"}, None, None, tag=1, id=None)
    assert "send it with gzip or zlib" in (other.wrong or "")


@pytest.mark.parametrize(
    ("named", "id"), [("a", "a"), (7, "7"), (True, None), (None, None), ("", None), ({}, None)]
)
def test_an_id_is_text_or_a_number(named: Any, id: str | None) -> None:
    assert own_id({"message_id": named}, {}) == id


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
