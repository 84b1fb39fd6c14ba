"""A held step that begins anew: what its dead job leaves behind is settled with it."""

import pytest
from msgspec.structs import replace

from lateshift.model.ids import JobId
from lateshift.model.job import STRETCHES, Holds, JobFilter, Lease, Line, NewJob, Place, State
from lateshift.model.outcome import DeadLettered
from lateshift.model.workflow.run import NEVER, Advance, Asleep, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState
from lateshift.store.contract import Store
from tests.store_contract.driving import DAY, GUARDED, Worker, added, make_job, see

STEP = StepRow(path="00001", kind=Kind.JOB, name="charge", state=StepState.RUNNING)


def step_of(run: JobId, *, place: Place | None = None, attempts: int = 3) -> NewJob:
    job = make_job(task="charge", place=place, attempts=attempts)
    return replace(job, spec=replace(job.spec, batch=run))


def held(store: Store, worker: Worker, *jobs: NewJob, run: Lease, line: Line, reason: str = "failed") -> None:
    """The jobs of its steps die, and it is held."""
    steps = [replace(STEP, path=f"0000{n}", job=job.id) for n, job in enumerate(jobs, 1)]
    store.workflows.advance([Advance(lease=run, begin=("paying", "1"), steps=steps, jobs=list(jobs))])
    for lease in worker.lease(len(jobs), line):
        assert worker.settle(lease, DeadLettered(reason, b"[]", DAY))
    said = [replace(step, state=StepState.HELD) for step in steps]
    sleep = Asleep(NEVER, None, 99, "an operator")
    store.workflows.advance([Advance(lease=run, steps=said, phase=Phase.HELD, why="no", sleep=sleep)])


def letters(store: Store) -> list[JobId]:
    return [view.id for view in store.reports.jobs(JobFilter(state=State.DEAD), 10)]


@pytest.fixture
def run(store: Store, worker: Worker) -> Lease:
    added(store, make_job(attempts=STRETCHES, time_limit=None))
    return worker.lease_one()


def test_the_job_of_a_step_that_is_resubmitted_is_a_dead_letter_no_more(
    store: Store, worker: Worker, run: Lease
) -> None:
    first, second = step_of(run.id), step_of(run.id)
    held(store, worker, first, second, run=run, line=Line("default", first.spec.lane))
    assert letters(store) == [second.id, first.id]
    assert store.workflows.mend(run.id, "00001", None, by="ann")
    assert letters(store) == [second.id]
    settled = see(store, first.id)
    assert (settled.state, settled.reason) == (State.CANCELLED, "its step was resubmitted by ann")
    assert [queue.dead for queue in store.queues.list()] == [1]
    assert store.jobs.resubmit([first.id], by="ann") == []
    assert store.upkeep.check() == []


def test_when_a_run_is_resumed_so_are_those_of_all_its_held_steps(
    store: Store, worker: Worker, run: Lease
) -> None:
    first, second = step_of(run.id), step_of(run.id)
    held(store, worker, first, second, run=run, line=Line("default", first.spec.lane))
    assert store.workflows.direct(run.id, Phase.FORWARD, why="", by="ann")
    assert letters(store) == []


def test_when_a_run_is_undone_they_stay_dead_letters(store: Store, worker: Worker, run: Lease) -> None:
    job = step_of(run.id)
    held(store, worker, job, run=run, line=Line("default", job.spec.lane))
    assert store.workflows.direct(run.id, Phase.UNDOING, why="gone", by="ann")
    assert not store.workflows.mend(run.id, "00001", None, by="ann")
    assert letters(store) == [job.id]


def test_of_a_run_that_is_being_cancelled_no_step_begins_anew(
    store: Store, worker: Worker, run: Lease
) -> None:
    job = step_of(run.id)
    held(store, worker, job, run=run, line=Line("default", job.spec.lane))
    assert store.jobs.cancel([run.id], by="ann") == [run.id]
    assert not store.workflows.mend(run.id, "00001", None, by="bob")
    assert letters(store) == [job.id]


def test_a_child_that_can_go_on_by_itself_stays_one(store: Store, worker: Worker, run: Lease) -> None:
    child = step_of(run.id, attempts=STRETCHES)
    held(store, worker, child, run=run, line=Line("default", child.spec.lane), reason="compensation_failed")
    assert store.workflows.mend(run.id, "00001", None, by="ann")
    assert letters(store) == [child.id]


def test_the_session_that_it_held_goes_on(store: Store, worker: Worker, run: Lease) -> None:
    holds = Place(session="ann", holds=Holds.ON_DEAD)
    job = step_of(run.id, place=holds)
    held(store, worker, job, run=run, line=GUARDED)
    [waits] = added(store, make_job(place=Place(session="ann")))
    assert worker.lease(1, GUARDED) == []
    assert store.workflows.mend(run.id, "00001", None, by="ann")
    assert [lease.id for lease in worker.lease(1, GUARDED)] == [waits]


@pytest.mark.parametrize(
    ("reason", "letters_of_steps"),
    [("undone", 0), ("failed", 0), ("worker_lost", 2), ("compensation_failed", 2)],
)
def test_dead_letters_of_steps_need_somebody_until_their_run_has_ended_and_does_not_go_on(
    store: Store, worker: Worker, run: Lease, reason: str, letters_of_steps: int
) -> None:
    step, child = step_of(run.id), step_of(run.id, attempts=STRETCHES)
    steps = [replace(STEP, path=f"0000{n}", job=job.id) for n, job in enumerate((step, child), 1)]
    store.workflows.advance([Advance(lease=run, begin=("paying", "1"), steps=steps, jobs=[step, child])])
    for lease in worker.lease(2, Line("default", step.spec.lane)):
        assert worker.settle(lease, DeadLettered("failed", b"[]", DAY))
    assert store.reports.count_dead(10) == (2, False)
    assert worker.settle(run, DeadLettered(reason, b"[]", DAY))
    assert store.reports.count_dead(10) == (letters_of_steps + (reason != "undone"), False)


def test_a_child_that_has_something_left_to_undo_needs_somebody_also_if_its_run_has_ended(
    store: Store, worker: Worker, run: Lease
) -> None:
    child = step_of(run.id, attempts=STRETCHES)
    steps = [replace(STEP, job=child.id)]
    store.workflows.advance([Advance(lease=run, begin=("paying", "1"), steps=steps, jobs=[child])])
    [lease] = worker.lease(1, Line("default", child.spec.lane))
    assert worker.settle(lease, DeadLettered("compensation_failed", b"[]", DAY))
    assert worker.settle(run, DeadLettered("undone", b"[]", DAY))
    assert store.reports.count_dead(10) == (1, False)


def test_a_batch_that_has_ended_says_nothing_of_its_dead_letters(store: Store, worker: Worker) -> None:
    job = step_of(added(store, make_job())[0])
    worker.settle(worker.lease_one())
    added(store, job)
    worker.settle(worker.lease_one(), DeadLettered("exhausted", b"[]", DAY))
    assert store.reports.count_dead(10) == (1, False)
