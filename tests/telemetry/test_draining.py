"""When a queue will be empty, told of workers that really work on it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from lateshift import Lateshift, Limit, Permanent
from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.operating import pace
from lateshift.operating.attention import COUNTED_NOW
from lateshift.supervisor.sweep import Sweep
from lateshift.worker.control import STORE_EVERY, Control
from lateshift.worker.service import introduce
from lateshift.worker.worker import Worker

TTL = timedelta(days=1)
STEP = 0.5  # seconds: so often workers tell


class Steps(ManualClock):
    """Durations are those that it was moved by: how busy the machine is makes no pace slower."""

    def monotonic(self) -> float:
        return 1_000.0 + self.offset.total_seconds()


class Shop:
    """A worker, what it tells, and a supervisor, turned by hand on a clock that is moved."""

    def __init__(self, store_url: str) -> None:
        self.clock = Steps()
        self.app = Lateshift("shop", store=store_url, clock=self.clock)
        self.app.store.ready()

    def open(self) -> None:
        store, member = self.app.store, new_member_id()
        store.members.join(introduce(member, "worker", "w", self.clock), TTL)
        self.worker = Worker(store, self.app.tasks, member, self.app.settings, self.clock)
        self._control = Control(self.worker, store, self.clock)
        self._sweep = Sweep(store, new_member_id(), self.clock)

    async def turn(self) -> None:
        """Until the worker has nothing more to do now."""
        for _ in range(1_000):
            if await self.worker.turn():
                return
            await asyncio.sleep(0)  # bodies run
        pytest.fail("the worker found no end")

    async def step(self) -> None:
        """Half a second, at the end of which the worker tells."""
        self.clock.move(seconds=STEP)
        await self._sweep.turn()
        await self.turn()
        for _ in range(STORE_EVERY):
            await self._control.turn()

    def seen(self, name: str) -> pace.QueuePace:
        store = self.app.store
        [queue] = [it for it in store.queues.list(COUNTED_NOW) if it.name == name]
        return pace.of_queue(queue, pace.recent(store, [queue], store.clock.now(), whole=False))


@pytest.fixture
async def shop(store_url: str) -> AsyncIterator[Shop]:
    shop = Shop(store_url)
    yield shop
    await shop.worker.close()
    shop.app.close()


@pytest.mark.anyio
async def test_a_few_seconds_after_its_first_job_a_queue_with_a_rate_says_when_it_will_be_empty(
    shop: Shop,
) -> None:
    shop.app.queue("mail", limit=Limit(rate="600/min"))

    @shop.app.task(queue="mail")
    async def send(number: int) -> None: ...

    shop.open()
    await shop.app.aenqueue_many(send.call(number) for number in range(300))
    for _ in range(4):
        await shop.step()
    found = shop.seen("mail")
    shop.app.store.queues.pause("mail", by="ann")
    paused = shop.seen("mail")

    left, takes = found.backlog, found.drain.takes
    assert 100 < left < 300
    assert takes is not None
    assert takes.total_seconds() == pytest.approx(left / 10, rel=0.05)
    assert (paused.drain.takes, paused.drain.why) == (None, "paused")


@pytest.mark.anyio
async def test_a_queue_whose_jobs_die_is_drained_as_well(shop: Shop) -> None:
    shop.app.queue("mail", limit=Limit(concurrency=2))
    fatal: asyncio.Queue[None] = asyncio.Queue()

    @shop.app.task(queue="mail")
    async def send(number: int) -> None:
        await fatal.get()
        fatal.task_done()
        raise Permanent(f"no {number}")

    shop.open()
    await shop.app.aenqueue_many(send.call(number) for number in range(400))
    await shop.turn()
    for _ in range(10):
        for _ in range(2):
            fatal.put_nowait(None)
        await fatal.join()
        await shop.step()
    found = shop.seen("mail")
    for _ in range(2):  # those that it holds
        fatal.put_nowait(None)
    await fatal.join()

    assert found.drain.takes is not None
    assert found.backlog / found.drain.takes.total_seconds() == pytest.approx(2 / STEP, rel=0.2)
