"""What happens to an enqueue when its queue is full: turned by hand, on a clock that the test moves."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.errors import QueueFull, StoreUnavailable
from lateshift.model.estimate import SHARE
from lateshift.model.queue import QueueSettings
from lateshift.pressure import Part, Pressure, acarried_out, carried_out
from lateshift.store.contract import Store
from lateshift.task import Call


class Still(ManualClock):
    """Durations too stand still until the test moves them."""

    def monotonic(self) -> float:
        return self.offset.total_seconds()


class FakeQueues:
    """So many wait in each queue; whoever counts is counted."""

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        self.counts = 0
        self.shed_asked: list[tuple[str, int, int | None]] = []
        self.sheddable = 1_000_000
        self.away = False

    def waiting(self, name: str, limit: int) -> int:
        self.counts += 1
        if self.away:
            raise StoreUnavailable("away")
        return min(self.lengths.get(name, 0), limit)

    def shed(self, name: str, count: int, *, below: int | None = None) -> Sequence[int]:
        self.shed_asked.append((name, count, below))
        gone = min(count, self.sheddable)
        self.lengths[name] -= gone
        return range(gone)


class FakeStore:
    def __init__(self) -> None:
        self.clock = Still()
        self.queues = self.jobs = FakeQueues()


@pytest.fixture
def fake() -> FakeStore:
    return FakeStore()


app = Lateshift("test", store="sqlite:///unused.db")


@app.task
def work(number: int) -> None: ...


def calls(count: int, queue: str = "orders", **options: Any) -> list[Call[None]]:
    bound = work.options(queue=queue, **options)
    return [bound.call(number) for number in range(count)]


class Turned:
    """A pressure, and callers who meet it; while they sleep, time passes and `meanwhile` happens."""

    def __init__(self, fake: FakeStore, **settings: Any) -> None:
        self.fake = fake
        self.store = cast(Store, fake)
        self.pressure = Pressure({"orders": QueueSettings(**settings), "declared": QueueSettings()})
        self.slept = 0.0

    def part(
        self, calls: Sequence[Call[Any]], meanwhile: Callable[[], None] = lambda: None, waits: bool = True
    ) -> Part:
        def sleep(seconds: float) -> None:
            self.slept += seconds
            self.fake.clock.move(seconds=seconds)
            meanwhile()

        return carried_out(self.pressure.steps(self.store, calls, waits), sleep)

    def send(self, calls: Sequence[Call[Any]], **more: Any) -> Part:
        """As a client would."""
        with self.part(calls, **more) as part:
            for call in part.now:
                queue = call.job.spec.queue
                self.fake.queues.lengths[queue] = self.fake.queues.lengths.get(queue, 0) + 1
        return part


def test_queues_without_a_limit_are_never_counted(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5)
    for queue in ("plain", "declared"):
        assert len(turned.send(calls(20, queue)).now) == 20
    assert len(turned.send(calls(20, delay=timedelta(hours=1))).now) == 20  # not due: it does not wait yet
    assert fake.queues.counts == 0


def test_a_queue_far_from_full_is_counted_rarely(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=10_000)
    for _ in range(1000):
        turned.send(calls(1))
    assert fake.queues.counts <= 3


def test_a_full_queue_refuses_at_once_and_says_what_to_do(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5)
    for _ in range(5):
        turned.send(calls(1))
    with pytest.raises(QueueFull, match=r"queue orders.* 5\. Nothing was enqueued\. Try again later"):
        turned.send(calls(1))
    assert turned.slept == 0
    fake.queues.lengths["orders"] = 4
    assert turned.send(calls(1)).now


def test_a_caller_waits_as_long_as_it_chose_and_no_longer(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, wait=timedelta(seconds=2))
    fake.queues.lengths["orders"] = 5
    with pytest.raises(QueueFull, match="none went within 2 s"):
        turned.send(calls(1))
    assert turned.slept == pytest.approx(2.0)


def test_a_caller_that_waits_goes_on_when_the_queue_drains(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, wait=timedelta(seconds=2))
    fake.queues.lengths["orders"] = 5

    def drain() -> None:
        if turned.slept > 0.5:
            fake.queues.lengths["orders"] = 4

    assert turned.send(calls(1), meanwhile=drain).now
    assert 0.5 < turned.slept < 0.6


def test_nobody_waits_inside_a_callers_transaction(fake: FakeStore) -> None:
    for rule in ("raise", "shed_oldest", "shed_lowest"):
        turned = Turned(fake, max_ready=5, wait=timedelta(seconds=2), when_full=rule)
        fake.queues.lengths["orders"] = 5
        with pytest.raises(QueueFull):
            turned.send(calls(1), waits=False)
        assert (turned.slept, fake.queues.shed_asked) == (0, [])
    turned = Turned(fake, max_ready=5, wait=timedelta(seconds=2), when_full="shed_new")
    assert (turned.send(calls(1), waits=False).now, turned.slept) == ((), 0)


def test_what_comes_to_a_full_queue_may_be_shed(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, when_full="shed_new", wait=timedelta(seconds=1))
    fake.queues.lengths["orders"] = 5
    some = calls(3)
    part = turned.send(some)
    assert (list(part.now), list(part.later), list(part.shed)) == ([], [], some)
    assert turned.slept == pytest.approx(1.0)  # once for all of them


def test_the_oldest_may_make_room(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, when_full="shed_oldest")
    fake.queues.lengths["orders"] = 5
    part = turned.send(calls(2))
    assert (len(part.now), len(part.later)) == (2, 0)
    assert fake.queues.shed_asked == [("orders", 2, None)]
    assert fake.queues.lengths["orders"] == 5


def test_where_nothing_can_be_shed_the_queue_is_full(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, when_full="shed_oldest")
    fake.queues.lengths["orders"] = 5
    fake.queues.sheddable = 0  # all blocked
    with pytest.raises(QueueFull):
        turned.send(calls(1))


def test_a_job_makes_room_at_the_cost_of_lower_ones_only(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, when_full="shed_lowest")
    fake.queues.lengths["orders"] = 5
    high, low = calls(2, priority=9), calls(1, priority=1)
    part = turned.send([*high, *low])
    assert (list(part.now), list(part.later)) == (high, low)
    assert fake.queues.shed_asked == [("orders", 2, 9)]
    fake.queues.sheddable = 0
    part = turned.send(part.later)
    assert (list(part.now), list(part.shed)) == ([], low)


def test_many_go_in_parts_and_in_their_order(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=100, wait=timedelta(seconds=1))
    left: Sequence[Call[Any]] = calls(150)
    sent: list[Call[Any]] = []

    def drain() -> None:
        fake.queues.lengths["orders"] = 60

    wanted = list(left)
    while left:
        part = turned.send(left, meanwhile=drain)
        assert len(part.now) <= 100 // SHARE
        sent += part.now
        left = part.later
    assert sent == wanted


def test_a_full_queue_does_not_hold_up_calls_for_others(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, wait=timedelta(seconds=1))
    fake.queues.lengths["orders"] = 5
    full, plain = calls(2), calls(2, "plain")
    part = turned.send([full[0], plain[0], full[1], plain[1]])
    assert (list(part.now), list(part.later)) == (plain, full)
    assert turned.slept == 0


def test_one_call_twice_is_two_places(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=20)
    [call] = calls(1)
    part = turned.send([call, call])
    assert (list(part.now), list(part.later)) == ([call], [call])


def test_what_one_caller_is_sending_is_not_given_to_another(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=1)
    with turned.part(calls(1)) as first:
        assert first.now
        with pytest.raises(QueueFull):
            turned.part(calls(1))
    assert turned.part(calls(1)).now  # the first one failed: it is not in the store


def test_a_count_that_fails_is_told_and_the_next_caller_counts_again(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5)
    fake.queues.away = True
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            turned.send(calls(1))
    fake.queues.away = False
    assert turned.send(calls(1)).now
    assert turned.slept == 0


def test_another_store_has_room_of_its_own(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=5, wait=timedelta(seconds=1))
    fake.queues.lengths["orders"] = 5
    with pytest.raises(QueueFull):
        turned.send(calls(1))
    turned.store = cast(Store, other := FakeStore())
    assert turned.send(calls(1)).now
    assert other.queues.counts == 1


@pytest.mark.anyio
async def test_one_that_is_cancelled_while_it_waits_leaves_the_queue_to_others(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=1, wait=timedelta(hours=1))
    fake.queues.lengths["orders"] = 1
    waiting = asyncio.create_task(turned.pressure.apart(turned.store, calls(1)))
    while fake.queues.counts == 0:  # noqa: ASYNC110 - counted on a thread
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    fake.queues.lengths["orders"] = 0
    assert (await turned.pressure.apart(turned.store, calls(1))).now


@pytest.mark.anyio
async def test_one_that_is_cancelled_while_it_counts_keeps_nobody_from_counting(fake: FakeStore) -> None:
    turned = Turned(fake, max_ready=1)
    counting, go_on = threading.Event(), threading.Event()

    def slowly(name: str, limit: int) -> int:
        counting.set()
        go_on.wait(60)
        return 0

    plain, fake.queues.waiting = fake.queues.waiting, slowly  # type: ignore[method-assign]
    first = asyncio.create_task(turned.pressure.apart(turned.store, calls(1)))
    await asyncio.to_thread(counting.wait)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    fake.queues.waiting = plain  # type: ignore[method-assign]
    try:
        assert (await acarried_out(turned.pressure.steps(turned.store, calls(1), True))).now
    finally:
        go_on.set()
