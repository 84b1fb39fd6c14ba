"""Limits: how many run and how many start, over all machines, counted from rows."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId
from lateshift.model.job import Lane, Lease, Line, NewJob, Place, State
from lateshift.model.outcome import Later
from lateshift.model.workflow.run import Advance, Asleep
from lateshift.store.contract import Store
from tests.store_contract.driving import DONE, GUARDED, SOLO, Supervisor, Worker, added, make_job, query, see

OTHER = Line("other", Lane.GUARDED)
MINUTE = timedelta(minutes=1)


def limited(
    key: str | None = None, *, task: str = "noop", queue: str = "default", priority: int = 0
) -> NewJob:
    return make_job(place=Place(limit_key=key), task=task, queue=queue, priority=priority, time_limit=None)


def lease(worker: Worker, count: int = 100, line: Line = GUARDED) -> list[JobId]:
    return [lease.id for lease in worker.lease(count, line)]


Make = Callable[[], NewJob]
SCOPES = pytest.mark.parametrize(
    ("rule", "make"),
    [
        (Rule("queue", "default", 2), limited),
        (Rule("task", "noop", 2), limited),
        (Rule("key", "tenant", 2), lambda: limited("tenant:7")),
    ],
    ids=["queue", "task", "key"],
)


@SCOPES
def test_no_more_run_at_once_than_the_limit_says_and_the_next_follow_as_they_end(
    store: Store, worker: Worker, other_worker: Worker, rule: Rule, make: Make
) -> None:
    store.rules.declare([rule], by="code")
    ids = added(store, *(make() for _ in range(5)))
    running = worker.lease(1, GUARDED) + other_worker.lease(100, GUARDED)
    assert [each.id for each in running] == ids[:2]
    assert lease(worker) == lease(other_worker) == []
    assert [see(store, id).state for id in ids[2:]] == [State.BLOCKED] * 3

    worker.settle(running[0])
    third = other_worker.lease(100, GUARDED)
    assert [each.id for each in third] == ids[2:3]
    other_worker.settle_all([running[1], *third])
    assert lease(worker) == ids[3:]


@SCOPES
def test_a_killed_worker_leaks_no_place(
    store: Store, worker: Worker, supervisor: Supervisor, rule: Rule, make: Make
) -> None:
    store.rules.declare([rule], by="code")
    ids = added(store, *(make() for _ in range(3)))
    assert lease(worker) == ids[:2]
    worker.die()
    supervisor.sweep()
    successor = Worker(store)
    assert sorted(lease(successor)) == ids[:2]
    successor.settle_all(store.jobs.held(successor.id))
    assert lease(successor) == ids[2:]


def test_a_limited_job_does_not_block_those_behind_it(store: Store, worker: Worker) -> None:
    store.rules.declare([Rule("key", "tenant", 1)], by="code")
    ids = added(store, *(limited("tenant:1") for _ in range(500)), limited("tenant:2"), limited())
    assert lease(worker, 3) == [ids[0], *ids[-2:]]


def test_each_key_of_a_kind_is_counted_by_itself(store: Store, worker: Worker) -> None:
    store.rules.declare([Rule("key", "tenant", 1)], by="code")
    ids = added(store, *(limited(f"tenant:{n % 3}") for n in range(9)))
    assert lease(worker) == ids[:3]


def test_a_key_is_counted_over_all_queues_and_tasks(store: Store, worker: Worker) -> None:
    store.rules.declare([Rule("key", "vendor", 1)], by="code")
    first, second = added(store, limited("vendor:x"), limited("vendor:x", queue="other", task="else"))
    [held] = worker.lease(5, GUARDED)
    assert (held.id, lease(worker, 5, OTHER)) == (first, [])
    worker.settle(held)
    assert lease(worker, 5, OTHER) == [second]


def test_all_limits_of_a_job_hold_together(store: Store, worker: Worker) -> None:
    rules = [Rule("queue", "default", 3), Rule("task", "a", 2), Rule("key", "k", 1)]
    store.rules.declare(rules, by="code")
    jobs = [
        limited("k:1", task="a"),
        limited("k:1", task="a"),
        *(limited(task="a") for _ in range(3)),
        limited(task="b"),
    ]
    ids = added(store, *jobs, limited(task="b"))
    assert lease(worker) == [ids[0], ids[2], ids[5]]


def test_the_first_to_follow_is_the_one_with_the_highest_priority(store: Store, worker: Worker) -> None:
    store.rules.declare([Rule("task", "noop", 1)], by="code")
    _, _low, high = added(store, limited(priority=9), limited(), limited(priority=5))
    [held] = worker.lease(5, GUARDED)
    lease(worker)
    worker.settle(held)
    assert lease(worker) == [high]


def test_a_limit_that_is_raised_or_withdrawn_lets_those_go_who_waited(
    store: Store, worker: Worker, supervisor: Supervisor
) -> None:
    store.rules.declare([Rule("task", "noop", 1)], by="code")
    ids = added(store, *(limited() for _ in range(5)))
    assert lease(worker) == ids[:1]
    store.rules.declare([Rule("task", "noop", 3)], by="code")
    supervisor.release_waiting()
    assert lease(worker) == ids[1:3]
    store.rules.declare([Rule("task", "noop")], by="code")
    assert store.rules.list() == []
    supervisor.release_waiting()
    assert lease(worker) == ids[3:]


def test_a_job_that_waits_for_a_place_in_a_paused_queue_does_not_keep_another_queue_waiting(
    store: Store, worker: Worker
) -> None:
    store.rules.declare([Rule("key", "k", 1)], by="code")
    [held_id] = added(store, limited("k:1"))
    [held] = worker.lease(5, GUARDED)
    assert held.id == held_id
    paused, there = added(store, limited("k:1"), limited("k:1", queue="other"))
    assert lease(worker) == lease(worker, 5, OTHER) == []
    store.queues.pause("default", by="ana")
    worker.settle(held)
    assert lease(worker, 5, OTHER) == [there]
    assert see(store, paused).state in (State.READY, State.BLOCKED)


def test_what_was_declared_is_listed_and_declaring_again_changes_nothing(store: Store) -> None:
    rules = [Rule("key", "tenant", 5), Rule("task", "send", None, 100, MINUTE, 2)]
    store.rules.declare(rules, by="code")
    store.rules.declare(rules, by="code")
    assert store.rules.list() == rules


def test_a_limit_is_withdrawn_by_the_app_that_declared_it_and_by_no_other(store: Store) -> None:
    limit = Rule("queue", "default", 5)
    store.rules.declare([limit], by="shop")
    store.rules.declare([Rule("queue", "default")], by="reports")
    assert store.rules.list() == [limit]
    store.rules.declare([Rule("queue", "default")], by="shop")
    assert store.rules.list() == []


def test_a_limit_that_two_apps_declare_belongs_to_the_last_of_them(store: Store) -> None:
    limit = Rule("queue", "default", 5)
    store.rules.declare([limit], by="shop")
    store.rules.declare([limit], by="reports")
    store.rules.declare([Rule("queue", "default")], by="shop")
    assert store.rules.list() == [limit]
    store.rules.declare([Rule("queue", "default")], by="reports")
    assert store.rules.list() == []


def test_jobs_that_run_already_count_against_a_limit_that_is_declared_now(
    store: Store, worker: Worker
) -> None:
    added(store, *(limited("k:1") for _ in range(3)))
    running = worker.lease(2, GUARDED)
    for rule in (Rule("queue", "default", 2), Rule("task", "noop", 2), Rule("key", "k", 2)):
        store.rules.declare([rule], by="shop")
        assert lease(worker) == []
        store.rules.declare([Rule(rule.scope, rule.name)], by="shop")
    store.rules.declare([Rule("queue", "default", 2)], by="shop")
    worker.settle(running[0])
    assert len(lease(worker)) == 1


def test_places_that_one_limit_keeps_from_many_go_to_others(store: Store, worker: Worker) -> None:
    store.rules.declare([Rule("queue", "default", 10), Rule("key", "vendor", 1)], by="code")
    added(store, *(limited(task="first") for _ in range(10)))
    running = worker.lease(100, GUARDED)
    added(store, *(limited("vendor:acme") for _ in range(300)))
    [beta] = added(store, limited("vendor:beta"))
    assert lease(worker) == []
    worker.settle_all(running)
    assert beta in lease(worker)


def test_a_suspect_that_was_never_guarded_follows_when_a_limit_has_place(
    store: Store, supervisor: Supervisor
) -> None:
    [plain] = added(store, make_job(time_limit=None))
    for _ in range(2):
        worker = Worker(store)
        worker.lease(10)
        worker.die()
        supervisor.sweep()
    store.rules.declare([Rule("task", "noop", 1)], by="code")
    worker = Worker(store)
    added(store, limited())
    [held] = worker.lease(10, GUARDED)
    assert worker.lease(1, SOLO) == []
    worker.settle(held)
    assert [each.id for each in worker.lease(1, SOLO)] == [plain]


# Rates


def test_no_more_start_than_the_rate_says_and_the_rest_come_as_tokens_grow(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 60, MINUTE, 2)], by="code")
    ids = added(store, *(limited() for _ in range(5)))
    assert lease(worker) == ids[:2]
    assert [see(store, id).state for id in ids[2:]] == [State.SCHEDULED] * 3
    for id in ids[2:]:
        clock.move(seconds=1)
        store.jobs.promote(100)
        assert lease(worker) == [id]


def test_a_bucket_holds_no_more_than_its_burst_however_long_nothing_ran(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 60, MINUTE, 2)], by="code")
    added(store, limited())
    lease(worker)
    clock.move(hours=5)
    added(store, *(limited() for _ in range(5)))
    assert len(lease(worker)) == 2


def test_those_who_were_promised_a_moment_do_not_start_together_when_nobody_was_there(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 60, MINUTE, 1)], by="code")
    ids = added(store, *(limited() for _ in range(10)))
    assert lease(worker) == ids[:1]
    clock.move(minutes=1)
    store.jobs.promote(100)
    assert lease(worker) == ids[1:2]
    store.jobs.promote(100)
    assert lease(worker) == []
    clock.move(seconds=1)
    store.jobs.promote(100)
    assert lease(worker) == ids[2:3]


def test_who_comes_later_waits_behind_those_who_were_promised(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 60, MINUTE, 1)], by="code")
    ids = added(store, *(limited() for _ in range(3)))
    lease(worker)
    clock.move(milliseconds=1500)
    [late] = added(store, limited())
    store.jobs.promote(100)
    assert lease(worker) == ids[1:2]
    order: list[JobId] = []
    for _ in range(4):
        clock.move(seconds=1)
        store.jobs.promote(100)
        order += lease(worker)
    assert order == [ids[2], late]


def test_who_waits_for_a_rate_has_waited_since_it_was_due_and_a_retry_since_its_own_time(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.rules.declare([Rule("queue", "default", None, 1, MINUTE)], by="code")
    delayed = make_job(place=Place(), time_limit=None, delay=MINUTE)
    ids = added(store, *(limited() for _ in range(3)), delayed)
    due = {id: see(store, id).due_at for id in ids}

    leases: dict[JobId, Lease] = {}
    for _ in range(5 * 6):
        store.jobs.promote(100)
        supervisor.release_waiting()
        for it in worker.lease(10, GUARDED):
            leases[it.id] = it
            assert see(store, it.id).due_at == due[it.id]
        clock.move(seconds=10)
        worker.beat()

    assert list(leases) == ids
    waited = [leases[id].waited for id in ids]
    assert [round(it / 10) * 10 for it in waited] == pytest.approx([0, 60, 120, 120], abs=20)

    worker.settle(leases[ids[1]], Later(timedelta(seconds=5), counts=True, history=b"[]"))
    clock.move(seconds=30)
    store.jobs.promote(100)
    supervisor.release_waiting()
    [again] = worker.lease(10, GUARDED)
    assert 20 <= again.waited < 60


@pytest.mark.parametrize("ends", ["is tried again", "is taken back", "sleeps, a run of a workflow"])
def test_a_job_that_comes_back_has_waited_since_then_whatever_an_older_release_left_in_its_row(
    store: Store, worker: Worker, other_worker: Worker, supervisor: Supervisor, clock: ManualClock, ends: str
) -> None:
    [id] = added(store, limited())
    [held] = worker.lease(10, GUARDED)
    query(
        store, "UPDATE {job} SET was_due = due_at"
    )  # a release that does not know it leases without a look at it
    if ends == "is tried again":
        worker.settle(held, Later(timedelta(seconds=5), counts=True, history=b"[]"))
    if ends.startswith("sleeps"):
        sleep = Asleep(MINUTE, None, 0, "a minute")
        [said] = store.workflows.advance([Advance(lease=held, begin=("order", "1"), sleep=sleep)])
        assert said.asleep
    clock.move(hours=1)
    other_worker.beat()
    supervisor.sweep()
    store.jobs.promote(100)
    clock.move(seconds=10)
    other_worker.beat()
    due = see(store, id).due_at

    [again] = other_worker.lease(10, GUARDED)

    assert see(store, id).due_at == due
    assert query(store, "SELECT was_due FROM {job}") == [(None,)]
    assert again.waited == pytest.approx((clock.now() - due).total_seconds(), abs=1)


def test_a_queue_tells_how_many_of_its_blocked_jobs_wait_for_its_rate(store: Store, worker: Worker) -> None:
    store.rules.declare(
        [Rule("queue", "default", None, 1, MINUTE), Rule("task", "noop", None, 1, MINUTE)], by="code"
    )
    added(store, *(limited(task="any") for _ in range(5)), *(limited(queue="other") for _ in range(5)))
    lease(worker)
    lease(worker, line=OTHER)

    views = {view.name: view for view in store.queues.list()}

    assert views["default"].rationed == views["default"].blocked >= 3
    assert (views["other"].rationed, views["other"].parked) == (0, 0)
    assert views["other"].blocked >= 3


def test_a_rated_job_does_not_block_those_behind_it(store: Store, worker: Worker) -> None:
    store.rules.declare([Rule("task", "slow", None, 1, MINUTE, 1)], by="code")
    ids = added(store, *(limited(task="slow") for _ in range(300)), limited())
    assert lease(worker, 2) == [ids[0], ids[-1]]


def test_the_wait_for_a_token_is_the_turn_of_a_sessions_head(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "slow", None, 1, MINUTE, 1)], by="code")
    added(store, limited(task="slow"))
    lease(worker)
    head = make_job(task="slow", place=Place("s"), time_limit=None)
    first, second = added(store, head, make_job(place=Place("s"), time_limit=None))
    assert lease(worker) == []
    assert lease(worker) == []
    clock.move(minutes=1)
    store.jobs.promote(10)
    [running] = worker.lease(10, GUARDED)
    assert running.id == first
    worker.settle(running, DONE)
    assert lease(worker) == [second]


def test_no_more_are_promised_a_moment_than_soon_have_one_and_the_others_wait_in_line(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 1, timedelta(seconds=1), 1)], by="code")
    ids = added(store, *(limited() for _ in range(600)))
    assert lease(worker) == ids[:1]
    states = Counter(see(store, id).state for id in ids)
    assert states[State.SCHEDULED] <= 4
    assert states[State.BLOCKED] > 90
    store.jobs.cancel(ids, by="ana")
    [only] = added(store, limited())
    started: list[JobId] = []
    for _ in range(6):
        clock.move(seconds=1)
        store.jobs.promote(100)
        supervisor.release_waiting()
        started += lease(worker)
    assert started == [only]


def test_those_in_line_for_a_rate_run_at_its_pace_and_at_once_when_it_is_withdrawn(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 2, timedelta(minutes=1), 1)], by="code")
    ids = added(store, *(limited() for _ in range(60)))
    started = lease(worker)
    for _ in range(19):
        clock.move(seconds=30)
        store.jobs.promote(100)
        supervisor.release_waiting()
        started += lease(worker)
    assert started == ids[:20]
    store.rules.declare([Rule("task", "noop")], by="code")
    for _ in range(2):
        clock.move(seconds=30)
        store.jobs.promote(100)
        supervisor.release_waiting()
        started += lease(worker)
    assert sorted(started) == sorted(ids)


def test_who_was_promised_a_moment_starts_then_whoever_else_is_ready(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 1, MINUTE, 1)], by="code")
    _, promised = added(store, limited(), limited())
    lease(worker)
    added(store, *(limited(priority=9) for _ in range(300)))
    clock.move(minutes=1)
    store.jobs.promote(100)
    assert lease(worker) == [promised]


def test_another_tenant_passes_those_in_line_for_a_rate(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    store.rules.declare([Rule("task", "noop", None, 1, timedelta(seconds=1), 1)], by="code")
    added(store, *(make_job(place=Place(tenant="a"), time_limit=None) for _ in range(200)))
    lease(worker)
    [other] = added(store, make_job(place=Place(tenant="b"), time_limit=None))
    started: list[JobId] = []
    for _ in range(8):
        started += lease(worker)
        clock.move(seconds=1)
        store.jobs.promote(100)
        supervisor.release_waiting()
    assert other in started
