"""Tenants share a queue: each has its turn in the round, however much another has waiting."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lateshift.clock import ManualClock
from lateshift.model.ids import JobId
from lateshift.model.job import Lane, NewJob, Place
from lateshift.store import postgres, sqlite
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, GUARDED, Worker, added, empty, make_job


def of(tenant: str, priority: int = 0) -> NewJob:
    return make_job(place=Place(tenant=tenant), priority=priority, time_limit=None)


def lease(worker: Worker, count: int) -> list[JobId]:
    return [lease.id for lease in worker.lease(count, GUARDED)]


def test_one_job_of_a_tenant_waits_for_one_round_of_the_others_at_most(store: Store, worker: Worker) -> None:
    added(store, *(of("acme") for _ in range(2000)))
    [small] = added(store, of("bob"))
    assert small in lease(worker, 2)


def test_a_round_gives_each_tenant_one_job_in_turn(store: Store, worker: Worker) -> None:
    ids = {name: added(store, *(of(name) for _ in range(3))) for name in "cab"}
    round_ = [lease(worker, 1)[0] for _ in range(6)]
    assert round_ == [ids[name][place] for place in range(2) for name in "abc"]


def test_the_next_lease_goes_on_after_the_tenant_who_had_the_last_turn(store: Store, worker: Worker) -> None:
    ids = {name: added(store, *(of(name) for _ in range(2))) for name in "abc"}
    assert lease(worker, 2) == [ids["a"][0], ids["b"][0]]
    assert lease(worker, 2) == [ids["c"][0], ids["a"][1]]


def test_within_a_tenant_priority_and_age_decide(store: Store, worker: Worker) -> None:
    low, high, late = added(store, of("a"), of("a", 5), of("a"))
    assert lease(worker, 3) == [high, low, late]


def test_jobs_without_a_tenant_have_a_turn_of_their_own(store: Store, worker: Worker) -> None:
    added(store, *(of("acme") for _ in range(50)))
    [plain] = added(store, of(""))
    assert plain in lease(worker, 2)


def test_a_lease_larger_than_a_round_takes_from_all_alike(store: Store, worker: Worker) -> None:
    big = added(store, *(of("big") for _ in range(100)))
    small = added(store, *(of("small") for _ in range(5)))
    leased = lease(worker, 20)
    assert [id for id in leased if id in small] == small
    assert [id for id in leased if id in big] == big[:15]


def test_by_age_the_priority_that_waits_longest_has_its_turn(store: Store, worker: Worker) -> None:
    [old] = added(store, of("a", -5))
    added(store, *(of("a", 5) for _ in range(5)))
    assert [lease.id for lease in worker.lease(1, GUARDED, by_age=True)] == [old]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abcde"), st.integers(1, 12)),
        st.tuples(st.just("lease"), st.just(""), st.integers(1, 9)),
    ),
    max_size=30,
)


@given(steps=STEPS)
@settings(suppress_health_check=[*HealthCheck], max_examples=40)
def test_while_a_tenant_waits_no_other_has_two_turns(
    quick_store: Store, steps: list[tuple[str, str, int]]
) -> None:
    empty(quick_store)
    worker = Worker(quick_store, DAY)
    of_whom: dict[JobId, str] = {}
    waiting: Counter[str] = Counter()
    turns: dict[
        str, Counter[str]
    ] = {}  # for each tenant that waits, what others had since it began to, or was served
    for what, tenant, count in steps:
        if what == "add":
            of_whom |= dict.fromkeys(added(quick_store, *(of(tenant) for _ in range(count))), tenant)
            waiting[tenant] += count
            turns.setdefault(tenant, Counter())
            continue
        served = [of_whom[id] for id in lease(worker, count)]
        assert len(served) == min(count, waiting.total())
        for one in served:
            waiting[one] -= 1
            for other, had in turns.items():
                had[one] += other != one
            turns[one].clear()
            turns = {other: had for other, had in turns.items() if waiting[other]}
            assert all(most <= 1 for had in turns.values() for most in had.values()), served


def test_a_lease_is_filled_though_other_tenants_have_little(store: Store, worker: Worker) -> None:
    added(store, *(make_job(place=Place(tenant="a")) for _ in range(300)))
    added(store, make_job(place=Place(tenant="b")), make_job(place=Place(tenant="c")))
    assert len(worker.lease(80, GUARDED)) == 80


def test_the_jobs_of_many_tenants_have_their_sessions_turns_too(store: Store, worker: Worker) -> None:
    """As many tenants as are asked one job each."""
    places = [Place(f"session {number % 60}", tenant=f"tenant {number:03}") for number in range(120)]
    jobs = [make_job(place=place, time_limit=None) for place in places]
    for job in jobs:
        added(store, job)
    leases = worker.lease(110, GUARDED)
    assert [lease.session for lease in leases] == [place.session for place in places[:60]]
    for lease in leases:
        worker.settle(lease)
    assert [lease.session for lease in worker.lease(110, GUARDED)] == [place.session for place in places[60:]]


def test_tenants_that_wait_are_told_with_how_many_of_theirs_are_ready(
    store: Store, clock: ManualClock
) -> None:
    for tenant, lane in (
        ("acme", Lane.COROUTINE),
        ("acme", Lane.THREAD),
        ("beta", Lane.COROUTINE),
        ("", Lane.COROUTINE),
    ):
        added(store, make_job(lane=lane, place=Place(tenant=tenant)))
    added(store, make_job(queue="elsewhere", place=Place(tenant="gamma")), make_job())
    clock.move(minutes=1)

    found = store.queues.tenants("default", 10)

    assert [(it.name, it.ready) for it in found] == [("acme", 2), ("beta", 1)]
    assert all(timedelta(minutes=1) <= it.oldest_ready < timedelta(minutes=2) for it in found)
    assert [it.name for it in store.queues.tenants("default", 1)] == ["acme"]


def test_the_jobs_of_a_tenant_are_counted_up_to_a_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite.queues, postgres.queues):
        monkeypatch.setattr(module, "TENANT_COUNTED", 3)
    added(store, *(make_job(place=Place(tenant="acme")) for _ in range(5)))

    assert [it.ready for it in store.queues.tenants("default", 10)] == [3]
