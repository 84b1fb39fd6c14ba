"""Long random lives: a store and the model of it, driven side by side and compared after every step.

LATESHIFT_EXAMPLES=1000 runs that many lives of each store instead of the usual few."""

import os
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lateshift.clock import ManualClock
from lateshift.errors import KeyConflict
from lateshift.model.ids import new_job_id, new_member_id
from lateshift.model.job import AttemptRecord, JobFilter, Key, Lane, Lease, Line, NewJob, Note, Spec, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome, Settlement
from lateshift.store.contract import Store, Want
from lateshift.store.open import open_store
from lateshift.store.sqlite import SqliteStore
from tests.store_contract.driving import Supervisor, Worker, empty
from tests.store_contract.model import End, Model, ModelJob, ModelMember

EXAMPLES = int(os.environ.get("LATESHIFT_EXAMPLES", "40"))
STEPS = 40
TTL = 5

LANES = st.sampled_from([Lane.COROUTINE, Lane.THREAD])
LINES = st.builds(Line, st.sampled_from("xy"), st.sampled_from([*Lane]))
EXCLUSIVE = st.sampled_from([None, None, "a", "b"])
NUMBER = st.integers(0, 1000)
ENDS = st.sampled_from(
    [
        End(State.COMPLETED, result=b"1", keep=10),
        End(State.COMPLETED, keep=0),
        End(State.DEAD, "exhausted", keep=60, history=True),
        End(State.CANCELLED, "enough", keep=10),
        End(None, delay=0, history=True),
        End(None, delay=2, history=True),
        End(None, delay=0, counts=False),
        End(None, delay=7, counts=False),
    ]
)


def minutes(number: int) -> timedelta:
    return timedelta(minutes=number)


class StoreMachine(RuleBasedStateMachine):
    """One life of a store."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        super().__init__()
        self.store = store
        self.clock = clock
        self.model = Model()
        self.leases: list[Lease] = []
        self.workers: list[Worker] = []
        self.ids: list[Any] = []

    @initialize()
    def begin(self) -> None:
        empty(self.store)
        self.supervisor = Supervisor(self.store)
        for _ in range(2):
            self.join()

    def step(self) -> None:
        self.model.step += 1

    def some_id(self, number: int) -> Any:
        return self.ids[number % len(self.ids)] if self.ids else new_job_id()

    # Callers

    def job(
        self, queue: str, lane: Lane, priority: int, attempts: int, limit: int | None, exclusive: str | None
    ) -> tuple[NewJob, ModelJob]:
        lane = Lane.GUARDED if exclusive else lane
        spec = Spec(
            task="noop", queue=queue, lane=lane, priority=priority, attempts=attempts, exclusive=exclusive,
            time_limit=None if limit is None else minutes(limit),
        )  # fmt: skip
        new = NewJob(new_job_id(), spec, b"[]")
        self.ids.append(new.id)
        known = ModelJob(new.id, queue, lane, priority, attempts, limit, exclusive, State.READY, due=(0, 0))
        return new, known

    @rule(
        queue=st.sampled_from("xy"),
        lane=LANES,
        priority=st.sampled_from([-5, 0, 5]),
        attempts=st.sampled_from([1, 2, 9]),
        limit=st.sampled_from([None, 3, 10]),
        exclusive=EXCLUSIVE,
        delay=st.sampled_from([0, 0, 0, 2, 7]),
        count=st.integers(1, 3),
    )
    def enqueue(
        self,
        queue: str,
        lane: Lane,
        priority: int,
        attempts: int,
        limit: int | None,
        exclusive: str | None,
        delay: int,
        count: int,
    ) -> None:
        self.step()
        both = [self.job(queue, lane, priority, attempts, limit, exclusive) for _ in range(count)]
        jobs = [
            NewJob(new.id, msgspec.structs.replace(new.spec, delay=minutes(delay)), new.payload)
            for new, _ in both
        ]
        answers = self.store.jobs.enqueue(jobs)
        assert [(answer.id, answer.created) for answer in answers] == [(job.id, True) for job in jobs]
        for _, known in both:
            self.model.enqueue(known, delay)

    @rule(number=NUMBER)
    def enqueue_again(self, number: int) -> None:
        """An id that was there before, in whatever state; a purged one would be new."""
        self.step()
        id = self.some_id(number)
        known = self.model.jobs.get(id)
        if known is not None:
            spec = Spec(task="noop", queue=known.queue, lane=known.lane, attempts=5)
            self.store.jobs.enqueue([NewJob(id, spec, b"[]")])

    @rule(text=st.sampled_from("kl"), body=st.sampled_from([b"1", b"2"]), window=st.sampled_from([4, 60]))
    def enqueue_keyed(self, text: str, body: bytes, window: int) -> None:
        self.step()
        new, known = self.job("x", Lane.COROUTINE, 0, 2, 10, None)
        job = NewJob(new.id, new.spec, body, Key(text, body, minutes(window)))
        expected = self.model.enqueue_keyed(known, text, body, window)
        if expected is None:
            with pytest.raises(KeyConflict):
                self.store.jobs.enqueue([job])
        else:
            [answer] = self.store.jobs.enqueue([job])
            assert (answer.id, answer.created) == expected

    @rule(number=NUMBER)
    def cancel(self, number: int) -> None:
        self.step()
        id = self.some_id(number)
        assert (self.store.jobs.cancel([id], by="ana") == [id]) == self.model.cancel(id, "ana")

    @rule(number=NUMBER, delay=st.sampled_from([0, 0, 2]))
    def resubmit(self, number: int, delay: int) -> None:
        self.step()
        settled = [job.id for job in self.model.jobs.values() if job.state in (State.DEAD, State.CANCELLED)]
        id = settled[number % len(settled)] if settled else self.some_id(number)
        done = self.store.jobs.resubmit([id], by="ana", delays={id: minutes(delay)})
        assert (done == [id]) == self.model.resubmit(id, delay)

    @rule(queue=st.sampled_from("xy"))
    def pause_or_resume(self, queue: str) -> None:
        self.step()
        if queue in self.model.paused:
            assert self.store.queues.resume(queue, by="me")
            self.model.paused.remove(queue)
        else:
            self.store.queues.pause(queue, by="ana")
            self.model.paused.add(queue)

    # Workers

    @precondition(lambda self: len(self.workers) < 8)
    @rule()
    def join(self) -> None:
        self.step()
        worker = Worker(self.store, minutes(TTL))
        self.workers.append(worker)
        self.model.members[worker.id] = ModelMember(self.model.now + TTL)

    @rule(number=NUMBER)
    def beat(self, number: int) -> None:
        self.step()
        worker = self.workers[number % len(self.workers)]
        assert worker.beat(minutes(TTL)) == self.model.beat(worker.id, TTL)

    @rule()
    def beat_all(self) -> None:
        self.step()
        ids = [worker.id for worker in self.workers]
        alive = [id for id in ids if self.model.beat(id, TTL)]
        assert self.store.members.beat(ids, minutes(TTL)) == alive

    @rule(number=NUMBER)
    def bury(self, number: int) -> None:
        self.step()
        worker = self.workers[number % len(self.workers)]
        self.store.members.bury([worker.id])
        self.model.bury(worker.id)

    @rule(number=NUMBER, line=LINES, count=st.integers(0, 3), by_age=st.booleans())
    def lease(self, number: int, line: Line, count: int, by_age: bool) -> None:
        self.step()
        self.exchange(self.workers[-1 - number % len(self.workers)], [], line, count, by_age)

    @precondition(lambda self: self.model.lines())
    @rule(number=NUMBER, count=st.integers(1, 3), by_age=st.booleans())
    def lease_from_a_line_with_jobs(self, number: int, count: int, by_age: bool) -> None:
        self.step()
        lines = sorted(self.model.lines(), key=lambda line: (line.queue, line.lane))
        self.exchange(self.workers[-1], [], lines[number % len(lines)], count, by_age)

    @precondition(lambda self: self.leases)
    @rule(number=st.integers(0, 3), end=ENDS, line=LINES, count=st.integers(0, 2))
    def settle(self, number: int, end: End, line: Line, count: int) -> None:
        """One of the latest leases, which probably holds."""
        self.step()
        lease = self.leases[-1 - number % len(self.leases)]
        self.exchange(self.workers[-1], [(lease, end)], line, count, by_age=False)

    @precondition(lambda self: self.leases)
    @rule(number=NUMBER, end=ENDS)
    def settle_any(self, number: int, end: End) -> None:
        """Any lease there ever was: most of them are lost."""
        self.step()
        lease = self.leases[number % len(self.leases)]
        self.exchange(self.workers[0], [(lease, end)], Line("x", Lane.COROUTINE), 0, by_age=False)

    @precondition(lambda self: self.leases)
    @rule(numbers=st.lists(NUMBER, min_size=1, max_size=4, unique=True))
    def complete_some(self, numbers: list[int]) -> None:
        self.step()
        end = End(State.COMPLETED, result=b"2", keep=10)
        chosen = {number % len(self.leases) for number in numbers}
        said = [(self.leases[number], end) for number in sorted(chosen)]
        self.exchange(self.workers[0], said, Line("x", Lane.COROUTINE), 0, by_age=False)

    @precondition(lambda self: self.leases)
    @rule(number=NUMBER, mark=st.binary(min_size=1, max_size=2))
    def checkpoint(self, number: int, mark: bytes) -> None:
        self.step()
        lease = self.leases[-1 - number % len(self.leases)]
        lost = self.store.jobs.save([Note(lease, None, mark)])
        holds = self.model.holds(lease.id, lease.fence) and self.model.in_time(lease.id)
        assert lost == ([] if holds else [lease])
        if holds:
            self.model.jobs[lease.id].checkpoint = mark

    def exchange(
        self, worker: Worker, said: list[tuple[Lease, End]], line: Line, count: int, by_age: bool
    ) -> None:
        settlements = [Settlement(lease, self.outcome(lease, end)) for lease, end in said]
        kept = [self.model.settle(lease.id, lease.fence, lease.exclusive, end) for lease, end in said]
        heads = [job.due for job in self.model.heads(line)]
        by_age = by_age and len(set(heads)) == len(heads)  # of heads that came due together any may go first
        answer = self.store.jobs.exchange(worker.id, settlements, [Want(line, count, by_age)])
        given = self.model.lease(worker.id, line, count, by_age)
        assert [lease.id for lease in answer.lost] == [
            lease.id for (lease, _), counted in zip(said, kept, strict=True) if not counted
        ]
        assert [
            (lease.id, lease.fence, lease.attempt, lease.attempts, lease.queue, lease.lane, lease.checkpoint)
            for lease in answer.leases
        ] == [
            (job.id, job.fence, job.attempt, job.attempts, job.queue, job.lane, job.checkpoint)
            for job in given
        ]
        self.leases += answer.leases

    def outcome(self, lease: Lease, end: End) -> Outcome:
        known = self.model.jobs.get(lease.id)
        reasons = known.remember("failed") if known else ["failed"]
        at = self.clock.now()
        story = msgspec.json.encode(
            [AttemptRecord(attempt=0, fence=0, at=at, reason=reason) for reason in reasons]
        )
        match end.state:
            case State.COMPLETED:
                return Completed(end.result, minutes(end.keep))
            case State.DEAD:
                return DeadLettered(end.reason or "", story, minutes(end.keep))
            case State.CANCELLED:
                return Cancelled(end.reason or "", minutes(end.keep))
            case _:
                return Later(minutes(end.delay), end.counts, story if end.history else None)

    # Time, the supervisor, retention

    @rule(number=st.sampled_from([1, 2, 3, 4, 6, 10, 61, 8 * 24 * 60, 91 * 24 * 60]))
    def time_passes(self, number: int) -> None:
        self.clock.move(minutes=number)
        self.model.now += number

    @rule()
    def promote(self) -> None:
        self.step()
        assert set(self.store.jobs.promote(1000).lines) == self.model.promote()

    @rule()
    def take_back(self) -> None:
        self.step()
        taken = {(job.id, job.reason, job.dead) for job in self.supervisor.sweep()}
        assert taken == self.model.take_back()

    @rule(term=st.sampled_from([-1, 1, 7]))
    def an_old_or_future_term_changes_nothing(self, term: int) -> None:
        self.step()
        number = self.supervisor.term + term
        assert self.store.jobs.take_back(term=number, limit=1000) == []
        assert self.store.jobs.unblock(term=number, limit=1000) == 0
        assert self.store.upkeep.purge(term=number, limit=1000) == 0

    @rule()
    def unblock(self) -> None:
        self.step()
        assert self.supervisor.unblock() == self.model.unblock()

    @rule()
    def purge(self) -> None:
        self.step()
        assert self.supervisor.purge() == self.model.purge()

    # After every step

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        views = self.store.reports.jobs(JobFilter(), 10_000)
        seen = {
            view.id: (
                view.state, view.queue, view.priority, view.attempt, view.attempts, view.fence, view.losses,
                view.holder, view.cancel_requested, view.complete_by is not None, view.reason, view.result,
                view.checkpoint, view.exclusive, [record.reason for record in view.history],
            )
            for view in views
        }  # fmt: skip
        known = {
            job.id: (
                job.state, job.queue, job.priority, job.attempt, job.attempts, job.fence, job.losses,
                job.holder, job.cancel_by is not None, job.complete_by is not None, job.reason, job.result,
                job.checkpoint, job.exclusive, job.history,
            )
            for job in self.model.jobs.values()
        }  # fmt: skip
        assert seen == known
        assert len(views) == len(seen)

    @invariant()
    def the_lines_are_as_the_model_says(self) -> None:
        lines = self.store.jobs.lines()
        assert len(lines) == len(set(lines))
        assert set(lines) == self.model.lines()

    @invariant()
    def each_member_holds_what_the_model_says(self) -> None:
        for worker in self.workers[-2:]:
            held = {(lease.id, lease.fence) for lease in self.store.jobs.held(worker.id)}
            running = [job for job in self.model.jobs.values() if job.state is State.RUNNING]
            assert held == {(job.id, job.fence) for job in running if job.holder == worker.id}

    def teardown(self) -> None:
        if self.workers:
            assert self.store.upkeep.check() == []


def test_any_life_of_a_store_is_as_the_model_says(quick_store: Store, clock: ManualClock) -> None:
    class Life(StoreMachine):
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


def test_the_model_is_not_blind(sqlite_url: str, clock: ManualClock) -> None:
    """A store that forgets to count an attempt is found out."""
    store = open_store(sqlite_url, clock)
    store.ready()
    machine = StoreMachine(store, clock)
    machine.begin()
    machine.enqueue("x", Lane.COROUTINE, 0, 2, 10, None, 0, 1)
    machine.lease(0, Line("x", Lane.COROUTINE), 1, by_age=False)
    machine.the_store_is_as_the_model()
    assert isinstance(store, SqliteStore)
    with store._database.write() as file:
        file.execute("UPDATE job SET attempt = attempt - 1")

    with pytest.raises(AssertionError):
        machine.the_store_is_as_the_model()
    assert store.jobs.held(new_member_id()) == []
    store.close()
