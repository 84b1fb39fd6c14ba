"""Listeners of one loop: one reader for all, each at its own pace, and nobody misses anything."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import accumulate
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from msgspec import structs

from lateshift.errors import JobUnknown, StoreUnavailable
from lateshift.model.events import RESULT_TOLD, JobEvent
from lateshift.model.job import JobView, State
from lateshift.model.watching import BEGINNING, bare, news
from lateshift.replies import hub
from lateshift.replies.hub import HELD, HELD_BYTES, PAGE, WHOLE, Channels, Jobs
from lateshift.store.contract import Store
from lateshift.store.reply_contract import LeftOut, Published
from tests.unit.explaining import AT, ME, view

pytestmark = pytest.mark.anyio

SOON = 10.0  # seconds
LARGE_EVENT = b"x" * 8_200  # bytes, as of one with a result


class Told:
    """What a hub asks of a store. `away`: how many more times it does not answer."""

    def __init__(self) -> None:
        self.messages: list[Published] = []
        self.views: dict[UUID, JobView | None] = {}
        self.asked = 0
        self.rows = 0  # messages that were read
        self.away = 0
        self.read_whole: list[list[UUID]] = []
        self.meanwhile: dict[UUID, JobView | None] = {}  # what becomes of jobs before they are read whole
        self.replies = self.reports = self

    def tell(self, count: int, told: bytes = b"{}", *, unused: int = 0) -> None:
        """`unused`: so many numbers before them, as in PostgreSQL a transaction that is rolled back uses some up."""
        first = self.newest() + unused + 1
        self.messages += [Published(first + n, "orders", "default", told) for n in range(count)]

    def newest(self) -> int:
        return self.messages[-1].number if self.messages else 0

    def purge(self, count: int) -> None:
        self.messages = self.messages[count:]

    def published(self, after: int, limit: int, *, most: int | None = None) -> list[Published]:
        self.asked += 1
        if self.away:
            self.away -= 1
            raise StoreUnavailable("The store is away.")
        found = [message for message in self.messages if message.number > after][:limit]
        sizes = accumulate(len(message.told) for message in found)
        if most is not None:
            found = [each for each, size in zip(found, sizes, strict=True) if size <= most] or found[:1]
        self.rows += len(found)
        return found

    def watched(self, ids: Sequence[UUID]) -> list[JobView | None]:
        self.asked += 1
        return [view and bare(structs.replace(view, result=None)) for view in map(self.views.get, ids)]

    def named(self, ids: Sequence[UUID]) -> list[JobView | None]:
        self.asked += 1
        self.read_whole.append(list(ids))
        for id in ids:
            if id in self.meanwhile:
                self.views[id] = self.meanwhile.pop(id)
        return [self.views.get(id) for id in ids]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(hub, "FIRST_LOOK", 0.001)
    monkeypatch.setattr(hub, "LAST_LOOK", 0.005)
    return Told()


@pytest.fixture
def channels(told: Told) -> Channels:
    return Channels(lambda: cast(Store, told))


@pytest.fixture
def jobs(told: Told) -> Jobs:
    return Jobs(lambda: cast(Store, told))


async def looked(told: Told, others: int = 0) -> None:
    """Until the reader has looked again, beside so many looks of others."""
    wanted = told.asked + others + 2
    async with asyncio.timeout(SOON):
        while told.asked < wanted:  # noqa: ASYNC110 - it looks on a thread, at its own time
            await asyncio.sleep(0.001)


async def numbers(pages: AsyncIterator[Sequence[Published] | LeftOut], count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(SOON):
        while len(found) < count:
            page = await anext(pages)
            assert not isinstance(page, LeftOut), page
            found += [message.number for message in page]
    return found


async def test_who_goes_on_after_what_is_kept_no_more_is_told_so(told: Told, channels: Channels) -> None:
    told.tell(10)
    told.purge(6)
    for after in (0, 3, 5):
        pages = channels.pages(after)
        assert await anext(pages) == LeftOut(after=after, before=7)
        assert await numbers(pages, 4) == [7, 8, 9, 10]
    assert await numbers(channels.pages(6), 4) == [7, 8, 9, 10]


async def test_who_listens_is_told_of_what_was_purged_between_two_looks(
    told: Told, channels: Channels
) -> None:
    told.tell(3)
    quick, slow = channels.pages(0), channels.pages(0)
    assert await numbers(quick, 3) == await numbers(slow, 3) == [1, 2, 3]
    told.tell(2)
    assert await numbers(quick, 2) == [4, 5]
    # No look comes between these: they are one step of this loop, and the look takes a list as it is.
    messages = told.messages
    messages += [Published(6 + n, "orders", "default", b"{}") for n in range(4)]
    told.messages = messages[7:]

    async with asyncio.timeout(SOON):
        assert await anext(quick) == LeftOut(after=5, before=8)
        assert await numbers(quick, 2) == [8, 9]
        page = await anext(slow)
        behind = [page] if isinstance(page, LeftOut) else [message.number for message in page]
        assert behind in ([4, 5], [LeftOut(after=3, before=8)])
        if behind == [4, 5]:
            assert await anext(slow) == LeftOut(after=5, before=8)
        assert await numbers(slow, 2) == [8, 9]


async def test_numbers_that_nobody_used_are_no_gap(told: Told, channels: Channels) -> None:
    told.tell(3)
    pages = channels.pages(0)
    assert await numbers(pages, 3) == [1, 2, 3]
    told.tell(1, unused=5)
    assert await numbers(pages, 1) == [9]
    assert await numbers(channels.pages(3), 1) == [9]


async def test_who_hears_from_now_on_has_missed_nothing(told: Told, channels: Channels) -> None:
    first = asyncio.ensure_future(numbers(channels.pages(None), 1))
    await looked(told)
    told.messages.append(Published(4, "orders", "default", b"{}"))
    assert await first == [4]


async def test_many_listeners_cost_the_store_as_much_as_one(told: Told, channels: Channels) -> None:
    told.tell(1)
    listeners = [channels.pages(told.newest()) for _ in range(100)]
    waiting = [asyncio.ensure_future(numbers(pages, 5)) for pages in listeners]
    await looked(told, len(listeners))  # each has read what there was
    before = told.asked
    told.tell(5)
    assert await asyncio.gather(*waiting) == [[2, 3, 4, 5, 6]] * 100
    assert told.asked - before < 20


async def test_numbers_that_nobody_used_cost_one_row_however_many_listen(
    told: Told, channels: Channels
) -> None:
    told.tell(1)
    waiting = [asyncio.ensure_future(numbers(channels.pages(1), 5)) for _ in range(100)]
    await looked(told, len(waiting))
    asked, rows = told.asked, told.rows
    told.tell(5, unused=1)
    assert await asyncio.gather(*waiting) == [[3, 4, 5, 6, 7]] * 100
    assert told.asked - asked < 20
    assert told.rows - rows == 5 + 1


async def test_those_who_come_back_to_the_same_place_share_what_they_read_and_what_they_hold(
    told: Told, channels: Channels
) -> None:
    told.tell(3 * HELD, LARGE_EVENT, unused=1)
    listeners = [channels.pages(7) for _ in range(100)]
    async with asyncio.timeout(SOON):
        held = await asyncio.gather(*[anext(pages) for pages in listeners])
        rows = told.rows
        held.append(await anext(channels.pages(7)))
    page = held[0]
    assert not isinstance(page, LeftOut)
    assert [message.number for message in page] == list(range(8, 8 + len(page)))
    assert all(each is page for each in held)
    assert rows < 3 * len(page)


@pytest.mark.parametrize("size", [10, 1_000, 8_200, HELD_BYTES, 3 * HELD_BYTES])
@pytest.mark.parametrize("from_store", [True, False])
async def test_what_a_listener_holds_has_a_bound_and_nothing_is_missed_from_page_to_page(
    told: Told, channels: Channels, size: int, from_store: bool
) -> None:
    """Whether it reads in the store or hears what is at hand; and whatever the numbers are."""
    told.tell(1)
    quick = None if from_store else channels.pages(1)
    if quick is not None:
        waiting = asyncio.ensure_future(numbers(quick, 60))
        await looked(told)
    for unused in (0, 3, 1):
        told.tell(20, b"x" * size, unused=unused)
    told.tell(2 * HELD)
    pages = channels.pages(1)
    found: list[int] = []
    if quick is not None:
        await waiting
        told.purge(1)
    async with asyncio.timeout(SOON):
        while len(found) < 60 + 2 * HELD:
            page = await anext(pages)
            assert not isinstance(page, LeftOut)
            assert len(page) <= HELD
            assert len(page) == 1 or sum(len(each.told) for each in page) <= HELD_BYTES
            found += [each.number for each in page]
    assert found == [each.number for each in told.messages if each.number > 1]


async def test_what_was_told_while_those_who_are_at_the_end_read_is_heard(
    told: Told, channels: Channels
) -> None:
    """They share what they read, unless it was nothing, which is over when something comes."""
    told.tell(10)
    told.purge(10)
    told.newest = lambda: 10  # type: ignore[method-assign]
    waiting = [asyncio.ensure_future(anext(channels.pages(5))) for _ in range(10)]
    await looked(told, len(waiting))
    told.messages.append(Published(11, "orders", "default", b"{}"))
    async with asyncio.timeout(SOON):
        assert await asyncio.gather(*waiting) == [LeftOut(after=5, before=11)] * 10


async def test_what_is_at_hand_has_a_bound_in_bytes(
    told: Told, channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "AT_HAND_BYTES", 10 * len(LARGE_EVENT))
    quick = channels.pages(0)
    told.tell(1)
    await numbers(quick, 1)
    await looked(told)
    told.tell(40, LARGE_EVENT)
    assert await numbers(quick, 40) == list(range(2, 42))
    await looked(told)
    assert len(channels._ring) == 10
    assert channels._size == 10 * len(LARGE_EVENT)
    assert await numbers(channels.pages(1), 40) == list(range(2, 42))


async def test_what_is_told_while_the_reader_begins_is_heard(told: Told, channels: Channels) -> None:
    newest = told.newest

    def late() -> int:
        told.newest = newest  # type: ignore[method-assign]
        told.tell(1)
        return newest()

    told.newest = late  # type: ignore[method-assign]
    assert await numbers(channels.pages(0), 1) == [1]


async def test_a_look_that_fails_is_tried_again(told: Told, channels: Channels) -> None:
    newest = told.newest

    def fails() -> int:
        told.newest = newest  # type: ignore[method-assign]
        raise RuntimeError("a fault")

    told.newest = fails  # type: ignore[method-assign]
    waiting = asyncio.ensure_future(numbers(channels.pages(0), 1))
    await looked(told)
    told.tell(1)
    assert await waiting == [1]


async def test_a_listener_that_lags_behind_what_is_at_hand_reads_on_in_the_store(
    told: Told, channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "AT_HAND", 10)
    slow, quick = channels.pages(0), channels.pages(0)
    told.tell(1)
    assert await numbers(slow, 1) == [1]
    for _ in range(5):
        told.tell(40)
        await numbers(quick, 40)

    assert len(channels._ring) <= 10
    assert await numbers(slow, 200) == list(range(2, 202))


async def test_a_listener_who_comes_back_begins_where_it_was_page_by_page(
    told: Told, channels: Channels
) -> None:
    told.tell(3 * PAGE)

    assert await numbers(channels.pages(7), 3 * PAGE - 7) == list(range(8, 3 * PAGE + 1))


async def test_what_was_told_while_nobody_listened_is_for_those_who_ask_for_it(
    told: Told, channels: Channels
) -> None:
    first = channels.pages(None)
    waiting = asyncio.ensure_future(numbers(first, 1))
    await looked(told)
    told.tell(1)
    await waiting
    await cast(Any, first).aclose()
    assert not channels._poller.runs
    told.tell(3)

    later = asyncio.ensure_future(numbers(channels.pages(None), 1))
    await looked(told)
    told.tell(1)
    assert await later == [5]
    assert await numbers(channels.pages(1), 4) == [2, 3, 4, 5]


async def test_a_store_that_is_away_for_a_while_is_waited_for(told: Told, channels: Channels) -> None:
    pages = channels.pages(0)
    told.tell(1)
    await numbers(pages, 1)
    waiting = asyncio.ensure_future(numbers(pages, 2))
    await looked(told)
    told.away = 3
    told.tell(2)

    assert await waiting == [2, 3]


async def test_a_job_that_is_gone_is_watched_no_longer(told: Told, jobs: Jobs) -> None:
    told.views[ME] = view()
    events = jobs.events(ME, BEGINNING)
    assert (await anext(events)).kind == "received"
    waiting = asyncio.ensure_future(_rest(events))
    await looked(told)
    del told.views[ME]

    assert await waiting == []
    assert not jobs._watched
    assert not jobs._poller.runs


async def test_two_who_watch_one_job_both_see_its_end(told: Told, jobs: Jobs) -> None:
    told.views[ME] = view()
    both = [asyncio.ensure_future(_rest(jobs.events(ME, BEGINNING))) for _ in range(2)]
    await looked(told)
    told.views[ME] = view(State.COMPLETED, fence=1, started_at=AT, settled_at=AT)

    assert await asyncio.gather(*both) == [["received", "started", "completed"]] * 2


async def _rest(events: AsyncIterator[Any]) -> list[str]:
    async with asyncio.timeout(SOON):
        return [event.kind async for event in events]


async def test_a_listener_that_stalls_shows_nobody_an_end_that_is_over(told: Told, jobs: Jobs) -> None:
    """Resubmitted while it stalled: who comes then is told how the job goes on, and so is the one that stalled."""
    died = view(State.DEAD, fence=1, attempt=1, started_at=AT, settled_at=AT)
    told.views[died.id] = died
    async with asyncio.timeout(SOON):
        stalled = jobs.told(died.id, BEGINNING)
        await anext(stalled)
        told.views[died.id] = structs.replace(died, state=State.READY, settled_at=None, started_at=None)
        fresh = jobs.told(died.id, BEGINNING)
        assert (await anext(fresh))[1].kind == "received"
        told.views[died.id] = structs.replace(died, state=State.COMPLETED, fence=2)
        assert [event.kind async for _, event in fresh] == ["started", "completed"]
        assert [event.kind async for _, event in stalled][-1] == "completed"


LARGE = b'"%s"' % (b"x" * 250_000)


def ended(id: UUID = ME, **changes: Any) -> JobView:
    return view(State.COMPLETED, **{"id": id, "fence": 1, "started_at": AT, "settled_at": AT} | changes)


async def test_of_watched_jobs_no_more_is_kept_than_is_told_and_few_are_read_whole_together(
    told: Told, jobs: Jobs
) -> None:
    ids = [uuid4() for _ in range(2 * WHOLE + 1)]
    for id in ids:
        told.views[id] = view(id=id, payload=LARGE, checkpoint=LARGE)
    watching = [jobs.events(id, BEGINNING) for id in ids]
    assert [(await anext(events)).kind for events in watching] == ["received"] * len(ids)
    waiting = [asyncio.ensure_future(_all(events)) for events in watching]
    await looked(told)
    assert told.read_whole == []
    assert all(len(kept.payload) < 100 and kept.checkpoint is None for kept in jobs._views.values())

    for number, id in enumerate(ids):
        told.views[id] = ended(id, payload=LARGE, checkpoint=LARGE, result=LARGE if number % 2 else b"7")
    for number, (started, last) in enumerate(await asyncio.gather(*waiting)):
        assert (started.kind, last.kind) == ("started", "completed")
        assert (last.result, last.result_left_out) == ((None, True) if number % 2 else (7, False))
    assert sorted(id for some in told.read_whole for id in some) == sorted(ids)
    assert max(len(some) for some in told.read_whole) <= WHOLE


async def test_of_a_large_result_as_much_is_kept_as_shows_that_it_is(told: Told, jobs: Jobs) -> None:
    told.views[ME] = ended(result=LARGE)
    events = jobs.events(ME, BEGINNING)
    await anext(events)
    assert len(jobs._views[ME].result or b"") == RESULT_TOLD + 1
    assert [event.result_left_out for event in await _all(events)] == [False, True]


async def test_a_job_that_goes_on_before_its_result_is_read_has_not_ended(told: Told, jobs: Jobs) -> None:
    told.views[ME] = view()
    waiting = asyncio.ensure_future(_all(jobs.events(ME, BEGINNING)))
    await looked(told)
    told.meanwhile[ME] = view(State.RUNNING, fence=2, started_at=AT)
    told.views[ME] = ended()
    await looked(told)
    told.views[ME] = ended(fence=2, result=b"2")

    assert [(event.kind, event.result) for event in await waiting] == [
        ("received", None),
        ("started", None),
        ("completed", 2),
    ]


async def test_a_job_that_is_gone_before_its_result_is_read_is_watched_no_longer(
    told: Told, jobs: Jobs
) -> None:
    told.views[ME] = view()
    waiting = asyncio.ensure_future(_rest(jobs.events(ME, BEGINNING)))
    await looked(told)
    told.meanwhile[ME] = None
    told.views[ME] = ended()

    assert await waiting == ["received"]
    told.views[ME], told.meanwhile[ME] = ended(), None
    with pytest.raises(JobUnknown):
        await anext(jobs.events(ME, BEGINNING))


async def test_an_end_whose_time_is_before_that_of_the_last_is_told_once(told: Told, jobs: Jobs) -> None:
    """The clock went back in between. While it is told somebody else begins to watch, and the job is looked at anew."""
    first = view(State.CANCELLED, fence=1, attempt=1, started_at=AT, settled_at=AT)
    [*_, (last, _)] = news(None, BEGINNING, first)
    told.views[ME] = structs.replace(first, settled_at=AT - timedelta(hours=1))
    again = jobs.events(ME, last)
    assert (await anext(again)).kind == "cancelled"
    assert await _rest(jobs.events(ME, BEGINNING)) == ["received", "started", "cancelled"]

    assert await _rest(again) == []


async def _all(events: AsyncIterator[JobEvent]) -> list[JobEvent]:
    async with asyncio.timeout(SOON):
        return [event async for event in events]
