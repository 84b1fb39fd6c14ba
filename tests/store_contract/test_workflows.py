"""Workflows: what operators do to runs, on every store."""

from datetime import timedelta

import pytest

from lateshift.clock import ManualClock
from lateshift.model.ids import JobId, new_job_id
from lateshift.model.job import State
from lateshift.model.workflow.run import NEVER, Advance, Asleep, Phase
from lateshift.model.workflow.step import Kind, StepRow, StepState, path_of
from lateshift.store.contract import Store
from lateshift.store.workflow_contract import Told
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


@pytest.mark.parametrize("mended", [True, False])
def test_the_time_for_which_a_step_was_held_is_not_of_the_step_that_begins_anew(
    store: Store, clock: ManualClock, mended: bool
) -> None:
    id = asleep(store, StepState.HELD, phase=Phase.HELD)
    before = store.workflows.view(id)
    clock.move(seconds=300)
    if mended:
        assert store.workflows.mend(id, path_of("", 1), None, by="ana")
    else:
        assert store.workflows.direct(id, Phase.FORWARD, why="", by="ana")
    view = store.workflows.view(id)
    assert before is not None
    assert view is not None
    assert view.steps[0].started_at - before.steps[0].started_at >= timedelta(seconds=300)
    assert view.run.started_at == before.run.started_at


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


def test_the_steps_of_a_run_are_looked_at_page_by_page(store: Store) -> None:
    id = asleep(store, *[StepState.COMPLETED] * 4, StepState.HELD, phase=Phase.HELD)
    first = store.workflows.look(id, limit=3)
    assert first is not None
    assert [step.path for step in first.steps] == [path_of("", number) for number in (1, 2, 3)]
    rest = store.workflows.look(id, after=first.steps[-1].path, limit=3)
    assert rest is not None
    assert [step.path for step in rest.steps] == [path_of("", number) for number in (4, 5)]
    none = store.workflows.look(id, limit=0)
    assert none is not None
    assert (none.run.name, none.state, none.steps) == ("order", State.SCHEDULED, [])


def test_the_held_steps_of_a_run_are_found_among_the_others(store: Store) -> None:
    id = asleep(store, StepState.COMPLETED, StepState.HELD, StepState.COMPLETED, StepState.HELD, phase=Phase.HELD)  # fmt: skip
    held = store.workflows.look(id, limit=10, state=StepState.HELD)
    assert held is not None
    assert [step.path for step in held.steps] == [path_of("", 2), path_of("", 4)]


def test_what_is_no_run_has_nothing_to_look_at(store: Store) -> None:
    [id] = added(store, make_job())
    assert store.workflows.look(id, limit=10) is None
    assert store.workflows.look(new_job_id(), limit=10) is None


def test_steps_past_their_complete_by_are_seen_until_somebody_says_they_have_failed(
    store: Store, clock: ManualClock
) -> None:
    [id] = added(store, make_job())
    jobs = [make_job(), make_job()]
    steps = [
        StepRow(path=path_of("", number), kind=Kind.JOB, name="charge", state=StepState.RUNNING, job=job.id,
                limit=timedelta(minutes=number))
        for number, job in enumerate(jobs, 1)
    ]  # fmt: skip
    store.workflows.advance(
        [Advance(lease=Worker(store).lease_one(), steps=steps, jobs=jobs, begin=("order", "1"))]
    )
    assert store.workflows.late_steps(10) == []
    clock.move(minutes=3)
    late = store.workflows.late_steps(10)
    assert [(one.run, one.path, one.job) for one in late] == [(id, path_of("", n), jobs[n - 1].id) for n in (1, 2)]  # fmt: skip
    assert store.workflows.late_steps(1) == late[:1]


def test_what_a_run_was_told_and_has_not_taken_is_shown_up_to_a_limit(store: Store) -> None:
    id = asleep(store, StepState.RUNNING, phase=Phase.FORWARD)
    for number in range(3):
        store.workflows.signal(id, f"s{number}", b"1", key=None, by="ana")
    assert [(one.name, one.data) for one in store.workflows.told(id, 2)] == [("s0", b"1"), ("s1", b"1")]
    assert store.workflows.told(new_job_id(), 2) == []


def test_a_signal_under_a_key_that_another_has_is_told_so_and_not_kept(store: Store) -> None:
    id, other = (asleep(store, StepState.RUNNING, phase=Phase.FORWARD) for _ in range(2))

    def told(name: str, data: bytes | None) -> Told:
        return store.workflows.signal(id, name, data, key="k1", by="ana")

    assert told("first", b'{"by":"ann","of":[1,2]}') is Told.KEPT
    assert told("first", b'{"by":"ann","of":[1,2]}') is Told.REPEATED
    assert told("first", b'{"of":[1,2],"by":"ann"}') is Told.REPEATED  # the same, in another order
    for name, data in [
        ("picked", b'{"by":"ann","of":[1,2]}'),
        ("first", b'{"by":"ann","of":[2,1]}'),
        ("first", b'{"by":"ann","of":[1.0,2]}'),
        ("first", b"null"),
        ("first", None),
    ]:
        assert told(name, data) is Told.CONFLICT
    assert [(one.name, one.data) for one in store.workflows.told(id, 10)] == [
        ("first", b'{"by":"ann","of":[1,2]}')
    ]
    assert [row.action for row in store.audit.list(limit=10)] == ["signal"]
    assert store.workflows.signal(id, "picked", None, key="k2", by="ana") is Told.KEPT
    assert store.workflows.signal(id, "picked", b"1", key="k2", by="ana") is Told.CONFLICT
    assert store.workflows.signal(other, "picked", b"2", key="k1", by="ana") is Told.KEPT  # a run's own


def test_a_key_is_held_against_what_a_run_was_told_also_after_it_took_it_and_ended(store: Store) -> None:
    [id] = added(store, make_job())
    worker = Worker(store)
    lease = worker.lease_one()
    store.workflows.advance([Advance(lease=lease, begin=("order", "1"))])
    assert store.workflows.signal(id, "picked", b"1", key="k1", by="ana") is Told.KEPT
    [taken] = store.workflows.told(id, 10)
    taking = StepRow(path=path_of("", 1), kind=Kind.SIGNAL, name="picked", state=StepState.COMPLETED)
    store.workflows.advance([Advance(lease=lease, steps=[taking], taken=[(taken.number, taking.path)])])
    for _ in range(2):
        assert store.workflows.told(id, 10) == []
        assert store.workflows.signal(id, "picked", b"1", key="k1", by="ana") is Told.REPEATED
        assert store.workflows.signal(id, "picked", b"2", key="k1", by="ana") is Told.CONFLICT
        worker.settle(lease)
