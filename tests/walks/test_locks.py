"""Named locks, and leadership, over all machines."""

import asyncio
import threading
from datetime import timedelta

import pytest

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.errors import LockLost, LockTimeout
from lateshift.model.ids import new_member_id
from lateshift.runtime.leadership import TTL, Leadership
from lateshift.store.contract import Grip

pytestmark = pytest.mark.anyio

SECOND = timedelta(seconds=1)


async def test_one_holder_at_a_time_and_the_fence_grows(app: Lateshift) -> None:
    fences: list[int] = []
    inside = 0

    async def hold() -> None:
        nonlocal inside
        async with app.lock("stock") as lock:
            inside += 1
            assert inside == 1
            fences.append(lock.fence)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(hold() for _ in range(5)))
    assert fences == sorted(set(fences))


def test_a_lock_works_in_plain_code_too_and_is_free_afterwards(app: Lateshift) -> None:
    with app.lock("stock") as first:
        fence = first.fence
        with pytest.raises(LockTimeout, match="stock"), app.lock("stock", wait=timedelta(0)):
            pytest.fail("it was held")
    with app.lock("stock", wait=timedelta(0)) as second:
        assert second.fence == fence + 1


def test_a_lock_is_renewed_while_it_is_held(app: Lateshift) -> None:
    renewed = threading.Event()
    renew = app.store.locks.renew

    def watched(grip: Grip, ttl: timedelta) -> bool:
        answer = renew(grip, ttl)
        renewed.set()
        return answer

    app.store.locks.renew = watched  # type: ignore[method-assign]
    with app.lock("stock", ttl=timedelta(milliseconds=300)) as lock:
        assert renewed.wait(10)
        assert lock.fence == 1


def test_a_lock_lost_to_another_says_so_in_the_fence_and_at_the_end(store_url: str) -> None:
    clock = ManualClock()
    app = Lateshift("test", store=store_url, clock=clock)
    with pytest.raises(LockLost), app.lock("stock") as lock:
        clock.move(minutes=5)
        assert app.store.locks.acquire("stock", new_member_id(), SECOND) is not None
        assert lock.fence == 1
    with pytest.raises(LockLost):
        _ = lock.fence
    app.close()


def test_one_leads_and_another_takes_over_with_a_higher_term(store_url: str) -> None:
    clock = ManualClock()
    app = Lateshift("test", store=store_url, clock=clock)
    first = Leadership(app.store.locks, "supervisor", new_member_id(), clock)
    second = Leadership(app.store.locks, "supervisor", new_member_id(), clock)
    term = first.term()
    assert term is not None
    assert second.term() is None
    clock.move(seconds=4)
    assert first.term() == term
    assert second.term() is None
    clock.move(seconds=TTL.total_seconds() + 1)
    taken = second.term()
    assert taken is not None
    assert taken > term
    assert first.term() is None
    second.resign()
    assert first.term() == taken + 1
    app.close()
