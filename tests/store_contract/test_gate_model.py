"""Breakers and bounded queues under any life: while one is open nothing passes but one probe, no attempt is used up in vain, and when
the service is back everything comes to its end."""

import os
from collections import Counter
from datetime import timedelta
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from lateshift.clock import ManualClock
from lateshift.model.breaker import Breaker
from lateshift.model.gate import Gate
from lateshift.model.job import Lane, Lease, Line, Place, State
from lateshift.model.outcome import Later
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, DONE, RELEASED, Supervisor, Worker, empty, make_job, see

EXAMPLES = int(os.environ.get("LATESHIFT_EXAMPLES", "40"))
LINES = [Line("x", Lane.GUARDED), Line("y", Lane.GUARDED), Line("x", Lane.GUARDED_THREAD)]
BREAKER = Breaker(failures=2, open_for=timedelta(seconds=10))
GATES = [
    Gate("charge", "pay"),
    Gate("refund", "pay"),
    Gate("parse", "behind", 3, "x"),
    Gate("parse", "behind", 3, "y"),
]
MANY = 1000  # attempts: what dies of its own failures is not what is looked at
COUNTED, PROBED = (Later(timedelta(0), counts, b"[]") for counts in (True, False))


class GateMachine(RuleBasedStateMachine):
    def __init__(self, store: Store, clock: ManualClock) -> None:
        super().__init__()
        self.store = store
        self.clock = clock
        self.up = False
        self.tasks: dict[UUID, str] = {}
        self.attempts: Counter[UUID] = Counter()
        self.leases: list[tuple[Worker, Lease]] = []
        self.behind: set[UUID] = set()
        empty(store)
        store.breakers.declare({"pay": BREAKER}, GATES, tasks=[gate.task for gate in GATES], by="the test")
        self.supervisor = Supervisor(store)
        self.workers = [Worker(store, DAY), Worker(store, DAY)]

    def open(self) -> bool:
        [view] = self.store.breakers.list()
        return view.opened_at is not None

    def probes(self) -> list[Lease]:
        return [lease for _, lease in self.leases if lease.probe]

    @rule(
        line=st.sampled_from(LINES),
        task=st.sampled_from(["charge", "refund", "parse", "mail"]),
        count=st.integers(1, 5),
    )
    def enqueue(self, line: Line, task: str, count: int) -> None:
        jobs = [
            make_job(
                queue=line.queue, lane=line.lane, task=task, attempts=MANY, place=Place(), time_limit=None
            )
            for _ in range(count)
        ]
        self.store.jobs.enqueue(jobs)
        self.tasks |= {job.id: task for job in jobs}

    @rule(count=st.integers(1, 4))
    def fill(self, count: int) -> None:
        jobs = [make_job(queue="behind", task="store", time_limit=None) for _ in range(count)]
        self.store.jobs.enqueue(jobs)
        self.behind |= {job.id for job in jobs}

    @rule(count=st.integers(1, 4))
    def drain_behind(self, count: int) -> None:
        worker = self.workers[0]
        leases = worker.lease(count, Line("behind", Lane.COROUTINE))
        worker.settle_all(leases)
        self.behind -= {lease.id for lease in leases}

    @rule(line=st.sampled_from(LINES), worker=st.integers(0, 1), count=st.integers(1, 6))
    def lease(self, line: Line, worker: int, count: int) -> None:
        was_open, probing = self.open(), len(self.probes())
        room = 3 - len(self.behind)
        leases = self.workers[worker].lease(count, line)
        paying = [lease for lease in leases if self.tasks[lease.id] in ("charge", "refund")]
        if was_open:
            assert all(lease.probe for lease in paying)
            assert len(paying) + probing <= 1
        else:
            assert not any(lease.probe for lease in leases)
        assert sum(self.tasks[lease.id] == "parse" for lease in leases) <= max(0, room)
        self.leases += [(self.workers[worker], lease) for lease in leases]

    @rule(number=st.integers(0, 20), count=st.integers(1, 4))
    def settle(self, number: int, count: int) -> None:
        for _ in range(min(count, len(self.leases))):
            self.settle_one(number)

    def settle_one(self, number: int) -> None:
        worker, lease = self.leases.pop(number % len(self.leases))
        paying = self.tasks[lease.id] in ("charge", "refund")
        if self.up or not paying:
            assert worker.settle(lease, DONE)
            del self.tasks[lease.id]
        else:
            self.attempts[lease.id] += not lease.probe
            assert worker.settle(lease, PROBED if lease.probe else COUNTED)

    @rule(number=st.integers(0, 20))
    def hand_back(self, number: int) -> None:
        if self.leases:
            worker, lease = self.leases.pop(number % len(self.leases))
            assert worker.settle(lease, RELEASED)

    @rule()
    def a_worker_dies(self) -> None:
        worker = self.workers.pop(0)
        worker.die()
        self.supervisor.sweep()
        lost = [lease for holder, lease in self.leases if holder is worker]
        for lease in lost:
            self.attempts[lease.id] += 1
            if see(self.store, lease.id).state.settled or see(self.store, lease.id).losses > 1:
                del self.tasks[lease.id]  # a suspect goes its own way
        self.leases = [(holder, lease) for holder, lease in self.leases if holder is not worker]
        self.workers.append(Worker(self.store, DAY))

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds: int) -> None:
        self.clock.move(seconds=seconds)
        self.store.jobs.promote(1000)

    @rule()
    def the_supervisor_looks(self) -> None:
        self.supervisor.release_waiting()

    @rule(up=st.sampled_from([False, False, True]))
    def the_service_changes(self, up: bool) -> None:
        self.up = up

    @rule()
    def a_round_of_work(self) -> None:
        """As often as anything else: else few lives would see it open."""
        self.supervisor.release_waiting()
        for line in LINES:
            self.lease(line, 1, 3)
        while self.leases:
            self.settle_one(0)

    @rule(opens=st.booleans())
    def an_operator_acts(self, opens: bool) -> None:
        if opens:
            self.store.breakers.open("pay", by="ann")
        else:
            self.store.breakers.close("pay", by="ann")

    @invariant()
    def no_attempt_is_used_up_by_waiting(self) -> None:
        running = {lease.id for _, lease in self.leases}
        for id in self.tasks:
            assert see(self.store, id).attempt == self.attempts[id] + (id in running)

    def teardown(self) -> None:
        """The service is back: all come to their end."""
        self.up = True
        [view] = self.store.breakers.list()
        if view.opened_by is not None:
            self.store.breakers.close("pay", by="ann")
        while self.leases:
            self.settle_one(0)
        for _ in range(40):
            if not self.tasks:
                break
            self.time_passes(10)
            self.drain_behind(100)
            self.supervisor.release_waiting()
            for line in LINES:
                self.lease(line, 0, 100)
            while self.leases:
                self.settle_one(0)
        assert [(task, see(self.store, id).state) for id, task in self.tasks.items()] == []
        assert all(view.state is not State.BLOCKED for view in self.store.reports.unsettled(None, 1000))


def test_any_life_behind_breakers_and_before_bounded_queues(quick_store: Store, clock: ManualClock) -> None:
    class Life(GateMachine):
        def __init__(self) -> None:
            super().__init__(quick_store, clock)

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=40, deadline=None, suppress_health_check=[*HealthCheck]
        ),
    )
