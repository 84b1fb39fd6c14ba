"""Named locks, and leadership, over all machines."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.errors import LockLost, LockTimeout, StoreFull
from lateshift.model.ids import MemberId, new_member_id
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


async def test_a_lock_taken_for_a_caller_that_was_cancelled_is_free_again(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = threading.Event(), threading.Event()
    acquire = app.store.locks.acquire

    def slow(name: str, owner: MemberId, ttl: timedelta) -> Grip | None:
        grip = acquire(name, owner, ttl)
        asked.set()
        go_on.wait(60)
        return grip

    async def hold() -> None:
        async with app.lock("stock"):
            pytest.fail("it was cancelled")

    monkeypatch.setattr(app.store.locks, "acquire", slow)
    holder = asyncio.create_task(hold())
    await asyncio.to_thread(asked.wait)
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    go_on.set()
    async with app.lock("stock", wait=timedelta(seconds=5)) as lock:
        assert lock.fence == 2


async def test_a_lock_taken_just_before_its_caller_is_cancelled_is_free_again(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = app.lock("stock")

    async def cancelled_at_the_end(take: Callable[..., bool], *args: Any) -> bool:
        assert take(*args)
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr("lateshift.runtime.lock.aside", cancelled_at_the_end)
        with pytest.raises(asyncio.CancelledError):
            await lock.__aenter__()
    async with app.lock("stock", wait=timedelta(seconds=5)) as other:
        assert other.fence == 2


def test_a_store_that_is_full_for_a_while_does_not_end_the_renewals(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed = threading.Event()
    renew = app.store.locks.renew
    tries: list[int] = []

    def full_at_first(grip: Grip, ttl: timedelta) -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise StoreFull("The disk is full.")
        answer = renew(grip, ttl)
        renewed.set()
        return answer

    monkeypatch.setattr(app.store.locks, "renew", full_at_first)
    with app.lock("stock", ttl=timedelta(seconds=1)):
        assert renewed.wait(10)


def test_the_fence_is_refused_once_its_time_is_over_even_while_a_renewal_hangs(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, asked = threading.Event(), threading.Event()

    def hang(grip: Grip, ttl: timedelta) -> bool:
        asked.set()
        go_on.wait(60)
        return False

    monkeypatch.setattr(app.store.locks, "renew", hang)
    ttl = timedelta(milliseconds=300)
    begun = time.monotonic()
    try:
        with pytest.raises(LockLost, match="not held"), app.lock("stock", ttl=ttl) as lock:
            assert lock.fence == 1
            assert asked.wait(10)
            while time.monotonic() < begun + 10:
                _ = lock.fence
            pytest.fail("it was held for ever")
    finally:
        go_on.set()


def test_the_time_of_a_lock_counts_from_before_it_was_asked_for(
    app: Lateshift, monkeypatch: pytest.MonkeyPatch
) -> None:
    ttl = timedelta(milliseconds=50)
    acquire = app.store.locks.acquire

    def late(name: str, owner: MemberId, ttl: timedelta) -> Grip | None:
        grip = acquire(name, owner, timedelta(minutes=1))
        end = time.monotonic() + ttl.total_seconds()
        while time.monotonic() < end:
            pass
        return grip

    monkeypatch.setattr(app.store.locks, "acquire", late)
    with app.lock("stock", ttl=ttl) as lock, pytest.raises(LockLost):
        _ = lock.fence


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
