"""What lies in a connection with TLS when its client reads nothing."""

import asyncio
import ssl

import pytest
import trustme

from lateshift.api.handshake import Handshake

pytestmark = pytest.mark.anyio

SOON = 20  # seconds
PIECE = b"x" * 8_200
KERNEL = 64 * 2**20  # bytes, and far more than a system takes of what nobody reads


class Writing(asyncio.Protocol):
    """Writes piece after piece, until it is told that there is no more room."""

    def __init__(self) -> None:
        self.raw: asyncio.Transport | None = None
        self.full = asyncio.Event()

    def arrive(self, transport: asyncio.Transport) -> None:
        self.raw = transport

    def depart(self) -> None:
        raise AssertionError("it was not made secure")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.set_write_buffer_limits(1)
        written = 0
        while not self.full.is_set() and written < KERNEL:
            transport.write(PIECE)
            written += len(PIECE)
        self.transport = transport

    def pause_writing(self) -> None:
        self.full.set()


async def test_what_is_written_to_a_client_that_reads_nothing_waits_once() -> None:
    """As over a connection without TLS: a piece that the system did not take, and one that waits for it."""
    authority = trustme.CA()
    of_server, of_client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(of_server)
    authority.configure_trust(of_client)
    loop, writing = asyncio.get_running_loop(), Writing()
    server = await loop.create_server(lambda: Handshake(writing, of_server, loop), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(SOON):
        _, client = await asyncio.open_connection("127.0.0.1", port, ssl=of_client, limit=1)
        await writing.full.wait()
        assert writing.raw is not None
        lies = writing.raw.get_write_buffer_size() + writing.transport.get_write_buffer_size()
        assert lies < 2 * len(PIECE) + 1024
        client.transport.abort()
        writing.transport.abort()
