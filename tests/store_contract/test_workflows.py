"""Workflows: what operators do to runs, on every store."""

import pytest

from lateshift.model.ids import JobId
from lateshift.model.job import State
from lateshift.model.workflow.run import NEVER, Advance, Asleep, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, path_of
from lateshift.store.contract import Store
from tests.store_contract.driving import Worker, added, make_job, see


def step(number: int, state: StepState) -> StepRow:
    return StepRow(
        path=path_of("", number),
        kind=Kind.CALL,
        name="charge",
        state=state,
        payload=b'{"args":[1]}',
        error=b"{}",
    )


def asleep(store: Store, *states: StepState, phase: Phase) -> JobId:
    """A run with steps in these states that waits for an operator."""
    [id] = added(store, make_job())
    lease = Worker(store).lease_one()
    steps = [step(number, state) for number, state in enumerate(states, 1)]
    sleep = Asleep(NEVER, None, 0, "an operator")
    [said] = store.workflows.advance(
        [Advance(lease=lease, steps=steps, begin=("order", "1"), phase=phase, why="no", sleep=sleep)]
    )
    assert said.asleep
    return id


def states_of(store: Store, id: JobId) -> list[StepState]:
    view = store.workflows.view(id)
    assert view is not None
    return [step.state for step in view.steps]


def test_a_held_step_that_is_mended_begins_anew_and_wakes_its_run(store: Store) -> None:
    id = asleep(store, StepState.COMPLETED, StepState.HELD, phase=Phase.HELD)
    assert store.workflows.mend(id, path_of("", 2), b'{"card":"new"}', by="ana")
    view = store.workflows.view(id)
    assert view is not None
    assert (view.state, view.run.phase, view.run.why) == (State.READY, Phase.FORWARD, None)
    assert (view.steps[1].state, view.steps[1].payload, view.steps[1].mended) == (
        StepState.RUNNING,
        b'{"card":"new"}',
        True,
    )


def test_of_several_held_steps_each_is_mended_for_itself(store: Store) -> None:
    id = asleep(store, StepState.HELD, StepState.HELD, phase=Phase.HELD)
    assert store.workflows.mend(id, path_of("", 1), None, by="ana")
    assert states_of(store, id) == [StepState.RUNNING, StepState.HELD]
    assert store.workflows.mend(id, path_of("", 2), None, by="ana")
    assert states_of(store, id) == [StepState.RUNNING, StepState.RUNNING]


@pytest.mark.parametrize("state", [StepState.RUNNING, StepState.COMPLETED, StepState.FAILED])
def test_only_a_held_step_is_mended(store: Store, state: StepState) -> None:
    id = asleep(store, state, phase=Phase.HELD)
    assert not store.workflows.mend(id, path_of("", 1), None, by="ana")
    assert not store.workflows.mend(id, path_of("", 9), None, by="ana")
    assert states_of(store, id) == [state]
    assert see(store, id).state is State.SCHEDULED


def test_no_step_is_mended_of_a_run_that_is_undone(store: Store) -> None:
    id = asleep(store, StepState.HELD, phase=Phase.HELD)
    assert store.workflows.direct(id, Phase.UNDOING, why="no", by="ana")
    assert not store.workflows.mend(id, path_of("", 1), None, by="ana")
    assert states_of(store, id) == [StepState.HELD]
