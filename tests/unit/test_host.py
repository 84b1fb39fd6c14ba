"""A host that gets no process, and one that stops while the store is away."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.model.ids import MemberId, new_member_id
from lateshift.runtime import patience
from lateshift.runtime.host import Host
from lateshift.store.contract import Store

pytestmark = pytest.mark.anyio


def host_with(bury: Any = None) -> Host:
    store = SimpleNamespace(members=SimpleNamespace(bury=bury), one_machine=True)
    return Host(cast(Store, store), "program:app", 1, Settings(), Clock())


async def test_a_host_that_gets_no_process_tries_again_and_leaks_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopping = asyncio.Event()
    tries: list[int] = []
    opened: list[socket.socket] = []
    pair = socket.socketpair

    async def refuse(*_: Any, **__: Any) -> None:
        tries.append(1)
        if len(tries) == 2:
            stopping.set()
        raise BlockingIOError("no more processes")

    def watched_pair() -> tuple[socket.socket, socket.socket]:
        ends = pair()
        opened.extend(ends)
        return ends

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    monkeypatch.setattr(socket, "socketpair", watched_pair)
    async with asyncio.timeout(20):
        await host_with().run(stopping)
    assert len(tries) == 2
    assert len(opened) == 4
    assert {end.fileno() for end in opened} == {-1}


@pytest.mark.parametrize("told", ["before", "meanwhile"])
async def test_a_stopping_host_does_not_wait_long_for_a_store_that_is_away(
    monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    monkeypatch.setattr(patience, "AFTER_STOP", 0.01)
    asked, back = threading.Event(), threading.Event()

    def bury(ids: Sequence[MemberId]) -> None:
        asked.set()
        back.wait(60)

    stopping = asyncio.Event()
    if told == "before":
        stopping.set()
    try:
        async with asyncio.timeout(10):
            burial = asyncio.create_task(host_with(bury)._bury(new_member_id(), -9, stopping))
            await asyncio.to_thread(asked.wait)
            stopping.set()
            await burial
    finally:
        back.set()
