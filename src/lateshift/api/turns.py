"""Requests that look at a lot go few at a time, so that the others find a thread, a connection and the processor free. Tokens take turns:
one that asks for much at once waits for itself, and the others for one of its looks at the most."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from uuid import UUID

from lateshift.api.problem import Refused

T = TypeVar("T")


class Turns:
    """Of the requests of one event loop; another loop begins anew."""

    def __init__(self, at_once: int, of_one: int) -> None:
        self._at_once = at_once
        self._of_one = of_one
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._free = self._at_once
        self._here: Counter[UUID] = Counter()  # under way, or waiting
        # Whose turn is next first.
        self._waiting: OrderedDict[UUID, deque[asyncio.Future[None]]] = OrderedDict()

    async def run(self, whose: UUID, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What the work gives, when it was its turn. What was begun has its place until it has ended, whether anybody waits for it
        still or not: a thread cannot be stopped. Raises Refused."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop = loop
            self._begin_anew()
        if self._here[whose] >= self._of_one:
            raise Refused(
                429, "looks-of-token",
                f"This token has {self._of_one} requests here that look at a lot, and may have no more. Ask one after the other.",
            )  # fmt: skip
        self._here[whose] += 1
        try:
            await self._turn(whose)
        except BaseException:
            self._leave(whose)
            raise
        under_way = loop.create_task(work())
        under_way.add_done_callback(lambda _: self._end(loop, whose))
        return await asyncio.shield(under_way)

    async def _turn(self, whose: UUID) -> None:
        if self._free:
            self._free -= 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(whose, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():  # it was told that it is its turn, and has gone
                self._pass_on()
            raise

    def _end(self, loop: asyncio.AbstractEventLoop, whose: UUID) -> None:
        if loop is self._loop:
            self._leave(whose)
            self._pass_on()

    def _leave(self, whose: UUID) -> None:
        self._here[whose] -= 1
        if self._here[whose] <= 0:
            del self._here[whose]

    def _pass_on(self) -> None:
        """To the next that still waits, of the token that has waited since its last turn for the longest."""
        while self._waiting:
            whose, queue = self._waiting.popitem(last=False)
            while queue:
                one = queue.popleft()
                if not one.done():
                    one.set_result(None)
                    if queue:
                        self._waiting[whose] = queue
                    return
        self._free += 1
