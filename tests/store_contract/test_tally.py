"""How far runs are: counted the same way on every store, and bounded."""

import pytest

from lateshift.model.ids import JobId
from lateshift.model.outcome import Cancelled, DeadLettered, Outcome
from lateshift.model.pipeline.progress import StepTally, Tally
from lateshift.model.workflow.run import NEVER, Advance, Asleep, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, path_of
from lateshift.store import workflow_contract
from lateshift.store.contract import Store
from lateshift.store.tallies import tallied
from lateshift.store.workflow_contract import Kept
from tests.store_contract.driving import DAY, DONE, Worker, added, make_job

SHAPE = b'[{"task":"parse","queue":"q"}]'


def step(number: int, name: str, state: StepState, job: JobId | None = None) -> StepRow:
    return StepRow(path=path_of("", number), kind=Kind.JOB, name=name, state=state, job=job)


def shape() -> StepRow:
    return StepRow(
        path=path_of("", 1), kind=Kind.FIXED, name="shape", state=StepState.COMPLETED, result=SHAPE
    )


def begin(
    store: Store, *steps: StepRow, name: str = "orders", phase: Phase | None = None, sleeps: bool = True, end: Outcome | None = None
) -> JobId:  # fmt: skip
    """A run with these steps that sleeps, or has ended so."""
    [id] = added(store, make_job())
    worker = Worker(store)
    lease = worker.lease_one()
    sleep = Asleep(NEVER, None, 0, "its steps") if sleeps and end is None else None
    store.workflows.advance(
        [Advance(lease=lease, steps=[shape(), *steps], begin=(name, "1"), phase=phase, sleep=sleep)]
    )
    if end is not None:
        assert worker.settle(lease, end)
    return id


def counted(store: Store, name: str = "orders") -> Tally:
    return store.workflows.tally(name, "default")


def test_nothing_is_counted_of_a_name_that_nobody_has(store: Store) -> None:
    assert counted(store) == Tally(steps={})
    assert store.workflows.pipelines(limit=10) == []


def test_runs_are_counted_by_what_became_of_them(store: Store) -> None:
    begin(store)
    begin(store)
    begin(store, step(2, "parse", StepState.HELD), phase=Phase.HELD)
    begin(store, step(2, "parse", StepState.COMPLETED), phase=Phase.UNDO_HELD)
    begin(store, end=DONE)
    begin(
        store,
        step(2, "parse", StepState.COMPLETED),
        step(3, "store", StepState.FAILED),
        end=DeadLettered("failed", b"[]", DAY),
    )
    begin(store, end=Cancelled("by ana", DAY))
    begin(store, name="others")
    found = counted(store)
    assert (found.under_way, found.held, found.completed, found.failed, found.cancelled) == (2, 2, 1, 1, 1)
    assert found.steps == {"parse": StepTally(held=1), "store": StepTally(failed=1)}


def test_jobs_of_steps_are_counted_by_their_states(store: Store) -> None:
    [running] = added(store, make_job())
    Worker(store).lease_one()
    ready, later = added(store, make_job(queue="other"), make_job(queue="other", delay=DAY))
    begin(
        store, step(2, "parse", StepState.RUNNING, ready), step(3, "parse", StepState.RUNNING, running),
        step(4, "store", StepState.RUNNING, later),
    )  # fmt: skip
    assert counted(store).steps == {"parse": StepTally(waiting=1, running=1), "store": StepTally(waiting=1)}


def test_those_that_have_not_begun_are_counted_in_their_queue(store: Store) -> None:
    added(store, make_job(task="orders"), make_job(task="orders", delay=DAY), make_job(task="others"))
    added(store, make_job(task="orders", queue="other"))
    assert counted(store).waiting == 2


@pytest.mark.parametrize("name", [None, "orders"])
def test_a_pipeline_is_known_by_what_its_newest_item_keeps(store: Store, name: str | None) -> None:
    begin(store, end=DONE)
    begin(store)
    assert store.workflows.pipelines(name, limit=10) == [Kept("orders", "default", SHAPE)]
    assert store.workflows.pipelines("other", limit=10) == []


def test_pipelines_are_listed_by_name_up_to_a_limit(store: Store) -> None:
    for name in ("b", "a", "c"):
        begin(store, name=name)
    assert [kept.name for kept in store.workflows.pipelines(limit=10)] == ["a", "b", "c"]
    assert [kept.name for kept in store.workflows.pipelines(limit=2)] == ["a", "b"]


def test_a_count_looks_at_so_many_rows_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(f"lateshift.store.{module}.tallying.COUNT_LIMIT", 2)
        monkeypatch.setattr(f"lateshift.store.{module}.tallying.STEPS_LOOKED_AT", 3)
    for _ in range(3):
        begin(store, step(2, "parse", StepState.HELD), phase=Phase.HELD)
    begin(store)
    found = counted(store)
    assert found.held == 2
    begin(store, phase=Phase.UNDO_HELD)
    assert counted(store).held == 2
    assert found.steps["parse"].held == 1, "of three rows that are looked at, one is a held step"
    assert workflow_contract.STEPS_LOOKED_AT == 100_000


def test_a_look_may_be_shorter_than_a_whole_count(store: Store) -> None:
    for _ in range(3):
        begin(store)
    assert store.workflows.tally("orders", "default", 2).under_way == 2
    assert counted(store).under_way == 3


def test_what_ended_while_it_was_counted_is_left_out() -> None:
    found = tallied(
        runs=[(0, None, 1)],
        held=0,
        not_begun=0,
        in_flight=[("parse", None, 1)],
        held_steps=[],
        failed_steps=[],
    )
    assert (found.under_way, found.steps) == (0, {"parse": StepTally()})
