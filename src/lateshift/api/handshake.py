"""TLS, whose beginning has its place and its time like a request: whoever never ends it holds no more than anybody else."""

import asyncio
import ssl
from typing import Protocol

from lateshift.api.bounds import HEAD_WITHIN


class Secured(Protocol):
    """What speaks over the connection when it is secure."""

    def arrive(self, transport: asyncio.Transport) -> None:
        """Somebody is there, who may never come further."""

    def depart(self) -> None:
        """He has not."""

    def connection_made(self, transport: asyncio.Transport) -> None: ...

    def data_received(self, data: bytes) -> None: ...


class Handshake(asyncio.Protocol):
    """Of one connection. What comes with the end of it, before anybody is there to be told, is kept until then."""

    def __init__(self, inner: Secured, context: ssl.SSLContext, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._context = context
        self._loop = loop
        self._early: list[bytes] = []
        self._lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.pause_reading()
        transport.set_write_buffer_limits(1)  # else 64 KiB lie here, beside what lies in the secure one
        self._inner.arrive(transport)
        self._going = self._loop.create_task(self._go(transport))

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True

    async def _go(self, transport: asyncio.Transport) -> None:
        within = HEAD_WITHIN.total_seconds()
        try:
            secure = await self._loop.start_tls(
                transport, self, self._context, server_side=True, ssl_handshake_timeout=within
            )
        except OSError:  # among them whatever TLS has to say, and that the time is over
            secure = None
        if secure is None or self._lost:
            self._inner.depart()
            return
        secure.set_protocol(self._inner)  # type: ignore[arg-type]
        self._inner.connection_made(secure)
        for data in self._early:
            self._inner.data_received(data)
