"""Whole lives of batches, through the app, on each store."""

import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from lateshift import NO_RETRY, Batch, BatchView, Lateshift, State, current
from lateshift.batches import spool as spooling
from lateshift.batches.spool import Spool
from lateshift.errors import (
    BatchClosed,
    BatchUnknown,
    CrashUnsafe,
    KeyConflict,
    OptionInvalid,
    ResultTimeout,
    SequenceUsed,
    StoreUnavailable,
    TaskUnknown,
)
from lateshift.model.batch import BATCH_NAME_LIMIT
from lateshift.model.job import JobFilter
from lateshift.store.contract import Store
from lateshift.task import Task
from lateshift.testing import Effects, survives_crashes, testing
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

SOON = timedelta(seconds=20)


class Shop:
    """An app whose tasks note what was asked of them."""

    def __init__(self, app: Lateshift) -> None:
        self.app = app
        self.reports: list[str] = []
        self.alerts: list[str] = []
        self.broken = {13}
        self.square: Task[[int], int] = app.task(retry=NO_RETRY)(self._square)
        self.report: Task[[str], None] = app.task(self._report)
        self.alert: Task[[str], None] = app.task(self._alert)

    def _square(self, n: int) -> int:
        assert current().batch is not None
        if n in self.broken:
            raise RuntimeError("unlucky")
        return n * n

    def _report(self, what: str) -> None:
        assert current().batch is None
        self.reports.append(what)

    def _alert(self, what: str) -> None:
        self.alerts.append(what)

    def jobs(self) -> int:
        return len(self.app.store.reports.jobs(JobFilter(), 10_000))


@pytest.fixture
def shop(app: Lateshift) -> Shop:
    return Shop(app)


async def finished(shop: Shop, batch: Batch) -> BatchView:
    """Until all have ended, and the callback of that has run."""

    async def told() -> bool:
        view = batch.progress()
        job = view.on_failure if view.failed else view.then
        callback = None if job is None else shop.app.store.reports.job(job)
        return job is None or (callback is not None and callback.state.settled)

    async with shop.app.running():
        await batch.awaited(SOON)
        await until(told, bool)
    return batch.progress()


# Bad input


def test_a_task_given_for_a_callback_is_refused_and_not_run(shop: Shop) -> None:
    with pytest.raises(OptionInvalid, match=r"then is a call, such as then=report\.call"):
        shop.app.batch([shop.square.call(1)], then=shop.report)  # type: ignore[arg-type]
    assert shop.reports == []
    assert shop.jobs() == 0


def test_a_number_used_twice_leaves_no_batch_behind(shop: Shop) -> None:
    numbered = shop.square.options(session="s", sequence=1)
    with pytest.raises(SequenceUsed):
        shop.app.batch([numbered.call(1), numbered.call(2)])
    assert shop.app.store.batches.newest(None, 10) == []
    assert shop.jobs() == 0


@pytest.mark.parametrize("place", [-1, 10_000_000])
def test_a_place_that_no_batch_has_is_refused(shop: Shop, place: int) -> None:
    with pytest.raises(OptionInvalid, match="A place in a batch is a number from 0 to 9,999,999"):
        shop.app.batch([shop.square.call(1)]).job_id(place)


# A whole life


async def test_a_batch_runs_and_then_follows(shop: Shop) -> None:
    batch = shop.app.batch(
        (shop.square.call(n) for n in range(10)), then=lambda id: shop.report.call(str(id)), name="squares"
    )
    assert (batch.progress().total, batch.progress().waiting) == (10, 10)

    view = await finished(shop, batch)

    assert (view.name, view.completed, view.finished, view.then_enqueued) == ("squares", 10, True, True)
    assert shop.reports == [str(batch.id)]
    assert [result.value for result in batch.results()] == [n * n for n in range(10)]
    assert [result.value async for result in batch.results()] == [n * n for n in range(10)]
    assert [result.place for result in batch.results()] == list(range(10))
    assert shop.app.job(batch.job_id(3)).result() == 9


async def test_a_failure_is_told_and_what_failed_can_run_again(shop: Shop) -> None:
    calls = [shop.square.call(n) for n in (12, 13, 14)]
    batch = await shop.app.abatch(calls, then=shop.report.call("done"), on_failure=shop.alert.call("13!"))

    view = await finished(shop, batch)
    assert (view.completed, view.failed, view.finished) == (2, 1, True)
    assert (shop.alerts, shop.reports) == (["13!"], [])
    [bad] = [result for result in batch.results() if not result.ok]
    assert (bad.place, bad.state, bad.error, bad.value) == (1, State.DEAD, "RuntimeError: unlucky", None)

    shop.broken.clear()
    assert await batch.aresubmit_failed() == 1
    assert batch.resubmit_failed() == 0
    view = await finished(shop, batch)
    assert (view.completed, view.failed) == (3, 0)
    assert (shop.alerts, shop.reports) == (["13!"], ["done"])


async def test_a_batch_can_be_watched(shop: Shop) -> None:
    batch = shop.app.batch(shop.square.call(n) for n in range(5))
    async with shop.app.running():
        seen = [view async for view in batch.watch(every=timedelta(milliseconds=5))]

    assert seen[-1].finished
    assert [view.done for view in seen] == sorted(view.done for view in seen)
    assert len(seen) == len({(view.running, view.completed, view.finished_at) for view in seen})
    assert [view.completed for view in batch.watch()] == [5]
    assert (await batch).completed == 5
    assert batch.wait(SOON).completed == 5


async def test_a_batch_can_be_cancelled(shop: Shop) -> None:
    batch = shop.app.batch((shop.square.call(n) for n in range(5)), then=shop.report.call("done"))

    assert await batch.acancel() is True
    assert batch.cancel() is False  # all have ended
    view = batch.wait(SOON)
    assert (view.cancelled, view.cancelled_by, view.then_enqueued) == (5, "the caller", False)
    assert [(result.state, result.value) for result in batch.results()] == [(State.CANCELLED, None)] * 5


async def test_one_that_takes_longer_is_said_to_be_late(shop: Shop) -> None:
    batch = shop.app.batch([shop.square.call(1)])

    with pytest.raises(ResultTimeout, match="has not ended within 0 s: 0 of 1 jobs have"):
        batch.wait(timedelta(0))
    with pytest.raises(ResultTimeout, match="has not ended"):
        await batch.awaited(timedelta(0))


async def test_a_batch_is_found_again(shop: Shop) -> None:
    batch = shop.app.batch([], name="nothing")

    assert shop.app.find_batch(str(batch.id)).progress().name == "nothing"
    assert repr(shop.app.find_batch(batch.id)) == f"<Batch {batch.id}>"
    with pytest.raises(BatchUnknown, match="There is no batch"):
        shop.app.find_batch(uuid4())
    with pytest.raises(OptionInvalid, match="'squares' is no batch id, such as"):
        shop.app.find_batch("squares")


# A producer that is interrupted


@pytest.fixture
def store_goes_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the second chunk, for a while."""
    monkeypatch.setattr(spooling, "CHUNK", 3)
    add, there = shop.app.store.batches.add, iter([True, True, False])

    def away(*args: Any) -> int:
        if not next(there, True):
            raise StoreUnavailable("away")
        return add(*args)

    monkeypatch.setattr(shop.app.store.batches, "add", away)


async def test_repeating_the_same_calls_with_a_key_goes_on_where_it_stands(
    shop: Shop, store_goes_away: None
) -> None:
    def make() -> Batch:
        return shop.app.batch(
            (shop.square.call(n) for n in range(20, 30)), then=shop.report.call("done"), key="nightly"
        )

    with pytest.raises(StoreUnavailable, match="away") as caught:
        make()
    assert "Repeating the same calls with key='nightly' goes on" in caught.value.__notes__[0]
    [left] = shop.app.store.batches.newest(None, 10)
    assert (left.added, left.total, left.sealed) == (6, 10, False)
    async with shop.app.running():
        with pytest.raises(ResultTimeout, match=r"not sealed: 6 of its jobs are in"):
            await shop.app.find_batch(left.id).awaited(timedelta(seconds=0.5))

    batch = make()
    assert make().id == batch.id == left.id
    view = await finished(shop, batch)
    assert (view.total, view.completed, shop.reports) == (10, 10, ["done"])
    assert shop.jobs() == 11
    with pytest.raises(KeyConflict, match="'nightly' was used for a batch of other calls"):
        shop.app.batch([shop.square.call(1)], key="nightly")


@pytest.mark.parametrize("ran", [False, True])
async def test_repeating_a_key_with_other_callbacks_is_refused(shop: Shop, ran: bool) -> None:
    def make(then: Any = None, on_failure: Any = None) -> Batch:
        return shop.app.batch([shop.square.call(2)], then=then, on_failure=on_failure, key="nightly")

    batch = make(shop.report.call("done"))
    if ran:
        await finished(shop, batch)
    jobs = shop.jobs()

    for then, on_failure, said in (
        (None, None, "has then=_report.call(…), and"),
        (shop.alert.call("done"), None, "has then=_report.call(…), and"),
        (shop.report.call("all done"), None, "has then=_report.call(…) with other arguments, and"),
        (shop.report.call("done"), shop.alert.call("no"), "has no on_failure=, and"),
    ):
        with pytest.raises(KeyConflict) as caught:
            make(then, on_failure)
        assert str(caught.value).startswith(f"The key 'nightly' was used for a batch that {said}")
    assert make(shop.report.options(queue="other").call("done")).id == batch.id
    assert shop.jobs() == jobs


async def test_a_callback_that_is_made_of_the_batchs_id_is_the_same_when_it_is_repeated(shop: Shop) -> None:
    def make(word: str) -> Batch:
        return shop.app.batch(
            [shop.square.call(2)], then=lambda id: shop.report.call(f"{word} {id}"), key="nightly"
        )

    batch = make("done")
    assert make("done").id == batch.id
    with pytest.raises(KeyConflict, match="with other arguments"):
        make("all done")
    await finished(shop, batch)
    assert shop.reports == [f"done {batch.id}"]


async def test_what_an_interrupted_producer_left_can_be_sealed_or_cancelled(
    shop: Shop, store_goes_away: None
) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        await shop.app.abatch((shop.square.call(n) for n in range(20, 30)), key="nightly")
    [left] = shop.app.store.batches.newest(None, 10)
    assert str(left.id) in caught.value.__notes__[0]
    batch = shop.app.find_batch(left.id)

    assert await batch.aseal() is True
    assert batch.seal() is False
    assert (await finished(shop, batch)).completed == 6
    with pytest.raises(BatchClosed, match="was sealed when 6 of its jobs were in"):
        shop.app.batch((shop.square.call(n) for n in range(20, 30)), key="nightly")


# Bad input: nothing is written


async def test_a_task_that_nobody_registered_is_refused_before_anything_is_written(shop: Shop) -> None:
    other = Lateshift("other")

    @other.task
    def stranger(n: int) -> None: ...

    def calls() -> Iterator[Any]:
        yield from (shop.square.call(n) for n in range(2500))
        yield stranger.call(1)

    words = "'stranger', which this app has not registered; nothing was written"
    with pytest.raises(TaskUnknown, match=words):
        shop.app.batch(calls())
    with pytest.raises(TaskUnknown, match=words):
        shop.app.batch([], then=stranger.call(1))
    with pytest.raises(TaskUnknown, match=words):
        shop.app.batch([], on_failure=lambda id: stranger.call(1))
    with pytest.raises(TaskUnknown, match="Its tasks: _alert, _report, _square"):
        await shop.app.abatch(calls())
    assert shop.jobs() == 0
    assert shop.app.store.batches.newest(None, 10) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"then": "report"}, "then is a call, such as then=report.call"),
        ({"on_failure": lambda id: id}, "on_failure is a call"),
        ({"name": ""}, "name must have 1 to 200 characters"),
        ({"name": "x" * (BATCH_NAME_LIMIT + 1)}, "name must have 1 to 200 characters"),
        ({"key": "x" * 201}, "key must have 1 to 200 characters"),
        ({"key": 7}, "key is text"),
    ],
)
async def test_a_wrong_option_is_refused(shop: Shop, given: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionInvalid, match=words):
        shop.app.batch([shop.square.call(1)], **given)
    assert shop.jobs() == 0
    assert shop.app.store.batches.newest(None, 10) == []


async def test_what_is_no_call_is_refused(shop: Shop) -> None:
    keyed = shop.square.options(key="a")
    for calls, words in (
        ([shop.square.call(1), 2], "A batch takes calls, such as task.call"),
        ([keyed.call(1)], "has a key of its own"),
    ):
        with pytest.raises(OptionInvalid, match=words):
            shop.app.batch(calls)  # type: ignore[arg-type]
    with pytest.raises(OptionInvalid, match="has a key of its own"):
        shop.app.batch([], then=keyed.call(1))
    with pytest.raises(RuntimeError, match="no more"):
        shop.app.batch(_raising(shop))
    with pytest.raises(OptionInvalid, match="every is a timedelta"):
        shop.app.batch([]).watch(every=1)  # type: ignore[arg-type]
    assert shop.jobs() == 0


def _raising(shop: Shop) -> Iterator[Any]:
    yield shop.square.call(1)
    raise RuntimeError("no more")


async def test_a_batch_has_a_limit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "JOBS_LIMIT", 3)

    with pytest.raises(OptionInvalid, match="at most 3 jobs"):
        shop.app.batch(shop.square.call(n) for n in range(4))
    assert shop.app.batch(shop.square.call(n) for n in range(3)).progress().total == 3


# Memory


async def test_calls_wait_in_a_file_not_in_memory(shop: Shop) -> None:
    app = shop.app

    @app.task
    def note(text: str) -> None: ...

    spool = Spool(app.tasks, digest=True)
    text = "x" * 10_000
    tracemalloc.start()
    for _ in range(4_000):  # 40 MB
        spool.put(note.call(text))
    taken = sum(len(jobs) for _, jobs in spool.chunks(uuid4(), 0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    spool.close()

    assert taken == 4_000
    assert peak < 4 * spooling.CHUNK_BYTES


async def test_calls_of_many_kinds_keep_what_was_asked_of_each(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling, "SPECS_KEPT", 2)
    calls = [shop.square.options(priority=n).call(n) for n in range(5)]

    batch = shop.app.batch(calls)

    views = [shop.app.store.reports.job(batch.job_id(n)) for n in range(5)]
    assert [view.priority for view in views if view] == [0, 1, 2, 3, 4]
    assert {view.batch for view in views if view} == {batch.id}


# In the kit


def test_the_kit_runs_a_batch_with_its_callbacks() -> None:
    shop = Shop(Lateshift("kit", store="memory://"))
    with testing(shop.app) as kit:
        batch = shop.app.batch(
            [shop.square.call(12), shop.square.call(13)],
            then=shop.report.call("done"),
            on_failure=shop.alert.call("13!"),
        )
        assert [sent.arguments for sent in kit.enqueued(shop.square)] == [{"n": 12}, {"n": 13}]
        kit.drain()
        kit.assert_enqueued(shop.alert, "13!", times=1)
        kit.assert_not_enqueued(shop.report)
        shop.broken.clear()
        batch.resubmit_failed()
        kit.drain()
        kit.assert_enqueued(shop.report, "done", times=1)
        assert (shop.alerts, shop.reports) == (["13!"], ["done"])


def test_inline_a_batch_is_done_when_it_returns() -> None:
    shop = Shop(Lateshift("kit", store="memory://"))
    with testing(shop.app) as kit, kit.inline():
        batch = shop.app.batch((shop.square.call(n) for n in range(3)), then=shop.report.call("done"))

        assert batch.progress().completed == 3
        assert shop.reports == ["done"]


async def test_inline_a_batch_is_done_when_it_returns_to_async_code() -> None:
    shop = Shop(Lateshift("kit", store="memory://"))
    async with testing(shop.app) as kit:
        with kit.inline():
            batch = await shop.app.abatch(
                (shop.square.call(n) for n in range(3)), then=shop.report.call("done")
            )
            assert batch.progress().completed == 3
    assert shop.reports == ["done"]


def test_the_store_is_opened_by_the_first_batch(store_url: str) -> None:
    shop = Shop(Lateshift("late", store=store_url))
    assert shop.app._store is None
    shop.app.batch([shop.square.call(1)])
    store: Store | None = shop.app._store
    assert store is not None
    shop.app.close()


@pytest.mark.parametrize("keyed", [True, False])
def test_a_task_that_makes_a_batch_is_safe_to_kill_if_it_gives_a_key(keyed: bool) -> None:
    app = Lateshift("kit", store="memory://")

    @app.task
    def pack(order: int) -> None: ...

    @app.task
    def report() -> None: ...

    @app.task
    def fan_out() -> None:
        key = str(current().job_id) if keyed else None
        app.batch((pack.call(order) for order in range(2)), then=report.call(), key=key)

    effects = Effects()
    if keyed:
        made = survives_crashes(fan_out, effects=effects)
        assert any("enqueue 1 of a batch of pack" in str(run.point) for run in made.runs)
        assert made.unharmed.effects["enqueue of pack(order=0)"] == 1
    else:
        with pytest.raises(CrashUnsafe, match=r"enqueue of pack\(order=0\) twice"):
            survives_crashes(fan_out, effects=effects)
