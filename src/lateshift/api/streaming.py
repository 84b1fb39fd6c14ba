"""Answers without an end: server-sent events, which a client goes on with by `Last-Event-ID`, on any process.

A stream ends when its token is good for it no more, when it has lived for long enough, and when the server stops. The token is looked
at after whatever is to be sent was read: of what happened after it was revoked, nothing is told."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from lateshift.api.bounds import HEARTBEAT, Bounds
from lateshift.api.problem import Refused
from lateshift.api.route import EVENT_STREAM, Stream
from lateshift.model.access import Token

RECONNECT = 1_000  # milliseconds after which a browser asks again
GOOD_NO_MORE = b": this token is good for this no more\n\n"

T = TypeVar("T")
Still = Callable[[], Awaitable[bool]]

_endings: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Event] = WeakKeyDictionary()


def ending() -> asyncio.Event:
    """Set when the server of the running loop stops: open streams end, and their clients go elsewhere."""
    return _endings.setdefault(asyncio.get_running_loop(), asyncio.Event())


def frame(id: str, data: bytes, kind: str | None = None) -> bytes:
    """One message; the data is JSON, on one line. `kind`: what it is, where it is no event of a job."""
    named = b"" if kind is None else b"event: %s\n" % kind.encode()
    return b"id: %s\n%sdata: %s\n\n" % (id.encode(), named, data)


class EventStream(StreamingResponse):
    """Has a place among those that are open, from when it is made."""

    def __init__(
        self, open: Counter[UUID | None], whose: UUID | None, body: AsyncIterator[bytes], headers: dict[str, str]
    ) -> None:  # fmt: skip
        super().__init__(body, 200, {**headers, "Content-Type": EVENT_STREAM})
        self._open = open
        self._whose = whose
        open[whose] += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open[self._whose] -= 1
            if not self._open[self._whose]:
                del self._open[self._whose]


class Streams:
    """Of one server."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open: Counter[UUID | None] = Counter()

    def answer(
        self, stream: Stream, headers: dict[str, str], token: Token | None, still: Still
    ) -> EventStream:
        """`still`: whether whoever asked may go on listening. The browsers of a token count as that token. Raises Refused."""
        whose = None if token is None else token.root
        if (count := self._open.total()) >= self._bounds.streams:
            detail = f"This server has {count:,} listeners, and takes no more. Ask again later."
            raise Refused(503, "streams-full", detail)
        if (own := self._open[whose]) >= self._bounds.streams_of_token:
            detail = f"This token has {own:,} listeners here, and may have no more. Let one listen for several, or end some."
            raise Refused(429, "streams-of-token", detail)
        return EventStream(self._open, whose, self._body(stream, still), headers)

    async def _body(self, stream: Stream, still: Still) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._bounds.stream.total_seconds()
        checked = written = loop.time()
        begin = "" if stream.begin is None else f"id: {stream.begin}\n"
        yield f"{begin}retry: {RECONNECT}\n\n".encode()
        every = self._bounds.check.total_seconds()
        async for some in _paced(stream.frames, every, end):
            # One look for all that was read together, and again where a client takes long to read it.
            looked = False
            for one in (None,) if some is None else some:
                now = loop.time()
                if now - checked >= every or not (looked or one is None):
                    checked, looked = now, True
                    if not await still():
                        yield GOOD_NO_MORE
                        return
                if one is not None or now - written >= HEARTBEAT.total_seconds():
                    written = now
                    yield b": still here\n\n" if one is None else one


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
