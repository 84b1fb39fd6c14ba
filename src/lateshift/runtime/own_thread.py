"""A thread of one's own: for what blocks on something outside, and must not keep the store's threads from others."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

Work = tuple[Callable[[], Any], "asyncio.Future[Any]", asyncio.AbstractEventLoop]


class OwnThread:
    """Runs one call after the other. A daemon: one that hangs in a driver does not keep the process from ending."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    async def run(self, function: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        if self._thread is None or self._pid != os.getpid():
            self._work, self._pid = SimpleQueue(), os.getpid()
            self._thread = threading.Thread(target=_serve, args=(self._work,), name=self._name, daemon=True)
            self._thread.start()
        self._work.put((function, answer, loop))
        return await answer

    def end(self) -> None:
        """After what it is at."""
        if self._thread is not None:
            self._work.put(None)
            self._thread = None


def _serve(work: "SimpleQueue[Work | None]") -> None:
    while (given := work.get()) is not None:
        function, answer, loop = given
        try:
            result = function()
        except BaseException as error:
            _tell(loop, answer, None, error)
        else:
            _tell(loop, answer, result, None)


def _tell(
    loop: asyncio.AbstractEventLoop, answer: "asyncio.Future[Any]", result: Any, error: BaseException | None
) -> None:
    def tell() -> None:
        if answer.done():  # nobody waits any more
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    with suppress(RuntimeError):  # the loop has closed
        loop.call_soon_threadsafe(tell)
