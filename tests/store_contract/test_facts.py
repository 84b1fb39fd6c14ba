"""Facts: what surrounds one job, read at one instant, on every store."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.explaining import facts as bounds
from lateshift.model.explaining.facts import Facts
from lateshift.model.guard import Rule
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import Holds, Lane, NewJob, Place, State
from lateshift.model.member import Program, Serves
from lateshift.model.outcome import DeadLettered, Later
from lateshift.model.workflow.run import NEVER, Advance, Asleep, Phase
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, DONE, GUARDED, Supervisor, Worker, added, make_job, see

MINUTE = timedelta(minutes=1)


def facts(store: Store, id: JobId) -> Facts:
    found = store.reports.facts(id)
    assert found is not None
    return found


def guarded(session: str | None = None, tenant: str = "", limit_key: str | None = None) -> NewJob:
    return make_job(place=Place(session, tenant=tenant, limit_key=limit_key))


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


def test_what_the_run_of_a_workflow_waits_for_is_a_fact(store: Store) -> None:
    [id] = added(store, make_job())
    assert facts(store, id).run is None
    [lease] = Worker(store).lease()
    sleep = Asleep(NEVER, None, 0, "the signal approve")
    [said] = store.workflows.advance([Advance(lease=lease, begin=("order", "1"), sleep=sleep)])
    assert said.asleep
    assert facts(store, id).run == bounds.Run(waits_for="the signal approve")

    assert store.workflows.direct(id, Phase.HELD, why="to look at it", by="ana")
    held = facts(store, id).run
    assert held is not None
    assert (held.phase, held.why) == (Phase.HELD, "to look at it")


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
    added(store, *[guarded(tenant="8") for _ in range(2)], *[guarded(tenant="7") for _ in range(3)])
    [id] = added(store, guarded(tenant="7"))
    assert facts(store, id).line == bounds.Line(ahead=5, of_tenant=3)


def test_what_guards_a_job_and_who_cancelled_it_are_facts(store: Store, worker: Worker) -> None:
    place = Place("u", 1, holds=Holds.ON_GAP, tenant="7", limit_key="tenant:7")
    running, waiting = added(store, make_job(place=place), guarded(session="u"))
    worker.lease(10, GUARDED)
    store.jobs.cancel([running], by="ana")

    guard = facts(store, running).guard
    assert guard == bounds.Guard(
        lane=Lane.GUARDED, session="u", turn=guard.turn, sequence=1, holds=Holds.ON_GAP, tenant="7", limit_key="tenant:7",
        cancel_by="ana",
    )  # fmt: skip
    guard = facts(store, waiting).guard
    assert (guard.blocked_by, guard.session, guard.tenant, guard.cancel_by) == ("session:u", "u", "", None)


def test_the_jobs_before_it_in_its_session_come_in_order(store: Store, worker: Worker) -> None:
    ids = added(store, *[guarded(session="u") for _ in range(4)], guarded(session="other"))
    head = worker.lease(10, GUARDED)[0].id
    session = facts(store, ids[3]).session

    assert session is not None
    assert (head, [other.id for other in session.before]) == (ids[0], ids[:3])
    first, second, _ = session.before
    assert (first.state, first.holder, first.task) == (State.RUNNING, worker.id, "noop")
    assert first.started_at == see(store, head).started_at
    assert first.complete_by == see(store, head).complete_by
    assert (second.state, second.started_at) == (State.BLOCKED, None)
    assert facts(store, ids[0]).session is None


def test_a_job_that_waits_for_another_try_has_the_turn_of_its_session(store: Store, worker: Worker) -> None:
    head, second = added(store, *[guarded(session="u") for _ in range(2)])
    worker.settle(worker.lease_one(GUARDED), Later(MINUTE, counts=True, history=b"[]"))
    mine, theirs = facts(store, head).session, facts(store, second).session

    assert mine is not None
    assert theirs is not None
    assert mine.before == []
    assert [(other.id, other.state) for other in theirs.before] == [(head, State.SCHEDULED)]


def test_a_dead_letter_that_holds_a_session_is_a_fact(store: Store, worker: Worker) -> None:
    place = Place("u", holds=Holds.ON_DEAD)
    head, second = added(store, make_job(place=place), guarded(session="u"))
    worker.settle(worker.lease_one(GUARDED), DeadLettered("permanent", b"[]", DAY))
    assert facts(store, second).session == bounds.Session(name="u", held_by=head, held_why="dead")


def test_a_number_that_is_missing_is_a_fact_and_so_is_how_long_that_is_borne(
    store: Store, worker: Worker, supervisor: Supervisor, clock: ManualClock
) -> None:
    place = Place("u", 3, gap_after=MINUTE, holds=Holds.ON_GAP)
    [id] = added(store, make_job(place=place))
    assert worker.lease(10, GUARDED) == []
    found = facts(store, id)

    assert found.guard.blocked_by == "sequence:u"
    assert found.session is not None
    assert found.session.gap_until is not None
    assert abs(found.session.gap_until - found.at - MINUTE).total_seconds() < 5
    assert (found.session.expects, found.session.held_why) == (1, None)

    clock.move(minutes=2)
    supervisor.release_waiting()
    assert facts(store, id).session == bounds.Session(name="u", held_why="gap")


def test_who_runs_in_place_of_a_singleton_is_a_fact(store: Store, worker: Worker) -> None:
    first, second = added(store, *[make_job(exclusive="task:noop") for _ in range(2)])
    assert worker.lease(2, GUARDED)[0].id == first
    blocker = facts(store, second).singleton

    assert see(store, second).state is State.BLOCKED
    assert blocker is not None
    assert (blocker.id, blocker.holder) == (first, worker.id)
    assert facts(store, first).singleton is None


def test_the_limits_of_a_guarded_job_are_found_with_what_fills_them(store: Store, worker: Worker) -> None:
    rules = [
        Rule("key", "tenant", 2),
        Rule("queue", "default", 4),
        Rule("task", "noop", 8),
        Rule("task", "other", 1),
    ]
    store.rules.declare(rules, by="ana")
    keys = ["tenant:7", "tenant:7", "tenant:8", "tenant:7"]
    *running, id = added(store, *[guarded(limit_key=key) for key in keys])
    assert {lease.id for lease in worker.lease(10, GUARDED)} == set(running)

    found = facts(store, id)
    assert found.guard.blocked_by == "limit:key:tenant:7"
    limits = {limit.scope: limit for limit in found.limits}
    assert {scope: (limit.key, limit.concurrency) for scope, limit in limits.items()} == {
        "key": ("tenant:7", 2), "queue": ("default", 4), "task": ("noop", 8),
    }  # fmt: skip
    assert {other.id for other in limits["key"].running} == set(running[:2])
    assert {other.id for other in limits["queue"].running} == set(running)
    assert {other.id for other in limits["task"].running} == set(running)
    assert limits["key"].set_by == "ana"
    assert {other.queue for limit in found.limits for other in limit.running} == {"default"}


def test_a_rate_comes_with_the_tokens_of_its_bucket_and_to_whom_they_are_promised(
    store: Store, worker: Worker
) -> None:
    store.rules.declare([Rule("key", "tenant", None, 10, MINUTE, 1)], by="ana")
    first, second = added(store, *[guarded(limit_key="tenant:7") for _ in range(2)])
    [limit] = facts(store, second).limits
    assert (limit.rate, limit.per, limit.burst, limit.tokens, limit.running) == (10, MINUTE, 1, None, [])

    assert [lease.id for lease in worker.lease(10, GUARDED)] == [first]
    found = facts(store, second)
    [limit] = found.limits
    assert (found.guard.blocked_by, limit.tokens) == ("rate:key:tenant:7", 0.0)
    assert limit.promised is not None
    assert abs((limit.promised - found.job.due_at).total_seconds()) < 0.001


def test_limits_are_no_matter_of_a_plain_job(store: Store) -> None:
    store.rules.declare([Rule("queue", "default", 1)], by="ana")
    [id] = added(store, make_job())
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


def test_the_jobs_of_a_session_and_of_a_limit_that_are_looked_at_are_bounded(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{kind}.explaining.OTHERS_LOOKED_AT", 2)
    store.rules.declare([Rule("key", "tenant", 4)], by="ana")
    limited = added(store, *[guarded(limit_key="tenant:7") for _ in range(5)])
    worker.lease(10, GUARDED)
    in_session = added(store, *[guarded(session="u") for _ in range(5)])

    [limit] = facts(store, limited[-1]).limits
    assert len(limit.running) == 2
    session = facts(store, in_session[-1]).session
    assert session is not None
    assert [other.id for other in session.before] == in_session[:2]


def test_the_programs_that_are_looked_at_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{kind}.explaining.PROGRAMS_LOOKED_AT", 2)
    for number in range(3):
        program = Program(app="shop", version=str(number), tasks={})
        serves = Serves(
            app="shop", version=str(number), code=program.digest, queues=(), slots={}, heartbeat=30.0
        )
        assert store.members.introduce(Worker(store).id, serves, program)
    [id] = added(store, make_job())
    assert len(facts(store, id).programs) == 2


def test_looking_leaves_no_transaction_behind(store: Store, worker: Worker) -> None:
    [id] = added(store, make_job())
    facts(store, id)
    assert store.reports.facts(new_job_id()) is None
    lease = worker.lease_one()
    assert facts(store, id).job.state is State.RUNNING
    worker.settle(lease)
    assert facts(store, id).job.state is State.COMPLETED
