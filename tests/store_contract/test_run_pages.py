"""Of a run as much is read as somebody wants of it: its steps without what they hold, one of them, or as many as fit into so many bytes."""

from collections.abc import Iterable
from typing import Any

from lateshift.model.ids import JobId, new_job_id
from lateshift.model.workflow.run import Advance
from lateshift.model.workflow.step import Kind, StepOutline, StepRow, StepState, Undo, path_of
from lateshift.store.contract import Store
from lateshift.store.outlines import outlines
from lateshift.store.workflow_contract import ToUndo
from tests.store_contract.driving import Worker, added, make_job

SIZE = 1_000  # bytes of what a step was given


def run_of(store: Store, *steps: StepRow) -> JobId:
    [id] = added(store, make_job())
    store.workflows.advance([Advance(lease=Worker(store).lease_one(), steps=steps, begin=("order", "1"))])
    return id


def large(number: int, size: int = SIZE) -> StepRow:
    return StepRow(
        path=path_of("", number), kind=Kind.CALL, name="charge", state=StepState.COMPLETED, place=number,
        payload=b" " * (size - 2), result=b"1", error=b"2",
    )  # fmt: skip


def numbers(steps: list[StepOutline]) -> list[int]:
    return [int(step.path) for step in steps]


def seen(store: Store, id: JobId, *, limit: int = 10, most: int | None, after: str = "") -> list[int]:
    view = store.workflows.look(id, after=after, limit=limit, most=most)
    assert view is not None
    return numbers([*view.steps])


def test_of_the_steps_of_a_run_as_many_are_read_as_fit_into_so_many_bytes(store: Store) -> None:
    id = run_of(store, *[large(number) for number in range(1, 6)])
    assert seen(store, id, most=3 * SIZE) == [1, 2, 3]
    assert seen(store, id, most=3 * SIZE - 1) == [1, 2]
    assert seen(store, id, most=3 * SIZE, after=path_of("", 3)) == [4, 5]
    assert seen(store, id, most=3 * SIZE, limit=2) == [1, 2]
    assert seen(store, id, most=None) == [1, 2, 3, 4, 5]


def test_the_first_step_of_a_page_is_there_however_large_it_is(store: Store) -> None:
    id = run_of(store, large(1), large(2, SIZE * 4), large(3), large(4))
    assert seen(store, id, most=2 * SIZE) == [1]
    assert seen(store, id, most=2 * SIZE, after=path_of("", 1)) == [2]
    assert seen(store, id, most=2 * SIZE, after=path_of("", 2)) == [3, 4]
    assert seen(store, id, most=0) == [1]


def test_what_an_undo_raised_counts_as_much_as_what_its_step_did(store: Store) -> None:
    [id] = added(store, make_job())
    lease = Worker(store).lease_one()
    done = [
        StepRow(path=path_of("", number), kind=Kind.CALL, name="charge", state=StepState.COMPLETED, place=number, undo="refund")
        for number in (1, 2)
    ]  # fmt: skip
    store.workflows.advance([Advance(lease=lease, steps=done, begin=("order", "1"))])
    raised = StepRow(
        path=path_of("", 1), kind=Kind.CALL, name="charge", state=StepState.COMPLETED, place=1, undo="refund",
        undo_state=Undo.FAILED, undo_error=b'{"error":"%s"}' % (b"x" * SIZE),
    )  # fmt: skip
    store.workflows.advance([Advance(lease=lease, steps=[raised])])
    assert seen(store, id, most=SIZE) == [1]
    assert seen(store, id, most=SIZE * 2) == [1, 2]


def test_of_the_steps_in_one_state_as_many_are_read_as_fit(store: Store) -> None:
    held = [
        StepRow(path=path_of("", number), kind=Kind.CALL, name="charge", state=StepState.HELD, payload=b" " * SIZE)
        for number in (2, 4, 6)
    ]  # fmt: skip
    id = run_of(store, large(1), large(3), large(5), *held)
    view = store.workflows.look(id, limit=10, state=StepState.HELD, most=2 * SIZE)
    assert view is not None
    assert numbers([*view.steps]) == [2, 4]


def test_an_outline_says_of_each_step_all_but_what_it_holds(store: Store) -> None:
    job, undo_job = make_job(), make_job()
    steps = [
        StepRow(path=path_of("", 1), kind=Kind.JOB, name="send", state=StepState.RUNNING, job=job.id, payload=b"1", undo="recall"),
        StepRow(path=path_of("", 2), kind=Kind.CALL, name="charge", state=StepState.HELD, error=b"{}", failures=3),
    ]  # fmt: skip
    [id] = added(store, make_job())
    lease = Worker(store).lease_one()
    store.workflows.advance([Advance(lease=lease, steps=steps, jobs=[job, undo_job], begin=("order", "1"))])
    view = store.workflows.view(id)
    assert view is not None
    names = StepOutline.__struct_fields__
    assert not {"payload", "result", "error", "undo_error"} & set(names)
    said = [{name: getattr(step, name) for name in names} for step in view.steps]
    outline = store.workflows.outline(id, limit=10)
    assert [{name: getattr(step, name) for name in names} for step in outline] == said
    assert not any(hasattr(step, "payload") for step in outline)


def test_outlines_come_in_the_order_of_the_steps_page_by_page(store: Store) -> None:
    id = run_of(store, *[large(number) for number in range(1, 6)])
    assert numbers(store.workflows.outline(id, limit=2)) == [1, 2]
    assert numbers(store.workflows.outline(id, after=path_of("", 2), limit=10)) == [3, 4, 5]
    assert numbers(store.workflows.outline(id, limit=10, state=StepState.HELD)) == []
    assert [numbers(page) for page in outlines(store.workflows, id, 2)] == [[1, 2], [3, 4], [5]]
    assert [numbers(page) for page in outlines(store.workflows, id, 5)] == [[1, 2, 3, 4, 5]]
    assert store.workflows.outline(new_job_id(), limit=10) == []
    assert list(outlines(store.workflows, new_job_id())) == []


def test_an_outline_may_be_of_the_steps_of_one_kind_or_of_one_job(store: Store) -> None:
    job, undo_job = make_job(), make_job()
    sent = StepRow(path=path_of("", 2), kind=Kind.JOB, name="send", state=StepState.RUNNING, job=job.id)
    undone = StepRow(
        path=path_of("", 3), kind=Kind.CALL, name="charge", state=StepState.COMPLETED, place=3, undo="recall", undo_state=Undo.RUNNING,
        undo_job=undo_job.id,
    )  # fmt: skip
    id = run_of(store, large(1), sent, undone, large(4))

    def seen(**narrowed: Any) -> list[int]:
        return numbers(store.workflows.outline(id, limit=10, **narrowed))

    assert (seen(kind=Kind.JOB), seen(kind=Kind.CALL), seen(kind=Kind.GATHER)) == ([2], [1, 3, 4], [])
    assert (seen(job=job.id), seen(job=undo_job.id), seen(job=new_job_id())) == ([2], [3], [])
    assert [numbers(page) for page in outlines(store.workflows, id, 2, kind=Kind.CALL)] == [[1, 3], [4]]
    assert [numbers(page) for page in outlines(store.workflows, id, state=StepState.RUNNING)] == [[2]]


def ways(found: Iterable[ToUndo]) -> set[tuple[int, str | None, JobId | None, int]]:
    return {(int(way.path), way.undo, way.job, way.steps) for way in found}


def test_in_which_ways_a_run_would_be_undone_is_told_by_its_steps_that_would_be(store: Store) -> None:
    tried = new_job_id()

    def step(
        number: int, state: StepState, undo: str | None, *, place: int | None = None, undo_state: Undo = Undo.NOT_BEGUN, job: JobId | None = None
    ) -> StepRow:  # fmt: skip
        return StepRow(
            path=path_of("", number), kind=Kind.CALL, name=f"s{number}", state=state, undo=undo, place=place, undo_state=undo_state, undo_job=job
        )  # fmt: skip

    done, flies, failed, stuck = StepState.COMPLETED, StepState.RUNNING, StepState.FAILED, StepState.HELD
    id = run_of(
        store, step(1, done, None, place=1), step(2, done, "burn", place=2), step(3, flies, "recall"), step(4, done, "burn", place=4),
        step(5, failed, "burn"), step(6, stuck, "recall"), step(7, failed, "recall", place=7),
        step(8, done, "burn", place=8, undo_state=Undo.DONE), step(9, done, "recall", place=9, undo_state=Undo.FAILED, job=tried),
    )  # fmt: skip
    told = {(1, None, None, 4), (2, "burn", None, 2), (3, "recall", None, 2), (9, "recall", tried, 1)}
    assert ways(store.workflows.to_undo([id], limit=100)) == told
    other = run_of(store, step(1, done, "burn", place=1))
    both = store.workflows.to_undo([id, other, new_job_id()], limit=100)
    assert ways(way for way in both if way.run == id) == told
    assert ways(way for way in both if way.run == other) == {(1, "burn", None, 1)}
    for limit in (1, 5, 9):
        assert sum(way.steps for way in store.workflows.to_undo([id, other], limit=limit)) == limit
    assert store.workflows.to_undo([], limit=10) == []


def test_the_steps_that_are_runs_under_way_are_told_of_several_runs_together(store: Store) -> None:
    below = [run_of(store, large(1)) for _ in range(3)]
    job = make_job()

    def step(number: int, id: JobId, state: StepState = StepState.RUNNING) -> StepRow:
        return StepRow(path=path_of("", number), kind=Kind.CHILD, name=f"s{number}", state=state, job=id)

    one = run_of(
        store,
        large(1),
        step(2, job.id),
        step(3, below[1]),
        step(4, below[0]),
        step(5, below[2], StepState.COMPLETED),
    )
    two = run_of(store, step(1, below[2]))
    found = store.workflows.children([one, two, new_job_id()], limit=10)
    assert {(child.run, child.name, child.job) for child in found} == {
        (one, "s3", below[1]), (one, "s4", below[0]), (two, "s1", below[2]),
    }  # fmt: skip
    assert [child.name for child in store.workflows.children([one], limit=10)] == ["s3", "s4"]
    assert len(store.workflows.children([one, two], limit=2)) == 2


def test_one_step_of_a_run_is_read_by_its_path(store: Store) -> None:
    id = run_of(store, large(1), large(2))
    view = store.workflows.view(id)
    assert view is not None
    assert store.workflows.step(id, path_of("", 2)) == view.steps[1]
    assert store.workflows.step(id, path_of("", 3)) is None
    assert store.workflows.step(new_job_id(), path_of("", 1)) is None


def test_in_which_queue_the_jobs_of_steps_stand_is_told_of_those_that_are_there(
    store: Store, worker: Worker
) -> None:
    ended, mail, gone = make_job(), make_job(queue="mail"), new_job_id()
    added(store, ended)
    worker.settle(worker.lease_one())
    added(store, mail)
    assert store.workflows.queues_of([mail.id, gone, ended.id, mail.id]) == {
        mail.id: "mail",
        ended.id: "default",
    }
    assert store.workflows.queues_of([]) == {}


def test_what_a_run_was_told_is_read_up_to_so_many_bytes_and_behind_one(store: Store) -> None:
    id = run_of(store)
    for number in range(1, 5):
        store.workflows.signal(id, f"s{number}", b'"%s"' % (b"a" * (SIZE - 2)), key=None, by="ana")

    def told(most: int, after: int = 0) -> list[int]:
        return [signal.number for signal in store.workflows.told(id, 10, after=after, most=most)]

    assert told(2 * SIZE) == [1, 2]
    assert told(2 * SIZE - 1) == [1]
    assert told(0) == [1]
    assert told(2 * SIZE, after=2) == [3, 4]
    assert [signal.number for signal in store.workflows.told(id, 3, after=1)] == [2, 3, 4]
