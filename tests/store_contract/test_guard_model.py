"""Sessions, limits and tenants under any life, beside a second opinion that knows only the rules: what is leased was
allowed to run, in its order; and what may run is leased by whoever has room for it."""

import os
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lateshift.clock import ManualClock
from lateshift.model.guard import Rule
from lateshift.model.job import Holds, Lane, Lease, Line, Place, State
from lateshift.model.outcome import DeadLettered, Later
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, DONE, Supervisor, Worker, empty, make_job

EXAMPLES = int(os.environ.get("LATESHIFT_EXAMPLES", "40"))
LINES = [Line("x", Lane.GUARDED), Line("y", Lane.GUARDED), Line("x", Lane.GUARDED_THREAD)]
LIMITS = {"queue:x": 4, "task:slow": 2, "key:vendor:1": 1, "key:vendor:2": 1}
RULES = [Rule("queue", "x", 4), Rule("task", "slow", 2), Rule("key", "vendor", 1)]


@dataclass
class Guarded:
    """A job, as the rules see it. `number` is its place among all that were ever enqueued."""

    id: UUID
    number: int
    line: Line
    task: str
    session: str | None
    limit_key: str | None
    holds: bool
    state: str = "waiting"  # waiting, delayed, running, retrying, returning, or how it ended
    due: float = 0
    begun: bool = False  # leased and not ended since
    again: bool = False  # resubmitted after it had been leased

    @property
    def rank(self) -> tuple[int, int]:
        """Who has begun goes on before anybody else; who comes back from its end, next."""
        return (0 if self.begun else 1 if self.again else 2), self.number

    @property
    def keys(self) -> list[str]:
        named = [f"queue:{self.line.queue}", f"task:{self.task}", f"key:{self.limit_key}"]
        return [key for key in named if key in LIMITS]


class GuardMachine(RuleBasedStateMachine):
    def __init__(self, store: Store, clock: ManualClock) -> None:
        super().__init__()
        self.store = store
        self.clock = clock
        self.now = 0.0
        self.jobs: dict[UUID, Guarded] = {}
        self.leases: dict[UUID, tuple[Worker, Lease]] = {}
        self.held: dict[tuple[str, str], UUID] = {}
        empty(store)
        store.rules.declare(RULES, by="the test")
        self.supervisor = Supervisor(store)
        self.workers = [Worker(store, DAY), Worker(store, DAY)]

    # What the rules say

    def session_of(self, job: Guarded) -> tuple[str, str]:
        return job.line.queue, job.session or ""

    def may_run(self, job: Guarded) -> bool:
        others = [other for other in self.jobs.values() if other is not job]
        if job.session is not None:
            mine = [
                other for other in others if other.session and self.session_of(other) == self.session_of(job)
            ]
            if self.session_of(job) in self.held or any(
                other.state in ("running", "retrying") for other in mine
            ):
                return False
            if any(other.state in ("waiting", "returning") and other.rank < job.rank for other in mine):
                return False
        return all(
            sum(key in other.keys for other in others if other.state == "running") < LIMITS[key]
            for key in job.keys
        )

    # What happens

    @rule(
        line=st.sampled_from(LINES),
        task=st.sampled_from(["quick", "slow"]),
        session=st.sampled_from([None, "a", "b"]),
        limit_key=st.sampled_from([None, "vendor:1", "vendor:2"]),
        tenant=st.sampled_from(["", "t"]),
        holds=st.booleans(),
        delay=st.sampled_from([0, 0, 0, 5]),
        count=st.integers(1, 4),
    )
    def enqueue(
        self, line: Line, task: str, session: str | None, limit_key: str | None, tenant: str, holds: bool, delay: int,
        count: int,
    ) -> None:  # fmt: skip
        place = Place(
            session, holds=Holds.ON_DEAD if holds else Holds.NOTHING, tenant=tenant, limit_key=limit_key
        )
        made = [
            make_job(
                task=task, queue=line.queue, lane=line.lane, place=place, time_limit=None, attempts=100,
                delay=timedelta(seconds=delay) if delay else None,
            )
            for _ in range(count)
        ]  # fmt: skip
        for job, answer in zip(made, self.store.jobs.enqueue(made), strict=True):
            new = Guarded(
                job.id, len(self.jobs), line, task, session, limit_key, holds and session is not None
            )
            if delay:
                new.state, new.due = "delayed", self.now + delay
            self.jobs[answer.id] = new

    @rule(line=st.sampled_from(LINES), count=st.integers(1, 6), who=st.integers(0, 1))
    def lease(self, line: Line, count: int, who: int) -> None:
        worker = self.workers[who]
        leases = worker.lease(count, line)
        assert len(leases) <= count
        for lease in leases:
            job = self.jobs[lease.id]
            assert (job.line, job.state) == (line, "waiting")
            assert self.may_run(job), f"{job} was not to run now"
            assert lease.session == job.session
            job.state, job.begun, job.again = "running", True, True
            self.leases[lease.id] = (worker, lease)
        if len(leases) < count:
            left = [
                job
                for job in self.jobs.values()
                if job.line == line and job.state == "waiting" and self.may_run(job)
            ]
            assert left == [], "they may run, and nobody can have them"

    @precondition(lambda self: self.leases)
    @rule(which=st.integers(0, 100), how=st.sampled_from(["done", "done", "dead", "retry", "back"]))
    def settle(self, which: int, how: str) -> None:
        id = sorted(self.leases)[which % len(self.leases)]
        worker, lease = self.leases.pop(id)
        job = self.jobs[id]
        match how:
            case "done":
                assert worker.settle(lease, DONE)
                job.state = "done"
            case "dead":
                assert worker.settle(lease, DeadLettered("no", b"[]", DAY))
                job.state = "dead"
                if job.holds:
                    self.held[self.session_of(job)] = id
            case "retry":
                assert worker.settle(lease, Later(timedelta(seconds=3), counts=True))
                job.state, job.due = "retrying", self.now + 3
            case "back":
                assert worker.settle(lease, Later(timedelta(0), counts=False))
                job.state = "waiting"

    @precondition(lambda self: self.leases)
    @rule(who=st.integers(0, 1))
    def a_worker_dies(self, who: int) -> None:
        worker = self.workers[who]
        worker.die()
        lost = [id for id, (holder, _) in self.leases.items() if holder is worker]
        taken = self.supervisor.sweep()
        assert {job.id for job in taken} == set(lost)
        for job in taken:
            lease = self.leases.pop(job.id)[1]
            assert not worker.settle(lease)
            if job.dead or job.line is None or job.line.lane is Lane.SOLO:  # suspects are another test's
                self.store.jobs.cancel([job.id], by="the test")
                mine = self.jobs[job.id]
                if job.dead and mine.holds:
                    self.held[self.session_of(mine)] = job.id
                mine.state = "gone"
            else:
                self.jobs[job.id].state = "waiting"
        self.workers[who] = Worker(self.store, DAY)

    @precondition(lambda self: self.jobs)
    @rule(which=st.integers(0, 1000))
    def cancel(self, which: int) -> None:
        job = list(self.jobs.values())[which % len(self.jobs)]
        if job.state in ("waiting", "delayed", "retrying", "returning"):
            assert self.store.jobs.cancel([job.id], by="ana") == [job.id]
            job.state = "cancelled"

    @precondition(lambda self: any(job.state in ("dead", "cancelled") for job in self.jobs.values()))
    @rule(which=st.integers(0, 1000), delay=st.sampled_from([0, 0, 5]))
    def resubmit(self, which: int, delay: int) -> None:
        ended = [job for job in self.jobs.values() if job.state in ("dead", "cancelled")]
        job = ended[which % len(ended)]
        delays = {job.id: timedelta(seconds=delay)} if delay else None
        assert self.store.jobs.resubmit([job.id], by="ana", delays=delays) == [job.id]
        later = "returning" if job.again else "delayed"  # one that never ran is not in the line yet
        job.state, job.begun, job.due = later if delay else "waiting", False, self.now + delay
        for session, id in list(self.held.items()):
            if id == job.id:
                del self.held[session]

    @rule(seconds=st.integers(1, 4))
    def time_passes(self, seconds: int) -> None:
        self.clock.move(seconds=seconds)
        self.now += seconds
        self.store.jobs.promote(1000)
        for job in self.jobs.values():
            if job.state in ("delayed", "retrying", "returning") and job.due <= self.now:
                job.state = "waiting"

    @rule()
    def the_net_changes_nothing_that_matters(self) -> None:
        self.supervisor.release_waiting()
        self.supervisor.unblock()

    @invariant()
    def the_store_runs_what_the_rules_say(self) -> None:
        views = self.store.reports.running(1000)
        mine = {id for id, job in self.jobs.items() if job.state == "running"}
        assert {view.id for view in views if view.id in self.jobs} == mine
        assert all(view.state is State.RUNNING for view in views)


def test_any_life_with_sessions_limits_and_tenants_keeps_the_rules(
    quick_store: Store, clock: ManualClock
) -> None:
    class Life(GuardMachine):
        def __init__(self) -> None:
            super().__init__(quick_store, clock)

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=[*HealthCheck]
        ),
    )
