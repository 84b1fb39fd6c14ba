"""The remote services: payments and delivery, behind one small HTTP server that does what it is told. Nothing here knows Lateshift.

POST /charge, /refund or /ship {"order": 7, "price": 39, "token": "charge 7"}: the same token again is the same charge.
POST /mode {"order": 7, "mode": "hang", "service": "charge"}: from now on that service treats that order so.
"""

import json
import select
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeAlias, get_args

Mode: TypeAlias = Literal["work", "transient", "timeout", "lost", "permanent", "hang"]
Service: TypeAlias = Literal["charge", "refund", "ship"]

MODES: tuple[Mode, ...] = get_args(Mode)
SERVICES: tuple[Service, ...] = get_args(Service)
OPPOSITES = {"charge": "refund", "refund": "charge"}
PORT = 8077  # where `serve` listens unless told otherwise
BAD_CALLS = 2  # that go wrong in the modes that get well by themselves
LOOK_EVERY = 0.05  # seconds, at a caller who waits in vain
LARGEST_BODY = 64 * 1024  # bytes


class Remote(ThreadingHTTPServer):
    """What was done, and how it is told to behave. `url` is its address, on a free port of the loopback unless one is given."""

    daemon_threads = False  # closing it waits for those who answer

    def __init__(self, port: int = 0) -> None:
        self.closing = threading.Event()
        self.calls: Counter[tuple[Service, int]] = Counter()
        self.done: dict[str, str] = {}  # receipts by token
        self.log: list[str] = []  # what was really done, such as "charge 7"
        self._modes: dict[tuple[Service, int], Mode] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), Call)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def tell(self, order: int, mode: Mode, service: Service = "charge") -> None:
        with self._lock:
            self._modes[service, order] = mode
            self.calls[service, order] = 0

    def mode_of(self, service: Service, order: int, own: Mode) -> tuple[Mode, int]:
        """How this call is treated, and the how manyth it is. `own`: what the order itself asks for, if nobody told otherwise."""
        with self._lock:
            self.calls[service, order] += 1
            return self._modes.get((service, order), own), self.calls[service, order]

    def do(self, service: Service, order: int, token: str) -> str:
        """Once for each token, however often it is asked for. What a refund has undone may be charged again."""
        with self._lock:
            if token not in self.done:
                self.log.append(f"{service} {order}")
                self.done[token] = f"{service}-{order}-{len(self.log)}"
                self.done.pop(f"{OPPOSITES.get(service)} {order}", None)
            return self.done[token]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who has hung up is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        self.closing.set()
        super().server_close()


class Call(BaseHTTPRequestHandler):
    """One request."""

    server: Remote
    timeout = 60  # seconds: nobody is waited for any longer

    def do_POST(self) -> None:
        try:
            asked = json.loads(self.rfile.read(min(int(self.headers["Content-Length"] or 0), LARGEST_BODY)))
            path = self.path.strip("/")
            if path == "mode":
                self._mode(asked)
            elif path in SERVICES:
                self._serve(path, asked)
            else:
                self._answer(404, {"error": f"there is no {self.path}"})
        except (KeyError, TypeError, ValueError) as error:
            self._answer(400, {"error": f"that is no request: {error!r}"})

    def _mode(self, asked: dict[str, Any]) -> None:
        mode, service = asked["mode"], asked.get("service", "charge")
        if mode not in MODES or service not in SERVICES:
            raise ValueError(f"mode is one of {', '.join(MODES)}; service one of {', '.join(SERVICES)}")
        self.server.tell(int(asked["order"]), mode, service)
        self._answer(200, {"order": asked["order"], "service": service, "mode": mode})

    def _serve(self, service: Service, asked: dict[str, Any]) -> None:
        order, token = int(asked["order"]), str(asked["token"])
        mode, number = self.server.mode_of(service, order, asked.get("mode", "work"))
        match mode:
            case "transient" if number <= BAD_CALLS:
                self._answer(503 if number == 1 else 429, {"error": "try again later"})
            case "permanent":
                self._answer(422, {"error": f"we will not {service} for order {order}"})
            case "hang":
                self._wait_in_vain()
            case "timeout" if number <= BAD_CALLS:
                self._wait_in_vain()
            case "lost" if number == 1:
                self.server.do(service, order, token)  # and nobody hears of it
            case _:
                self._answer(200, {"receipt": self.server.do(service, order, token)})

    def _wait_in_vain(self) -> None:
        """Say nothing until the caller hangs up."""
        while not self.server.closing.is_set():
            heard, _, _ = select.select([self.connection], [], [], LOOK_EVERY)
            if heard:
                return

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """It says nothing of its own accord."""


@contextmanager
def serving(port: int = 0) -> Iterator[Remote]:
    """The services, on a thread of this process, while the block runs."""
    remote = Remote(port)
    thread = threading.Thread(target=remote.serve_forever, args=(LOOK_EVERY,), name="remote services")
    thread.start()
    try:
        yield remote
    finally:
        remote.shutdown()
        thread.join()
        remote.server_close()
