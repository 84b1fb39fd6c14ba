"""Breakers and rooms: who comes to a shut gate is parked, over all machines, and no attempt of it is used up."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.breaker import Breaker, CircuitView
from lateshift.model.gate import Gate
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId
from lateshift.model.job import Lane, Lease, Line, NewJob, Place, State
from lateshift.model.member import Program, Serves
from lateshift.model.outcome import Later
from lateshift.store.contract import COUNT_LIMIT, Store
from tests.store_contract.driving import (
    DONE,
    FAILED,
    GUARDED,
    HOUR,
    RELEASED,
    TTL,
    Supervisor,
    Worker,
    added,
    make_job,
    query,
    see,
)

SECOND = timedelta(seconds=1)
BREAKER = Breaker(failures=3, open_for=30 * SECOND)
PROBE_FAILED = Later(timedelta(0), counts=False, history=b"[]")
OTHER = Line("other", Lane.GUARDED)


def call(task: str = "charge", queue: str = "default") -> NewJob:
    return make_job(place=Place(), task=task, queue=queue, time_limit=HOUR)


def declare(store: Store, breaker: Breaker = BREAKER, *tasks: str, by: str = "shop") -> None:
    store.breakers.declare(
        {"payments": breaker},
        [Gate(task, "payments") for task in tasks or ("charge",)],
        tasks=tasks or ("charge",),
        by=by,
    )


def seen(store: Store, name: str = "payments") -> CircuitView:
    [view] = [view for view in store.breakers.list() if view.name == name]
    return view


def break_it(store: Store, worker: Worker, task: str = "charge") -> None:
    """As many fail as it takes."""
    added(store, *(call(task) for _ in range(3)))
    leases = worker.lease(3, GUARDED)
    worker.settle_all(leases, Later(HOUR, counts=True, history=b"[]"))
    assert [view.state for view in store.breakers.list() if view.state != "closed"] == ["open"]


def probe(store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock) -> Lease:
    clock.move(seconds=30)
    supervisor.release_waiting()
    [lease] = worker.lease(100, GUARDED)
    return lease


def test_while_it_is_closed_nothing_is_in_the_way(store: Store, worker: Worker) -> None:
    declare(store)
    added(store, *(call() for _ in range(5)))
    leases = worker.lease(5, GUARDED)
    assert len(leases) == 5
    worker.settle_all(leases)
    assert (seen(store).state, seen(store).passed, seen(store).tasks) == ("closed", 5, ["charge"])


def test_when_calls_fail_it_opens_for_all_workers_and_jobs_are_parked_uncounted(
    store: Store, worker: Worker, other_worker: Worker, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    ids = added(store, *(call() for _ in range(5)))
    assert worker.lease(100, GUARDED) == other_worker.lease(100, GUARDED) == []
    views = [see(store, id) for id in ids]
    assert {(view.state, view.attempt) for view in views} == {(State.BLOCKED, 0)}
    view = seen(store)
    assert (view.state, view.parked) == ("open", 5)
    assert view.opened_at is not None
    assert timedelta(0) <= clock.now() - view.opened_at < HOUR
    assert view.next_probe_at == view.opened_at + 30 * SECOND


def test_what_fails_now_and_then_does_not_open_it(store: Store, worker: Worker) -> None:
    declare(store)
    for _ in range(5):
        added(store, *(call() for _ in range(4)))
        first, *rest = worker.lease(4, GUARDED)
        worker.settle(first, Later(HOUR, counts=True, history=b"[]"))
        worker.settle_all(rest)
    assert seen(store).state == "closed"


def test_tasks_without_it_are_not_held_up(store: Store, worker: Worker) -> None:
    declare(store)
    break_it(store, worker)
    added(store, call())
    [free] = added(store, call("mail"))
    assert [lease.id for lease in worker.lease(100, GUARDED)] == [free]


def test_one_job_probes_and_if_it_succeeds_all_go_on(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    ids = added(store, *(call() for _ in range(5)))
    worker.lease(100, GUARDED)
    supervisor.release_waiting()
    assert worker.lease(100, GUARDED) == []  # not yet
    lease = probe(store, worker, supervisor, clock)
    assert (lease.id, lease.probe) == (ids[0], True)
    assert (seen(store).state, seen(store).probe, seen(store).parked) == ("probing", ids[0], 4)
    supervisor.release_waiting()
    assert worker.lease(100, GUARDED) == []  # one at a time
    worker.settle(lease)
    assert seen(store).state == "closed"
    assert [each.id for each in worker.lease(100, GUARDED)] == ids[1:]
    assert not any(each.probe for each in worker.lease(100, GUARDED))


def test_a_probe_that_fails_uses_up_no_attempt_and_another_job_is_the_next(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    ids = added(store, *(call() for _ in range(2)))
    worker.lease(100, GUARDED)
    lease = probe(store, worker, supervisor, clock)
    worker.settle(lease, PROBE_FAILED)
    assert (seen(store).state, see(store, ids[0]).attempt) == ("open", 0)
    clock.move(seconds=29)
    supervisor.release_waiting()
    assert worker.lease(100, GUARDED) == []
    clock.move(seconds=1)
    supervisor.release_waiting()
    assert [each.id for each in worker.lease(100, GUARDED)] == ids[1:]


def test_a_probe_whose_worker_dies_is_followed_by_another(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    added(store, call(), call())
    worker.lease(100, GUARDED)
    lease = probe(store, worker, supervisor, clock)
    worker.die()
    supervisor.sweep()
    assert not worker.settle(lease)  # it wakes up, and is not heard
    assert seen(store).state == "open"
    clock.move(seconds=30)
    successor = Worker(store)
    supervisor.release_waiting()
    [again] = successor.lease(100, GUARDED)
    successor.settle(again)
    assert seen(store).state == "closed"


def test_what_was_leased_when_it_opened_comes_to_its_end_and_says_nothing_of_now(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    ids = added(store, call(), call())
    fails, passes = other_worker.lease(2, GUARDED)
    break_it(store, worker)
    opened = seen(store)
    clock.move(seconds=10)
    other_worker.settle(fails, FAILED)
    assert other_worker.settle(passes), "what it did is done"
    assert seen(store) == opened
    assert [see(store, id).state for id in ids] == [State.READY, State.COMPLETED]
    assert worker.lease(100, GUARDED) == [], "the one that is tried again is parked like the others"
    assert (see(store, ids[0]).state, see(store, ids[0]).attempt) == (State.BLOCKED, 1)
    clock.move(seconds=20)
    supervisor.release_waiting()
    [lease] = worker.lease(100, GUARDED)
    assert lease.id == ids[0]


def test_what_comes_too_late_is_not_counted(store: Store, worker: Worker, supervisor: Supervisor) -> None:
    declare(store)
    added(store, *(call() for _ in range(3)))
    leases = worker.lease(3, GUARDED)
    worker.die()
    supervisor.sweep()
    worker.settle_all(leases, FAILED)
    assert (seen(store).state, seen(store).failed) == ("closed", 0)


def test_what_was_handed_back_says_nothing(store: Store, worker: Worker) -> None:
    declare(store)
    added(store, *(call() for _ in range(3)))
    for _ in range(3):
        worker.settle_all(worker.lease(3, GUARDED), RELEASED)
    assert (seen(store).failed, seen(store).passed) == (0, 0)


def test_it_spans_the_queues_of_its_tasks(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store, BREAKER, "charge", "refund")
    break_it(store, worker)
    added(store, call("refund", "other"), call("charge"))
    assert worker.lease(100, OTHER) == worker.lease(100, GUARDED) == []
    clock.move(seconds=30)
    supervisor.release_waiting()
    probes = worker.lease(100, OTHER) + worker.lease(100, GUARDED)
    assert len(probes) == 1
    worker.settle_all(probes)
    supervisor.release_waiting()
    assert len(worker.lease(100, OTHER) + worker.lease(100, GUARDED)) == 1


def version(
    store: Store, worker: Worker, number: str, *, app: str = "shop", queues: tuple[str, ...] = ()
) -> None:
    program = Program(app=app, version=number, tasks={"charge": "coroutine"})
    told = Serves(
        app=app, version=number, code=program.digest, queues=queues, slots={}, heartbeat=TTL.total_seconds()
    )
    assert store.members.introduce(worker.id, told, program)


def test_who_is_parked_takes_no_place_in_a_limit_from_who_waits_for_one(store: Store, worker: Worker) -> None:
    declare(store)
    store.rules.declare([Rule("queue", "default", 2)], by="shop")
    running = added(store, call("mail"), call("mail"))
    held = [lease for lease in worker.lease(2, GUARDED) if lease.id in running]
    waiting = added(store, *(call() for _ in range(150)), *(call("mail") for _ in range(3)))
    assert worker.lease(100, GUARDED) == []  # all wait for a place
    store.breakers.open("payments", by="ann")
    worker.settle_all(held)
    assert [lease.id for lease in worker.lease(100, GUARDED)] == waiting[150:152]
    assert seen(store).parked == 150


def test_by_version_a_bad_release_parks_its_own_and_leaves_them_to_the_others(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    declare(store, Breaker(failures=3, by_version=True))
    version(store, worker, "2.0")
    version(store, other_worker, "1.0")
    break_it(store, worker)
    assert (seen(store, "payments@2.0").state, seen(store, "payments@2.0").version) == ("open", "2.0")
    ids = added(store, *(call() for _ in range(4)))
    assert worker.lease(100, GUARDED) == []
    supervisor.release_waiting()
    leases = other_worker.lease(100, GUARDED)
    assert [lease.id for lease in leases] == ids
    other_worker.settle_all(leases)
    assert seen(store, "payments@1.0").state == "closed"


def test_by_version_alone_they_stay_parked(store: Store, worker: Worker, supervisor: Supervisor) -> None:
    declare(store, Breaker(failures=3, by_version=True))
    version(store, worker, "2.0")
    break_it(store, worker)
    added(store, call())
    worker.lease(100, GUARDED)
    supervisor.release_waiting()
    assert (worker.lease(100, GUARDED), seen(store, "payments@2.0").parked) == ([], 1)


def test_the_circuit_of_a_version_that_nobody_runs_is_forgotten_unless_it_parks_somebody(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store, Breaker(failures=3, by_version=True))
    version(store, worker, "2.0")
    break_it(store, worker)
    [id] = added(store, call())
    worker.lease(100, GUARDED)
    clock.move(days=2)
    supervisor.purge()
    assert [view.name for view in store.breakers.list()] == ["payments@2.0"]
    store.jobs.cancel([id], by="ann")
    supervisor.purge()
    assert store.breakers.list() == []


def test_an_operator_opens_it_and_it_stays_so_until_it_is_closed(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    assert store.breakers.open("payments", by="ann")
    assert not store.breakers.open("payments", by="bob")
    [id] = added(store, call())
    assert worker.lease(100, GUARDED) == []
    clock.move(hours=1)
    supervisor.release_waiting()
    assert worker.lease(100, GUARDED) == []
    assert (seen(store).opened_by, seen(store).next_probe_at, seen(store).parked) == ("ann", None, 1)
    assert store.breakers.close("payments", by="ann")
    assert not store.breakers.close("payments", by="ann")
    assert [lease.id for lease in worker.lease(100, GUARDED)] == [id]
    audit = query(store, "SELECT action, subject, actor FROM {audit} ORDER BY at, action")
    assert sorted(audit) == [("close breaker", "payments", "ann"), ("open breaker", "payments", "ann")]


def test_one_that_nobody_declared_cannot_be_opened_or_closed(store: Store) -> None:
    assert not store.breakers.open("nothing", by="ann")
    assert not store.breakers.close("nothing", by="ann")
    declare(store, Breaker(by_version=True))
    assert not store.breakers.open("payments", by="ann")  # which version?


def test_a_breaker_that_the_code_has_no_more_lets_everybody_go_on(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    declare(store)
    break_it(store, worker)
    ids = added(store, *(call() for _ in range(3)))
    worker.lease(100, GUARDED)
    store.breakers.declare({}, [], tasks=["charge"], by="another app")
    store.breakers.declare({}, [], tasks=["thumbnail"], by="shop")  # another program of the same app
    assert seen(store).state == "open"
    store.breakers.declare({}, [], tasks=["charge"], by="shop")
    assert store.breakers.list() == []
    supervisor.release_waiting()
    assert [lease.id for lease in worker.lease(100, GUARDED)] == ids


def test_other_numbers_in_the_code_leave_it_where_it_stands(store: Store, worker: Worker) -> None:
    declare(store)
    break_it(store, worker)
    declare(store, Breaker(failures=7))
    assert seen(store).state == "open"


def test_that_it_has_opened_is_told_once_in_the_commit_that_makes_the_jobs(
    store: Store, worker: Worker
) -> None:
    declare(store)
    assert store.breakers.untold() == []
    break_it(store, worker)
    [opened] = store.breakers.untold()
    assert opened.name == "payments"
    page = make_job(task="page")
    assert store.breakers.tell(opened, [page])
    assert not store.breakers.tell(opened, [make_job(task="page")])
    assert store.breakers.untold() == []
    assert see(store, page.id).state is State.READY


def test_when_it_opens_again_it_is_told_again(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    store.breakers.tell(store.breakers.untold()[0], [])
    added(store, call())
    worker.lease(100, GUARDED)
    worker.settle(probe(store, worker, supervisor, clock))
    break_it(store, worker)
    assert len(store.breakers.untold()) == 1


def test_what_an_operator_opens_nobody_need_be_told(store: Store) -> None:
    declare(store)
    store.breakers.open("payments", by="ann")
    assert store.breakers.untold() == []


def test_a_queue_tells_how_many_of_its_blocked_jobs_are_parked(store: Store, worker: Worker) -> None:
    declare(store)
    store.breakers.open("payments", by="ann")
    added(store, call(), call(), call(queue="other"), call(task="free"))
    worker.lease(10, GUARDED)
    worker.lease(10, Line("other", Lane.GUARDED))

    views = {view.name: view for view in store.queues.list()}

    assert (views["default"].blocked, views["default"].parked) == (2, 2)
    assert (views["other"].blocked, views["other"].parked, views["other"].rationed) == (1, 1, 0)


def test_more_than_the_limit_are_not_counted(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{kind}.breakers.COUNT_LIMIT", 3)
    assert COUNT_LIMIT == 10_000
    declare(store)
    store.breakers.open("payments", by="ann")
    added(store, *(call() for _ in range(5)))
    worker.lease(100, GUARDED)
    assert seen(store).parked == 3


def full(store: Store, count: int) -> list[JobId]:
    return added(store, *(make_job(queue="images") for _ in range(count)))


def test_who_feeds_a_queue_waits_while_it_is_full(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    store.breakers.declare({}, [Gate("parse", "images", 3, "default")], tasks=["parse"], by="shop")
    full(store, 1)
    ids = added(store, *(call("parse") for _ in range(5)))
    assert [lease.id for lease in worker.lease(100, GUARDED)] == ids[:2]  # there is room for two more
    full(store, 2)
    supervisor.release_waiting()
    assert worker.lease(100, GUARDED) == []
    assert see(store, ids[2]).attempt == 0
    worker.settle_all(worker.lease(2, Line("images", Lane.COROUTINE)), DONE)
    supervisor.release_waiting()
    assert [lease.id for lease in worker.lease(100, GUARDED)] == ids[2:4]


def test_a_bound_that_the_code_has_no_more_holds_nobody_up(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    store.breakers.declare({}, [Gate("parse", "images", 1, "default")], tasks=["parse"], by="shop")
    full(store, 1)
    [id] = added(store, call("parse"))
    assert worker.lease(100, GUARDED) == []
    store.breakers.declare({}, [], tasks=["parse"], by="shop")
    supervisor.release_waiting()
    assert [lease.id for lease in worker.lease(100, GUARDED)] == [id]


def test_a_task_in_another_queue_than_the_one_that_feeds_is_not_kept_waiting(
    store: Store, worker: Worker
) -> None:
    store.breakers.declare({}, [Gate("parse", "other", 1, "default")], tasks=["parse"], by="shop")
    ids = added(store, *(call("parse", "other") for _ in range(3)))
    assert [lease.id for lease in worker.lease(100, OTHER)] == ids


def test_of_two_apps_with_one_breaker_it_stays_while_one_of_them_has_it(store: Store, worker: Worker) -> None:
    declare(store, BREAKER, "charge", by="shop")
    declare(store, BREAKER, "pay", by="bank")
    break_it(store, worker)
    store.breakers.declare({}, [], tasks=["pay"], by="bank")
    added(store, call())
    assert worker.lease(100, GUARDED) == []
    assert (seen(store).state, seen(store).tasks) == ("open", ["charge"])


def test_a_job_that_fails_by_itself_keeps_the_others_out_for_one_probe_only(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    [bad] = added(store, make_job(place=Place(tenant="a"), task="charge", priority=50))
    good = added(store, call(), make_job(place=Place(tenant="b"), task="charge", priority=-5))
    worker.lease(100, GUARDED)
    probed = []
    for _ in range(4):
        store.jobs.promote(100)
        assert worker.lease(100, GUARDED) == []  # who failed is parked again
        clock.move(seconds=31)
        worker.beat(HOUR)
        supervisor.release_waiting()
        [lease] = worker.lease(100, GUARDED)
        probed.append(lease.id)
        worker.settle(lease, PROBE_FAILED)
    assert set(probed[:3]) == {bad, *good}
    assert see(store, bad).attempt == 0


def test_a_lease_that_is_found_again_is_still_a_probe(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    added(store, call())
    worker.lease(100, GUARDED)
    lease = probe(store, worker, supervisor, clock)
    [found] = store.jobs.held(worker.id)
    assert (found.id, found.probe) == (lease.id, True)


def test_a_clock_that_is_set_back_delays_no_probe_for_longer_than_from_one_to_the_next(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store)
    break_it(store, worker)
    [id] = added(store, call())
    worker.lease(100, GUARDED)
    clock.move(hours=-2)
    store.jobs.promote(100)
    supervisor.release_waiting()
    assert [(lease.id, lease.probe) for lease in worker.lease(100, GUARDED)] == [(id, True)]


def test_when_it_counts_by_version_from_now_on_what_was_parked_goes_on(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    declare(store)
    break_it(store, worker)
    ids = added(store, *(call() for _ in range(5)))
    worker.lease(100, GUARDED)
    declare(store, Breaker(failures=3, by_version=True))
    supervisor.release_waiting()
    assert [lease.id for lease in worker.lease(100, GUARDED)] == ids


def test_by_version_workers_of_another_app_or_of_other_queues_are_no_others(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor
) -> None:
    declare(store, Breaker(failures=3, by_version=True))
    version(store, worker, "2.0")
    version(store, other_worker, "1.0", app="reports")
    version(store, Worker(store), "1.0", queues=("reports.*",))
    break_it(store, worker)
    added(store, call())
    worker.lease(100, GUARDED)
    supervisor.release_waiting()
    assert seen(store, "payments@2.0").parked == 1


def test_the_circuit_of_a_version_that_an_operator_opened_is_not_forgotten(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    declare(store, Breaker(failures=3, by_version=True))
    version(store, worker, "2.0")
    break_it(store, worker)
    store.breakers.open("payments@2.0", by="ann")
    clock.move(days=3)
    supervisor.purge()
    assert seen(store, "payments@2.0").opened_by == "ann"
