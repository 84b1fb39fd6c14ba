"""How long a part that is told to stop still waits for a store that may be away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

AFTER_STOP = 3.0  # seconds


async def patiently(work: Coroutine[Any, Any, T], stopping: asyncio.Event) -> T:
    """What `work` gives, however long it takes; but once `stopping` is set, TimeoutError after a few seconds more."""
    task = asyncio.create_task(work)
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        async with asyncio.timeout(None if task.done() else AFTER_STOP):
            return await task
    finally:
        told.cancel()
        task.cancel()


async def pause(seconds: float, stopping: asyncio.Event) -> None:
    """Wait so long, or until told to stop."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        pass


async def either(first: asyncio.Event, second: asyncio.Event) -> None:
    """Until one of them is set."""
    waiting = [asyncio.create_task(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
