"""A worker inside a web application outlives what goes wrong around it."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.app import embedded
from lateshift.errors import StoreUnavailable
from lateshift.runtime import patience
from lateshift.worker.service import Service

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)


async def test_a_worker_that_cannot_join_yet_joins_when_the_store_is_back(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def work() -> str:
        return "done"

    monkeypatch.setattr(embedded, "AFTER_A_FAULT", 0.01)
    join = app.store.members.join
    tries: list[int] = []

    def away(*args: Any) -> None:
        tries.append(1)
        if len(tries) < 4:
            raise StoreUnavailable("The store is away.")
        join(*args)

    monkeypatch.setattr(app.store.members, "join", away)
    async with app.running():
        assert await (await work.aenqueue()).aresult(SOON) == "done"
    assert len(tries) == 4


async def test_a_life_that_fails_is_followed_by_another(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def work() -> str:
        return "done"

    monkeypatch.setattr(embedded, "AFTER_A_FAULT", 0.01)
    run = Service.run
    lives: list[Service] = []

    async def fails_at_first(service: Service, stopping: asyncio.Event) -> None:
        lives.append(service)
        if len(lives) < 3:
            raise RuntimeError("a fault")
        await run(service, stopping)

    monkeypatch.setattr(Service, "run", fails_at_first)
    async with app.running():
        assert await (await work.aenqueue()).aresult(SOON) == "done"
    assert len({service.worker.member for service in lives}) == 3


async def test_a_worker_that_pauses_after_a_fault_stops_at_once(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "AFTER_A_FAULT", 1000)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def away(*_: Any) -> None:
        loop.call_soon_threadsafe(asked.set)
        raise StoreUnavailable("The store is away.")

    monkeypatch.setattr(app.store.members, "join", away)
    async with asyncio.timeout(20), app.running():
        await asked.wait()


async def test_a_worker_that_hangs_in_its_join_stops_soon(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "AFTER_STOP", 0.01)
    asked, back = threading.Event(), threading.Event()

    def hang(*_: Any) -> None:
        asked.set()
        back.wait(60)

    monkeypatch.setattr(app.store.members, "join", hang)
    try:
        async with asyncio.timeout(20), app.running():
            await asyncio.to_thread(asked.wait)
    finally:
        back.set()
