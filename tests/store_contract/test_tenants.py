"""Tenants share a queue: each has its turn in the round, however much another has waiting."""

from lateshift.model.ids import JobId
from lateshift.model.job import NewJob, Place
from lateshift.store.contract import Store
from tests.store_contract.driving import GUARDED, Worker, added, make_job


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
