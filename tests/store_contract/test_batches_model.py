"""Long random lives of batches, beside a model of them, on a store whose answers get lost and whose transactions are killed:
no job is counted twice or not at all, and each callback is enqueued once, when it is due.

LATESHIFT_EXAMPLES=1000 runs that many lives of each store instead of the usual few."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar
from uuid import UUID

import psycopg
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
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.errors import BatchClosed, StoreUnavailable
from lateshift.model.batch import NewBatch, job_id_at
from lateshift.model.ids import new_job_id
from lateshift.model.job import JobFilter, Lease, Line, NewJob, Place
from lateshift.model.outcome import Cancelled, DeadLettered, Outcome, Settlement
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import PostgresStore, database
from lateshift.store.postgres.database import Database as PostgresDatabase
from lateshift.store.sqlite import SqliteStore
from tests.store_contract.driving import (
    DAY,
    DONE,
    FAILED,
    GUARDED,
    LINE,
    SOLO,
    Supervisor,
    Worker,
    make_job,
    query,
)

T = TypeVar("T")

EXAMPLES = int(os.environ.get("LATESHIFT_EXAMPLES", "20"))
STEPS = 40
NUMBER = st.integers(0, 1000)
FAULTS = st.sampled_from(["none", "none", "none", "killed", "answer lost"])
OUTCOMES: dict[str, Outcome] = {
    "completed": DONE,
    "dead": DeadLettered("exhausted", b"[]", DAY),
    "cancelled": Cancelled("enough", DAY),
    "again": FAILED,
}


class Faults:
    """The next transaction is killed before its commit, or its answer does not arrive."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.next = "none"
        if isinstance(store, SqliteStore):
            self._hurt_sqlite(store, patch)
        else:
            self._hurt_postgres(patch)

    def _hurt_sqlite(self, store: SqliteStore, patch: pytest.MonkeyPatch) -> None:
        write = store._database.write

        @contextmanager
        def hurt() -> Iterator[Any]:
            fault, self.next = self.next, "none"
            with write() as connection:
                yield connection
                if fault == "killed":
                    raise StoreUnavailable("killed")
            if fault == "answer lost":
                raise StoreUnavailable("answer lost")

        patch.setattr(store._database, "write", hurt)

    def _hurt_postgres(self, patch: pytest.MonkeyPatch) -> None:
        run = PostgresDatabase._run

        def hurt(
            own: PostgresDatabase, seconds: float, before: bool, transaction: Any, *args: Any, **kwargs: Any
        ) -> Any:
            def injured(connection: Any, again: bool, *args: Any, **kwargs: Any) -> Any:
                fault, self.next = self.next, "none"
                if fault == "killed":
                    with connection.transaction():  # as far as the last statement, and then it is gone
                        transaction(connection, again, *args, **kwargs)
                        raise psycopg.OperationalError("killed")
                answer = transaction(connection, again, *args, **kwargs)
                if fault == "answer lost":
                    raise psycopg.OperationalError("answer lost")
                return answer

            return run(own, seconds, before, injured, *args, **kwargs)

        patch.setattr(PostgresDatabase, "_run", hurt)
        patch.setattr(database, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: None))

    def meet(self, fault: str, verb: Callable[[], T]) -> T:
        """Do it, and again as it was if it failed, as callers do."""
        self.next = fault
        try:
            return verb()
        except StoreUnavailable:
            return verb()
        finally:
            self.next = "none"


@dataclass
class ModelBatch:
    new: NewBatch
    jobs: list[NewJob]
    total: int
    added: int = 0
    sealed: bool = False
    called_off: bool = False
    ever_failed: bool = False
    then: bool = False
    on_failure: bool = False
    states: dict[UUID, str] = field(default_factory=dict)  # of jobs that are in: open, or how they ended

    def count(self, state: str) -> int:
        return sum(each == state for each in self.states.values())

    @property
    def finished(self) -> bool:
        return self.sealed and self.count("open") == 0

    def settle(self) -> None:
        """After each step: what is due by now."""
        self.ever_failed = self.ever_failed or self.count("dead") > 0
        self.on_failure = self.on_failure or (self.ever_failed and not self.called_off)
        self.then = self.then or (self.finished and self.count("dead") == 0 and not self.called_off)


class BatchMachine(RuleBasedStateMachine):
    """One life of some batches."""

    def __init__(self, store: Store, faults: Faults) -> None:
        super().__init__()
        self.store = store
        self.faults = faults
        self.batches: list[ModelBatch] = []
        self.leases: list[Lease] = []

    @initialize()
    def begin(self) -> None:
        for table in ("{job}", "{settled}", "{batch}", "{audit}", "{lock}", "{member}", "{session}"):
            query(self.store, f"DELETE FROM {table}")
        if isinstance(self.store, PostgresStore):
            query(self.store, "DELETE FROM {batch_count}")
        self.supervisor = Supervisor(self.store)
        self.worker = Worker(self.store)

    def batch(self, number: int) -> ModelBatch:
        return self.batches[number % len(self.batches)]

    def known(self, job: UUID) -> ModelBatch | None:
        return next((batch for batch in self.batches if job in batch.states), None)

    def job(self, number: int) -> UUID:
        ids = [id for batch in self.batches for id in batch.states]
        return ids[number % len(ids)] if ids else new_job_id()

    # Producers

    @precondition(lambda self: len(self.batches) < 4)
    @rule(
        total=st.integers(0, 6),
        attempts=st.sampled_from([1, 3]),
        session=st.sampled_from([None, None, "a", "b"]),
        fault=FAULTS,
    )
    def open(self, total: int, attempts: int, session: str | None, fault: str) -> None:
        id = new_job_id()
        where = None if session is None else Place(session=session)
        spec = replace(make_job(attempts=attempts, place=where).spec, batch=id)
        jobs = [NewJob(job_id_at(id, place), spec, b"[]", None, True, where) for place in range(total)]
        new = NewBatch(
            id=id, total=total, then=make_job(task=f"then {id}", queue="after"),
            on_failure=make_job(task=f"on_failure {id}", queue="after"),
        )  # fmt: skip
        self.faults.meet(fault, lambda: self.store.batches.open(new))
        self.batches.append(ModelBatch(new, jobs, total))

    @precondition(lambda self: self.batches)
    @rule(number=NUMBER, back=st.integers(0, 2), size=st.integers(0, 4), fault=FAULTS)
    def add(self, number: int, back: int, size: int, fault: str) -> None:
        """From a place that is in already, or the next."""
        batch = self.batch(number)
        place = max(0, batch.added - back)
        jobs = batch.jobs[place : place + size]
        refused = batch.called_off or (batch.sealed and place + len(jobs) > batch.total)
        try:
            added = self.faults.meet(fault, lambda: self.store.batches.add(batch.new.id, place, jobs))
        except BatchClosed:
            assert refused
            return
        assert not refused
        batch.states |= {job.id: "open" for job in batch.jobs[batch.added : place + len(jobs)]}
        batch.added = max(batch.added, place + len(jobs))
        assert added == batch.added
        batch.sealed = batch.sealed or batch.added == batch.total

    @precondition(lambda self: self.batches)
    @rule(number=NUMBER, fault=FAULTS)
    def seal(self, number: int, fault: str) -> None:
        batch = self.batch(number)
        self.faults.meet(fault, lambda: self.store.batches.seal(batch.new.id))
        if not batch.sealed:
            batch.sealed, batch.total = True, batch.added

    # Workers

    @rule(count=st.integers(1, 4), line=st.sampled_from([LINE, GUARDED, SOLO]))
    def lease(self, count: int, line: Line) -> None:
        self.leases += self.worker.lease(count, line)

    @precondition(lambda self: self.leases)
    @rule(ends=st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=4), fault=FAULTS)
    def settle(self, ends: list[str], fault: str) -> None:
        """The latest leases, which probably hold; some of them said before."""
        said = list(zip(self.leases[-len(ends) :], ends, strict=False))
        settlements = [Settlement(lease, OUTCOMES[end]) for lease, end in said]
        running = {(lease.id, lease.fence) for lease in self.store.jobs.held(self.worker.id)}
        told = {view.id for view in self.store.reports.running(100) if view.cancel_requested}
        self.faults.meet(fault, lambda: self.store.jobs.exchange(self.worker.id, settlements, []))
        for lease, end in said:
            batch = self.known(lease.id)
            assert batch is not None
            if (lease.id, lease.fence) not in running:
                continue
            if end == "again":
                end = "cancelled" if lease.id in told else "open"
            batch.states[lease.id] = end

    @rule()
    def die(self) -> None:
        """Its jobs are taken back: ready again, or dead letters, or cancelled if that was asked for."""
        self.worker.die()
        views = {view.id: view for view in self.store.reports.running(100)}
        taken = self.faults.meet("none", self.supervisor.sweep)
        for job in taken:
            batch = self.known(job.id)
            if batch is not None:
                stopped = views[job.id].cancel_requested
                batch.states[job.id] = "dead" if job.dead else "cancelled" if stopped else "open"
        self.worker = Worker(self.store)

    # Operators

    @rule(number=NUMBER, fault=FAULTS)
    def cancel_a_job(self, number: int, fault: str) -> None:
        id = self.job(number)
        running = {view.id for view in self.store.reports.running(100)}
        self.faults.meet(fault, lambda: self.store.jobs.cancel([id], by="ana"))
        batch = self.known(id)
        if batch is not None and batch.states[id] == "open" and id not in running:
            batch.states[id] = "cancelled"

    @rule(number=NUMBER, fault=FAULTS)
    def resubmit(self, number: int, fault: str) -> None:
        id = self.job(number)
        self.faults.meet(fault, lambda: self.store.jobs.resubmit([id], by="ana"))
        batch = self.known(id)
        if batch is not None and batch.states[id] in ("dead", "cancelled"):
            batch.states[id] = "open"

    @precondition(lambda self: self.batches)
    @rule(number=NUMBER, fault=FAULTS)
    def cancel_a_batch(self, number: int, fault: str) -> None:
        batch = self.batch(number)
        answer = self.faults.meet(fault, lambda: self.store.batches.cancel(batch.new.id, by="ana"))
        if fault == "none":  # who repeats it cannot always know whether it was he
            assert answer == (not batch.finished)
        if not batch.finished:
            batch.called_off = True
            if not batch.sealed:
                batch.sealed, batch.total = True, batch.added

    @precondition(lambda self: self.batches)
    @rule(number=NUMBER, fault=FAULTS)
    def cancel_its_jobs(self, number: int, fault: str) -> None:
        batch = self.batch(number)
        running = {view.id for view in self.store.reports.running(100)}
        self.faults.meet(fault, lambda: self.store.batches.cancel_jobs(batch.new.id, None, 100, by="ana"))
        for id, state in batch.states.items():
            if state == "open" and id not in running:
                batch.states[id] = "cancelled"

    @rule(number=NUMBER)
    def erase(self, number: int) -> None:
        """A completed job, whose count stays."""
        id = self.job(number)
        batch = self.known(id)
        if batch is not None and batch.states[id] == "completed":
            assert self.store.upkeep.erase([id]) in (0, 1)

    @rule(fault=FAULTS)
    def look_after_all(self, fault: str) -> None:
        self.faults.meet(fault, lambda: self.store.batches.finish(limit=100))

    # After every step

    @invariant()
    def each_batch_is_as_the_model_says(self) -> None:
        self.store.batches.finish(limit=100)
        for batch in self.batches:
            batch.settle()
            view = self.store.batches.view(batch.new.id)
            assert view is not None
            assert (view.total, view.added, view.sealed) == (batch.total, batch.added, batch.sealed)
            assert (view.completed, view.failed, view.cancelled) == tuple(
                batch.count(state) for state in ("completed", "dead", "cancelled")
            )
            assert view.waiting + view.running == batch.total - batch.added + batch.count("open")
            assert (view.finished, view.finished_at is not None) == (batch.finished, batch.finished)
            assert (view.then_enqueued, view.on_failure_enqueued) == (batch.then, batch.on_failure)

    @invariant()
    def each_callback_is_there_once(self) -> None:
        seen = sorted(view.task for view in self.store.reports.jobs(JobFilter(queue="after"), 1000))
        expected = [f"then {batch.new.id}" for batch in self.batches if batch.then]
        expected += [f"on_failure {batch.new.id}" for batch in self.batches if batch.on_failure]
        assert seen == sorted(expected)

    def teardown(self) -> None:
        assert self.store.upkeep.check() == []


@pytest.fixture
def quick_store(store_url: str, clock: ManualClock) -> Iterator[Store]:
    """A store that does not wait for the disk, which is not what is tested here."""
    url = "memory://" if store_url.startswith("sqlite") else f"{store_url}?durability=off"
    store = open_store(url if url == "memory://" else f"{url}&options=-c%20synchronous_commit%3Doff", clock)
    store.ready()
    yield store
    store.close()


def test_any_life_of_a_batch_is_as_the_model_says(
    quick_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(quick_store, monkeypatch)

    class Life(BatchMachine):
        def __init__(self) -> None:
            super().__init__(quick_store, faults)

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=[*HealthCheck],
        ),
    )


def test_the_model_is_not_blind(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that counts a job twice is found out."""
    store = open_store("memory://", clock)
    store.ready()
    machine = BatchMachine(store, Faults(store, monkeypatch))
    machine.begin()
    machine.open(2, 3, None, "none")
    machine.add(0, 0, 2, "answer lost")
    machine.lease(2, LINE)
    machine.settle(["completed"], "answer lost")
    machine.each_batch_is_as_the_model_says()
    query(store, "UPDATE {batch} SET completed = completed + 1")

    with pytest.raises(AssertionError):
        machine.each_batch_is_as_the_model_says()
    store.close()
