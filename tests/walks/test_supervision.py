"""What happens to jobs whose worker died, fell silent, or was told that it is dead."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from lateshift import Lateshift, Retry, State, current
from lateshift.clock import ManualClock
from lateshift.errors import QueueFull, StoreUnavailable
from lateshift.model.ids import MemberId, new_member_id
from lateshift.model.job import JobFilter, Lane, Lease, Line, NewJob
from lateshift.model.outcome import Completed, Settlement
from lateshift.runtime.heartbeat import Heartbeat
from lateshift.store.contract import Want
from lateshift.supervisor import sweep as sweep_module
from lateshift.supervisor.losses import Losses
from lateshift.supervisor.sweep import PURGE_BATCH, Sweep
from lateshift.worker.service import introduce
from tests.walks.waiting import until

pytestmark = pytest.mark.anyio

TTL = timedelta(seconds=30)
SOON = timedelta(seconds=20)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def shop(store_url: str, clock: ManualClock) -> Iterator[Lateshift]:
    shop = Lateshift("shop", store=store_url, clock=clock)
    yield shop
    shop.close()


def join(app: Lateshift) -> MemberId:
    member = new_member_id()
    app.store.members.join(introduce(member, "worker", "w", app.clock), TTL)
    return member


def lease(app: Lateshift, member: MemberId, lane: Lane = Lane.COROUTINE) -> list[Lease]:
    return app.store.jobs.exchange(member, [], [Want(Line("default", lane), 100)]).leases


async def test_the_jobs_of_a_silent_worker_run_again_and_its_heartbeat_is_refused(
    shop: Lateshift, clock: ManualClock
) -> None:
    @shop.task
    async def work() -> None: ...

    job = await work.aenqueue()
    worker = join(shop)
    assert len(lease(shop, worker)) == 1
    sweep = Sweep(shop.store, new_member_id(), clock)
    await sweep.turn()
    assert job.view().state is State.RUNNING
    clock.move(seconds=31)
    await sweep.turn()
    assert job.view().state is State.READY
    lost: list[str] = []
    heartbeat = Heartbeat(shop.store.members, TTL)
    heartbeat.add(worker, alive=lambda: True, lost=lambda: lost.append("told"))
    heartbeat.beat()
    assert lost == ["told"]
    assert lease(shop, worker) == []
    shop.close()


async def test_a_job_whose_worker_died_three_times_is_dead_and_the_others_are_unharmed(
    shop: Lateshift, clock: ManualClock
) -> None:
    @shop.task(retry=Retry(attempts=10))
    async def work(number: int) -> None: ...

    poison = await work.aenqueue(0)
    others = [await work.aenqueue(number) for number in range(1, 6)]
    sweep = Sweep(shop.store, new_member_id(), clock)
    for _ in range(2):  # two workers die with everything in their hands
        worker = join(shop)
        assert len(lease(shop, worker)) == 6
        shop.store.members.bury([worker])
        await sweep.turn()
    assert lease(shop, join(shop)) == []  # from now on each runs beside no other suspect
    alone = shop.store.jobs.exchange(worker := join(shop), [], [Want(Line("default", Lane.SOLO), 1)]).leases
    assert [found.id for found in alone] == [poison.id]
    shop.store.members.bury([worker])
    await sweep.turn()
    view = poison.view()
    assert (view.state, view.reason, view.losses) == (State.DEAD, "worker_lost", 3)
    assert [job.state for job in others] == [State.READY] * 5
    shop.close()


async def test_a_buried_worker_needs_no_wait_for_its_heartbeat(shop: Lateshift, clock: ManualClock) -> None:
    @shop.task
    async def work() -> None: ...

    job = await work.aenqueue()
    worker = join(shop)
    lease(shop, worker)
    shop.store.members.bury([worker])
    await Sweep(shop.store, new_member_id(), clock).turn()
    view = job.view()
    assert (view.state, view.losses, view.history[0].reason) == (State.READY, 1, "worker_lost")
    shop.close()


async def test_only_the_leader_sweeps_and_another_takes_over(shop: Lateshift, clock: ManualClock) -> None:
    @shop.task
    async def work() -> None: ...

    first, second = (Sweep(shop.store, new_member_id(), clock) for _ in range(2))
    await first.turn()
    job = await work.aenqueue()
    worker = join(shop)
    lease(shop, worker)
    shop.store.members.bury([worker])
    await second.turn()
    assert job.view().state is State.RUNNING
    clock.move(seconds=12)  # the first is heard of no more
    await second.turn()
    assert job.view().state is State.READY
    shop.close()


async def test_a_worker_that_was_declared_dead_stops_its_jobs_and_goes_on_under_another_name(
    store_url: str,
) -> None:
    app = Lateshift("shop", store=store_url)
    app.settings = replace(app.settings, heartbeat=timedelta(seconds=1), stop_time=timedelta(seconds=1))
    running = asyncio.Event()
    told: list[int] = []

    @app.task(retry=Retry(attempts=3))
    async def work() -> int:
        if current().fence == 1:
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.append(current().fence)
        return current().fence

    async with app.running():
        job = await work.aenqueue()
        await running.wait()
        before = [member.id for member in app.store.reports.members()]
        app.store.members.bury(before)
        assert await job.aresult(SOON) == 2
        after = await until(
            lambda: asyncio.to_thread(app.store.reports.members),
            lambda members: any(not member.dead for member in members),
        )
    assert told == [1]
    assert [member.id for member in after if not member.dead] != before
    app.close()


async def test_what_has_passed_its_retention_goes_and_nothing_else(
    shop: Lateshift, clock: ManualClock
) -> None:
    @shop.task(keep=timedelta(hours=1))
    async def brief() -> None: ...

    @shop.task(keep=timedelta(days=7))
    async def kept() -> None: ...

    gone, stays = await brief.aenqueue(), await kept.aenqueue()
    async with shop.running():
        await gone.aresult(SOON)
        await stays.aresult(SOON)
    waiting = await kept.aenqueue()
    clock.move(hours=2)
    await Sweep(shop.store, new_member_id(), clock).turn()
    assert shop.store.reports.job(gone.id) is None
    assert stays.state is State.COMPLETED
    assert waiting.state is State.READY
    shop.close()


class SleepyClock(ManualClock):
    """The machine can sleep: the wall clock then goes on, the monotonic one does not."""

    slept = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.slept


@pytest.mark.parametrize("slept", [timedelta(hours=8), -timedelta(minutes=5)])
async def test_nobody_is_declared_dead_right_after_the_machine_slept(
    store_url: str, slept: timedelta
) -> None:
    clock = SleepyClock()
    shop = Lateshift("shop", store=store_url, clock=clock)

    @shop.task
    async def work() -> None: ...

    job = await work.aenqueue()
    lease(shop, join(shop))
    sweep = Sweep(shop.store, new_member_id(), clock, heartbeat=TTL)
    await sweep.turn()
    clock.move(seconds=31)
    clock.slept = slept
    await sweep.turn()
    assert job.view().state is State.RUNNING
    clock.move(seconds=TTL.total_seconds() / 3 + 1)
    await sweep.turn()
    assert job.view().state is State.READY
    shop.close()


async def test_after_the_store_was_away_members_get_one_beat_and_no_more(
    shop: Lateshift, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @shop.task
    async def work() -> None: ...

    def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("The store is away.")

    job = await work.aenqueue()
    worker = join(shop)
    lease(shop, worker)
    shop.store.members.bury([worker])
    sweep = Sweep(shop.store, new_member_id(), clock, heartbeat=timedelta(seconds=15))
    with monkeypatch.context() as patch:
        patch.setattr(shop.store.locks, "acquire", away)
        await sweep.turn()
    await sweep.turn()
    assert job.view().state is State.RUNNING
    clock.move(seconds=5.1)
    await sweep.turn()
    assert job.view().state is State.READY
    shop.close()


async def test_after_the_store_kept_everybody_waiting_members_get_one_beat_and_no_more(
    shop: Lateshift, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @shop.task
    async def work() -> None: ...

    jobs = [await work.aenqueue() for _ in range(2)]
    quick, silent = join(shop), join(shop)
    for member in (quick, silent):
        shop.store.jobs.exchange(member, [], [Want(Line("default", Lane.COROUTINE), 1)])
    sweep = Sweep(shop.store, new_member_id(), clock)
    await sweep.turn()
    clock.move(seconds=25)
    locks = shop.store.locks
    slow: dict[str, Any] = {"renew": locks.renew, "acquire": locks.acquire}

    def blocked(name: str) -> Any:
        def call(*said: Any) -> Any:
            clock.move(seconds=11)  # somebody else has the store; both members' time runs out meanwhile
            return slow[name](*said)

        return call

    for name in slow:
        monkeypatch.setattr(locks, name, blocked(name))
    await sweep.turn()
    monkeypatch.undo()
    await sweep.turn()
    assert [job.view().state for job in jobs] == [State.RUNNING] * 2
    assert shop.store.members.beat([quick], TTL) == [quick]
    clock.move(seconds=11)
    await sweep.turn()
    await sweep.turn()
    assert [job.view().state for job in jobs] == [State.RUNNING, State.READY]


async def test_a_purge_goes_on_within_a_turn_while_its_batches_are_full_and_then_at_the_next(
    shop: Lateshift, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [PURGE_BATCH] * 5
    each = 0.01

    def purge(**_: Any) -> int:
        clock.move(seconds=each)
        return left.pop() if left else 0

    monkeypatch.setattr(shop.store.upkeep, "purge", purge)
    sweep = Sweep(shop.store, new_member_id(), clock, heartbeat=TTL)
    await sweep.turn()
    assert left == []
    clock.move(seconds=61)
    left, each = [PURGE_BATCH] * 5, 0.3
    await sweep.turn()
    assert len(left) == 3
    await sweep.turn()
    assert len(left) == 1
    shop.close()


@pytest.mark.parametrize(
    ("next", "said"),
    [
        (5, "session s of queue default: number 4 did not come, it goes on with 5"),
        (7, "session s of queue default: numbers 4 to 6 did not come, it goes on with 7"),
    ],
)
async def test_the_log_names_every_number_of_a_session_that_did_not_come(
    shop: Lateshift, clock: ManualClock, caplog: pytest.LogCaptureFixture, next: int, said: str
) -> None:
    @shop.task
    async def step() -> None: ...

    for number in (1, 2, 3, next):
        await step.options(session="s", sequence=number).aenqueue()
    worker = join(shop)
    while leases := lease(shop, worker, Lane.GUARDED):
        shop.store.jobs.exchange(worker, [Settlement(each, Completed(None, TTL)) for each in leases], [])
    sweep = Sweep(shop.store, new_member_id(), clock)
    await sweep.turn()
    clock.move(minutes=2)
    await sweep.turn()
    assert [message for message in caplog.messages if "did not come" in message] == [said]
    shop.close()


async def test_whoever_subscribed_is_told_once_that_a_worker_was_lost_with_jobs(
    shop: Lateshift, clock: ManualClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "BATCH", 2)

    @shop.task
    async def work() -> None: ...

    @shop.on("alert.worker_lost")
    @shop.task(queue="pages")
    async def page(data: dict[str, str]) -> None: ...

    for _ in range(3):
        await work.aenqueue()
    worker = join(shop)
    assert len(lease(shop, worker)) == 3
    shop.store.members.bury([worker])
    sweep = Sweep(shop.store, new_member_id(), clock, losses=shop.losses())
    for _ in range(3):
        await sweep.turn()
    [told] = shop.store.reports.jobs(JobFilter(task="page"), 10)
    data = msgspec.json.decode(told.payload)["data"]
    assert (data["member"], data["why"]) == (str(worker), "it died or fell silent with 3 jobs")
    assert sum("is lost: it died or fell silent with 3 jobs" in line for line in caplog.messages) == 1
    shop.close()


async def test_that_nobody_can_be_told_keeps_no_job_from_being_taken_back(
    shop: Lateshift, clock: ManualClock
) -> None:
    @shop.task
    async def work() -> None: ...

    def refuse(name: str, data: object) -> list[NewJob]:
        raise QueueFull("no room")

    job = await work.aenqueue()
    worker = join(shop)
    lease(shop, worker)
    shop.store.members.bury([worker])
    await Sweep(shop.store, new_member_id(), clock, losses=Losses(shop.store, refuse)).turn()
    assert job.view().state is State.READY
    shop.close()
