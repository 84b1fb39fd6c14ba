"""Blocking store calls from async code, on threads of Lateshift's own: user code that fills asyncio's default
threads must not keep a heartbeat waiting.

What is done for callers of the API has threads besides: however many of them wait for something slow, the loops of the same process
(sweep, ticker, courier) go on."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8  # for the loops of a process, and as many for those who ask its API

_OWN, _ASKED = "lateshift-store", "lateshift-asked"
_threads: dict[str, ThreadPoolExecutor] = {}
_whose: ContextVar[str] = ContextVar("whose", default=_OWN)


def for_a_caller() -> None:
    """From now on what this task, and those that it starts, send aside goes to the threads of callers."""
    _whose.set(_ASKED)


async def aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` on a thread, and wait for it without holding the loop."""
    return await send_aside(function, *args, **kwargs)


def send_aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Run `function` on a thread from now on; the answer is to come."""
    whose = _whose.get()
    threads = _threads.get(whose)
    if threads is None:
        threads = _threads[whose] = ThreadPoolExecutor(THREADS, thread_name_prefix=whose)
    work = partial(function, *args, **kwargs) if kwargs else function
    return asyncio.get_running_loop().run_in_executor(threads, work, *(() if kwargs else args))


os.register_at_fork(after_in_child=_threads.clear)
