"""Until when a request is answered one way or another. All have the same time, so whoever came first is late first: one timer
serves all of them, where each with a timer of its own would pay for all the timers that are there."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class Deadline:
    """Of the requests of one event loop; another loop begins anew."""

    def __init__(self, limit: timedelta) -> None:
        self._seconds = limit.total_seconds()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due: dict[asyncio.Task[Any], float] = {}  # the first to be late stands first
        self._late: set[asyncio.Task[Any]] = set()
        self._timed = False

    async def keep(self, work: Awaitable[T]) -> T:
        """What the work gives. Raises TimeoutError if that takes too long."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        if self._loop is not loop:
            self._loop, self._due, self._late, self._timed = loop, {}, set(), False
        self._due[task] = loop.time() + self._seconds
        if not self._timed:
            self._timed = True
            loop.call_later(self._seconds, self._look, loop)
        try:
            return await work
        except asyncio.CancelledError as error:
            if task in self._late and task.uncancel() <= 0:
                raise TimeoutError from error
            raise  # by somebody else
        finally:
            self._due.pop(task, None)
            self._late.discard(task)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:
            return
        self._timed = False
        for task, due in list(self._due.items()):
            if due > loop.time():
                self._timed = True
                loop.call_at(due, self._look, loop)
                return
            del self._due[task]
            self._late.add(task)
            task.cancel()
