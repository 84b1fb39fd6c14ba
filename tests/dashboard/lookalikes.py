"""Requests that look like those of a route, byte by byte as a client could send them; and one connection to send them by."""

import socket
from collections.abc import Iterator

HOST = b"Host: 127.0.0.1\r\n"
EMPTY = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n"

SUFFIXES = (
    "/", "//", "/configs", ";x", ";x=/health/live", ".", "..", "/.", "/..", "/..;/", "%2e", "/%2e%2e", "%2f", "%5c", "%20", "%00", "%0a", "%ff",
    "%c0%ae", "%252f", ".json", "?x=1", "?_method=GET", "?x=%0d%0aX-Split:%20y", "%0d%0aX-Split:%20y", "#x", "*", "~", "é", " x",
    "\t", "\r", "\n", "\0", "\rX-Split: y", "\nX-Split: y", "\r\nX-Split: y",
)  # fmt: skip
PREFIXES = (
    "/", "/.", "/..", "/%2e", "/%2e%2e", "/%2f", "/;x", "/x/..", "/health/live", "/health/live/..", "/health/live/%2e%2e",
    "/health/live%2f..", "/static/..", "/static/%2e%2e%2f..", "/sign-in/..", "/sign-in;x/..", "/hooks/x/..", "/v1",
    "http://127.0.0.1", "https://127.0.0.1", "http://evil.example", "//127.0.0.1", "///", "http://127.0.0.1:1@evil.example",
)  # fmt: skip
METHODS = (
    "GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "get", "GETS", "POST\tGET",
)  # fmt: skip
HEADS: tuple[bytes, ...] = (
    HOST + HOST, HOST + b"Host: evil.example\r\n", b"Host: evil.example\r\n" + HOST, b"", b"Host:\r\n", b"Host: evil.example\r\n",
    b"Host: 127.0.0.1.\r\n", b"Host: 127.0.0.1:x\r\n", b"Host : 127.0.0.1\r\n", b"Host: 127.0.0.1\rX-Split: y\r\n", b"Host: 127.0.0.1\0\r\n",
    HOST + b"X: a\r\n\tb\r\n", HOST + b"X: a\nY: b\r\n", HOST + b"X: a\rY: b\r\n", HOST + b"X: \0\r\n", HOST + b" X: y\r\n", HOST + b": y\r\n",
    HOST + b"X-HTTP-Method-Override: GET\r\n", HOST + b"X-HTTP-Method: GET\r\nX-Method-Override: GET\r\n",
    HOST + b"X-Original-URL: /health/live\r\nX-Rewrite-URL: /health/live\r\n", HOST + b"X-Forwarded-Prefix: /health/live\r\n",
    HOST + b"X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nForwarded: for=127.0.0.1;host=127.0.0.1\r\n",
    HOST + b"X-Forwarded-Host: 127.0.0.1\r\nX-Forwarded-Proto: https\r\n", HOST + b"Remote-User: admin\r\nX-Forwarded-User: admin\r\n",
    HOST + b"Cookie: lateshift-8642=\r\n", HOST + b"Sec-Fetch-Site: same-origin\r\nOrigin: http://127.0.0.1\r\n",
    HOST + b"Accept: text/html\r\n", HOST + b"Connection: close, Host\r\n", HOST + b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
    HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
)  # fmt: skip


def targets(path: str) -> Iterator[str]:
    """Other ways to write a path, and places before and behind it."""
    yield from (path + suffix for suffix in SUFFIXES)
    yield from (prefix + path for prefix in PREFIXES)
    last = path.rindex("/")
    first, rest = path[: last + 1], path[last + 1 :]
    yield from (
        first + "/" + rest,
        first + "./" + rest,
        first + "%2e/" + rest,
        first + ";x/" + rest,
        first + "x/../" + rest,
    )
    yield from (path[:last] + slash + rest for slash in ("%2f", "%2F", "%5c", "\\", "%252f"))
    yield from (path.upper(), path.title(), path.swapcase())
    yield "".join(f"%{ord(each):02x}" if each.isalnum() else each for each in path)


def request(method: str, target: str, head: bytes = HOST) -> bytes:
    return f"{method} {target} HTTP/1.1\r\n".encode() + head + EMPTY + b"\r\n"


class Wire:
    """A connection to the server, opened again whenever the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, sent: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer; 0 if it was closed without one."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=20)
        self._socket.sendall(sent)
        head = self._heard()
        if not head:
            self.close()
            return 0, {}, b""
        told, _, body = head.partition(b"\r\n\r\n")
        first, *lines = told.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if sent.startswith(b"HEAD ") else int(headers.get("content-length", "0"))
        while len(body) < length:
            body += self._socket.recv(65536) or b"?" * length
        if headers.get("connection", "").lower() == "close" or "transfer-encoding" in headers:
            self.close()
        return int(first.split(" ")[1]), headers, body

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _heard(self) -> bytes:
        """Until the head of an answer is whole, or the connection ends."""
        assert self._socket is not None
        got = b""
        try:
            while b"\r\n\r\n" not in got and (part := self._socket.recv(65536)):
                got += part
        except ConnectionResetError:
            pass
        return got
