"""Of the elements of a fan_out so many are under way at once; the others wait for their turn, and are nowhere but in the list."""

import pytest

from lateshift import JobFilter, Lateshift, State, fan_in, fan_out
from lateshift.errors import OptionInvalid
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import StepState
from lateshift.testing import Kit
from lateshift.workflow.passing import FAN_OUT_AT_ONCE
from lateshift.workflow.turns import Turns, give_all
from tests.workflows.piping import Shop, run_of


def waiting(app: Lateshift, *queues: str) -> list[int]:
    return [app.store.queues.waiting(queue, 10_000) for queue in queues]


def numbers(count: int) -> str:
    return ",".join(map(str, range(1, count + 1)))


def begun(done: list[str], filter: str) -> list[int]:
    return sorted(int(line.split()[1]) for line in done if line.startswith(filter))


def test_so_many_elements_are_put_into_the_next_queue_and_the_others_follow_as_those_end(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    app.store.queues.pause("numbers", by="the test")
    job = pipeline.enqueue(numbers(FAN_OUT_AT_ONCE + 50))
    kit.drain()
    assert waiting(app, "numbers") == [FAN_OUT_AT_ONCE]
    assert sum(step.name == "double" for step in run_of(app, job).steps) == FAN_OUT_AT_ONCE, (
        "what has not begun is written nowhere"
    )
    app.store.queues.resume("numbers", by="the test")
    kit.drain(limit=10_000)
    assert kit.result(job) == sum(range(1, FAN_OUT_AT_ONCE + 51)) * 2
    assert begun(done, "double") == list(range(1, FAN_OUT_AT_ONCE + 51)), "each once"


def test_how_many_is_said_where_the_pipeline_is_built_and_counts_to_the_end_of_the_inner_chain(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double | shop.increase, at_once=3) | fan_in(shop.total))
    app.store.queues.pause("more", by="the test")
    job = pipeline.enqueue(numbers(8))
    kit.drain()
    assert begun(done, "double") == [1, 2, 3], "in order; the others wait until those are through"
    assert waiting(app, "numbers", "more") == [0, 3]
    app.store.queues.resume("more", by="the test")
    app.store.queues.pause("numbers", by="the test")
    kit.drain()
    assert waiting(app, "numbers", "more") == [3, 0]
    app.store.queues.resume("numbers", by="the test")
    kit.drain()
    assert kit.result(job) == sum(number * 2 + 1 for number in range(1, 9))


def test_without_that_one_item_puts_in_no_more_than_the_bounded_queue_holds(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    app.queue("numbers", max_ready=4)
    pipeline = app.pipeline(shop.parse | fan_out(shop.double | shop.increase) | fan_in(shop.total))
    app.store.queues.pause("numbers", by="the test")
    job = pipeline.enqueue(numbers(10))
    kit.drain()
    assert waiting(app, "numbers") == [4]
    app.store.queues.resume("numbers", by="the test")
    kit.drain()
    assert kit.result(job) == sum(number * 2 + 1 for number in range(1, 11))


def test_what_is_held_takes_no_turn_from_the_others(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    shop.unlucky = {1, 2, 3, 5}
    pipeline = app.pipeline(shop.parse | fan_out(shop.double, at_once=2) | fan_in(shop.total))
    job = pipeline.enqueue(numbers(7))
    kit.drain()
    assert begun(done, "double") == [4, 6, 7]
    held = [step for step in run_of(app, job).steps if step.state is StepState.HELD]
    assert len(held) == 4
    assert run_of(app, job).run.phase is Phase.HELD
    shop.unlucky = set()
    assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ana")
    kit.drain()
    assert kit.result(job) == 2 * sum(range(1, 8))
    assert begun(done, "double") == list(range(1, 8)), "each once"


def test_what_has_not_begun_does_not_begin_when_the_item_is_given_up(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double, at_once=2) | fan_in(shop.total))
    app.store.queues.pause("numbers", by="the test")
    cancelled, undone = pipeline.enqueue(numbers(9)), pipeline.enqueue(numbers(8))
    kit.drain()
    app.store.jobs.cancel([cancelled.id], by="ana")
    assert app.store.workflows.direct(undone.id, Phase.UNDOING, why="wrong", by="ana")
    kit.drain()
    app.store.queues.resume("numbers", by="the test")
    kit.drain()
    assert begun(done, "double") == []
    ends = {job.id: app.store.reports.job(job.id) for job in (cancelled, undone)}
    assert {view.state for view in ends.values() if view} == {State.CANCELLED, State.DEAD}
    assert app.store.reports.jobs(JobFilter(queue="numbers", state=State.READY), 10) == []


def test_a_fan_out_inside_another_has_its_own_number_over_the_whole_item(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    @app.task
    def lines(text: str) -> list[str]:
        return text.splitlines()

    inner = shop.parse | fan_out(shop.double, at_once=4) | fan_in(shop.total)
    pipeline = app.pipeline(lines | fan_out(inner, at_once=2) | fan_in(shop.total))
    app.store.queues.pause("numbers", by="the test")
    job = pipeline.enqueue("\n".join([numbers(3)] * 5))
    kit.drain()
    assert waiting(app, "numbers") == [4], "three of the first line, one of the second"
    assert sum(step.name == "parse" for step in run_of(app, job).steps) == 2
    app.store.queues.resume("numbers", by="the test")
    kit.drain()
    assert kit.result(job) == 5 * 12


def test_an_element_whose_own_elements_are_all_held_takes_no_turn_either(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    @app.task
    def lines(text: str) -> list[str]:
        return text.splitlines()

    shop.unlucky = {1, 2}
    inner = shop.parse | fan_out(shop.double, at_once=1) | fan_in(shop.total)
    pipeline = app.pipeline(lines | fan_out(inner, at_once=1) | fan_in(shop.total))
    job = pipeline.enqueue("1,2\n3")
    kit.drain()
    assert begun(done, "double") == [3]
    shop.unlucky = set()
    assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ana")
    kit.drain()
    assert kit.result(job) == 12


@pytest.mark.parametrize("at_once", [0, -1, 2.0, True, "3"])
def test_a_number_that_is_none_is_refused_where_it_is_given(shop: Shop, at_once: object) -> None:
    with pytest.raises(OptionInvalid, match="at_once is a number of elements, 1 or more, not"):
        fan_out(shop.double, at_once=at_once)  # type: ignore[arg-type]


def test_turns_go_round_by_what_is_under_way() -> None:
    turns = Turns(2)
    for branch in ("5.1.1", "5.1.2", "5.1.3"):
        turns.wait(branch)
    assert give_all([turns], []) == ["5.1.1", "5.1.2"]
    assert give_all([turns], ["5.1.1.1", "5.1.2.4"]) == []
    assert give_all([turns], ["5.1.2.4"]) == ["5.1.3"], "the first is held"
    turns.leave("5.1.2")
    assert give_all([turns], []) == []
