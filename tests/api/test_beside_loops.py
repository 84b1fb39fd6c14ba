"""What callers ask for is done on threads of their own: a process whose API is busy goes on with its loops."""

import asyncio
import threading

import httpx
import pytest

from lateshift.api.application import make_api
from lateshift.api.asked import Asked
from lateshift.api.route import PUBLIC, Done, Route
from lateshift.runtime.aside import THREADS, aside
from lateshift.testing import Kit
from tests.api.asking import LOCAL
from tests.api.shop import Shop


@pytest.mark.anyio
async def test_however_many_callers_wait_for_something_slow_the_loops_go_on(kit: Kit, shop: Shop) -> None:
    begun, go = threading.Barrier(THREADS + 1), threading.Event()

    def slow(asked: Asked) -> Done:
        """Waits to be let go."""
        if not go.is_set():
            begun.wait(20)
        go.wait(20)
        return Done(subject="x", action="wait", changed=False)

    route = Route(method="GET", path="/v1/slow", handler=slow, gives=Done, scope=PUBLIC)
    transport = httpx.ASGITransport(make_api(kit.app, routes=[route]))
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
        asked = [asyncio.ensure_future(client.get("/v1/slow")) for _ in range(3 * THREADS)]
        try:
            await asyncio.to_thread(begun.wait, 20)  # every thread of callers is taken, and others wait
            async with asyncio.timeout(20):
                await kit.app.courier().turn()
                await kit.app.ticker().turn()
                assert await aside(threading.current_thread().is_alive)
        finally:
            go.set()
            answers = await asyncio.gather(*asked)
    assert {each.status_code for each in answers} == {200}
