"""The server on a real socket: its named limits, slow and broken requests, Host and forwarded headers, TLS."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import msgspec
import pytest
import trustme
import uvicorn
from starlette.types import Message, Receive, Send
from starlette.types import Scope as HttpScope
from uvicorn.server import ServerState

from lateshift import Lateshift
from lateshift.api import handshake, reading, serving
from lateshift.api.application import make_api
from lateshift.api.asked import Asked
from lateshift.api.bounds import (
    BODY_LIMIT,
    CONNECTIONS_OF_ADDRESS,
    DISCARDED,
    HEAD_LIMIT,
    READ_LEAST,
    REQUESTS_AT_ONCE,
    Bounds,
)
from lateshift.api.places import Places
from lateshift.api.problem import PROBLEM, Problem
from lateshift.api.route import PUBLIC, Done, Route
from lateshift.api.routes import health
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import Web, token_of
from tests.api.running import answered, connected, heard, running

GET = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def port(kit: Kit) -> Iterator[int]:
    with running(make_api(kit.app)) as port:
        yield port


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def said(answer: bytes) -> Problem:
    assert f"content-type: {PROBLEM}\r\n".encode() in answer.lower()
    return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2], type=Problem)


def test_a_head_that_comes_too_slowly_ends_the_connection(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEAD_WITHIN", timedelta(milliseconds=300))
    with running(make_api(kit.app)) as port, connected(port) as silent, connected(port) as slow:
        slow.sendall(GET + b"X-A: 1\r\n")
        assert heard(slow) == b""  # closed, without a word
        assert heard(silent) == b""
        with connected(port) as again:  # between two requests, too
            again.sendall(GET + b"\r\n")
            assert status(heard(again)) == 200
            again.sendall(b"GET /health")
            assert heard(again) == b""


def test_a_body_that_comes_too_slowly_is_answered_at_the_deadline(kit: Kit) -> None:
    token = token_of(kit.app, "slow", [Scope.ENQUEUE])
    head = (
        b"POST /v1/tasks/thumbnail/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\nAuthorization: Bearer %s\r\n\r\n{" % token.encode()
    )
    with running(make_api(kit.app, bounds=Bounds(deadline=timedelta(milliseconds=200)))) as port:
        answer = answered(port, head)
    assert status(answer) == 408
    assert b"urn:lateshift:problem:body-late" in answer
    assert b"connection: close" in answer.lower()


QUEUES = b"GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextmanager
def holding(port: int, count: int) -> Iterator[None]:
    """So many connections that stay open, each of which was answered."""
    with ExitStack() as stack:
        for _ in range(count):
            one = stack.enter_context(connected(port))
            one.sendall(GET + b"\r\n")
            assert status(heard(one)) == 200
        yield


@pytest.mark.parametrize(
    ("most", "of_address", "told", "kind"),
    [(2, 9, 503, "server-full"), (9, 2, 429, "connections-of-address")],
    ids=["of all", "of one address"],
)
def test_over_so_many_connections_only_probes_are_answered(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, most: int, of_address: int, told: int, kind: str
) -> None:
    monkeypatch.setattr(serving, "Places", partial(Places, most=most, of_address=of_address, spare=1))
    with running(make_api(kit.app)) as port, holding(port, 2):
        answer = answered(port, QUEUES)
        assert (status(answer), said(answer).type) == (told, f"urn:lateshift:problem:{kind}")
        assert b"retry-after: 1\r\n" in answer.lower()
        with connected(port) as silent:
            for path in (b"live", b"ready"):
                probe = answered(port, b"GET /health/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path)
                assert status(probe) == 200
                assert b"connection: close\r\n" in probe.lower()
            assert heard(silent) == b""  # it gave way


def test_requests_over_so_many_at_once_are_answered_503(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUESTS_AT_ONCE", 0)
    with running(make_api(kit.app)) as port:
        assert said(answered(port, QUEUES)).type == "urn:lateshift:problem:server-full"
        assert status(answered(port, GET + b"\r\n")) == 200


@pytest.mark.parametrize(
    "how", [b"Connection: close\r\n\r\n", b"Host: twice\r\n\r\n"], ids=["told", "malformed"]
)
def test_a_connection_that_has_ended_has_no_place_any_more(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, how: bytes
) -> None:
    monkeypatch.setattr(serving, "Places", partial(Places, most=2, of_address=2, spare=1))
    with running(make_api(kit.app)) as port:
        for _ in range(5):
            with connected(port) as one:
                one.sendall(GET + how)
                assert status(heard(one)) in (200, 400)
                assert one.recv(1) == b""  # the server has let go of it
        assert status(answered(port, QUEUES)) == 401


@pytest.mark.parametrize(
    ("proxies", "told"), [((), 429), (("127.0.0.1",), 401)], ids=["alone", "behind a proxy"]
)
def test_the_clients_of_a_proxy_do_not_share_the_part_of_its_address(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...], told: int
) -> None:
    monkeypatch.setattr(serving, "Places", partial(Places, most=9, of_address=1, spare=1))
    with running(make_api(kit.app), proxies=proxies) as port, holding(port, 1):
        assert status(answered(port, QUEUES)) == told


class Caller:
    """A connection, and whether it gave way."""

    def __init__(self) -> None:
        self.gone = False

    def give_way(self) -> None:
        self.gone = True


def test_one_address_leaves_places_for_others_and_gets_them_back() -> None:
    places = Places(most=4, of_address=3, spare=2)
    hers = [Caller() for _ in range(6)]
    assert [places.take(one, "192.0.2.1") for one in hers] == [
        None,
        None,
        None,
        "address",
        "address",
        "address",
    ]
    assert [one.gone for one in hers] == [False, False, False, True, False, False]
    assert places.take(Caller(), "192.0.2.2") is None
    assert places.take(Caller(), "192.0.2.3") == "full"
    places.leave(hers[0])
    places.leave(hers[5])
    assert places.take(Caller(), "192.0.2.1") is None


def test_many_addresses_of_one_network_of_ipv6_are_one_and_those_of_a_proxy_are_everybodys() -> None:
    own, proxied = Places(of_address=1), Places(of_address=1, by_address=False)
    for places, second in ((own, "address"), (proxied, None)):
        assert places.take(Caller(), "2001:db8::1") is None
        assert places.take(Caller(), "2001:db8::2") == second
    assert [own.take(Caller(), "") for _ in range(2)] == [None, None]  # a socket without an address


def test_one_address_has_three_quarters_of_all() -> None:
    assert CONNECTIONS_OF_ADDRESS * 4 == REQUESTS_AT_ONCE * 3


@pytest.mark.parametrize(
    "wrong",
    [
        b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        GET + b"Content-Length: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_with_a_problem_like_any_other(port: int, wrong: bytes) -> None:
    answer = answered(port, wrong)
    assert (status(answer), said(answer).type) == (400, "urn:lateshift:problem:request-malformed")
    assert b"connection: close\r\n" in answer.lower()


class Endless:
    """An answer that has no end, and what became of those who were sent it."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await self._part(receive, send))["type"] != "http.disconnect":
            pass
        self.ended.set()

    async def _part(self, receive: Receive, send: Send) -> Message:
        await send({"type": "http.response.body", "body": b"a" * READ_LEAST, "more_body": True})
        asked = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        return asked.result() if asked.done() else {"type": "nothing", "cancelled": asked.cancel()}


def test_a_client_that_reads_nothing_of_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "READ_WITHIN", timedelta(milliseconds=100))
    endless = Endless()
    with running(endless) as port, connected(port) as silent:
        silent.sendall(GET + b"\r\n")
        assert endless.ended.wait(20)


@pytest.mark.anyio
async def test_a_client_that_reads_may_take_its_time() -> None:
    """Looked at by hand, after each of the times in which it has to have read something."""
    looks: list[Callable[[], None]] = []
    loop, transport = Mock(), Mock()
    loop.call_later.side_effect = lambda seconds, look, *args: looks.append(partial(look, *args))
    transport.get_extra_info.return_value = None
    protocol = serving._Protocol(uvicorn.Config(Endless()), ServerState(), {}, loop)
    protocol.connection_made(transport)
    transport.get_write_buffer_size.return_value = left = 10 * READ_LEAST
    protocol.pause_writing()
    for _ in range(5):
        transport.get_write_buffer_size.return_value = left = left - READ_LEAST
        looks.pop()()
        assert not transport.abort.called
    transport.get_write_buffer_size.return_value = left - READ_LEAST + 1
    looks.pop()()
    assert transport.abort.called


@pytest.mark.anyio
@pytest.mark.parametrize("error", [None, ConnectionResetError()], ids=["closed", "cut"])
async def test_nothing_holds_what_is_left_of_a_connection_that_has_ended(error: Exception | None) -> None:
    loop, transport, timer = Mock(), Mock(), Mock()
    transport.get_extra_info.return_value = None
    protocol = serving._Protocol(uvicorn.Config(Endless()), ServerState(), {}, loop)
    protocol.connection_made(transport)
    protocol.timeout_keep_alive_task = timer
    protocol.connection_lost(error)
    assert timer.cancel.called
    assert loop.call_later.return_value.cancel.called
    assert protocol.timeout_keep_alive_task is None


@pytest.fixture
def hook(app: Lateshift) -> None:
    """Something that takes a body of anybody."""

    @app.on_webhook("x", verify=lambda headers, body, now: "1")
    @app.task
    def take(event: Any) -> None: ...


def test_a_body_over_the_limit_is_read_so_far_that_its_answer_is_heard(hook: None, port: int) -> None:
    head = b"POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    over = BODY_LIMIT + DISCARDED
    assert status(answered(port, head % over + b"a" * over)) == 413
    assert status(answered(port, head % (over + 1))) == 413  # of what says so much nothing is read
    chunked = b"POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (
        status(
            answered(port, chunked + b"%x\r\n" % BODY_LIMIT + b"a" * BODY_LIMIT + b"\r\n1\r\na\r\n0\r\n\r\n")
        )
        == 413
    )


def test_over_what_is_discarded_nothing_more_is_read(
    hook: None, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DISCARDED", 1000)
    endless = b"POST /hooks/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    part = b"ffff\r\n" + b"a" * 0xFFFF + b"\r\n"
    with running(make_api(kit.app, bounds=Bounds(body=1000))) as port, connected(port) as connection:
        connection.sendall(endless + part)  # and the end does not come
        answer = heard(connection)
    assert status(answer) == 413
    assert b"connection: close" in answer.lower()


def test_a_store_that_does_not_answer_in_time_is_not_ready(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(health, "READY_WITHIN", timedelta(milliseconds=50))
    monkeypatch.setattr(health, "aside", never)
    answer = web("GET", "/health/ready", token=None)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/queues HTTP/1.1\r\nHost: evil.example\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n",
        b"GET /v1/queues HTTP/1.1\r\n",
        b"GET /v1/queues HTTP/1.0\r\n",
        b"GET http://evil.example/v1/queues HTTP/1.1\r\nHost: evil.example\r\n",
        b"GET http://127.0.0.1/v1/queues HTTP/1.1\r\nHost: evil.example\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: 127.0.0.1\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost : 127.0.0.1\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1\x00.evil.example\r\n",
        b"GET /v1/queues HTTP/1.1\r\nHost: 127.0.0.1, evil.example\r\n",
    ],
)
def test_a_host_that_is_not_ours_is_refused_however_it_is_said(port: int, kit: Kit, head: bytes) -> None:
    token = token_of(kit.app, "root", [Scope.ADMIN]).encode()
    assert status(answered(port, head + b"Authorization: Bearer " + token + b"\r\n\r\n")) in (400, 421)


@pytest.mark.parametrize(
    "request_line", [b"GET http://127.0.0.1/v1/queues HTTP/1.1", b"GET //v1/queues HTTP/1.1", b"GET /./v1/queues HTTP/1.1",
                     b"GET /health/live/../../v1/queues HTTP/1.1", b"GET /v1/queues#x HTTP/1.1", b"GET * HTTP/1.1",
                     b"CONNECT 127.0.0.1:80 HTTP/1.1", b"get /v1/queues HTTP/1.1", b"PRI * HTTP/2.0"],
)  # fmt: skip
def test_another_form_of_a_request_opens_no_door(port: int, request_line: bytes) -> None:
    answer = answered(port, request_line + b"\r\nHost: 127.0.0.1\r\n\r\n")
    assert status(answer) in (400, 401, 404, 405)


def test_two_requests_in_one_are_not_told_apart_by_two_lengths(port: int) -> None:
    for lengths in (
        b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"Content-Length: +5\r\n", b"Content-Length: -1\r\n",
    ):  # fmt: skip
        smuggled = (
            b"POST /hooks/x HTTP/1.1\r\nHost: localhost\r\n" + lengths + b"\r\n0\r\n\r\n" + GET + b"\r\n"
        )
        answer = answered(port, smuggled)
        assert answer.count(b"HTTP/1.1 200") == 0
        assert status(answer) in (400, 404, 501)


def test_no_header_says_where_a_request_comes_from(kit: Kit) -> None:
    def shows(asked: Asked) -> Done:
        """Nothing."""
        return Done(subject="", action="", changed=False)

    route = Route(method="GET", path="/x", handler=shows, gives=Done, scope=PUBLIC)
    with running(make_api(kit.app, routes=[route], bounds=Bounds(address_rate=0.001))) as port:
        spoofed = b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-For: 10.0.0.%d\r\nX-Real-IP: 10.0.0.%d\r\n\r\n"
        answers = [status(answered(port, spoofed % (n, n))) for n in range(10)]
    assert 429 in answers


def test_heads_that_are_too_large_end_the_connection_and_keep_nothing(port: int) -> None:
    assert status(answered(port, b"GET /" + b"a" * (HEAD_LIMIT + 1))) in (0, 400)
    assert status(answered(port, GET + b"X: " + b"a" * (HEAD_LIMIT + 1))) in (0, 400)
    assert status(answered(port, GET + b"\r\n")) == 200


@dataclass(frozen=True)
class Secured:
    """A certificate, its key, and who trusts it."""

    certificate: Path
    key: Path
    trusting: ssl.SSLContext


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    authority = trustme.CA()
    served = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    for part in served.cert_chain_pems:
        part.write_to_path(certificate, append=True)
    served.private_key_pem.write_to_path(key)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return Secured(certificate, key, trusting)


def test_tls_is_spoken_with_the_certificate_that_was_given(kit: Kit, secured: Secured) -> None:
    with running(make_api(kit.app), secured.certificate, secured.key) as port:
        url = f"https://127.0.0.1:{port}/health/live"
        with httpx.Client(verify=secured.trusting, trust_env=False) as client:
            assert client.get(url).json() == {"status": "live"}
        with httpx.Client(verify=ssl.create_default_context(), trust_env=False) as client:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                client.get(url)
        secured.trusting.minimum_version = secured.trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        with httpx.Client(verify=secured.trusting, trust_env=False) as client:
            assert client.get(url).status_code == 200
        assert status(answered(port, GET + b"\r\n")) in (0, 400)  # in the clear there is nothing to be heard


def test_a_handshake_of_tls_has_a_place_and_its_time(
    kit: Kit, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who never ends it keeps nobody out but whoever comes from his own address, and not for long."""
    monkeypatch.setattr(serving, "Places", partial(Places, most=9, of_address=2, spare=1))
    with running(make_api(kit.app), secured.certificate, secured.key) as port, ExitStack() as stack:
        silent = [stack.enter_context(connected(port)) for _ in range(2)]
        with httpx.Client(
            base_url=f"https://127.0.0.1:{port}", verify=secured.trusting, trust_env=False
        ) as client:
            assert client.get("/v1/queues").status_code == 429
            assert client.get("/health/live").status_code == 200
            for one in silent:
                one.sendall(b"no handshake\r\n\r\n")
                heard(one)  # to its end
            assert client.get("/v1/queues").status_code == 401


def test_a_handshake_that_does_not_end_is_ended(
    kit: Kit, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "HEAD_WITHIN", timedelta(milliseconds=100))
    with running(make_api(kit.app), secured.certificate, secured.key) as port, connected(port) as silent:
        assert heard(silent) == b""
