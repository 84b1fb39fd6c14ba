"""`lateshift serve` as a real process, on both stores: however many come back to its channels and read nothing of what they missed, its memory
stays flat."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from lateshift import Lateshift
from lateshift.model.events import RESULT_TOLD
from lateshift.replies.hub import HELD_BYTES
from lateshift.testing import testing
from tests.api.running import connected
from tests.api.test_flat_memory import GROWTH, Server, serving
from tests.api.test_flat_reads import peak
from tests.api.test_many_listeners import Listener

pytestmark = pytest.mark.anyio

EVENTS = 1_000
SILENT = 100  # who come back, each to a place of its own, and read nothing
LARGE = "x" * (RESULT_TOLD - 2)  # a result that is told, and no more
SOON = 60  # seconds
# What each holds that has not been read, and what it costs beside. Before there was a bound it was 420 MiB and more.
MOST = 2 * GROWTH + SILENT * 2 * HELD_BYTES
PROGRAM = """
from lateshift import Lateshift

app = Lateshift("shop")


@app.task(queue="images", reply_to="channel:done", reply_on="completed")
def keep(text: str) -> str:
    return text
"""


async def stock(url: str) -> None:
    app = Lateshift("shop", store=url)

    @app.task(name="keep", queue="images", reply_to="channel:done", reply_on="completed")
    def keep(text: str) -> str:
        return text

    with testing(app, store=url) as kit:
        app.enqueue_many(keep.call(LARGE) for _ in range(EVENTS))
        await kit.adrain(limit=2 * EVENTS)
        assert app.store.replies.newest() == EVENTS


def come_back(stack: ExitStack, server: Server, after: int) -> None:
    connection = stack.enter_context(connected(server.port))
    head = (
        f"GET /v1/events?channel=done HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        f"Last-Event-ID: {after}\r\n\r\n"
    )
    connection.sendall(head.encode())
    assert connection.recv(12) == b"HTTP/1.1 200"


async def test_the_memory_of_a_server_stays_flat_while_many_come_back_and_read_nothing(
    tmp_path: Path, store_url: str
) -> None:
    """While they do, one that reads is told all, in order."""
    await stock(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server, ExitStack() as stack:
        before = peak(server)
        for number in range(SILENT):
            come_back(stack, server, 1 + number)
        reading = await Listener.open(server.port, server.token, "done", after=1)
        async with asyncio.timeout(SOON):
            await reading.hear(EVENTS - 1)
        reading.close()
        grown = peak(server) - before
    assert reading.ids == list(range(2, EVENTS + 1))
    print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
    assert grown < MOST
