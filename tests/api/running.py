"""The server itself, on a thread of this process and a port of this machine; and requests byte by byte."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from starlette.types import ASGIApp

from lateshift.api.binding import binding_of
from lateshift.api.serving import listening, serve, server_of


@contextmanager
def running(
    api: ASGIApp, certificate: Path | None = None, key: Path | None = None, *, proxies: Sequence[str] = ()
) -> Iterator[int]:
    """Gives the port."""
    binding = binding_of("127.0.0.1", 0, certificate=certificate, key=key, proxies=proxies)
    with listening(binding) as at:
        server = server_of(api, binding)
        stopping = asyncio.Event()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(serve(server, at, stopping),))
        thread.start()
        try:
            yield at.getsockname()[1]
        finally:
            loop.call_soon_threadsafe(stopping.set)
            thread.join(60)
            loop.close()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        yield connection


def answered(port: int, request: bytes) -> bytes:
    """What comes back until the server closes, or has sent a whole answer."""
    with connected(port) as connection:
        connection.sendall(request)
        return heard(connection)


def heard(connection: socket.socket) -> bytes:
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
            head, blank, body = got.partition(b"\r\n\r\n")
            length = [
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ]
            if blank and length and len(body) >= length[0]:
                break
    except ConnectionResetError:
        pass
    return got
