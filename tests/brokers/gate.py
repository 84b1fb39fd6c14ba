"""A door in front of a server: while it is shut, connections break and new ones are turned away. While it is held, they
stand, and nothing gets through."""

import contextlib
import socket
import threading
from typing import Self

from tests.brokers.servers import HOST


class Gate:
    """Listens on `port` and forwards to another port. Open at first; use it in a `with` block."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self._open = True
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="gate", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()
        _end(self._listener)

    def hold(self) -> None:
        self._flows.clear()

    def shut(self) -> None:
        self._flows.set()
        with self._lock:
            self._open = False
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _end(each)

    def open(self) -> None:
        self._flows.set()
        with self._lock:
            self._open = True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if not self._open:
                    _end(client)
                    continue
                server = socket.create_connection((HOST, self._server), timeout=10)
                server.settimeout(None)
                self._sockets |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                target.sendall(data)
        _end(source)
        _end(target)


def _end(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
