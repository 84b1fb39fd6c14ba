"""Whoever lost a run writes nothing of it; what has completed is written once; nothing that comes is slept over."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lateshift.clock import ManualClock
from lateshift.model.instants import to_number
from lateshift.model.job import Lease, State
from lateshift.model.outcome import Completed, DeadLettered
from lateshift.model.workflow.run import NEVER, Advance, Asleep, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, Undo
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from lateshift.store.postgres import batches, runs
from lateshift.store.workflow_contract import Told
from tests.store_contract.driving import HOUR, LINE, Supervisor, Worker, make_job

BEGIN = ("order", "1")
RUNNING = StepRow(path="00001", kind=Kind.CALL, name="charge", state=StepState.RUNNING)
DONE = replace(RUNNING, state=StepState.COMPLETED, result=b"1", place=1)


@pytest.fixture
def lease(store: Store, worker: Worker) -> Lease:
    store.jobs.enqueue([make_job(attempts=100, time_limit=None)])
    [lease] = worker.lease(1)
    return lease


def asleep(news: int = 0, wait: timedelta = NEVER) -> Asleep:
    return Asleep(wait, None, news, "a signal")


def test_a_worker_that_lost_its_run_writes_nothing(
    store: Store, clock: ManualClock, lease: Lease, other_worker: Worker, supervisor: Supervisor
) -> None:
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[RUNNING])])
    clock.move(minutes=5)  # it was stopped, and its heartbeat ran out
    other_worker.beat(timedelta(hours=1))
    supervisor.sweep()
    [again] = other_worker.lease(1)
    assert again.id == lease.id
    for late in (
        Advance(lease=lease, steps=[DONE]),
        Advance(lease=lease, sleep=asleep()),
        Advance(lease=lease, jobs=[make_job()]),
    ):
        [answer] = store.workflows.advance([late])
        assert answer.lost
    view = store.workflows.view(lease.id)
    assert view is not None
    assert [step.state for step in view.steps] == [StepState.RUNNING]
    assert view.state is State.RUNNING
    assert store.reports.unsettled(None, 10)[0].id == lease.id


def test_a_step_that_has_completed_stays_as_it_was_written(store: Store, lease: Lease) -> None:
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[DONE])])
    store.workflows.advance(
        [Advance(lease=lease, steps=[replace(DONE, result=b"2"), replace(RUNNING, path="00002")])]
    )
    store.workflows.advance([Advance(lease=lease, steps=[replace(RUNNING, failures=3)])])
    view = store.workflows.view(lease.id)
    assert view is not None
    assert [(step.path, step.state, step.result) for step in view.steps] == [
        ("00001", StepState.COMPLETED, b"1"),
        ("00002", StepState.RUNNING, None),
    ]


def test_a_run_sleeps_unless_something_came_that_it_does_not_know_of(store: Store, lease: Lease) -> None:
    [answer] = store.workflows.advance([Advance(lease=lease, begin=BEGIN)])
    assert store.workflows.signal(lease.id, "go", b"1", key=None, by="ann") is Told.KEPT
    [answer] = store.workflows.advance([Advance(lease=lease, sleep=asleep(answer.news))])
    assert (answer.asleep, answer.news) == (False, 1)
    [loaded] = store.workflows.load([lease.id])
    assert [signal.data for signal in loaded.signals] == [b"1"]
    [answer] = store.workflows.advance([Advance(lease=lease, sleep=asleep(loaded.run.news))])
    assert answer.asleep
    view = store.reports.job(lease.id)
    assert view is not None
    assert (view.state, view.holder, view.attempt) == (State.SCHEDULED, None, 0)


def test_what_comes_wakes_a_run_that_sleeps_and_only_once_begun(
    store: Store, worker: Worker, lease: Lease
) -> None:
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, sleep=asleep())])
    assert worker.lease(1) == []
    store.workflows.signal(lease.id, "go", None, key="k", by="ann")
    [again] = worker.lease(1)
    assert again.fence == lease.fence + 1
    later = make_job(delay=HOUR)
    store.jobs.enqueue([later])
    store.workflows.signal(later.id, "go", None, key=None, by="ann")
    view = store.reports.job(later.id)
    assert view is not None
    assert view.state is State.SCHEDULED


def test_the_end_of_a_steps_job_is_in_its_step_and_wakes_the_run(
    store: Store, worker: Worker, lease: Lease
) -> None:
    job = make_job()
    job = replace(job, spec=replace(job.spec, batch=lease.id))
    step = replace(RUNNING, kind=Kind.JOB, job=job.id)
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[step], jobs=[job], sleep=asleep())])
    [of_step] = worker.lease(1)
    worker.settle(of_step)
    view = store.workflows.view(lease.id)
    assert view is not None
    assert (view.steps[0].state, view.steps[0].result) == (StepState.COMPLETED, b"1")
    place = view.steps[0].place
    assert place is not None
    assert (
        abs(place - to_number(store.clock.now())) < 60_000_000
    )  # by the store's clock, as its run gives places itself
    assert view.state is State.READY
    assert LINE in store.jobs.lines()


def test_steps_past_their_complete_by_have_failed_and_only_for_the_present_supervisor(
    store: Store, clock: ManualClock, worker: Worker, lease: Lease, supervisor: Supervisor
) -> None:
    job = make_job()
    job = replace(job, spec=replace(job.spec, batch=lease.id))
    step = replace(RUNNING, kind=Kind.JOB, job=job.id, limit=HOUR)
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[step], jobs=[job], sleep=asleep())])
    assert store.workflows.overdue(term=supervisor.term, limit=10) == []
    clock.move(hours=1, seconds=1)
    assert store.workflows.overdue(term=supervisor.term - 1, limit=10) == []
    seen = store.workflows.late_steps(10)
    [late] = store.workflows.overdue(term=supervisor.term, limit=10)
    assert (seen, store.workflows.late_steps(10)) == ([late], [])
    assert (late.run, late.path, late.job) == (lease.id, "00001", job.id)
    leases = worker.lease(2)
    [of_step] = [each for each in leases if each.id == job.id]
    worker.settle(of_step)  # too late: nobody hears it
    view = store.workflows.view(lease.id)
    assert view is not None
    assert (view.steps[0].state, view.steps[0].failures) == (StepState.FAILED, 1)


def test_two_leases_of_one_run_in_one_call_are_told_apart(
    store: Store, clock: ManualClock, lease: Lease, other_worker: Worker, supervisor: Supervisor
) -> None:
    store.workflows.advance([Advance(lease=lease, begin=BEGIN)])
    clock.move(minutes=5)
    other_worker.beat(timedelta(hours=1))
    supervisor.sweep()
    [again] = other_worker.lease(1)
    late, present = Advance(lease=lease, steps=[DONE]), Advance(lease=again, steps=[RUNNING])
    assert [answer.lost for answer in store.workflows.advance([late, present])] == [True, False]
    assert [answer.lost for answer in store.workflows.advance([present, late])] == [False, True]
    view = store.workflows.view(lease.id)
    assert view is not None
    assert [step.state for step in view.steps] == [StepState.RUNNING]


def test_an_advance_that_is_repeated_as_such_makes_its_job_once(
    store: Store, worker: Worker, lease: Lease
) -> None:
    job = make_job()
    job = replace(job, spec=replace(job.spec, batch=lease.id), first=False)
    one = Advance(lease=lease, begin=BEGIN, steps=[replace(RUNNING, kind=Kind.JOB, job=job.id)], jobs=[job])
    store.workflows.advance([one])
    store.workflows.advance([one])
    worker.settle(worker.lease_one())
    store.workflows.advance([one])
    assert worker.lease(1) == []
    assert store.upkeep.check() == []


def test_a_run_that_is_held_while_it_undoes_goes_on_undoing(store: Store, lease: Lease) -> None:
    undoing = replace(DONE, undo="refund", undo_state=Undo.RUNNING)
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[DONE], phase=Phase.UNDOING, why="no")])
    assert not store.workflows.direct(lease.id, Phase.FORWARD, why="", by="ann")  # it is not held
    store.workflows.advance([Advance(lease=lease, steps=[undoing], phase=Phase.UNDO_HELD, why="?")])
    assert store.workflows.direct(lease.id, Phase.FORWARD, why="", by="ann")
    view = store.workflows.view(lease.id)
    assert view is not None
    assert view.run.phase is Phase.UNDOING


def test_that_a_run_is_to_be_undone_is_not_forgotten_when_it_is_held(store: Store, lease: Lease) -> None:
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[DONE])])
    assert store.workflows.direct(lease.id, Phase.UNDOING, why="the customer has gone", by="ann")
    held = Advance(lease=lease, phase=Phase.HELD, why="?")  # which did not know of it
    [answer] = store.workflows.advance([held])
    view = store.workflows.view(lease.id)
    assert view is not None
    assert (answer.phase, view.run.why) == (Phase.UNDOING, "the customer has gone")
    step = replace(RUNNING, path="00002", state=StepState.HELD)
    store.workflows.advance([Advance(lease=lease, steps=[step], phase=Phase.UNDO_HELD, why="gone; no code")])
    assert not store.workflows.mend(lease.id, "00002", None, by="ann")
    assert store.workflows.direct(lease.id, Phase.FORWARD, why="", by="ann")
    view = store.workflows.view(lease.id)
    assert view is not None
    assert (view.run.phase, view.run.why) == (Phase.UNDOING, "gone; no code")
    assert view.steps[1].state is StepState.HELD  # nothing of it begins anew


def test_a_run_that_has_begun_makes_no_room_in_a_full_queue(store: Store, lease: Lease) -> None:
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, sleep=asleep())])
    store.workflows.signal(lease.id, "go", None, key=None, by="ann")  # it is ready, and waits longest
    other = make_job()
    store.jobs.enqueue([other])
    assert store.jobs.shed("default", 2) == [other.id]
    assert store.reports.job(lease.id) is not None


def test_a_job_that_ends_while_others_are_collected_is_not_forgotten(
    postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL its end is a line of counts, which the one who adds up may not have seen."""
    store = open_store(postgres_url, clock)
    store.ready()
    worker = Worker(store)
    store.jobs.enqueue([make_job(attempts=100, time_limit=None)])
    lease = worker.lease_one()
    jobs = [make_job(), make_job()]
    jobs = [replace(job, spec=replace(job.spec, batch=lease.id)) for job in jobs]
    steps = [replace(RUNNING, path=f"0000{n}", kind=Kind.JOB, job=job.id) for n, job in enumerate(jobs, 1)]
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=steps, jobs=jobs, sleep=asleep())])
    first, second = worker.lease(2)
    collect = runs.collect

    def settle_meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(runs, "collect", collect)
        found = collect(*args)
        monkeypatch.setattr(batches, "finish_in_need", lambda *_: None)  # its own worker dies before it looks
        worker.settle(second)
        return found

    monkeypatch.setattr(runs, "collect", settle_meanwhile)
    worker.settle(first)
    store.batches.finish(limit=10)  # the supervisor's net
    view = store.workflows.view(lease.id)
    store.close()
    assert view is not None
    assert [step.state for step in view.steps] == [StepState.COMPLETED] * 2


def test_the_end_of_a_steps_job_is_kept_until_it_is_in_its_step(
    store: Store, clock: ManualClock, worker: Worker, lease: Lease, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """On PostgreSQL a worker may die between the two, and everybody be away for longer than the job is kept."""
    job = make_job()
    job = replace(job, spec=replace(job.spec, batch=lease.id))
    step = replace(RUNNING, kind=Kind.JOB, job=job.id)
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[step], jobs=[job], sleep=asleep())])
    with monkeypatch.context() as dying:
        dying.setattr(batches, "finish_in_need", lambda *_: None)
        worker.settle(worker.lease_one(), Completed(b"1", timedelta(0)))
    clock.move(days=1)
    supervisor.purge()
    store.upkeep.erase([job.id])
    store.batches.finish(limit=10)
    view = store.workflows.view(lease.id)
    assert view is not None
    assert (view.steps[0].state, view.steps[0].result) == (StepState.COMPLETED, b"1")
    supervisor.purge()
    assert store.reports.job(job.id) is None


def test_a_step_whose_job_has_failed_does_not_run_again_because_its_beginning_is_written_twice(
    store: Store, worker: Worker, lease: Lease
) -> None:
    """As after a lost answer. Nobody would tell the run of that job a second time."""
    job = make_job()
    job = replace(job, spec=replace(job.spec, batch=lease.id))
    step = replace(RUNNING, kind=Kind.JOB, job=job.id)
    store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[step], jobs=[job])])
    worker.settle(worker.lease_one(), DeadLettered("permanent", b"[]", HOUR))
    store.batches.finish(limit=10)
    store.workflows.advance([Advance(lease=lease, steps=[step], jobs=[replace(job, first=False)])])
    view = store.workflows.view(lease.id)
    assert view is not None
    assert view.steps[0].state is StepState.FAILED
    another = make_job()
    store.workflows.advance([Advance(lease=lease, steps=[replace(step, job=another.id)], jobs=[another])])
    view = store.workflows.view(lease.id)
    assert view is not None
    assert (view.steps[0].state, view.steps[0].job) == (StepState.RUNNING, another.id)


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("by", ["cancel", "undo"])
def test_no_step_begins_of_a_run_that_somebody_wants_stopped(
    store: Store, lease: Lease, by: str, *, begun: bool
) -> None:
    if begun or by == "undo":
        store.workflows.advance([Advance(lease=lease, begin=BEGIN, steps=[DONE])])
    if by == "undo":
        assert store.workflows.direct(lease.id, Phase.UNDOING, why="wrong", by="ann")
    else:
        store.jobs.cancel([lease.id], by="ann")
    job = make_job()
    step = replace(RUNNING, path="00002", kind=Kind.JOB, job=job.id)
    begin = None if begun or by == "undo" else BEGIN
    next_step = Advance(lease=lease, begin=begin, steps=[step], jobs=[job], sleep=asleep(9), forward=True)
    [answer] = store.workflows.advance([next_step])
    assert (answer.stopped, answer.asleep, answer.lost) == (True, False, False)
    assert (answer.cancel_by, answer.phase.is_undone) == ((None, True) if by == "undo" else ("ann", False))
    assert store.reports.job(job.id) is None
    [answer] = store.workflows.advance([replace(next_step, sleep=None, forward=False)])
    assert not answer.stopped, "what undoes, or tells, is written"
    assert store.reports.job(job.id) is not None


def test_of_several_runs_only_the_one_that_is_stopped_begins_nothing(store: Store, worker: Worker) -> None:
    store.jobs.enqueue([make_job(attempts=100, time_limit=None) for _ in range(2)])
    leases = worker.lease(2)
    store.workflows.advance([Advance(lease=lease, begin=BEGIN) for lease in leases])
    store.jobs.cancel([leases[0].id], by="ann")
    jobs = [make_job(), make_job()]
    steps = [replace(RUNNING, kind=Kind.JOB, job=job.id) for job in jobs]
    said = zip(leases, steps, jobs, strict=True)
    answers = store.workflows.advance(
        [Advance(lease=lease, steps=[step], jobs=[job], forward=True) for lease, step, job in said]
    )
    assert [answer.stopped for answer in answers] == [True, False]
    assert [store.reports.job(job.id) is not None for job in jobs] == [False, True]
