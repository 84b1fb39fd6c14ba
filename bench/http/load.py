"""The generator: connections that are kept open, each with one request under way. It reads no more of an answer than where it ends
and how it begins, so that it is not what is measured."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

CONNECTIONS = 100
JOBS_READ = 1000  # whose status is asked for, in turn
ROUNDS = 5
BODY = b'{"arguments": {"number": %d}}'

Next = Callable[[], bytes]


class Connection(asyncio.Protocol):
    """Asks again as soon as it is answered, while there is something to ask."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self.answered = 0
        self.body = b""
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._next: Next | None = None
        self._expected = b""
        self._received = b""
        self._idle: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._lost()

    def begin(self, next_: Next, expected: bytes) -> None:
        assert self._transport is not None
        self._next, self._expected = next_, expected
        self._idle = asyncio.get_running_loop().create_future()
        self._transport.write(next_())

    async def end(self) -> None:
        """After the answer to what is under way."""
        self._next = None
        if self._idle is not None:
            await self._idle

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        head = received.find(b"\r\n\r\n")
        if head < 0 or len(received) < (whole := head + 4 + length_in(received, head)):
            self._received = received
            return
        if not received.startswith(self._expected):
            raise SystemExit(f"not {self._expected!r}: {received[:600]!r}")
        self._received = b""
        self.body = received[head + 4 : whole]
        self.answered += 1
        if self._next is not None and self._transport is not None:
            self._transport.write(self._next())
        elif self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def length_in(received: bytes, head: int) -> int:
    start = received.find(b"content-length: ", 0, head) + 16
    return int(received[start : received.find(b"\r\n", start)])


class Load:
    """All connections to one server."""

    def __init__(self, connections: list[Connection], token: str) -> None:
        self._connections = connections
        self._token = token
        self._numbers = count(1_000_000)  # all bodies are of one size
        self.ids: list[str] = []

    def post(self, path: str) -> Next:
        size = len(BODY % next(self._numbers))
        head = self._head(f"POST {path}", f"Content-Type: application/json\r\nContent-Length: {size}\r\n")
        return lambda: head + BODY % next(self._numbers)

    def get(self) -> Next:
        requests = [self._head(f"GET /v1/jobs/{id}", "") for id in self.ids]
        places = count()
        return lambda: requests[next(places) % len(requests)]

    def _head(self, line: str, more: str) -> bytes:
        return f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n{more}\r\n".encode()

    async def rate(self, next_: Next, expected: bytes, seconds: float) -> float:
        """Answers in a second."""
        before = sum(each.answered for each in self._connections)
        begun = time.perf_counter()
        for each in self._connections:
            each.begin(next_, expected)
        await asyncio.sleep(seconds)
        await asyncio.gather(*[each.end() for each in self._connections])
        return (sum(each.answered for each in self._connections) - before) / (time.perf_counter() - begun)

    async def make_jobs(self) -> None:
        """Those whose status is asked for."""
        while len(self.ids) < JOBS_READ:
            await self.rate(self.post("/v1/tasks/noop/jobs"), b"HTTP/1.1 202", 0)
            self.ids += [json.loads(each.body)["id"] for each in self._connections]


async def main(port: int, token: str, seconds: float) -> dict[str, float]:
    """The three in turn, round by round: whatever else the machine does, it does to all."""
    loop = asyncio.get_running_loop()
    over = False

    def lost() -> None:
        if not over:
            raise SystemExit("the server closed a connection")

    made = [
        await loop.create_connection(lambda: Connection(lost), "127.0.0.1", port) for _ in range(CONNECTIONS)
    ]
    load = Load([connection for _, connection in made], token)
    await load.make_jobs()
    kinds = {
        "http bare": (load.post("/bare"), b"HTTP/1.1 202"),
        "http enqueue": (load.post("/v1/tasks/noop/jobs"), b"HTTP/1.1 202"),
        "http read": (load.get(), b"HTTP/1.1 200"),
    }
    rates: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, (next_, expected) in kinds.items():
            rates[kind].append(await load.rate(next_, expected, seconds / ROUNDS))
    over = True
    for transport, _ in made:
        transport.close()
    return {kind: sorted(each)[ROUNDS // 2] for kind, each in rates.items()}


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[1]).read_text())
    rates = asyncio.run(main(told["port"], told["token"], float(sys.argv[2])))
    print(json.dumps(rates), flush=True)
