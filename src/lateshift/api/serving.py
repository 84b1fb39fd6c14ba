"""A server for the API: one process, one event loop, stopped gracefully."""

import asyncio
import errno
import logging
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr

from lateshift.api.answering import problem_of
from lateshift.api.binding import Binding
from lateshift.api.bounds import (
    CONNECTIONS_OF_ADDRESS,
    DEADLINE,
    HEAD_LIMIT,
    HEAD_WITHIN,
    READ_LEAST,
    READ_WITHIN,
    REQUESTS_AT_ONCE,
)
from lateshift.api.handshake import Handshake
from lateshift.api.places import Places, Without
from lateshift.api.problem import Refused
from lateshift.api.routes.health import ROUTES as PROBES
from lateshift.api.streaming import ending
from lateshift.errors import OptionInvalid
from lateshift.runtime.collecting import give_back, settle_down

IDLE_SECONDS = 30  # until a connection on which nothing is asked is closed
_PROBES = frozenset(route.path for route in PROBES)
_CLOSE = {"Connection": "close"}
_MALFORMED = (
    "This is no request of HTTP/1.1: its first line or its headers are wrong, too large, or stand twice."
)
# Seconds after which a busy event loop lets the threads of the store go on. At the default of 5 ms a commit would wait for the loop
# to run out of requests, and then all requests for the commit.
SWITCH_SECONDS = 0.000_5


class Server(uvicorn.Server):
    """Without signal handlers of its own: whoever runs it says when to stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Protocol(H11Protocol):
    """Nobody holds a connection for ever: one on which a request does not come to the end of its head in time is closed, and one whose
    client does not read what it is sent is cut. What is refused before the API has seen it is a problem like any other."""

    _slow: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _arrived = False
    _without: Without | None = None
    places = Places()  # of its server

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not self._arrived:
            self.arrive(transport)
        super().connection_made(transport)
        transport.set_write_buffer_limits(1)  # told as soon as the system takes no more
        self._wait()

    def arrive(self, transport: asyncio.Transport) -> None:
        self._arrived, self.transport = True, transport
        client = get_remote_addr(transport)
        self._without = self.places.take(self, client[0] if client else "")

    def depart(self) -> None:
        self.places.leave(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if getattr(self.cycle, "response_complete", True):  # there is none before the first request
            self._wait()
        else:
            self._heard()

    def handle_events(self) -> None:
        without = self._without or ("full" if len(self.tasks) >= REQUESTS_AT_ONCE else None)
        app = self.config.loaded_app
        self.app = app if without is None else _Spare(app, without)
        super().handle_events()

    def give_way(self) -> None:
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (
            h11.IDLE,
            h11.SEND_RESPONSE,
        ):  # else an answer is under way, and is cut short
            given = problem_of(Refused(400, "request-malformed", _MALFORMED, headers=_CLOSE), "the door")
            head = h11.Response(status_code=400, headers=given.raw_headers, reason=b"Bad Request")
            for event in (head, h11.Data(data=bytes(given.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard()
        self._taken()
        self.depart()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # a timer would hold what is left of one that was cut for as long as it runs

    def _wait(self) -> None:
        if self._slow is None:
            self._slow = self.loop.call_later(HEAD_WITHIN.total_seconds(), self.transport.close)

    def _heard(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(READ_WITHIN.total_seconds(), self._look, left)

    def _look(self, before: int) -> None:
        """A peer that reads may take its time; one that does not is waited for no longer, also after we have closed."""
        if before - self.transport.get_write_buffer_size() < READ_LEAST:
            self.transport.abort()
        else:
            self._watch()

    def _taken(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


class _Spare:
    """What answers where there is no place: probes as ever, and all others that there is none. Then the connection ends."""

    def __init__(self, app: ASGIApp, without: Without) -> None:
        self._app = app
        self._without = without

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        if scope["path"] in _PROBES:
            await self._app(scope, receive, last)
        else:
            await problem_of(_no_place(self._without), "the door")(scope, receive, send)


def _no_place(without: Without) -> Refused:
    if without == "address":
        detail = f"Your address has {CONNECTIONS_OF_ADDRESS:,} connections here, and may have no more. Use them again."
        return Refused(429, "connections-of-address", detail, headers=_CLOSE)
    detail = f"This server has {REQUESTS_AT_ONCE:,} connections and takes no more. Ask again later."
    return Refused(503, "server-full", detail, headers=_CLOSE)


def listening(binding: Binding, *, or_free: bool = False) -> socket.socket:
    """A socket on which connections wait from now on; `or_free`, on a free port if this one is taken. Raises OptionInvalid if the
    address cannot be had."""
    family = socket.AF_INET6 if ":" in binding.host else socket.AF_INET
    try:
        at = socket.create_server((binding.host, binding.port), family=family, backlog=2048)
    except OSError as error:
        if or_free and error.errno == errno.EADDRINUSE:
            return listening(replace(binding, port=0))
        raise OptionInvalid(
            f"{binding.host}, port {binding.port}, cannot be listened on: {error.strerror or error}. Another --port or --host?"
        ) from None
    # Inherited by connections. asyncio sets it only for sockets that were made with the protocol's number, which this was not;
    # an answer in two writes would wait 40 ms for the client's acknowledgement of the first.
    at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return at


def server_of(api: ASGIApp, binding: Binding) -> Server:
    """Raises OptionInvalid if the certificate cannot be used."""

    class Placed(_Protocol):
        places = Places(by_address=not binding.peers)

    config = uvicorn.Config(
        api, http=Placed, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False, proxy_headers=False,
        h11_max_incomplete_event_size=HEAD_LIMIT, timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=round(DEADLINE.total_seconds()), ssl_certfile=binding.certificate,
        ssl_keyfile=None if binding.key is None else str(binding.key),
    )  # fmt: skip
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        raise OptionInvalid(f"--tls-cert and --tls-key cannot be used: {error}.") from None
    if (context := config.ssl) is not None:

        def secured(**of: Any) -> Handshake:
            return Handshake(Placed(**of), context, asyncio.get_running_loop())

        config.ssl, config.http_protocol_class = None, cast(type[asyncio.Protocol], secured)
    if not logging.getLogger().isEnabledFor(logging.DEBUG):
        logging.getLogger("uvicorn.error").setLevel(
            logging.WARNING
        )  # its name has lines of its start, too, which are no errors
    return Server(config)


async def serve(server: Server, at: socket.socket, stopping: asyncio.Event) -> None:
    """Until `stopping` is set; then what is under way is answered."""
    settle_down()
    give_back()
    sys.setswitchinterval(SWITCH_SECONDS)
    running = asyncio.create_task(server.serve(sockets=[at]))
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
    ending().set()
    server.should_exit = True
    stopped.cancel()
    await running
