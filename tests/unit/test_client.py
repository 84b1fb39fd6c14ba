"""Callers that share a commit, and chunks of many calls."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from lateshift import Lateshift, client, handle
from lateshift.client import Client
from lateshift.errors import StoreError, StoreUnavailable, StoreUnsafe
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import Enqueued, JobView, Lane, NewJob, Spec, State
from lateshift.runtime.together import Together
from lateshift.store.contract import Store
from lateshift.task import Call
from tests.unit.explaining import view

SPEC = Spec(task="work", queue="default", lane=Lane.COROUTINE)


def new_job() -> NewJob:
    return NewJob(new_job_id(), SPEC, b"")


def accept(jobs: Sequence[NewJob]) -> list[Enqueued]:
    return [Enqueued(job.id, created=True) for job in jobs]


@pytest.mark.anyio
@pytest.mark.parametrize("when", ["before its first step", "while it sends"])
async def test_callers_do_not_hang_when_the_shared_commit_is_cancelled(when: str) -> None:
    sending, go_on = threading.Event(), threading.Event()

    def enqueue(jobs: Sequence[NewJob]) -> list[Enqueued]:
        sending.set()
        go_on.wait(60)
        return accept(jobs)

    together = Together(enqueue)
    callers = [asyncio.create_task(together.put(new_job()))]
    try:
        if when == "while it sends":
            await asyncio.to_thread(sending.wait)
        callers.append(asyncio.create_task(together.put(new_job())))
        await asyncio.sleep(0)
        assert together._flushing is not None
        together._flushing.cancel()
        done, _ = await asyncio.wait(callers, timeout=5)
        assert len(done) == 2
        assert all(caller.cancelled() for caller in callers)
    finally:
        go_on.set()
    job = new_job()
    assert (await together.put(job)).id == job.id  # the next one is served


@pytest.mark.anyio
async def test_callers_that_look_at_jobs_together_share_a_look_and_each_sees_its_own() -> None:
    looks: list[tuple[int, bool]] = []

    def named(ids: Sequence[JobId], *, whole: bool) -> list[object]:
        looks.append((len(ids), whole))
        return [f"the view of {id}" for id in ids]

    store = SimpleNamespace(reports=SimpleNamespace(named=named))
    looking = Client(lambda: cast(Store, store), timedelta(days=1))
    ids = [new_job_id() for _ in range(20)]
    for whole in (True, False):
        views: list[object] = [*await asyncio.gather(*[looking.aview(id, whole=whole) for id in ids])]
        assert views == [f"the view of {id}" for id in ids]
    assert looks == [(20, True), (20, False)]


@pytest.mark.anyio
async def test_callers_do_not_hang_when_the_store_answers_nonsense() -> None:
    together = Together[NewJob, Enqueued](lambda jobs: [])
    done, _ = await asyncio.wait([asyncio.create_task(together.put(new_job()))], timeout=5)
    [caller] = done
    assert isinstance(caller.exception(), ValueError)


@pytest.mark.anyio
async def test_a_caller_that_is_cancelled_before_it_was_sent_enqueues_nothing() -> None:
    sent: list[NewJob] = []
    sending, go_on = threading.Event(), threading.Event()

    def enqueue(jobs: Sequence[NewJob]) -> list[Enqueued]:
        sending.set()
        go_on.wait(60)
        sent.extend(jobs)
        return accept(jobs)

    together = Together(enqueue)
    first, second, third = new_job(), new_job(), new_job()
    callers = [asyncio.create_task(together.put(first))]
    await asyncio.to_thread(sending.wait)  # the others come while the first is on its way
    callers += [asyncio.create_task(together.put(job)) for job in (second, third)]
    await asyncio.sleep(0)
    callers[1].cancel()
    go_on.set()
    await asyncio.wait(callers, timeout=5)
    assert callers[1].cancelled()
    assert sent == [first, third]


@pytest.mark.anyio
@pytest.mark.parametrize("error", [StoreError("duplicate key"), StoreUnsafe("it is a standby")])
async def test_what_may_have_been_committed_is_never_sent_one_by_one_as_if_it_never_was_before(
    error: StoreError,
) -> None:
    sent: list[int] = []

    def finish() -> list[Enqueued]:
        raise error

    async def here(jobs: Sequence[NewJob]) -> Callable[[], list[Enqueued]]:
        sent.append(len(jobs))
        return finish

    def enqueue(jobs: Sequence[NewJob]) -> list[Enqueued]:
        raise AssertionError("on a thread, as new")

    store = SimpleNamespace(jobs=SimpleNamespace(enqueue=enqueue, enqueuing_here=lambda: nullcontext(here)))
    app = Lateshift("test", store="sqlite:///unused.db")

    @app.task
    def keep(text: str) -> None: ...

    sender = Client(lambda: cast(Store, store), timedelta(days=1))
    async with sender.enqueuing_here():
        told = await asyncio.gather(
            *[sender.asend(keep.call("x"), None) for _ in range(3)], return_exceptions=True
        )
    assert sent == [3]
    assert all(isinstance(each, StoreUnavailable | StoreUnsafe) for each in told)


@pytest.mark.anyio
async def test_what_is_enqueued_goes_into_the_store_that_is_there_now() -> None:
    """A test may have put another in the place of the one that a server began with."""
    stores: list[SimpleNamespace] = []
    made: list[tuple[str, int]] = []

    def store(name: str) -> SimpleNamespace:
        async def here(jobs: Sequence[NewJob]) -> list[Enqueued]:
            made.append((f"{name}, here", len(jobs)))
            return accept(jobs)

        def enqueue(jobs: Sequence[NewJob]) -> list[Enqueued]:
            made.append((name, len(jobs)))
            return accept(jobs)

        return SimpleNamespace(
            jobs=SimpleNamespace(enqueue=enqueue, enqueuing_here=lambda: nullcontext(here))
        )

    app = Lateshift("test", store="sqlite:///unused.db")

    @app.task
    def keep(text: str) -> None: ...

    stores.append(store("first"))
    sender = Client(lambda: cast(Store, stores[-1]), timedelta(days=1))
    async with sender.enqueuing_here():
        await sender.asend(keep.call("x"), None)
        async with sender.enqueuing_here():
            pass
        await sender.asend(keep.call("x"), None)
        stores.append(store("second"))
        await sender.asend(keep.call("x"), None)
    await sender.asend(keep.call("x"), None)
    assert made == [("first, here", 1), ("first, here", 1), ("second", 1), ("second", 1)]


def test_a_chunk_is_bounded_in_bytes_and_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CHUNK_BYTES", 40_000)
    chunks: list[int] = []

    def enqueue(jobs: Sequence[NewJob]) -> list[Enqueued]:
        chunks.append(len(jobs))
        return accept(jobs)

    app = Lateshift("test", store="sqlite:///unused.db")

    @app.task
    def keep(text: str) -> None: ...

    store = SimpleNamespace(jobs=SimpleNamespace(enqueue=enqueue))
    sender = Client(lambda: cast(Store, store), timedelta(days=1))
    assert sender.send_many(keep.call("x" * 16_000) for _ in range(7)) == 7
    assert chunks == [3, 3, 1]
    chunks.clear()
    assert sender.send_many(keep.call("") for _ in range(client.CHUNK + 1)) == client.CHUNK + 1
    assert chunks == [client.CHUNK, 1]


def test_calls_that_could_not_be_sent_are_not_taken_for_sent() -> None:
    app = Lateshift("test", store="sqlite:///unused.db")

    @app.task
    def keep(text: str) -> None: ...

    store = SimpleNamespace(jobs=SimpleNamespace(enqueue=accept))
    sender = Client(lambda: cast(Store, store), timedelta(days=1))
    call = keep.call("a")

    def broken() -> Iterator[Call[None]]:
        yield call
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="gone"):
        sender.send_many(broken())
    assert sender.send_many([call]) == 1
    assert sender.send_many([call]) == 0


class Looks:
    """How a job stands at each look; `whole` says which of them were whole."""

    def __init__(self, *states: State) -> None:
        self._states = [*states]
        self.whole: list[bool] = []

    def view(self, id: JobId, *, whole: bool = True) -> JobView:
        self.whole.append(whole)
        state = self._states.pop(0)
        return view(state, result=b"7" if whole and state.settled else None)

    async def aview(self, id: JobId, *, whole: bool = True) -> JobView:
        return self.view(id, whole=whole)

    def opened(self, view: JobView) -> JobView:
        return view


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ([State.COMPLETED], [True]),
        ([State.READY, State.RUNNING, State.COMPLETED, State.COMPLETED], [True, False, False, True]),
        ([State.READY, State.DEAD, State.READY, *[State.COMPLETED] * 2], [True, False, True, False, True]),
    ],
    ids=["has ended", "waits", "is resubmitted when it is read whole"],
)
async def test_a_program_that_waits_for_a_job_reads_it_whole_at_first_and_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, states: list[State], whole: list[bool]
) -> None:
    monkeypatch.setattr(handle, "FIRST_LOOK", 0.0)
    for wait in ("result", "aresult"):
        looks = Looks(*states)
        job = handle.Job(new_job_id(), "work", cast(handle.Looker, looks), lambda result: result)
        assert (job.result() if wait == "result" else await job.aresult()) == b"7"
        assert looks.whole == whole
