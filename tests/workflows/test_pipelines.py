"""A pipeline takes each item through its filters, each a job on its own queue, and says how far everything is."""

from datetime import timedelta
from typing import Any

import pytest

from lateshift import (
    Flow,
    Job,
    Lateshift,
    Limit,
    PipelineProgress,
    QueueFull,
    fan_in,
    fan_out,
)
from lateshift.errors import PipelineInvalid
from lateshift.model.workflow.step import StepState
from lateshift.testing import Kit
from lateshift.workflow.graph.recorded import recorded
from tests.workflows.piping import Order, Shop, run_of


def test_an_item_goes_through_all_filters_in_order(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.double | shop.increase | shop.double)
    job = pipeline.enqueue(3)
    kit.drain()
    assert kit.result(job) == 14
    assert done == ["double 3", "increase 6", "double 7"]


def test_each_filter_is_a_job_on_its_own_queue(app: Lateshift, shop: Shop, kit: Kit, done: list[str]) -> None:
    pipeline = app.pipeline(shop.double | shop.increase | shop.double.options(queue="slow", priority=3))
    app.store.queues.pause("slow", by="the test")
    job = pipeline.enqueue(3)
    kit.drain()
    assert done == ["double 3", "increase 6"]
    jobs = [app.store.reports.job(step.job) for step in run_of(app, job).steps if step.job]
    assert [(each.queue, each.priority) for each in jobs if each] == [
        ("numbers", 0),
        ("more", 0),
        ("slow", 3),
    ]
    app.store.queues.resume("slow", by="the test")
    kit.drain()
    assert kit.result(job) == 14


def test_the_first_filter_has_its_own_signature(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | shop.total)
    jobs = [
        pipeline.enqueue("1,2"),
        pipeline.enqueue("1 2", separator=" "),
        pipeline.options(key="one").enqueue("5"),
    ]
    assert pipeline.options(key="one").enqueue("5").id == jobs[2].id
    kit.drain()
    assert [kit.result(job) for job in jobs] == [3, 3, 5]
    with pytest.raises(TypeError, match=r"shop\.pipeline: argument 'text': expected `str`, got `int`"):
        pipeline.enqueue(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got an unknown argument 'by'"):
        pipeline.enqueue("1", by=2)  # type: ignore[call-arg]


def test_items_are_put_in_one_by_one_or_many_at_a_time(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.double | shop.increase)
    assert app.enqueue_many(pipeline.call(number) for number in range(20)) == 20
    batch = app.batch(pipeline.call(number) for number in range(5))
    kit.drain()
    assert pipeline.progress().completed == 25
    assert sorted(result.value for result in batch.results()) == [1, 3, 5, 7, 9]


def test_a_fan_out_runs_its_chain_for_each_element_and_a_fan_in_reduces(
    app: Lateshift, shop: Shop, kit: Kit, done: list[str]
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double | shop.increase) | fan_in(shop.total))
    job = pipeline.enqueue("3,1,2")
    kit.drain()
    assert kit.result(job) == 7 + 3 + 5
    assert done[0] == "parse 3,1,2"
    assert done[-1] == "total [7, 3, 5]", "the results come in the order of the elements"
    assert sorted(done[1:-1]) == [
        "double 1",
        "double 2",
        "double 3",
        "increase 2",
        "increase 4",
        "increase 6",
    ]


def test_all_elements_are_under_way_at_once(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    app.store.queues.pause("numbers", by="the test")
    job = pipeline.enqueue(",".join(map(str, range(50))))
    kit.drain()
    assert [(at.name, at.waiting) for at in pipeline.progress().filters] == [
        ("parse", 0),
        ("double", 50),
        ("total", 0),
    ]
    app.store.queues.resume("numbers", by="the test")
    kit.drain()
    assert kit.result(job) == 2 * sum(range(50))


def test_a_fan_out_without_a_fan_in_gives_the_list_on(app: Lateshift, shop: Shop, kit: Kit) -> None:
    last = app.pipeline(shop.parse | fan_out(shop.double), name="last")
    between = app.pipeline(shop.parse | fan_out(shop.double) | shop.total, name="between")
    twice = app.pipeline(shop.parse | fan_out(shop.double) | fan_out(shop.increase), name="twice")
    jobs: list[Job[Any]] = [last.enqueue("1,2"), between.enqueue("1,2"), twice.enqueue("1,2")]
    kit.drain()
    assert [kit.result(job) for job in jobs] == [[2, 4], 6, [3, 5]]


def test_fan_outs_stand_inside_one_another(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.task
    def lines(text: str) -> list[str]:
        return text.splitlines()

    inner = shop.parse | fan_out(shop.double) | fan_in(shop.total)
    pipeline = app.pipeline(lines | fan_out(inner | shop.increase) | fan_in(shop.total))
    job = pipeline.enqueue("1,2\n3\n4,5,6")
    kit.drain()
    assert kit.result(job) == (6 + 1) + (6 + 1) + (30 + 1)


def test_a_list_with_nothing_in_it_is_a_list(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    job = pipeline.enqueue("")
    kit.drain()
    assert kit.result(job) == 0


def test_a_pipeline_may_begin_with_a_fan_out(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(fan_out(shop.double) | fan_in(shop.total))
    job = pipeline.enqueue([1, 2, 3])
    kit.drain()
    assert kit.result(job) == 12
    with pytest.raises(TypeError, match="expected `int`, got `str`"):
        pipeline.enqueue(["a"])


def test_values_of_any_type_pass_as_they_are(app: Lateshift, kit: Kit, done: list[str]) -> None:
    @app.task
    def order(number: int) -> Order:
        return Order(number, ["a", "ñ"])

    @app.task
    def nothing(order: Order) -> None:
        done.append(f"{order.number} {order.lines}")

    @app.task
    def something(value: None) -> dict[str, float | None]:
        return {"value": value, "half": 0.5}

    job = app.pipeline(order | nothing | something).enqueue(7)
    ends_in_nothing = app.pipeline(order | nothing, name="short").enqueue(8)
    kit.drain()
    assert kit.result(job) == {"value": None, "half": 0.5}
    assert kit.result(ends_in_nothing) is None
    assert done == ["7 ['a', 'ñ']", "8 ['a', 'ñ']"] or done == ["8 ['a', 'ñ']", "7 ['a', 'ñ']"]


def test_a_workflow_or_another_pipeline_may_be_a_filter(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.workflow
    async def wait(flow: Flow, number: int) -> int:
        await flow.sleep(timedelta(days=1))
        return number + 100

    inner = app.pipeline(shop.double | shop.increase, name="inner")
    job = app.pipeline(shop.double | wait | inner).enqueue(1)
    kit.drain()
    assert run_of(app, job).run.status == "2 of 3: wait"
    kit.travel(days=1)
    assert kit.result(job) == 205


def test_progress_counts_items_and_what_stands_at_each_filter(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.double | shop.increase, name="orders")
    assert pipeline.progress() == PipelineProgress(
        name="orders", waiting=0, under_way=0, held=0, completed=0, failed=0, cancelled=0, filters=pipeline.progress().filters
    )  # fmt: skip
    shop.unlucky = {13}
    pipeline.enqueue(1)
    kit.drain()
    app.store.queues.pause("more", by="the test")
    for number in (2, 3, 13):
        pipeline.enqueue(number)
    kit.drain()
    pipeline.enqueue(4)
    pipeline.options(delay=timedelta(hours=1)).enqueue(5)
    shop.double.enqueue(6)  # no item of the pipeline
    progress = pipeline.progress()
    assert (progress.waiting, progress.under_way, progress.held, progress.completed) == (2, 2, 1, 1)
    assert [(at.name, at.queue, at.waiting, at.running, at.held, at.failed) for at in progress.filters] == [
        ("double", "numbers", 0, 0, 1, 0),
        ("increase", "more", 2, 0, 0, 0),
    ]


def test_each_item_says_how_far_it_is(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double | shop.increase) | fan_in(shop.total))
    said = []
    for queue in ("texts", "numbers", "more", "sums"):
        app.store.queues.pause(queue, by="the test")
    job = pipeline.options(queue="runs").enqueue("1,2")
    for queue in ("texts", "numbers", "more", "sums"):
        kit.drain()
        said.append(run_of(app, job).run.status)
        app.store.queues.resume(queue, by="the test")
    kit.drain()
    assert said == [
        "1 of 3: parse",
        "2 of 3: fan_out(double | increase)",
        "2 of 3: fan_out(double | increase)",
        "3 of 3: fan_in(total)",
    ]
    assert kit.result(job) == 8


def test_items_wait_in_the_queue_of_the_first_filter_and_are_bounded_by_it(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    app.queue("numbers", max_ready=3)
    pipeline = app.pipeline(shop.double | shop.increase)
    jobs = [pipeline.enqueue(number) for number in range(3)]
    with pytest.raises(QueueFull, match="As many jobs wait in the queue numbers as its max_ready, 3"):
        pipeline.enqueue(3)
    kit.drain()
    pipeline.enqueue(4)
    kit.drain()
    assert [kit.result(job) for job in jobs] == [1, 3, 5]


def test_an_item_has_one_more_priority_than_the_first_filter_so_that_it_goes_on_before_others_begin(
    app: Lateshift, shop: Shop
) -> None:
    pipeline = app.pipeline(shop.double | shop.increase)
    assert pipeline.limits.priority == shop.double.limits.priority + 1
    assert app.pipeline(shop.double, name="other", priority=-3).limits.priority == -3


def test_a_first_queue_with_a_limit_is_not_for_items(app: Lateshift, shop: Shop, kit: Kit) -> None:
    app.queue("numbers", limit=Limit(concurrency=2))
    with pytest.raises(PipelineInvalid, match="the queue numbers of its first filter double has a limit"):
        app.pipeline(shop.double | shop.increase)
    job = app.pipeline(shop.double | shop.increase, queue="items").enqueue(1)
    kit.drain()
    assert kit.result(job) == 3


def test_held_steps_are_those_of_jobs(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.double | shop.increase)
    shop.unlucky = {1}
    job = pipeline.enqueue(1)
    kit.drain()
    states = {step.name: step.state for step in run_of(app, job).steps}
    assert states == {"shape": StepState.COMPLETED, "double": StepState.HELD}


def test_its_graph_shows_the_filters_with_their_queues_and_what_is_done_for_each(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double | shop.increase) | fan_in(shop.total))
    drawn = pipeline.graph()
    named = {node.id: node.label for node in drawn.nodes}
    assert [(node.label, node.queue) for node in drawn.nodes if node.queue] == [
        ("parse", "texts"), ("double", "numbers"), ("increase", "more"), ("total", "sums"),
    ]  # fmt: skip
    assert [(named[edge.source], edge.label, named[edge.target]) for edge in drawn.edges] == [
        ("shop.pipeline", None, "parse"), ("parse", None, "together"), ("together", "each", "double"), ("double", None, "increase"),
        ("increase", None, "all have ended"), ("all have ended", None, "total"), ("total", None, "end"),
    ]  # fmt: skip
    assert "parse" in drawn.mermaid()
    assert drawn.svg().startswith("<svg")


def test_the_graph_of_an_item_shows_what_became_of_each_filter(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline = app.pipeline(shop.parse | fan_out(shop.double) | fan_in(shop.total))
    shop.unlucky.add(2)
    job = pipeline.enqueue("1,2")
    kit.drain()
    states = [(node.label, node.state) for node in recorded(run_of(app, job), "held").nodes if node.state]
    assert sorted(states) == [("double", "completed"), ("double", "held"), ("parse", "completed")]
