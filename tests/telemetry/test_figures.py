"""Figures of what went on, on their way from workers and the supervisor to the store."""

import asyncio
import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lateshift import Lateshift, Permanent
from lateshift.clock import ManualClock
from lateshift.documents.figures import PeriodDocument, history_document
from lateshift.errors import JobDead, StoreUnavailable
from lateshift.model.figures import ALL, Figures, Grain, Over, together
from lateshift.model.ids import new_member_id
from lateshift.model.job import JobFilter
from lateshift.operating.overview import course
from lateshift.store.contract import Store
from lateshift.supervisor.sampler import Sampler
from lateshift.supervisor.sweep import Sweep
from lateshift.worker.control import Control
from lateshift.worker.counting import TOLD_EVERY
from lateshift.worker.service import introduce
from lateshift.worker.worker import Worker

SOON = timedelta(seconds=20)
TTL = timedelta(days=1)


def counted(store: Store, queue: str, grain: Grain = Grain.HOUR) -> Figures:
    samples = store.figures.of(queue, grain, store.clock.now() - timedelta(days=1))
    return together(sample.figures for sample in samples)


def shop_of(store_url: str, clock: ManualClock) -> Lateshift:
    shop = Lateshift("shop", store=store_url, clock=clock)
    shop.store.ready()
    return shop


def joined(shop: Lateshift) -> tuple[Worker, Control]:
    member = new_member_id()
    shop.store.members.join(introduce(member, "worker", "w", shop.clock), TTL)
    worker = Worker(shop.store, shop.tasks, member, shop.settings, shop.clock)
    return worker, Control(worker, shop.store, shop.clock)


@pytest.mark.anyio
async def test_a_worker_that_stops_has_told_all_that_it_did(app: Lateshift) -> None:
    @app.task(queue="orders")
    async def pack(order: int) -> None:
        if order < 0:
            raise Permanent("no order")

    async with app.running():
        jobs = [await pack.aenqueue(number) for number in (1, 2, -1)]
        await jobs[1].aresult(SOON)
        with suppress(JobDead):
            await jobs[2].aresult(SOON)

    orders = counted(app.store, "orders")
    assert (orders.started, orders.completed, orders.dead) == (3, 2, 1)
    assert sum(orders.waits) == 3
    assert 0 < orders.ran < 3 * SOON.total_seconds()
    everything = counted(app.store, ALL)
    assert (everything.started, everything.ran) == (3, orders.ran)
    assert everything.busy > 0
    app.close()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_many_quick_jobs_that_were_leased_together_ran_no_longer_than_they_did(
    app: Lateshift, kind: str
) -> None:
    async def pack_async(order: int) -> None: ...

    def pack(order: int) -> None: ...

    task = app.task(queue="orders", name="pack")(pack_async if kind == "coroutine" else pack)
    begun = app.clock.monotonic()
    async with app.running():
        await app.aenqueue_many(task.call(number) for number in range(1000))
        async with asyncio.timeout(SOON.total_seconds()):
            while any(it.ready or it.running for it in app.store.queues.list(10)):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
    took = app.clock.monotonic() - begun

    orders, everything = counted(app.store, "orders"), counted(app.store, ALL)
    assert orders.completed == 1000
    assert orders.ran < took / 2
    assert orders.ran < 0.5
    assert everything.busy < took
    shown = app.store.reports.jobs(JobFilter(queue="orders"), 1000)
    lasted = sorted(it.settled_at - it.started_at for it in shown if it.settled_at and it.started_at)
    assert len(lasted) == 1000
    assert lasted[500] < timedelta(milliseconds=1)
    app.close()


@pytest.mark.anyio
async def test_a_busy_worker_tells_every_ten_seconds_and_an_idle_one_nothing(store_url: str) -> None:
    """What ends after a while in which nothing did is told at once: nobody who tries a first job looks for it in vain."""
    clock = ManualClock()
    shop = shop_of(store_url, clock)
    worker, control = joined(shop)
    told = []
    for moved in (0, 1, TOLD_EVERY - 1, 5 * TOLD_EVERY, 1):
        clock.move(seconds=moved)
        worker.counting.complete("orders")
        for _ in range(2):
            await control.turn()
        told.append(counted(shop.store, "orders", Grain.HOUR).completed)

    assert told == [1, 1, 3, 4, 4]
    clock.move(seconds=TOLD_EVERY)
    for _ in range(2):
        await control.turn()
    assert counted(shop.store, "orders", Grain.HOUR).completed == 5
    assert worker.counting.telling([]) is None
    await worker.close()
    shop.close()


@pytest.mark.anyio
async def test_an_answer_that_was_lost_is_told_again_and_counted_once(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = shop_of(store_url, ManualClock())
    worker, control = joined(shop)
    worker.counting.complete("orders")
    add = shop.store.figures.add

    def lose_the_answer(*args: Any, **kwargs: Any) -> bool:
        add(*args, **kwargs)
        raise StoreUnavailable("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(shop.store.figures, "add", lose_the_answer)
        with pytest.raises(StoreUnavailable):
            await control.tell()
    worker.counting.complete("orders")
    await control.tell()
    await control.tell()

    assert counted(shop.store, "orders").completed == 2
    await worker.close()
    shop.close()


@pytest.mark.anyio
async def test_the_supervisor_samples_each_minute_once_though_another_leads_next(store_url: str) -> None:
    clock = ManualClock()
    shop = shop_of(store_url, clock)

    @shop.task(queue="orders")
    async def pack() -> None: ...

    for _ in range(3):
        await pack.aenqueue()
    worker, _ = joined(shop)
    clock.move(seconds=61 - clock.now().second)
    first = Sweep(shop.store, new_member_id(), clock)
    await first.turn()
    await first.turn()
    first.resign()
    second = Sweep(shop.store, new_member_id(), clock)
    await second.turn()
    once = counted(shop.store, ALL)
    clock.move(minutes=1)
    await second.turn()

    assert (once.present, once.backlog) == (60.0, 3)
    assert counted(shop.store, ALL, Grain.FIVE_MINUTES).present == 120.0
    assert counted(shop.store, "orders").backlog == 3
    await worker.close()
    shop.close()


@pytest.mark.anyio
async def test_where_no_host_is_alive_a_server_tells_what_waits(store_url: str) -> None:
    clock = ManualClock()
    shop = shop_of(store_url, clock)

    @shop.task(queue="orders")
    async def pack() -> None: ...

    for _ in range(3):
        await pack.aenqueue()
    clock.move(seconds=61 - clock.now().second)
    servers = [Sampler(shop.store, new_member_id()) for _ in range(3)]
    for server in servers:
        await server.turn()
    assert counted(shop.store, ALL).backlog == 0  # a supervisor may still come
    clock.move(seconds=55 - clock.now().second)
    for server in servers:
        await server.turn()
    assert counted(shop.store, "orders").backlog == 3
    clock.move(minutes=5)

    periods = course(shop.store, "orders", Over.HOUR, clock.now())
    assert [it.figures.backlog for it in periods if it.sampled] == [3]
    document = history_document("orders", Over.HOUR, periods)
    assert [it.backlog for it in document.periods if it.backlog is not None] == [3]
    shop.close()


def test_the_documentation_names_every_field_and_how_long_each_grain_is_kept() -> None:
    page = (Path(__file__).parents[2] / "docs" / "telemetry.md").read_text()
    section = page.partition("## Figures")[2].partition("\n## ")[0]

    assert [it for it in PeriodDocument.__struct_fields__ if f"`{it}`" not in section] == []
    kept = re.findall(r"^\| (minutes|five minutes|hours) \| (\d+) (\w+) \|$", section, flags=re.MULTILINE)
    assert [timedelta(**{unit: int(number)}) for _, number, unit in kept] == [grain.kept for grain in Grain]
