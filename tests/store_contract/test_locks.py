"""Locks and terms: one owner at a time, each with a higher fence."""

from datetime import timedelta

from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.store.contract import Grip, Store
from tests.store_contract.driving import TTL

ME, YOU = new_member_id(), new_member_id()


def held(store: Store, owner: object = ME, ttl: timedelta = TTL) -> Grip:
    grip = store.locks.acquire("report", YOU if owner is YOU else ME, ttl)
    assert grip is not None
    return grip


def test_a_free_lock_is_taken(store: Store) -> None:
    grip = held(store)

    assert (grip.name, grip.owner) == ("report", ME)
    assert grip.fence >= 1


def test_a_held_lock_is_refused_to_others(store: Store) -> None:
    held(store)

    assert store.locks.acquire("report", YOU, TTL) is None


def test_locks_of_different_names_do_not_meet(store: Store) -> None:
    held(store)

    assert store.locks.acquire("other", YOU, TTL) is not None


def test_taking_ones_own_again_keeps_the_fence_and_lengthens_the_time(
    store: Store, clock: ManualClock
) -> None:
    first = held(store)
    clock.move(seconds=20)

    assert held(store) == first
    clock.move(seconds=20)
    assert store.locks.acquire("report", YOU, TTL) is None


def test_a_released_lock_is_free_and_its_next_fence_is_higher(store: Store) -> None:
    first = held(store)
    assert store.locks.release(first) is True

    assert held(store, YOU).fence > first.fence


def test_an_owner_who_released_and_takes_again_has_a_higher_fence(store: Store) -> None:
    first = held(store)
    store.locks.release(first)

    assert held(store).fence > first.fence


def test_an_expired_lock_goes_to_the_next_with_a_higher_fence(store: Store, clock: ManualClock) -> None:
    first = held(store)
    clock.move(seconds=29)
    assert store.locks.acquire("report", YOU, TTL) is None
    clock.move(seconds=1)

    assert held(store, YOU).fence > first.fence


def test_an_owner_whose_time_ran_out_takes_it_again_with_a_higher_fence(
    store: Store, clock: ManualClock
) -> None:
    first = held(store)
    clock.move(seconds=31)

    assert held(store).fence > first.fence


def test_renewing_keeps_a_lock(store: Store, clock: ManualClock) -> None:
    grip = held(store)
    for _ in range(5):
        clock.move(seconds=20)
        assert store.locks.renew(grip, TTL) is True

    assert store.locks.acquire("report", YOU, TTL) is None


def test_a_lock_whose_time_ran_out_cannot_be_renewed(store: Store, clock: ManualClock) -> None:
    grip = held(store)
    clock.move(seconds=31)

    assert store.locks.renew(grip, TTL) is False


def test_an_old_grip_neither_renews_nor_releases(store: Store, clock: ManualClock) -> None:
    old = held(store)
    clock.move(seconds=31)
    new = held(store, YOU)

    assert store.locks.renew(old, TTL) is False
    assert store.locks.release(old) is False
    assert store.locks.renew(new, TTL) is True


def test_an_old_grip_of_the_same_owner_is_as_old(store: Store, clock: ManualClock) -> None:
    old = held(store)
    clock.move(seconds=31)
    new = held(store)

    assert store.locks.renew(old, TTL) is False
    assert store.locks.release(old) is False
    assert store.locks.release(new) is True


def test_releasing_twice_is_refused_the_second_time(store: Store) -> None:
    grip = held(store)

    assert store.locks.release(grip) is True
    assert store.locks.release(grip) is False
