"""Every route with what is wrong in every way, made of the routes themselves: a 4xx says so, and nothing is a fault."""

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from lateshift.api.application import with_document
from lateshift.api.route import Route
from lateshift.api.routes.all import ROUTES
from lateshift.testing import Kit
from tests.api.asking import Web
from tests.api.shop import Shop
from tests.api.test_refusals import body_of, filled

ALL = with_document(ROUTES)
JSON = {"Content-Type": "application/json"}
FIRST, LAST = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"
BYTES = (
    b"", b"{", b"null", b"[]", b'"x"', b"1e999", b"NaN", b"\xff\xfe", b"[" * 10_000, b'{"a":' * 70 + b"1" + b"}" * 70, b'{"x":1,"x":2}',
    b'{"name":"\\ud800"}', b'{"arguments":{"to":"\\ud800"}}', b'{"limit":99999999999999999999999}', b"{}" + b" " * 2_000_000,
)  # fmt: skip
FIELDS: tuple[dict[str, Any], ...] = (
    {"x": 1}, {"name": "\x00"}, {"name": "x" * 300}, {"name": "a\r\nSet-Cookie: b=c"}, {"name": "☃"}, {"name": 7}, {"limit": -1}, {"limit": 2**70},
    {"arguments": [1]}, {"arguments": {"": ""}}, {"arguments": {"to": "\x00"}}, {"arguments": "x" * 300_000}, {"queue": "a b"}, {"queue": "\x00"},
    {"at": FIRST}, {"at": LAST}, {"delay": 3e8}, {"delay": -1}, {"reply_to": "http://\x00"}, {"reply_to": ["x"] * 20}, {"correlation_id": "x"},
    {"session": "s", "sequence": 2**62}, {"tags": ["\x00"]}, {"tenant": "\x00"}, {"limit_key": "nope:1"}, {"ids": ["x"]}, {"since": "99999999999d"},
    {"since": "-1d"}, {"until": FIRST}, {"until": LAST}, {"start": FIRST, "end": LAST}, {"start": LAST}, {"end": FIRST}, {"timezone": "../../x"},
    {"timezone": "\x00"}, {"every": 0}, {"every": 1e-9}, {"cron": "0 0 30 2 *"}, {"cron": "\x00"}, {"jitter": 3e8}, {"tick_as": "to"}, {"most": 10**9},
    {"why": "\x00"}, {"data": "x" * 300_000}, {"scopes": []}, {"scopes": ["admin"] * 100}, {"queues": ["*"] * 1000}, {"expires": 1e300},
    {"like": "zzz"}, {"change": {"to": "\x00"}}, {"change": {"to": 1}}, {"unset": ["to"] * 500}, {"clear": ["start", "start"]},
)  # fmt: skip
QUERIES = (
    "x=1", "limit=0", "limit=99999999999999999999", "limit=1&limit=2", "cursor=", "cursor=AAAA", "cursor=%ff", "cursor=" + "A" * 3000, "queue=%00",
    "queue=%ED%A0%80", "since=1e999d", "since=99999999999d", "until=0001-01-01", "until=9999-12-31T23:59:59-23:59", "tag=%00", "argument=%00",
    "argument==", "error=%00", "state=x", "key=%00", "session=%00", "batch=x", "wait=nan", "wait=inf", "attempt=0", "over=x", "format=x", "count=0",
    "cron=%00", "every=nan", "every=1e-300", "every=60&timezone=../x", "every=60&timezone=%00", "channel=%00", "channel=" + "[a" * 100, "held=x", "%ff=%ff", "=",
)  # fmt: skip
IDS = (
    "x", "%00", "%ff", "00000000-0000-0000-0000-000000000000", "f" * 32, "0" * 5000, "%2e%2e", "a%2fb", "%ED%A0%80", "-1", "';--",
)  # fmt: skip
HEADERS = (
    {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=utf-16"}, {"Content-Encoding": "gzip"}, {"Idempotency-Key": ""},
    {"Idempotency-Key": "x" * 300}, {"If-None-Match": "W/" * 500}, {"Last-Event-ID": "9" * 18 + ".5"},
    {"Accept": "application/openmetrics-text;q=nan"}, {"traceparent": "00-x"}, {"Content-Length": "-1"},
)  # fmt: skip


def bodies(route: Route) -> Iterator[bytes]:
    yield from BYTES
    good = body_of(route)
    for fields in FIELDS:
        yield msgspec.json.encode(good | fields)


def requests(route: Route, path: str) -> Iterator[tuple[str, bytes | None, httpx.Headers]]:
    good = msgspec.json.encode(body_of(route)) if route.method == "POST" else None
    plain = httpx.Headers(JSON if good else {})
    if good is not None:
        for body in bodies(route):
            yield path, body, plain
    else:
        for query in QUERIES:
            yield f"{path}?{query}", None, plain
    for parameter in route.parameters:
        for id in IDS:
            yield route.shown_path.replace(f"{{{parameter}}}", id).replace("{step}", "1"), good, plain
    for headers in HEADERS:
        yield path, good, httpx.Headers(dict(plain) | headers)


@pytest.mark.parametrize("route", ALL, ids=lambda route: f"{route.method} {route.path}")
def test_nothing_that_is_wrong_is_a_fault(route: Route, kit: Kit, shop: Shop, web: Web) -> None:
    path = filled(route, kit, shop)
    for asked, body, headers in requests(route, path):
        answer = web(route.method, asked, content=body, headers=headers)
        assert answer.status_code < 500, (asked[:200], (body or b"")[:200], headers, answer.text)
        assert "set-cookie" not in answer.headers
