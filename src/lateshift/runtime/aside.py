"""Blocking store calls from async code, on threads of Lateshift's own: user code that fills asyncio's default
threads must not keep a heartbeat waiting."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8

_threads: ThreadPoolExecutor | None = None


async def aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function` on a thread, and wait for it without holding the loop."""
    return await send_aside(function, *args, **kwargs)


def send_aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Run `function` on a thread from now on; the answer is to come."""
    global _threads
    if _threads is None:
        _threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lateshift-store")
    work = partial(function, *args, **kwargs) if kwargs else function
    return asyncio.get_running_loop().run_in_executor(_threads, work, *(() if kwargs else args))


def _forget_inherited() -> None:
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_forget_inherited)
