"""Waiting for something that another part will do: looks again and again, for a bounded time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T]], done: Callable[[T], bool], seconds: float = 20) -> T:
    async with asyncio.timeout(seconds):
        while not done(seen := await look()):  # noqa: ASYNC110 - what it waits for is in a database
            await asyncio.sleep(0.005)
    return seen
