"""Answers without an end: server-sent events, which a client goes on with by `Last-Event-ID`, on any process.

A stream ends when its token is good for it no more, when it has lived for long enough, and when the server stops."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lateshift.api.bounds import HEARTBEAT, Bounds
from lateshift.api.problem import RETRY_AFTER, Refused
from lateshift.api.route import EVENT_STREAM, Stream

RECONNECT = 1_000  # milliseconds after which a browser asks again

T = TypeVar("T")
Still = Callable[[], Awaitable[bool]]

_endings: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = WeakKeyDictionary()


def ending() -> asyncio.Event:
    """Set when the server of the running loop stops: open streams end, and their clients go elsewhere."""
    return _endings.setdefault(asyncio.get_running_loop(), asyncio.Event())


def frame(id: str, data: bytes) -> bytes:
    """One message; the data is JSON, on one line."""
    return b"id: %s\ndata: %s\n\n" % (id.encode(), data)


@dataclass(slots=True)
class Open:
    """How many streams there are."""

    count: int = 0


class EventStream(StreamingResponse):
    def __init__(self, open: Open, body: AsyncIterator[bytes], headers: dict[str, str]) -> None:
        super().__init__(body, 200, {**headers, "Content-Type": EVENT_STREAM})
        self._open = open
        open.count += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open.count -= 1


class Streams:
    """Of one server."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open = Open()

    def answer(self, stream: Stream, headers: dict[str, str], still: Still) -> EventStream:
        """`still`: whether whoever asked may go on listening."""
        if self._open.count >= self._bounds.streams:
            raise Refused(
                503, "streams-full", f"This server has {self._open.count:,} listeners, and takes no more. Ask again later.",
                headers={"Retry-After": str(RETRY_AFTER)},
            )  # fmt: skip
        return EventStream(self._open, self._body(stream, still), headers)

    async def _body(self, stream: Stream, still: Still) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._bounds.stream.total_seconds()
        checked = written = loop.time()
        begin = "" if stream.begin is None else f"id: {stream.begin}\n"
        yield f"{begin}retry: {RECONNECT}\n\n".encode()
        async for some in _paced(stream.frames, self._bounds.check.total_seconds(), end):
            now = loop.time()
            if now - checked >= self._bounds.check.total_seconds():
                checked = now
                if not await still():
                    yield b": this token is good for this no more\n\n"
                    return
            if some is not None:
                written = now
                yield some
            elif now - written >= HEARTBEAT.total_seconds():
                written = now
                yield b": still here\n\n"


async def _paced(source: AsyncIterator[T], seconds: float, end: float) -> AsyncIterator[T | None]:
    """What comes, and None when nothing has come for so long; until the end, or that of the server."""
    loop, over = asyncio.get_running_loop(), ending()
    stopped = asyncio.ensure_future(over.wait())
    coming: asyncio.Future[T] | None = None
    try:
        while not over.is_set() and (left := end - loop.time()) > 0:
            coming = coming or asyncio.ensure_future(anext(source))
            waited: set[asyncio.Future[Any]] = {coming, stopped}
            await asyncio.wait(waited, timeout=min(seconds, left), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                yield None
                continue
            try:
                found = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            yield found
    finally:
        stopped.cancel()
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
