"""What fails in a pipeline holds its own item, or its own element, and no other; mended, it goes on."""

from typing import Any

import pytest

from lateshift import Job, Lateshift, Pipeline, State, fan_in, fan_out
from lateshift.errors import JobDead
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import path_from
from lateshift.testing import Kit
from lateshift.workflow.passing import FAN_OUT_MOST
from tests.workflows.piping import Shop, run_of, why


def test_a_filter_that_fails_holds_its_own_item_and_no_other(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.double | shop.increase)
    shop.unlucky = {13}
    jobs = [pipeline.enqueue(number) for number in (12, 13, 14)]
    kit.drain()
    assert [job.state for job in jobs] == [State.COMPLETED, State.SCHEDULED, State.COMPLETED]
    assert why(app, jobs[1]) == "step 2 double failed: Permanent: 13 is unlucky"
    shop.unlucky.clear()
    assert app.store.workflows.mend(jobs[1].id, path_from("2"), None, by="ana")
    kit.drain()
    assert kit.result(jobs[1]) == 27
    assert done.count("double 13") == 1


def test_a_held_filter_goes_on_with_other_arguments(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.double | shop.increase)
    shop.unlucky = {13}
    job = pipeline.enqueue(13)
    kit.drain()
    assert app.store.workflows.mend(job.id, path_from("2"), b'{"number":14}', by="ana")
    kit.drain()
    assert kit.result(job) == 29


def test_a_pipeline_may_make_dead_letters_of_what_fails(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.double | shop.increase, on_failure="raise")
    shop.unlucky = {13}
    job = pipeline.enqueue(13)
    kit.drain()
    with pytest.raises(JobDead):
        job.result()
    assert pipeline.progress().failed == 1
    assert [(at.name, at.failed) for at in pipeline.progress().filters] == [("double", 1), ("increase", 0)]
    shop.unlucky.clear()
    app.store.jobs.resubmit([job.id], by="ana")
    kit.drain()
    assert kit.result(job) == 27


def test_an_element_that_fails_keeps_no_other_from_its_way(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double | shop.increase) | fan_in(shop.total))
    shop.unlucky = {13}
    job = pipeline.enqueue("12,13,14")
    kit.drain()
    assert job.state is State.SCHEDULED
    assert "step 3.1.2.1 double failed" in why(app, job)
    assert {"increase 24", "increase 28"} <= set(done), "the others go all their way"
    shop.unlucky.clear()
    assert app.store.workflows.mend(job.id, path_from("3.1.2.1"), None, by="ana")
    kit.drain()
    assert kit.result(job) == 25 + 27 + 29
    assert sorted(done) == sorted(set(done)), "nothing ran twice"


def test_of_two_elements_that_are_held_each_is_mended_and_the_item_stays_held_until_then(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    shop.unlucky = {13, 17}
    job = pipeline.enqueue("13,17")
    kit.drain()
    shop.unlucky.clear()
    app.store.workflows.mend(job.id, path_from("3.1.1.1"), None, by="ana")
    kit.drain()
    assert "step 3.1.2.1 double failed" in why(app, job)
    assert pipeline.progress().held == 1
    app.store.workflows.mend(job.id, path_from("3.1.2.1"), None, by="ana")
    kit.drain()
    assert kit.result(job) == 60


def test_all_that_is_held_goes_on_at_a_resume(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    shop.unlucky = {13, 17}
    job = pipeline.enqueue("13,17,1")
    kit.drain()
    shop.unlucky.clear()
    assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ana")
    kit.drain()
    assert kit.result(job) == 62


def test_an_item_that_is_held_can_be_given_up(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    shop.unlucky = {13}
    given_up, cancelled = pipeline.enqueue("13,1"), pipeline.enqueue("13,1")
    kit.drain()
    assert app.store.workflows.direct(given_up.id, Phase.UNDOING, why="no use", by="ana")
    app.store.jobs.cancel([cancelled.id], by="ana")
    kit.drain()
    assert (given_up.state, cancelled.state) == (State.DEAD, State.CANCELLED)
    progress = pipeline.progress()
    assert (progress.held, progress.failed, progress.cancelled, progress.under_way) == (0, 1, 1, 0)


def test_a_value_that_the_next_filter_cannot_take_holds_the_item(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    @app.task
    def anything(number: int) -> Any:
        return "no number"

    first: Any = anything
    pipeline: Pipeline[..., int] = app.pipeline(first | shop.double)
    job = pipeline.enqueue(1)
    kit.drain()
    assert "step 3 double failed" in why(app, job)
    app.store.workflows.mend(job.id, path_from("3"), b'{"number":5}', by="ana")
    kit.drain()
    assert kit.result(job) == 10


def test_a_value_that_is_too_large_for_a_job_holds_the_item(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.task
    def large(number: int) -> str:
        return "x" * 200_000

    @app.task
    def measure(texts: list[str]) -> int:
        return len(texts)

    reduced = app.pipeline(shop.parse | fan_out(large) | fan_in(measure), name="reduced")
    given = app.pipeline(shop.parse | fan_out(large), name="given")
    jobs: list[Job[Any]] = [reduced.enqueue("1,2"), given.enqueue("1,2")]
    kit.drain()
    assert "what measure would get is 400,0" in why(app, jobs[0])
    assert "the result is 400,007 bytes, over the limit of 262,144" in why(app, jobs[1])
    app.store.workflows.mend(jobs[0].id, path_from("4"), b'{"texts":["a"]}', by="ana")
    kit.drain()
    assert kit.result(jobs[0]) == 1


def test_a_fan_out_of_what_turns_out_to_be_no_list_holds_the_item(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    @app.task
    def anything(number: int) -> Any:
        return {"no": "list"}

    first: Any = anything
    pipeline: Pipeline[..., Any] = app.pipeline(first | fan_out(shop.double))
    job = pipeline.enqueue(1)
    kit.drain()
    assert "fan_out takes a list, and got an object" in why(app, job)
    app.store.jobs.cancel([job.id], by="ana")
    kit.drain()
    assert job.state is State.CANCELLED


def test_an_item_fans_out_to_so_many_elements_and_no_more(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.task
    def count(number: int) -> list[int]:
        return list(range(number))

    @app.task
    def many(numbers: list[int]) -> int:
        return len(numbers)

    pipeline = app.pipeline(count | fan_out(shop.double) | fan_in(many))
    job = pipeline.enqueue(FAN_OUT_MOST + 1)
    kit.drain()
    assert "the item fans out to 1,001 elements, over the limit of 1,000" in why(app, job)
    nested = app.pipeline(count | fan_out(count | fan_out(shop.double)), name="nested").enqueue(50)
    kit.drain(limit=5_000)
    assert "over the limit of 1,000" in why(app, nested)
    assert run_of(app, nested).run.phase is Phase.HELD


def test_a_thousand_elements_pass(app: Lateshift, kit: Kit) -> None:
    @app.task
    def count(number: int) -> list[int]:
        return list(range(number))

    @app.task
    async def same(number: int) -> int:
        return number

    @app.task
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    job = app.pipeline(count | fan_out(same) | fan_in(total)).enqueue(FAN_OUT_MOST)
    kit.drain(limit=5_000)
    assert kit.result(job) == sum(range(FAN_OUT_MOST))


def test_an_item_whose_last_held_step_was_mended_while_that_was_written_is_held_no_more(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    pipeline = app.pipeline(shop.double | shop.increase)
    app.store.queues.pause("more", by="the test")
    raced, kept = pipeline.enqueue(1), pipeline.enqueue(2)
    kit.drain()
    assert app.store.workflows.direct(
        raced.id, Phase.HELD, why="step 2 double failed: Permanent: no", by="the race"
    )
    assert app.store.workflows.direct(kept.id, Phase.HELD, why="to look at it", by="ana")
    app.store.queues.resume("more", by="the test")
    kit.drain()
    assert kit.result(raced) == 3
    assert why(app, kept) == "to look at it"


def test_an_item_held_at_a_fan_out_goes_on_with_another_list(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.task
    def anything(number: int) -> Any:
        return {"no": "list"}

    first: Any = anything
    pipeline: Pipeline[..., Any] = app.pipeline(first | fan_out(shop.double) | fan_in(shop.total))
    job = pipeline.enqueue(1)
    kit.drain()
    progress = pipeline.progress()
    assert [(at.name, at.held) for at in progress.filters if at.held] == [("fan_out", 1)]
    assert app.store.workflows.mend(job.id, path_from("3"), b'{"still":"none"}', by="ana")
    kit.drain()
    assert "fan_out takes a list, and got an object" in why(app, job)
    assert app.store.workflows.mend(job.id, path_from("3"), b"[1,2,13]", by="ana")
    shop.unlucky = {13}
    kit.drain()
    assert "step 4.1.3.1 double failed" in why(app, job)
    shop.unlucky.clear()
    assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ana")
    kit.drain()
    assert kit.result(job) == 32


def test_a_list_that_is_too_long_is_replaced_in_its_own_branch(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.task
    def count(number: int) -> list[int]:
        return list(range(number))

    pipeline = app.pipeline(shop.parse | fan_out(count | fan_out(shop.double)))
    job = pipeline.enqueue(f"2,{FAN_OUT_MOST},3")
    kit.drain()
    assert "over the limit of 1,000" in why(app, job)
    assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ana")
    kit.drain()
    held = [step for step in run_of(app, job).steps if step.name == "fan_out"]
    assert held
    assert "over the limit of 1,000" in why(app, job), "the same list is as long as before"
    for step in held:
        app.store.workflows.mend(job.id, step.path, b"[5]", by="ana")
    kit.drain()
    result = kit.result(job)
    assert [10] in result
    assert len(result) == 3
