"""Long random lives of a few identities, beside a second opinion of who stands for whom.

LATESHIFT_EXAMPLES=1000 runs that many lives of each store instead of the usual few."""

import os
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.job import JobFilter, Lease, NewJob, Scope, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome
from lateshift.store.contract import Store
from tests.store_contract.driving import Supervisor, Worker, empty, make_job, make_key, only
from tests.store_contract.test_model import minutes

EXAMPLES = int(os.environ.get("LATESHIFT_EXAMPLES", "40"))
STEPS = 40
MONTHS = timedelta(days=400)

NAMES = st.sampled_from(["a", "b", "c", None])
SCOPES = st.sampled_from([*Scope])
WINDOWS = st.sampled_from([1, 5, 90, 5000])
CALLS = st.tuples(NAMES, SCOPES, WINDOWS, st.sampled_from([0, 0, 3]), st.sampled_from([None, None, "k", "l"]))
ENDS: list[Outcome] = [
    Completed(None, minutes(10)),
    DeadLettered("permanent", b"[]", minutes(6000)),
    Cancelled("enough", minutes(10)),
    Later(minutes(0), counts=True, history=b"[]"),
    Later(minutes(3), counts=True, history=b"[]"),
]


@dataclass
class Standing:
    """Who an identity names, and by which rule."""

    job: UUID
    scope: Scope
    until: int


class Lives(RuleBasedStateMachine):
    def __init__(self, store: Store, clock: ManualClock) -> None:
        super().__init__()
        self.store = store
        self.clock = clock
        self.now = 0
        self.standing: dict[bytes, Standing] = {}
        self.keys: dict[str, UUID] = {}
        self.sent: list[NewJob] = []
        self.leases: list[Lease] = []

    @initialize()
    def begin(self) -> None:
        empty(self.store)
        self.clock.offset = timedelta(0)
        self.worker = Worker(self.store, ttl=MONTHS)
        self.supervisor = Supervisor(self.store)

    # The second opinion

    def states(self) -> dict[UUID, State]:
        return {view.id: view.state for view in self.store.reports.jobs(JobFilter(), 10_000)}

    def stands(self, identity: bytes, states: dict[UUID, State]) -> bool:
        named = self.standing.get(identity)
        if named is None:
            return False
        state = states.get(named.job)
        if named.until > self.now and state is not State.CANCELLED:
            return True
        waits = state in (State.SCHEDULED, State.READY, State.BLOCKED)
        runs = state is State.RUNNING
        return (named.scope is Scope.WAITING and waits) or (
            named.scope is Scope.UNSETTLED and (waits or runs)
        )

    def expected(self, jobs: list[NewJob]) -> list[tuple[UUID, bool]]:
        states = self.states()
        answers = []
        for job in jobs:
            owner = job.id
            known = not job.first and job.id in states
            if job.key is not None:
                owner = self.keys.setdefault(job.key.text, job.id)
            if owner == job.id and job.unique is not None and not known:
                identity = job.unique
                if self.stands(identity.digest, states):
                    owner = self.standing[identity.digest].job
                    if job.key is not None:
                        self.keys[job.key.text] = owner
                else:
                    until = self.now + identity.window // minutes(1)
                    self.standing[identity.digest] = Standing(job.id, identity.scope, until)
            if owner == job.id and not known:
                states[job.id] = State.READY
            answers.append((owner, owner == job.id))
        return answers

    def enqueue(self, jobs: list[NewJob]) -> None:
        expected = self.expected(jobs)
        answers = [(answer.id, answer.created) for answer in self.store.jobs.enqueue(jobs)]
        assert answers == expected
        states = self.states()
        assert all(id in states for id, created in answers if created)

    # What callers do

    @rule(calls=st.lists(CALLS, min_size=1, max_size=5))
    def send(self, calls: list[tuple[str | None, Scope, int, int, str | None]]) -> None:
        jobs = []
        for name, scope, window, delay, key in calls:
            identity = (
                None if name is None else only(name, scope, minutes(0 if scope and window > 5 else window))
            )
            job = make_job(
                unique=identity, delay=minutes(delay) if delay else None,
                key=make_key(key, window=MONTHS) if key else None,
            )  # fmt: skip
            jobs.append(replace(job, first=True))
        self.enqueue(jobs)
        self.sent += jobs

    @precondition(lambda self: self.sent)
    @rule(numbers=st.lists(st.integers(0, 1000), min_size=1, max_size=3), name=NAMES)
    def send_again(self, numbers: list[int], name: str | None) -> None:
        """Some that were sent before, and one that was not."""
        young = self.sent[-10:]  # what is past its retention would be a new job
        jobs = [replace(young[number % len(young)], first=False) for number in numbers]
        present = self.states()
        jobs = [job for job in jobs if job.id in present or job.key is None]
        new = replace(make_job(unique=None if name is None else only(name)), first=True)
        self.enqueue([*jobs, new])
        self.sent.append(new)

    @precondition(lambda self: self.sent)
    @rule(number=st.integers(0, 1000))
    def cancel(self, number: int) -> None:
        self.store.jobs.cancel([self.sent[number % len(self.sent)].id], by="me")

    @precondition(lambda self: self.sent)
    @rule(number=st.integers(0, 1000))
    def resubmit(self, number: int) -> None:
        self.store.jobs.resubmit([self.sent[number % len(self.sent)].id], by="me")

    # What workers, the supervisor and time do

    @rule(count=st.integers(1, 4))
    def lease(self, count: int) -> None:
        self.leases += self.worker.lease(count)

    @precondition(lambda self: self.leases)
    @rule(end=st.sampled_from(ENDS))
    def settle(self, end: Outcome) -> None:
        self.worker.settle(self.leases.pop(), end)

    @rule(number=st.sampled_from([1, 4, 6, 61, 100, 6001]))
    def time_passes(self, number: int) -> None:
        self.clock.move(minutes=number)
        self.now += number

    @rule()
    def promote(self) -> None:
        self.store.jobs.promote(1000)

    @rule(limit=st.sampled_from([1, 1000]))
    def purge(self, limit: int) -> None:
        """Whatever it deletes, nobody can tell."""
        self.supervisor.purge(limit)


def test_who_stands_for_whom_is_as_the_second_opinion_says(quick_store: Store, clock: ManualClock) -> None:
    class Life(Lives):
        def __init__(self) -> None:
            super().__init__(quick_store, clock)

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )


def test_the_second_opinion_is_not_blind(quick_store: Store, clock: ManualClock) -> None:
    """A store that forgets an identity is found out."""
    life = Lives(quick_store, clock)
    life.begin()
    life.send([("a", Scope.UNSETTLED, 5, 0, None)])
    life.standing.clear()

    try:
        life.send([("a", Scope.UNSETTLED, 5, 0, None)])
    except AssertionError:
        return
    raise AssertionError("the duplicate was not noticed")
