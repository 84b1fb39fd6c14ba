"""A thousand listeners at once on one server: each hears every event, in order, and the server stays small."""

import asyncio
import re
from pathlib import Path

import psutil
import pytest

from lateshift import Lateshift
from lateshift.api.bounds import STREAMS_MOST, STREAMS_OF_TOKEN
from lateshift.model.access import Scope
from tests.api.asking import token_of
from tests.walks.commands import eventually, started

JOBS = 20
EVENTS = JOBS * 3
GROWTH = 150 * 1024 * 1024  # bytes for all listeners together
SOON = 100  # seconds
PROGRAM = """
from lateshift import Lateshift

app = Lateshift("shop")
app.queue("images", events=True)


@app.task(queue="images")
def thumbnail(path: str) -> str:
    return path
"""


class Listener:
    """A client that reads a stream as it comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.ids: list[int] = []

    @classmethod
    async def open(
        cls, port: int, token: str, channel: str = "jobs.images.*", after: int | None = None
    ) -> "Listener":
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /v1/events?channel={channel} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        last = "" if after is None else f"Last-Event-ID: {after}\r\n"
        writer.write(f"{head}{last}\r\n".encode())
        answer = await reader.readuntil(b"retry: 1000\n\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        return cls(reader, writer)

    async def hear(self, count: int) -> None:
        while len(self.ids) < count:
            line = await self._reader.readline()
            assert line, "the stream has ended"
            if found := re.match(rb"id: (\d+)", line):
                self.ids.append(int(found[1]))

    def close(self) -> None:
        self._writer.close()


@pytest.mark.anyio
@pytest.mark.slow
async def test_none_of_a_thousand_listeners_misses_an_event(tmp_path: Path, store_url: str) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    output = tmp_path / "output"
    with started(
        "serve", "shop.py", "--port", "0", "--show-secrets", cwd=tmp_path, LATESHIFT_STORE=store_url
    ) as process:
        await asyncio.to_thread(
            eventually,
            lambda: "http://127.0.0.1:" in output.read_text() or process.poll() is not None,
            "it serves",
        )
        [port, _] = re.findall(r"http://127\.0\.0\.1:(\d+)", output.read_text())
        app = _shop(store_url)
        tokens = [
            token_of(app, f"listeners-{n}", [Scope.READ]) for n in range(STREAMS_MOST // STREAMS_OF_TOKEN)
        ]
        server = psutil.Process(process.pid)
        before = server.memory_info().rss
        listeners: list[Listener] = []
        for n in range(STREAMS_MOST // 50):
            token = tokens[n % len(tokens)]
            listeners += await asyncio.gather(*[Listener.open(int(port), token) for _ in range(50)])
        async with asyncio.timeout(SOON), app.running():
            for number in range(JOBS):
                await app.find_task("thumbnail").aenqueue(f"{number}.png")
            await asyncio.gather(*[listener.hear(EVENTS) for listener in listeners])
        grown = server.memory_info().rss - before
        for listener in listeners:
            listener.close()
        app.close()

    assert len({tuple(listener.ids) for listener in listeners}) == 1
    assert listeners[0].ids == sorted(set(listeners[0].ids))
    assert grown < GROWTH


def _shop(store_url: str) -> Lateshift:
    app = Lateshift("shop", store=store_url)
    app.queue("images", events=True)

    @app.task(queue="images")
    def thumbnail(path: str) -> str:
        return path

    return app
