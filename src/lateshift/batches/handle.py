"""A batch in the hands of its caller: how far it is as a whole, what became of its jobs, and what can be done to all."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from lateshift.errors import OptionInvalid, ResultTimeout
from lateshift.model import checks
from lateshift.model.batch import JOBS_LIMIT, BatchId, BatchView, job_id_at, place_of
from lateshift.model.fingerprint import last_failure
from lateshift.model.ids import JobId
from lateshift.model.job import JobView, State
from lateshift.model.sealed import is_sealed
from lateshift.runtime.aside import aside
from lateshift.sealing.jobs import readable_view
from lateshift.sealing.ring import NO_RING, Ring
from lateshift.store import batching
from lateshift.store.contract import Store
from lateshift.task import Task

PAGE = 100  # jobs that are in memory while results are read
CANCEL_PAGE = 1000  # jobs that are cancelled in one transaction
RESUBMIT_PAGE = 200
FIRST_LOOK = 0.005  # seconds between two looks at a batch that is waited for, longer and longer
LAST_LOOK = 0.5
LOOK = timedelta(seconds=0.5)


class BatchResult(Struct, frozen=True, kw_only=True):
    """How one job of a batch ended. `place` is where it stood among the calls, from 0 on."""

    id: JobId
    place: int
    task: str
    state: State
    error: str | None  # why it has no result
    encoded: bytes | None
    decode: Callable[[bytes | None], Any]

    @property
    def ok(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def value(self) -> Any:
        """What it returned; None for one that has not completed."""
        return self.decode(self.encoded)


class Batch:
    """Many jobs. Made by `app.batch(…)`, found again by `app.find_batch(id)`."""

    def __init__(self, id: BatchId, store: Callable[[], Store], tasks: Mapping[str, Task[..., Any]]) -> None:
        self.id = id
        self._open = store
        self._tasks = tasks

    def __repr__(self) -> str:
        return f"<Batch {self.id}>"

    def progress(self) -> BatchView:
        """How far it is now, as a whole."""
        view = self._open().batches.view(self.id)
        if view is None:
            raise batching.unknown(self.id)
        return view

    async def aprogress(self) -> BatchView:
        return await aside(self.progress)

    def watch(self, every: timedelta = LOOK) -> "Watch":
        """`async for progress in batch.watch():` (or plain `for`): now, whenever something has changed, and when all is done."""
        return Watch(self, checks.duration("every", every))

    def wait(self, timeout: timedelta | None = None) -> BatchView:
        """Until all jobs have ended, however they did. Raises ResultTimeout."""
        for pause in _looks(timeout):
            view = self.progress()
            if view.finished:
                return view
            time.sleep(pause)
        raise _late(timeout, view)

    async def awaited(self, timeout: timedelta | None = None) -> BatchView:
        """The same in async code; `await batch` waits without a limit."""
        for pause in _looks(timeout):
            view = await self.aprogress()
            if view.finished:
                return view
            await asyncio.sleep(pause)
        raise _late(timeout, view)

    def __await__(self) -> Generator[Any, None, BatchView]:
        return self.awaited().__await__()

    def results(self) -> "Results":
        """`for result in batch.results():` or `async for`: those that have ended by now, in the order of the calls, read page by
        page. A job that has passed its retention is not among them."""
        return Results(self, self._open, self._tasks)

    def job_id(self, place: int) -> JobId:
        """The id of the job that stands at this place among the calls, from 0 on."""
        if not 0 <= place < JOBS_LIMIT:
            raise OptionInvalid(f"A place in a batch is a number from 0 to {JOBS_LIMIT - 1:,}, not {place}.")
        return job_id_at(self.id, place)

    def seal(self, by: str = "the caller") -> bool:
        """No more jobs will come: for a batch whose producer died. False if it was sealed."""
        return self._open().batches.seal(self.id, by=by)

    async def aseal(self) -> bool:
        return await aside(self.seal)

    def cancel(self, by: str = "the caller") -> bool:
        """All that has not ended: what waits at once, what runs is told within a second. No callback follows. False if all
        had ended. Repeat it if it was interrupted."""
        batches = self._open().batches
        if not batches.cancel(self.id, by=by):
            self.progress()  # raises if there is none
            return False
        after: JobId | None = None
        while (after := batches.cancel_jobs(self.id, after, CANCEL_PAGE, by=by)) is not None:
            pass
        return True

    async def acancel(self, by: str = "the caller") -> bool:
        return await aside(self.cancel, by)

    def resubmit_failed(
        self, by: str = "the caller", told: Callable[[int], None] = lambda count: None
    ) -> int:
        """Its dead letters are ready again, with fresh attempts. Gives how many."""
        store, count = self._open(), 0
        after: JobId | None = None
        while page := store.batches.failed(self.id, after, RESUBMIT_PAGE):
            done = len(store.jobs.resubmit(page, by=by))
            told(done)
            count += done
            after = page[-1]
        return count

    async def aresubmit_failed(self, by: str = "the caller") -> int:
        return await aside(self.resubmit_failed, by)


class Watch:
    """Looks at a batch, as long as it lasts."""

    def __init__(self, batch: Batch, every: timedelta) -> None:
        self._batch = batch
        self._every = every.total_seconds()

    def __iter__(self) -> Iterator[BatchView]:
        last: BatchView | None = None
        while last is None or not last.finished:
            view = self._batch.progress()
            if view != last:
                yield view
            last = view
            if not view.finished:
                time.sleep(self._every)

    async def __aiter__(self) -> AsyncIterator[BatchView]:
        last: BatchView | None = None
        while last is None or not last.finished:
            view = await self._batch.aprogress()
            if view != last:
                yield view
            last = view
            if not view.finished:
                await asyncio.sleep(self._every)


class Results:
    """How jobs ended, a page at a time."""

    def __init__(self, batch: Batch, store: Callable[[], Store], tasks: Mapping[str, Task[..., Any]]) -> None:
        self._batch = batch
        self._open = store
        self._tasks = tasks

    def __iter__(self) -> Iterator[BatchResult]:
        page = self._page(None)
        while page:
            yield from page
            page = self._page(page[-1].id)

    async def __aiter__(self) -> AsyncIterator[BatchResult]:
        page = await aside(self._page, None)
        while page:
            for result in page:
                yield result
            page = await aside(self._page, page[-1].id)

    def _page(self, after: JobId | None) -> list[BatchResult]:
        return [self._result(view) for view in self._open().batches.settled(self._batch.id, after, PAGE)]

    def _result(self, view: JobView) -> BatchResult:
        task = self._tasks.get(view.task)
        decode: Callable[[bytes | None], Any] = _raw if task is None else task.results.decode
        if is_sealed(view.payload):
            decode = _opening(decode, view.id, NO_RING if task is None else task.sender.ring())
            view = readable_view(view, NO_RING if task is None else task.sender.ring())
        last = last_failure(view)
        error = None if view.state is State.COMPLETED else view.reason
        if error is not None and last is not None and last.error is not None:
            error = f"{last.error}: {last.message}"
        return BatchResult(
            id=view.id, place=place_of(view.id), task=view.task, state=view.state, error=error, encoded=view.result,
            decode=decode,
        )  # fmt: skip


def _raw(result: bytes | None) -> Any:
    return None if result is None else msgspec.json.decode(result)


def _opening(decode: Callable[[bytes | None], Any], id: JobId, ring: Ring) -> Callable[[bytes | None], Any]:
    """Of a sealed job: its result is opened when somebody asks for it."""
    return lambda result: decode(None if result is None else ring.of_job(id).open("result", result))


def _looks(timeout: timedelta | None) -> Iterator[float]:
    """Pauses between looks, longer and longer, with a last look when the time is up."""
    end = None
    if timeout is not None:
        end = time.monotonic() + checks.duration("timeout", timeout).total_seconds()
    pause = FIRST_LOOK
    while end is None or (left := end - time.monotonic()) > 0:
        yield pause if end is None else min(pause, left)
        pause = min(pause * 1.5, LAST_LOOK)
    yield 0.0


def _late(timeout: timedelta | None, view: BatchView) -> ResultTimeout:
    within = max(timeout or timedelta(0), timedelta(0)).total_seconds()
    hint = (
        "" if view.sealed else f" It is not sealed: {view.added:,} of its jobs are in. Is its producer alive?"
    )
    return ResultTimeout(
        f"The batch {view.id} has not ended within {within:g} s: {view.done:,} of {view.total:,} jobs have.{hint}"
    )
