"""Many at once: threads and connections that lease, enqueue and sweep together."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier, Event
from time import monotonic
from typing import TypeVar

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId, new_member_id
from lateshift.model.job import JobFilter, Lane, Line, Place, State
from lateshift.model.outcome import HANDED_BACK, Settlement
from lateshift.store.contract import Store, Want
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore
from tests.store_contract.driving import (
    DAY,
    DONE,
    GUARDED,
    LINE,
    TTL,
    Supervisor,
    Worker,
    added,
    keyed,
    make_batch,
    make_job,
    only,
    query,
    see,
)

T = TypeVar("T")


def at_once(*works: Callable[[], T]) -> list[T]:
    """Run them in threads that start together."""
    gate = Barrier(len(works))

    def begin(work: Callable[[], T]) -> T:
        gate.wait(timeout=30)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))


@pytest.fixture
def stores(store: Store, clock: ManualClock) -> Iterator[list[Store]]:
    """The same store opened three times, as three processes would."""
    others = [open_store(store.url, clock) for _ in range(2)]
    yield [store, *others]
    for other in others:
        other.close()


def drain(store: Store, line: Line, count: int, *, by_age: bool = False) -> list[JobId]:
    """Lease and settle until there is nothing left; gives what was leased."""
    worker = Worker(store)
    mine: list[JobId] = []
    said: list[Settlement] = []
    idle = 0
    while idle < 3:
        answer = store.jobs.exchange(worker.id, said, [Want(line, count, by_age)])
        assert answer.lost == []
        assert len(answer.leases) <= count
        mine += [lease.id for lease in answer.leases]
        said = [Settlement(lease, DONE) for lease in answer.leases]
        idle = 0 if said else idle + 1
    return mine


@pytest.mark.parametrize("by_age", [False, True])
def test_jobs_leased_by_many_at_once_are_each_leased_exactly_once(stores: list[Store], by_age: bool) -> None:
    jobs = [make_job(priority=number % 3) for number in range(300)]
    ids = added(stores[0], *jobs)

    shares = at_once(*[lambda store=store: drain(store, LINE, 7, by_age=by_age) for store in stores])

    assert Counter(id for share in shares for id in share) == Counter(ids)
    assert {view.state for view in stores[0].reports.jobs(JobFilter(), 1000)} == {State.COMPLETED}
    assert {view.fence for view in stores[0].reports.jobs(JobFilter(), 1000)} == {1}


def test_threads_of_one_store_lease_each_job_exactly_once(store: Store) -> None:
    ids = added(store, *[make_job() for _ in range(200)])

    shares = at_once(*[lambda: drain(store, LINE, 5) for _ in range(4)])

    assert Counter(id for share in shares for id in share) == Counter(ids)


def test_an_exclusive_key_holds_however_many_lease_at_once(stores: list[Store]) -> None:
    store = stores[0]
    ids = added(store, *[make_job(exclusive=key) for _ in range(12) for key in "ab"])

    def drain_guarded(store: Store) -> list[JobId]:
        worker = Worker(store)
        mine: list[JobId] = []
        for _ in range(400):
            leases = store.jobs.exchange(worker.id, [], [Want(GUARDED, 3)]).leases
            [[most]] = query(
                store,
                "SELECT coalesce(max(n), 0) FROM"
                " (SELECT count(*) AS n FROM {job} WHERE state = 2 GROUP BY exclusive) AS held",
            )
            assert most <= 1
            mine += [lease.id for lease in leases]
            said = [Settlement(lease, DONE) for lease in leases]
            assert store.jobs.exchange(worker.id, said, []).lost == []
            if not store.jobs.lines() and not store.reports.jobs(JobFilter(state=State.BLOCKED), 1):
                break
        return mine

    shares = at_once(*[lambda store=store: drain_guarded(store) for store in stores])

    assert Counter(id for share in shares for id in share) == Counter(ids)


def test_sessions_and_limits_hold_however_many_lease_enqueue_and_cancel_at_once(stores: list[Store]) -> None:
    stores[0].rules.declare([Rule("key", "k", 2), Rule("task", "noop", 5)], by="the test")
    places = [Place(session, limit_key=key) for session in ("a", "b", None) for key in ("k:1", "k:2", None)]
    sums = """SELECT count(*) FROM (SELECT 1 FROM {job} WHERE state = 2 AND session IS NOT NULL
      GROUP BY session HAVING count(*) > 1
      UNION ALL SELECT 1 FROM {job} WHERE state = 2 AND limit_key IS NOT NULL GROUP BY limit_key HAVING count(*) > 2
      UNION ALL SELECT 1 FROM {job} WHERE state = 2 GROUP BY task HAVING count(*) > 5) AS broken"""
    all_in = Event()

    def enqueue(store: Store) -> list[JobId]:
        for number in range(60):
            ids = added(store, *(make_job(place=place) for place in places[number % 3 :: 3]))
            if number % 10 == 0:
                store.jobs.cancel(ids[:1], by="ana")
                store.jobs.cancel(ids[:1], by="ana")
        all_in.set()
        return []

    def drain_guarded(store: Store) -> list[JobId]:
        worker = Worker(store, DAY)
        mine: list[JobId] = []
        end = monotonic() + 60
        while monotonic() < end:
            last = all_in.is_set()
            leases = store.jobs.exchange(worker.id, [], [Want(GUARDED, 4)]).leases
            assert query(store, sums) == [(0,)]
            mine += [lease.id for lease in leases]
            assert (
                store.jobs.exchange(worker.id, [Settlement(lease, DONE) for lease in leases], []).lost == []
            )
            if last and not leases and not store.reports.unsettled(None, 1):
                break
        return mine

    shares = at_once(
        lambda: enqueue(stores[0]), *[lambda store=store: drain_guarded(store) for store in stores]
    )
    ran = Counter(id for share in shares for id in share)
    assert max(ran.values()) == 1
    assert stores[0].reports.unsettled(None, 10) == []
    settled = {view.id: view.state for view in stores[0].reports.jobs(JobFilter(), 1000)}
    assert {id for id, state in settled.items() if state is State.COMPLETED} == set(ran)


def test_a_batch_that_is_cancelled_while_its_jobs_go_back_and_forth_is_rid_of_all_of_them(
    stores: list[Store],
) -> None:
    places = [Place(limit_key=f"k:{number % 3}") if number % 2 else None for number in range(90)]
    batch, jobs = make_batch(stores[0], len(places), added=0)
    jobs = [
        replace(job, spec=replace(make_job(place=place).spec, batch=batch.id), place=place)
        for job, place in zip(jobs, places, strict=True)
    ]
    stores[0].batches.add(batch.id, 0, jobs)
    called_off = Event()

    def shuttle(store: Store) -> None:
        worker = Worker(store)
        said: list[Settlement] = []
        end = monotonic() + 60
        while said or not called_off.is_set():
            assert monotonic() < end
            answer = store.jobs.exchange(worker.id, said, [Want(LINE, 5), Want(GUARDED, 5)])
            said = [Settlement(lease, HANDED_BACK) for lease in answer.leases]
            called_off.wait(
                0.001
            )  # SQLite's lock has no line: whoever asks at once again keeps the others out

    def cancel(store: Store) -> None:
        assert store.batches.cancel(batch.id, by="ana")
        last: JobId | None = None
        while last := store.batches.cancel_jobs(batch.id, last, 7, by="ana"):
            pass
        called_off.set()

    def declare(store: Store) -> None:
        for number in range(1, 30):
            store.rules.declare([Rule("key", "k", number % 4 + 1), Rule("task", "noop", 20)], by="shop")

    at_once(
        lambda: shuttle(stores[0]),
        lambda: shuttle(stores[1]),
        lambda: cancel(stores[2]),
        lambda: declare(stores[2]),
    )

    assert stores[0].reports.unsettled(None, 10) == []
    states = Counter(see(stores[0], job.id).state for job in jobs)
    assert states == {State.CANCELLED: len(jobs)}
    if isinstance(stores[0], PostgresStore):
        query(stores[0], "SELECT pg_stat_force_next_flush()")
        ours = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert query(stores[0], ours) == [(0,)]


def test_one_key_enqueued_by_many_at_once_is_one_job(stores: list[Store]) -> None:
    many = [store for store in stores for _ in range(3)]

    answers = at_once(*[lambda store=store: store.jobs.enqueue([keyed("order-1")])[0] for store in many])

    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert len(stores[0].reports.jobs(JobFilter(), 10)) == 1


def test_one_key_with_two_bodies_at_once_is_one_job_and_a_refusal(stores: list[Store]) -> None:
    def enqueue(store: Store, body: bytes) -> bytes | None:
        try:
            store.jobs.enqueue([keyed("order-1", body)])
        except KeyConflict:
            return None
        return body

    taken = at_once(
        lambda: enqueue(stores[0], b"[1]"),
        lambda: enqueue(stores[1], b"[2]"),
        lambda: enqueue(stores[2], b"[1]"),
    )

    [job] = stores[0].reports.jobs(JobFilter(), 10)
    assert {body for body in taken if body} == {job.payload}


@pytest.mark.parametrize("ended", [False, True], ids=["new", "taken over"])
def test_one_identity_enqueued_by_many_at_once_is_one_job(stores: list[Store], ended: bool) -> None:
    if ended:
        added(stores[0], make_job(unique=only("user 7")))
        assert len(drain(stores[0], LINE, 1)) == 1
    many = [store for store in stores for _ in range(3)]

    answers = at_once(
        *[lambda store=store: store.jobs.enqueue([make_job(unique=only("user 7"))])[0] for store in many]
    )

    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert len(stores[0].reports.jobs(JobFilter(state=State.READY), 10)) == 1


def test_identities_enqueued_in_opposite_orders_at_once_are_one_job_each(stores: list[Store]) -> None:
    texts = [f"user {number}" for number in range(60)]

    def enqueue(store: Store, turn: int) -> list[tuple[JobId, bool]]:
        answers = store.jobs.enqueue([make_job(unique=only(text)) for text in texts[::turn]])
        return [(answer.id, answer.created) for answer in answers][::turn]

    for _ in range(5):
        said = at_once(
            *[lambda store=store, turn=turn: enqueue(store, turn) for store in stores for turn in (1, -1)]
        )
        for each in zip(*said, strict=True):
            assert len({id for id, _ in each}) == 1
            assert sum(created for _, created in each) == 1
        assert len(drain(stores[0], LINE, 100)) == 60


def test_unique_jobs_that_race_their_own_end_never_wait_twice(stores: list[Store]) -> None:
    """However it falls, at most one job of the identity is unsettled at a time."""
    worker = Worker(stores[0])

    def run() -> int:
        done = 0
        while done < 40:
            leases = stores[0].jobs.exchange(worker.id, [], [Want(LINE, 5)]).leases
            assert len(leases) <= 1
            stores[0].jobs.exchange(worker.id, [Settlement(lease, DONE) for lease in leases], [])
            done += len(leases)
            over.append(None) if done >= 40 else None
        return done

    def ask(store: Store) -> int:
        made = 0
        while not over:
            made += store.jobs.enqueue([make_job(unique=only("user 7"))])[0].created
        return made

    over: list[None] = []
    ran, *made = at_once(run, lambda: ask(stores[1]), lambda: ask(stores[2]))

    left = drain(stores[0], LINE, 10)
    assert len(left) <= 1
    assert ran + len(left) == sum(made)


def test_jobs_that_are_shed_by_many_at_once_are_each_shed_once(stores: list[Store]) -> None:
    ids = added(stores[0], *[make_job() for _ in range(30)])

    gone = at_once(*[lambda store=store: store.jobs.shed("default", 7) for store in stores])

    shed = [id for each in gone for id in each]
    assert len(shed) == len(set(shed))
    assert set(drain(stores[0], LINE, 50)) == set(ids) - set(shed)


def test_one_id_enqueued_by_many_at_once_is_one_job(stores: list[Store]) -> None:
    job = make_job()

    at_once(*[lambda store=store: store.jobs.enqueue([job]) for store in stores])

    assert drain(stores[0], LINE, 10) == [job.id]


def test_a_repeat_of_an_enqueue_that_races_its_own_job_does_not_run_it_twice(stores: list[Store]) -> None:
    jobs = [make_job() for _ in range(40)]
    stores[0].jobs.enqueue(jobs)

    def repeat(store: Store) -> list[JobId]:
        for job in jobs:
            store.jobs.enqueue([job])
        return []

    shares = at_once(lambda: repeat(stores[1]), lambda: drain(stores[0], LINE, 1), lambda: repeat(stores[2]))

    ran = Counter(shares[1]) + Counter(drain(stores[0], LINE, 50))
    assert ran == Counter(job.id for job in jobs)
    assert stores[0].upkeep.check() == []


def test_a_lock_wanted_by_many_at_once_goes_to_one(stores: list[Store]) -> None:
    grips = at_once(
        *[lambda store=store: store.locks.acquire("report", new_member_id(), TTL) for store in stores * 2]
    )

    assert sum(grip is not None for grip in grips) == 1


def test_a_settlement_that_races_the_sweep_counts_or_is_lost_but_never_both(stores: list[Store]) -> None:
    supervisor = Supervisor(stores[1])
    added(stores[0], *[make_job(attempts=1) for _ in range(40)])
    worker = Worker(stores[0])
    leases = worker.lease(40)
    worker.die()

    def settle() -> set[JobId]:
        return {lease.id for lease in leases if worker.settle(lease)}

    settled, taken = at_once(settle, lambda: {job.id for job in supervisor.sweep()})

    assert settled & taken == set()
    assert settled | taken == {lease.id for lease in leases}
    for lease in leases:
        assert see(stores[0], lease.id).state is (State.COMPLETED if lease.id in settled else State.DEAD)


def test_cancelling_while_leasing_leaves_no_job_in_two_places(stores: list[Store]) -> None:
    ids = added(stores[0], *[make_job() for _ in range(60)])

    def cancel() -> list[JobId]:
        return [id for id in ids if stores[1].jobs.cancel([id], by="ana")]

    ran, cancelled = at_once(lambda: drain(stores[0], LINE, 2), cancel)

    assert stores[0].upkeep.check() == []
    states = Counter(view.state for view in stores[0].reports.jobs(JobFilter(), 100))
    assert set(states) <= {State.COMPLETED, State.CANCELLED}
    assert sum(states.values()) == 60
    assert states[State.COMPLETED] == len(ran)
    assert states[State.CANCELLED] <= len(cancelled)


def test_promoting_at_once_readies_each_job_once(stores: list[Store], clock: ManualClock) -> None:
    ids = added(stores[0], *[make_job(delay=timedelta(minutes=1), lane=Lane.COROUTINE) for _ in range(60)])
    clock.move(minutes=2)

    at_once(*[lambda store=store: [store.jobs.promote(10) for _ in range(6)] for store in stores])

    assert Counter(drain(stores[0], LINE, 100)) == Counter(ids)


def test_many_may_open_a_new_store_at_once(
    tmp_path_factory: pytest.TempPathFactory, clock: ManualClock
) -> None:
    for turn in range(5):
        url = f"sqlite:///{tmp_path_factory.mktemp('new')}/jobs-{turn}.db"
        opened = [open_store(url, clock) for _ in range(6)]
        at_once(*[store.ready for store in opened])
        added(opened[0], make_job())
        assert opened[-1].jobs.lines() == [LINE]
        for store in opened:
            store.close()


def test_many_may_migrate_a_new_database_at_once(empty_postgres_url: str, clock: ManualClock) -> None:
    opened = [open_store(empty_postgres_url, clock) for _ in range(5)]
    at_once(*[store.ready for store in opened])

    added(opened[0], make_job())
    assert opened[-1].jobs.lines() == [LINE]
    for store in opened:
        store.close()


def test_transactions_see_what_they_waited_for_whatever_the_servers_default(
    postgres_url: str, clock: ManualClock
) -> None:
    store = open_store(
        f"{postgres_url}?options=-c%20default_transaction_isolation%3Drepeatable%5C%20read", clock
    )
    assert isinstance(store, PostgresStore)
    with store._database.connect() as connection:
        assert connection.execute("SHOW default_transaction_isolation").fetchall() == [("repeatable read",)]
        with connection.transaction():
            assert connection.execute("SHOW transaction_isolation").fetchall() == [("read committed",)]
    store.close()
