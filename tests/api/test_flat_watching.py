"""`lateshift serve` as a real process, on both stores: however many watch large jobs, or wait for their end, its memory stays flat."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lateshift.model.ids import JobId
from lateshift.store.open import open_store
from lateshift.testing import testing
from tests.api.test_flat_memory import GROWTH, Server, serving
from tests.api.test_flat_reading import LARGE, PROGRAM, shop
from tests.api.test_flat_reads import peak

pytestmark = pytest.mark.anyio

MANY = 200  # jobs with as much as their arguments may be
SOON = 60  # seconds
TOLD = 4 * GROWTH  # for so many answers that are due at the same time
END = b'"state":"cancelled"'


def stocked(url: str) -> tuple[list[JobId], JobId]:
    """Jobs that nobody runs; the last of them is small."""
    app = shop(url)
    with testing(app, store=url):
        large = [app.tasks["keep"].enqueue(LARGE).id for _ in range(MANY)]
        return large, app.tasks["keep"].enqueue("x").id


@asynccontextmanager
async def asking(server: Server, paths: Sequence[str]) -> AsyncIterator[list[asyncio.StreamReader]]:
    """What comes back on each of them, asked in this order, each on a connection of its own."""
    opened = []
    async with asyncio.timeout(SOON):
        try:
            for path in paths:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                opened.append((reader, writer))
                head = (
                    f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
                )
                writer.write(head.encode())
            yield [reader for reader, _ in opened]
        finally:
            for _, writer in opened:
                writer.close()


async def body(answer: asyncio.StreamReader) -> bytes:
    head = await answer.readuntil(b"\r\n\r\n")
    [length] = re.findall(rb"(?i)content-length: (\d+)", head)
    return await answer.readexactly(int(length))


async def cancel(url: str, ids: Sequence[JobId]) -> None:
    """All of them in one commit."""
    store = open_store(url)
    assert len(await asyncio.to_thread(store.jobs.cancel, ids, by="a test")) == len(ids)
    store.close()


async def test_the_memory_of_a_server_stays_flat_while_many_watch_large_jobs(
    tmp_path: Path, store_url: str
) -> None:
    ids, last = stocked(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server:
        before = peak(server)
        async with asking(server, [f"/v1/jobs/{id}/events" for id in [*ids, last]]) as streams:
            for stream in streams:
                await stream.readuntil(b'"kind":"received"')
            await cancel(store_url, [last])
            await streams[-1].readuntil(b'"kind":"cancelled"')  # by a look at all of them
        grown = peak(server) - before
        print(f"{before / 2**20:.1f} MiB, and {grown / 2**20:.1f} more")
        assert grown < GROWTH


async def test_the_memory_of_a_server_stays_flat_while_many_wait_for_the_end_of_large_jobs(
    tmp_path: Path, store_url: str
) -> None:
    ids, last = stocked(store_url)
    with serving(tmp_path, store_url, PROGRAM) as server:
        before = peak(server)
        async with asking(server, [f"/v1/jobs/{id}?wait=20" for id in [*ids, last]]) as answers:
            await cancel(store_url, [last])
            assert END in await body(answers[-1])  # the others have been looked at before
            waiting = peak(server) - before
            await cancel(store_url, ids)
            whole = await asyncio.gather(*[body(answer) for answer in answers[:-1]])
        told = peak(server) - before
    assert all(END in each and len(each) > len(LARGE.encode()) for each in whole)
    print(f"{before / 2**20:.1f} MiB, {waiting / 2**20:.1f} more, and {told / 2**20:.1f} at the end")
    assert waiting < GROWTH
    assert told < TOLD
