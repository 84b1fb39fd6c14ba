"""All who listen on one event loop, served by one poller of each kind: what they cost the store does not grow with their number.

A listener goes at its own pace: what it has not taken waits in one place for all, or in the store, never in a queue of its own. What it
has taken, and its client has not read, is one small page."""

import asyncio
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from lateshift.errors import StoreError, no_job
from lateshift.model.events import JobEvent
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.watching import Position, bare, news
from lateshift.runtime.aside import aside
from lateshift.runtime.log import log
from lateshift.runtime.together import Together
from lateshift.store.contract import Store
from lateshift.store.reply_contract import LeftOut, Published, Replies

FIRST_LOOK = 0.05  # seconds between looks while something happens
LAST_LOOK = 0.5  # and when nothing does
PAGE = 500  # messages that are read at once for all who listen
HELD = 100  # messages that a listener takes at once, and holds until its client has read them
HELD_BYTES = 64 * 1024  # that these tell, but it is one message at the least
LOOKED_AT = 100  # jobs that are looked at together
WHOLE = 10  # and those of which the result is read: each may be large, and so may its arguments
AT_HAND = 5_000  # newest messages that are kept for all listeners
AT_HAND_BYTES = 32 * 1024 * 1024  # that these tell


class Poller:
    """Looks while somebody listens. Those who wait for news are woken together."""

    def __init__(self, look: Callable[[], Awaitable[bool]]) -> None:
        self._look = look
        self._listeners = 0
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    @property
    def news(self) -> asyncio.Event:
        """Set at the next news; ask for it before looking at what there is."""
        return self._news

    @property
    def runs(self) -> bool:
        return self._task is not None

    @contextmanager
    def listening(self) -> Iterator[None]:
        self._listeners += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        pause = FIRST_LOOK
        while True:
            try:
                found = await self._look()
            except StoreError as error:
                log.warning("listeners wait, for the store does not answer: %s", error)
                found = False
            except Exception:  # no loop stops in silence
                log.exception("listeners wait, for a look has failed; it is tried again")
                found = False
            if found:
                told, self._news = self._news, asyncio.Event()
                told.set()
            pause = FIRST_LOOK if found else min(pause * 1.5, LAST_LOOK)
            await asyncio.sleep(pause)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Page:
    """What came after a number, the first of it. `left_out`: what may be gone before that."""

    messages: Sequence[Published]
    left_out: LeftOut | None = None


class Channels:
    """What channels were told. Every listener hears all of them, and picks."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._poller = Poller(self._look)
        self._ring: deque[Published] = deque()
        self._size = 0  # bytes of it
        self._floor: int | None = None  # the ring has all that came after it
        self._behind: Together[int, _Page] = Together(self._read_behind)
        self._held: WeakValueDictionary[int, _Page] = WeakValueDictionary()

    async def pages(self, after: int | None) -> AsyncIterator[Sequence[Published] | LeftOut]:
        """Without an end. `after`: the last number that was seen; None is from now on. Where some that came after it may be gone, that is
        said before the others."""
        whole = after is None  # until something was heard, nothing can have been missed
        last = await self._newest() if after is None else after
        if not self._poller.runs:
            self._clear()
            self._floor = None
        with self._poller.listening():
            while True:
                news = self._poller.news
                page = self._at_hand(last) or await self._from_store(last)
                if page.messages:
                    if page.left_out and not whole:
                        yield page.left_out
                    last, whole = page.messages[-1].number, False
                    yield page.messages
                else:
                    await news.wait()

    def _at_hand(self, after: int) -> _Page | None:
        """None if the ring does not reach back so far. Of what is in it nothing was left out: the reader has seen to that."""
        if self._floor is None or after < self._floor:
            return None
        start = bisect_right(self._ring, after, key=lambda message: message.number)
        end = min(start + HELD, len(self._ring))
        return _Page(_few(self._ring[place] for place in range(start, end)))

    async def _from_store(self, after: int) -> _Page:
        """Those who ask together for the same share what is read, and those who hold the same hold it once: what came next is the same
        whenever it is asked, unless nothing did."""
        held = self._held.get(after)
        if held is not None:
            return held
        page = await self._behind.put(after)
        return self._held.setdefault(after, page) if page.messages else page

    async def _look(self) -> bool:
        if self._floor is None:
            self._floor = await self._newest()
            return True  # what came before that, those who wait may not have seen
        last = self._ring[-1].number if self._ring else self._floor
        found = await aside(self._read, last, PAGE)
        if found.left_out:  # who has not heard so far reads in the store, and is told
            self._clear()
            self._floor = found.left_out.before - 1
        self._ring.extend(found.messages)
        self._size += sum(len(message.told) for message in found.messages)
        while len(self._ring) > AT_HAND or self._size > AT_HAND_BYTES:
            oldest = self._ring.popleft()
            self._size -= len(oldest.told)
            self._floor = oldest.number
        return bool(found.messages)

    def _clear(self) -> None:
        self._ring.clear()
        self._size = 0

    async def _newest(self) -> int:
        store = await aside(self._store)
        return await aside(store.replies.newest)

    def _read_behind(self, places: Sequence[int]) -> list[_Page]:
        found = {after: self._read(after, HELD, HELD_BYTES) for after in set(places)}
        return [found[after] for after in places]

    def _read(self, after: int, limit: int, most: int | None = None) -> _Page:
        replies = self._store().replies
        found = replies.published(after, limit, most=most)
        return _Page(found, _gap(replies, after, found))


def _few(messages: Iterator[Published]) -> list[Published]:
    """As many as HELD_BYTES are, the first in any case."""
    few: list[Published] = []
    size = 0
    for message in messages:
        size += len(message.told)
        if few and size > HELD_BYTES:
            break
        few.append(message)
    return few


def _gap(replies: Replies, last: int, found: Sequence[Published]) -> LeftOut | None:
    """What may be gone between the last and these. Nothing as long as the last is kept itself; then nobody has used the numbers."""
    if not found or found[0].number == last + 1:
        return None
    if any(kept.number == last for kept in replies.published(last - 1, 1)):
        return None
    return LeftOut(after=last, before=found[0].number)


class Jobs:
    """How the jobs stand that somebody watches."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._poller = Poller(self._look)
        self._watched: Counter[JobId] = Counter()
        self._views: dict[JobId, JobView] = {}

    async def events(self, id: JobId, after: Position) -> AsyncIterator[JobEvent]:
        """Until the job has ended, or is gone."""
        async for _, event in self.told(id, after):
            yield event

    async def told(self, id: JobId, after: Position) -> AsyncIterator[tuple[Position, JobEvent]]:
        """With the place of each."""
        view = (await aside(self._read, [id])).get(id)
        if view is None:
            raise no_job(id)
        before: JobView | None = None
        with self._poller.listening(), self._watching(id, view):
            while True:
                changed = self._poller.news
                now = self._views.get(id)
                if now is None:
                    return
                for place, event in [] if now is before else news(before, after, now):
                    after = place
                    yield place, event
                before = now
                if self._views.get(id) is not now:  # while somebody took their time with what was told
                    continue
                if now.state.settled:
                    return
                await changed.wait()

    @contextmanager
    def _watching(self, id: JobId, view: JobView) -> Iterator[None]:
        self._watched[id] += 1
        known = self._views.get(id)
        # At one that had ended nobody looks any more, and somebody may have resubmitted it since.
        if known is None or known.state.settled:
            self._views[id] = view
        try:
            yield
        finally:
            self._watched[id] -= 1
            if not self._watched[id]:
                del self._watched[id]
                self._views.pop(id, None)

    async def _look(self) -> bool:
        changed = False
        watched = [id for id in self._watched if id in self._views and not self._views[id].state.settled]
        for start in range(0, len(watched), LOOKED_AT):
            some = watched[start : start + LOOKED_AT]
            found = await aside(self._read, some)
            for id in some:
                if id not in self._watched:
                    continue
                if id not in found:
                    changed = self._views.pop(id, None) is not None or changed
                elif self._views.get(id) != found[id]:
                    self._views[id], changed = found[id], True
        return changed

    def _read(self, ids: Sequence[JobId]) -> dict[JobId, JobView]:
        """Those that are there, and no more of each than events tell. The result of one that has completed is in the whole alone; when that is
        read, the job may stand otherwise, or be gone."""
        reports = self._store().reports
        found = {view.id: view for view in reports.watched(ids) if view is not None}
        completed = [id for id, view in found.items() if view.state is State.COMPLETED]
        for start in range(0, len(completed), WHOLE):
            some = completed[start : start + WHOLE]
            for id, view in zip(some, reports.named(some), strict=True):
                if view is None:
                    del found[id]
                else:
                    found[id] = bare(view)
        return found


class Hub:
    """Of one event loop."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self.channels = Channels(store)
        self.jobs = Jobs(store)
        self._store = store
        self._concealed: Together[None, frozenset[str]] = Together(self._look)

    async def concealed(self) -> frozenset[str]:
        """The queues whose events are hidden, looked at from now on. Those who ask at the same time share a look."""
        return await self._concealed.put(None)

    def _look(self, asked: Sequence[None]) -> list[frozenset[str]]:
        return [self._store().queues.concealed()] * len(asked)
