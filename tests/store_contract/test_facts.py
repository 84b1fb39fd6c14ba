"""Facts: what surrounds one job, read at one instant, on every store. Sessions and limits are written as rows."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.explaining import facts as bounds
from lateshift.model.explaining.facts import Facts
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import Lane, State
from lateshift.store.contract import Store
from tests.store_contract.driving import DONE, GUARDED, Supervisor, Worker, added, make_job, see
from tests.store_contract.guarding import add_rule, add_session, insert, write

MINUTE = timedelta(minutes=1)


def facts(store: Store, id: JobId) -> Facts:
    found = store.reports.facts(id)
    assert found is not None
    return found


def guarded(store: Store, count: int = 1, task: str = "noop") -> list[JobId]:
    return added(store, *[make_job(task=task, lane=Lane.GUARDED) for _ in range(count)])


def test_there_are_no_facts_of_a_job_that_is_not_there(store: Store) -> None:
    assert store.reports.facts(new_job_id()) is None


def test_a_plain_ready_job_has_nothing_around_it(store: Store, clock: ManualClock) -> None:
    [id] = added(store, make_job())
    found = facts(store, id)

    assert found.job == see(store, id)
    assert abs((found.at - clock.now()).total_seconds()) < 5
    assert found.guard == bounds.Guard(lane=Lane.COROUTINE)
    assert (found.paused, found.session, found.singleton, found.limits) == (None, None, None, [])
    assert (found.line, found.led_until, found.members, found.programs) == (bounds.Line(), None, [], {})


def test_who_paused_the_queue_is_a_fact(store: Store) -> None:
    [id] = added(store, make_job())
    store.queues.pause("default", by="ana")
    paused = facts(store, id).paused
    assert paused is not None
    assert paused.by == "ana"

    store.queues.resume("default", by="ana")
    assert facts(store, id).paused is None


def test_who_stands_before_a_job_is_counted_in_its_own_line_only(store: Store, clock: ManualClock) -> None:
    added(store, make_job(queue="other"), make_job(lane=Lane.THREAD))
    older = added(store, make_job(), make_job())
    clock.move(seconds=1)
    [id] = added(store, make_job(priority=3))
    above = added(store, make_job(priority=5), make_job(priority=9), make_job(priority=9))
    added(store, make_job(priority=3), make_job())

    assert [facts(store, job).line for job in older] == [bounds.Line(ahead=5), bounds.Line(ahead=6)]
    assert facts(store, id).line == bounds.Line(ahead=3)
    assert [facts(store, job).line for job in above[1:]] == [bounds.Line(ahead=0), bounds.Line(ahead=1)]


def test_a_count_of_who_stands_before_it_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{kind}.explaining.AHEAD_LOOKED_AT", 3)
    ids = added(store, *[make_job(priority=number % 2) for number in range(12)])
    line = facts(store, ids[-2]).line
    assert line == bounds.Line(ahead=3)


def test_a_job_that_is_not_ready_stands_in_no_line(store: Store, worker: Worker) -> None:
    [scheduled] = added(store, make_job(delay=MINUTE))
    added(store, make_job())
    running = worker.lease_one().id
    assert facts(store, scheduled).line is None
    assert facts(store, running).line is None


def test_of_a_tenant_its_own_jobs_are_counted_too(store: Store) -> None:
    theirs, mine, id = guarded(store, 2), guarded(store, 3), guarded(store)[0]
    for job in theirs:
        write(store, job, tenant="8")
    for job in (*mine, id):
        write(store, job, tenant="7")
    assert facts(store, id).line == bounds.Line(ahead=5, of_tenant=3)


def test_what_blocks_a_job_and_who_cancelled_it_are_facts(store: Store, worker: Worker) -> None:
    waiting, running = guarded(store, 2)
    write(
        store, waiting, state=3, blocked_by="session:u", session="u", turn=5, sequence=6, tenant="", limit_key="tenant:7"
    )  # fmt: skip
    worker.lease_one(GUARDED)
    store.jobs.cancel([running], by="ana")

    assert facts(store, waiting).guard == bounds.Guard(
        lane=Lane.GUARDED,
        blocked_by="session:u",
        session="u",
        turn=5,
        sequence=6,
        tenant="",
        limit_key="tenant:7",
    )
    assert facts(store, running).guard.cancel_by == "ana"


def test_the_jobs_before_it_in_its_session_come_in_order(store: Store, worker: Worker) -> None:
    ids = guarded(store, 5)
    head = worker.lease_one(GUARDED).id
    rest = [id for id in ids if id != head]
    for turn, id in enumerate([head, rest[2], rest[1], rest[0], rest[3]]):
        write(store, id, session="u", turn=turn, tenant="")
    write(store, rest[3], session="other")
    session = facts(store, rest[0]).session

    assert session is not None
    assert [other.id for other in session.before] == [head, rest[2], rest[1]]
    first = session.before[0]
    assert (first.state, first.holder, first.task) == (State.RUNNING, worker.id, "noop")
    assert first.started_at == see(store, head).started_at
    assert first.complete_by == see(store, head).complete_by
    assert session.before[1].started_at is None


def test_what_holds_a_session_is_a_fact(store: Store, clock: ManualClock) -> None:
    [id] = guarded(store)
    dead, since = new_job_id(), clock.now().replace(microsecond=0)
    write(store, id, session="u", turn=9, tenant="")
    assert facts(store, id).session == bounds.Session(name="u")

    add_session(store, "u", held_by=dead, held_why="exhausted", gap_since=since, next_sequence=4)
    assert facts(store, id).session == bounds.Session(
        name="u", held_by=dead, held_why="exhausted", gap_since=since, next_sequence=4
    )


def test_who_runs_in_place_of_a_singleton_is_a_fact(store: Store, worker: Worker) -> None:
    first, second = added(store, *[make_job(exclusive="task:noop") for _ in range(2)])
    assert worker.lease(2, GUARDED)[0].id == first
    blocker = facts(store, second).singleton

    assert see(store, second).state is State.BLOCKED
    assert blocker is not None
    assert (blocker.id, blocker.holder) == (first, worker.id)
    assert facts(store, first).singleton is None


def test_the_limits_of_a_guarded_job_are_found_with_what_fills_them(store: Store, worker: Worker) -> None:
    running = guarded(store, 3)
    leases = worker.lease(3, GUARDED)
    assert {lease.id for lease in leases} == set(running)
    for number, id in enumerate(running):
        write(store, id, tenant="", limit_key=f"tenant:{7 + number // 2}")
    [id] = guarded(store)
    write(store, id, tenant="", limit_key="tenant:7", state=3, blocked_by="limit:key:tenant:7")
    add_rule(store, "key", "tenant", concurrency=2)
    add_rule(store, "queue", "default", concurrency=3)
    add_rule(store, "task", "noop", concurrency=8)
    add_rule(store, "task", "other", concurrency=1)

    limits = {limit.scope: limit for limit in facts(store, id).limits}
    assert {scope: limit.key for scope, limit in limits.items()} == {
        "key": "tenant:7", "queue": "default", "task": "noop",
    }  # fmt: skip
    assert {other.id for other in limits["key"].running} == set(running[:2])
    assert {other.id for other in limits["queue"].running} == set(running)
    assert {other.id for other in limits["task"].running} == set(running)
    assert (limits["key"].concurrency, limits["key"].set_by) == (2, "ana")


def test_a_rate_comes_with_the_tokens_that_its_bucket_had(store: Store, clock: ManualClock) -> None:
    [id] = guarded(store)
    at = clock.now().replace(microsecond=0)
    write(store, id, tenant="", limit_key="tenant:7")
    add_rule(store, "key", "tenant", rate=10, per=MINUTE, burst=20)
    [limit] = facts(store, id).limits
    assert (limit.rate, limit.per, limit.burst, limit.tokens, limit.running) == (10, MINUTE, 20, None, [])

    insert(store, "bucket", key="key:tenant:7", tokens=0.5, at=at)
    [limit] = facts(store, id).limits
    assert (limit.tokens, limit.tokens_at) == (0.5, at)


def test_limits_are_no_matter_of_a_plain_job(store: Store) -> None:
    [id] = added(store, make_job())
    add_rule(store, "queue", "default", concurrency=0)
    assert facts(store, id).limits == []


def test_the_term_of_the_supervisor_is_a_fact(store: Store, clock: ManualClock) -> None:
    [id] = added(store, make_job())
    supervisor = Supervisor(store)
    until = facts(store, id).led_until
    assert supervisor.term == 1
    assert until is not None
    assert until > clock.now()


def test_of_a_settled_job_it_is_known_how_long_it_is_kept(
    store: Store, worker: Worker, clock: ManualClock
) -> None:
    added(store, make_job())
    lease = worker.lease_one()
    worker.settle(lease, DONE)
    found = facts(store, lease.id)

    assert found.job.state is State.COMPLETED
    assert found.guard.kept_until is not None
    assert abs(found.guard.kept_until - clock.now() - DONE.keep) < MINUTE
    assert (found.members, found.line) == ([], None)


def test_live_members_come_before_the_dead(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{kind}.reports.MEMBERS_LOOKED_AT", 2)
    crew = [Worker(store) for _ in range(5)]
    for dead in (*crew[:2], *crew[3:]):
        dead.die()
    [id] = added(store, make_job())
    members = facts(store, id).members
    assert (members[0].id, members[0].dead) == (crew[2].id, False)
    assert len(members) == 2


def test_looking_leaves_no_transaction_behind(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    facts(store, id)
    assert store.reports.facts(new_job_id()) is None
    lease = worker.lease_one()
    assert facts(store, id).job.state is State.RUNNING
    worker.settle(lease)
    assert facts(store, id).job.state is State.COMPLETED
