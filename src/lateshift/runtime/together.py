"""Callers on one event loop that want something of the store at the same time share a call, and a commit."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from lateshift.errors import RightMissing, StoreFull, StoreReadOnly, StoreUnavailable, StoreUnsafe
from lateshift.runtime.aside import aside

T = TypeVar("T")
A = TypeVar("A")

OF_THE_STORE = (
    StoreUnavailable,
    StoreUnsafe,
    StoreFull,
    StoreReadOnly,
    RightMissing,
)  # no one caller's mistake
TOGETHER = 500  # callers that share one call at the most


class Together(Generic[T, A]):
    """`call` takes what several want, so many at the most, and gives an answer to each, on a thread. `here`: the same on the loop, which
    gives None where it cannot."""

    def __init__(
        self, call: Callable[[Sequence[T]], Sequence[A]], most: int = TOGETHER,
        *, here: Callable[[Sequence[T]], Awaitable[Sequence[A] | None]] | None = None,
    ) -> None:  # fmt: skip
        self._call = call
        self._here = here
        self._most = most
        self._waiting: list[tuple[T, asyncio.Future[A]]] = []
        self._flushing: asyncio.Task[None] | None = None

    async def put(self, wanted: T) -> A:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[A] = loop.create_future()
        self._waiting.append((wanted, answer))
        if self._flushing is None:
            self._flushing = loop.create_task(self._flush())
            self._flushing.add_done_callback(self._ended)
        return await answer

    async def _flush(self) -> None:
        batch: list[tuple[T, asyncio.Future[A]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                batch = [one for one in batch if not one[1].done()]  # cancelled before it was sent
                if batch:
                    await self._send(batch)
        except BaseException as error:  # cancelled, as a rule because the loop ends: nobody is left waiting
            _fail(batch, error)
            self._give_up(error)
            if not isinstance(error, Exception):  # the callers have that one
                raise
        finally:
            self._flushing = None

    def _ended(self, flushing: asyncio.Task[None]) -> None:
        if not flushing.cancelled():
            flushing.exception()  # whatever it was, the callers know: nothing to complain of
        if self._flushing is flushing:  # cancelled before its first step
            self._flushing = None
            self._give_up(asyncio.CancelledError())

    def _give_up(self, error: BaseException) -> None:
        waiting, self._waiting = self._waiting, []
        _fail(waiting, error)

    async def _send(self, batch: list[tuple[T, asyncio.Future[A]]]) -> None:
        try:
            answers = await self._ask([wanted for wanted, _ in batch])
        except OF_THE_STORE as error:
            _fail(batch, error)
        except Exception as error:
            if len(batch) > 1:  # one caller's mistake is not the others'
                for one in batch:
                    await self._send([one])
            else:
                _fail(batch, error)
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    async def _ask(self, wanted: Sequence[T]) -> Sequence[A]:
        if self._here is not None and (answers := await self._here(wanted)) is not None:
            return answers
        return await aside(self._call, wanted)


def _fail(batch: list[tuple[T, asyncio.Future[A]]], error: BaseException) -> None:
    for _, future in batch:
        if future.done():
            continue
        if isinstance(error, Exception):
            future.set_exception(error)
        else:
            future.cancel()
