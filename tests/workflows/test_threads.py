"""Plain functions of workflows run on threads of their own: many at once, so many and no more, with what the code around them knows."""

import asyncio
import os
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from lateshift import Flow, Lateshift
from lateshift.testing import Kit
from lateshift.workflow import calls

MANY = 40  # more than asyncio has threads by itself
PATIENCE = 20.0  # seconds
LONG_ENOUGH = 0.2  # seconds, for functions to begin that may

_who: ContextVar[str] = ContextVar("who", default="nobody")


@pytest.fixture
def own_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins with this test."""
    monkeypatch.setattr(calls, "_threads", None)


def test_many_functions_run_at_once(app: Lateshift, kit: Kit, own_pool: None) -> None:
    together = threading.Barrier(MANY)

    def meet() -> bool:
        together.wait(PATIENCE)  # breaks if not all of them are here
        return True

    @app.workflow
    async def meeting(flow: Flow) -> list[Any]:
        return await flow.gather(*(flow.step(meet) for _ in range(MANY)))

    job = meeting.enqueue()
    kit.drain()
    assert kit.result(job) == [True] * MANY


def test_no_more_of_them_than_there_are_threads_and_the_others_wait(
    app: Lateshift, kit: Kit, own_pool: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "THREADS", 2)
    lock, go = threading.Lock(), threading.Event()
    now, most = 0, 0

    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        go.wait(PATIENCE)
        with lock:
            now -= 1

    async def let_go() -> None:
        await asyncio.sleep(LONG_ENOUGH)
        go.set()

    @app.workflow
    async def counting(flow: Flow) -> None:
        await flow.gather(*(flow.step(count) for _ in range(6)), flow.step(let_go))

    job = counting.enqueue()
    kit.drain()
    kit.result(job)
    assert most == 2


def test_a_function_on_a_thread_knows_what_the_code_around_it_knows(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def asking(flow: Flow) -> list[str]:
        _who.set("ann")
        return [
            await flow.step(_who.get, name="who"),
            await flow.step(lambda: threading.current_thread().name, name="thread"),
        ]

    job = asking.enqueue()
    kit.drain()
    who, thread = kit.result(job)
    assert (who, thread.startswith("lateshift-step")) == ("ann", True)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_that_it_has_not(app: Lateshift, kit: Kit) -> None:
    @app.workflow
    async def once(flow: Flow) -> int:
        return await flow.step(lambda: 1, name="one")

    once.enqueue()
    kit.drain()
    before = calls._threads
    assert before is not None
    child = os.fork()
    if not child:
        os._exit(0 if calls._threads is not before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
