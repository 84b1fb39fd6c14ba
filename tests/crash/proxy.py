"""A TCP proxy in front of PostgreSQL that can lose the answer to a COMMIT: the server has committed, the client sees
its connection close. It reads just enough of the wire protocol to know which statement is being answered."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit, urlunsplit

_BIND, _PARSE, _QUERY, _READY = b"B", b"P", b"Q", b"Z"


@dataclass
class Trick:
    """What happens to one answer: that to the first commit after a statement with `text` in it.

    `done` is set once the server has answered. An answer that is held goes on its way when `let_go` is set; one that
    is not held is lost, and the connection closed.
    """

    text: str
    held: bool
    done: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    claimed: bool = False


class Proxy:
    """Listens on a port of its own and forwards to the server of `url`. Close it, or use it in a `with` block."""

    def __init__(self, url: str) -> None:
        self._upstream = urlsplit(url)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._tricks: list[Trick] = []
        self._sockets: set[socket.socket] = set()
        self._closed = False
        self.port: int = self._listener.getsockname()[1]
        self.url = urlunsplit(
            self._upstream._replace(
                netloc=f"{self._upstream.username or 'postgres'}@127.0.0.1:{self.port}",
                query="sslmode=disable&gssencmode=disable",  # so that what passes can be read
            )
        )
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lose_answer(self, text: str) -> Trick:
        """The next transaction that runs a statement with `text` in it is committed, and nobody is told."""
        return self._play(Trick(text, held=False))

    def hold_answer(self, text: str) -> Trick:
        """The same, and they are told when it is let go."""
        return self._play(Trick(text, held=True))

    def _play(self, trick: Trick) -> Trick:
        with self._lock:
            self._tricks.append(trick)
        return trick

    def cut(self) -> None:
        """Close every connection that is open now."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _end(each)

    def close(self) -> None:
        self._closed = True
        for trick in self._tricks:
            trick.let_go.set()
        _end(self._listener)
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(
                    (self._upstream.hostname, self._upstream.port or 5432), timeout=10
                )
            except OSError:  # the server is away: so are we
                client.close()
                continue
            server.settimeout(None)
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets |= {client, server}
            link = _Link(self, client, server)
            for way in (link.upwards, link.downwards):
                threading.Thread(target=way, name="proxy", daemon=True).start()

    def claim(self, statement: str) -> Trick | None:
        """The trick that this statement calls for, given out once."""
        with self._lock:
            for trick in self._tricks:
                if not trick.claimed and trick.text in statement:
                    trick.claimed = True
                    return trick
        return None


class _Link:
    """One client's connection and ours to the server, a thread for each way."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._prepared: dict[bytes, str] = {}
        self._trick: Trick | None = None  # set before the statement goes up, so before its answer comes down

    def upwards(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._server.sendall(_startup(self._client))
            for kind, message in _messages(self._client):
                statement = self._statement(kind, message)
                if statement is not None and self._trick is None:
                    self._trick = self._proxy.claim(statement)
                self._server.sendall(message)
        _end(self._server)
        _end(self._client)

    def downwards(self) -> None:
        held = b""
        with contextlib.suppress(OSError):
            for kind, message in _messages(self._server):
                if self._trick is None:
                    self._client.sendall(message)
                    continue
                held += message
                if kind == _READY:
                    if message[-1:] == b"I":  # not in a transaction any more: it is committed
                        trick, self._trick = self._trick, None
                        trick.done.set()
                        if not trick.held:
                            break
                        trick.let_go.wait()
                    self._client.sendall(held)
                    held = b""
        _end(self._client)
        _end(self._server)

    def _statement(self, kind: bytes, message: bytes) -> str | None:
        """The SQL that this message makes the server run."""
        if kind == _QUERY:
            return message[5:-1].decode(errors="replace")
        if kind == _PARSE:
            name, text, _ = message[5:].split(b"\0", 2)
            self._prepared[name] = text.decode(errors="replace")
        if kind == _BIND:
            _, name, _ = message[5:].split(b"\0", 2)
            return self._prepared.get(name, "")
        return None


def _startup(source: socket.socket) -> bytes:
    """The first message has no type."""
    head = _exactly(source, 4)
    return head + _exactly(source, struct.unpack("!I", head)[0] - 4)


def _messages(source: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    while True:
        try:
            head = _exactly(source, 5)
            rest = _exactly(source, struct.unpack("!I", head[1:])[0] - 4)
        except EOFError:
            return
        yield head[:1], head + rest


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = source.recv(count - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
