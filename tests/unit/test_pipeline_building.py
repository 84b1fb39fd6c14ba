"""A pipeline whose filters do not fit together is refused where it is built, with both of them named."""

from collections.abc import Callable
from typing import Any

import pytest

from lateshift import Flow, Lateshift, fan_in, fan_out
from lateshift.errors import PipelineInvalid, TaskInvalid, WorkflowInvalid
from lateshift.model.pipeline.building import PARTS_MOST
from lateshift.model.pipeline.chain import Chain, FanIn, FanOut, Filter


@pytest.fixture
def app() -> Lateshift:
    app = Lateshift("shop")

    @app.task(queue="texts")
    def parse(text: str, separator: str = ",") -> list[int]:
        return []

    @app.task(queue="numbers")
    def double(number: int) -> int:
        return number * 2

    @app.task(queue="sums")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task
    def greet(name: str) -> str:
        return name

    @app.task
    def untold(value):  # type: ignore[no-untyped-def]
        return value

    @app.task
    def both(left: int, right: int) -> int:
        return left

    @app.task
    def nothing() -> int:
        return 0

    return app


def refused(app: Lateshift, chain: Any, **options: Any) -> str:
    before = dict(app.tasks)
    with pytest.raises(PipelineInvalid) as raised:
        app.pipeline(chain, **options)
    assert dict(app.tasks) == before, "what is refused is not registered"
    assert app.client.feeds == {}
    return str(raised.value)


def test_both_filters_both_types_and_a_remedy_are_named(app: Lateshift) -> None:
    tasks = app.tasks
    assert refused(app, tasks["double"] | tasks["greet"], name="orders") == (
        "The pipeline orders does not fit together: double returns int, and greet, which comes next, takes name: str. Change one of the two "
        "annotations, or put a filter between them that makes the one of the other."
    )


def test_the_elements_of_a_list_are_looked_at(app: Lateshift) -> None:
    tasks = app.tasks
    said = refused(app, tasks["parse"] | fan_out(tasks["greet"]))
    assert "each element of what parse returns is int, and greet, which comes next, takes name: str" in said


def test_what_a_fan_out_gives_is_a_list(app: Lateshift) -> None:
    tasks = app.tasks
    said = refused(app, tasks["parse"] | fan_out(tasks["double"]) | tasks["double"])
    assert "fan_out(double) returns list[int], and double, which comes next, takes number: int" in said
    app.pipeline(tasks["parse"] | fan_out(tasks["double"]) | fan_in(tasks["total"]) | tasks["double"])


def test_a_fan_out_of_what_is_no_list_is_refused(app: Lateshift) -> None:
    tasks = app.tasks
    said = refused(app, tasks["double"] | fan_out(tasks["double"]))
    assert "fan_out takes a list, and double returns int. Let double return a list, such as list[int]" in said


def test_a_fan_out_of_something_that_may_be_none_is_refused(app: Lateshift) -> None:
    @app.task
    def maybe(text: str) -> list[int] | None:
        return None

    assert "fan_out takes a list, and maybe returns list[int] | None" in refused(
        app, maybe | fan_out(app.tasks["double"])
    )


def test_filters_without_annotations_fit_everything(app: Lateshift) -> None:
    tasks = app.tasks
    app.pipeline(
        tasks["parse"] | tasks["untold"] | fan_out(tasks["greet"]) | tasks["untold"] | tasks["double"]
    )


def test_the_first_filter_may_take_several_arguments_and_the_others_one(app: Lateshift) -> None:
    tasks = app.tasks
    app.pipeline(tasks["both"] | tasks["double"])
    with pytest.raises(
        PipelineInvalid, match="both gets one value, left, from the filter before it, and needs right too"
    ):
        app.pipeline(tasks["double"] | tasks["both"], name="other")
    with pytest.raises(PipelineInvalid, match="nothing takes nothing that a filter could be given"):
        app.pipeline(tasks["double"] | tasks["nothing"], name="other")


def test_further_parameters_of_a_filter_need_a_default(app: Lateshift) -> None:
    @app.task
    def scale(number: int, by: int = 10, *, up: bool = True) -> int:
        return number

    @app.task
    def needy(number: int, *, up: bool) -> int:
        return number

    app.pipeline(app.tasks["double"] | scale)
    assert "needy gets one value, number, from the filter before it, and needs up too" in refused_again(
        app, app.tasks["double"] | needy
    )


def refused_again(app: Lateshift, chain: Any) -> str:
    with pytest.raises(PipelineInvalid) as raised:
        app.pipeline(chain, name="another")
    return str(raised.value)


def test_a_function_is_no_filter(app: Lateshift) -> None:
    double: Any = app.tasks["double"]

    def plain(number: int) -> int:
        return number

    joins: list[Callable[[], Any]] = [
        lambda: double | plain,
        lambda: plain | double,
        lambda: fan_out(plain),  # type: ignore[arg-type]
        lambda: fan_in(plain),  # type: ignore[arg-type]
        lambda: app.pipeline(plain),  # type: ignore[arg-type]
    ]
    said = "plain is no task, so it cannot be a filter of a pipeline: register it with @app[.]task"
    for join in joins:
        with pytest.raises(PipelineInvalid, match=said):
            join()


def test_something_else_is_no_filter_either(app: Lateshift) -> None:
    double: Any = app.tasks["double"]
    with pytest.raises(
        PipelineInvalid, match=r"7 cannot be a filter of a pipeline\. Filters are tasks, joined with \|"
    ):
        double | 7
    with pytest.raises(PipelineInvalid, match="None cannot be a filter"):
        app.pipeline(None)  # type: ignore[arg-type]


def test_what_is_meant_otherwise_is_said_in_a_few_words(app: Lateshift) -> None:
    double: Any = app.tasks["double"]
    total: Any = app.tasks["total"]
    whole: Any = app.pipeline(double)
    slips: list[tuple[Callable[[], Any], str]] = [
        (lambda: fan_out(double, double), "fan_out takes one chain, joined with |: fan_out(double | double)."),
        (lambda: fan_in(total, double), "fan_in takes one task: fan_in(total)."),
        (lambda: double | double.call(1), "double.call(…) has its arguments already, and a filter gets what the one before"),
        (lambda: double | ("x" * 500), f"'{'x' * 58}… cannot be a filter of a pipeline."),
        (lambda: whole(1), "shop.pipeline is a pipeline: its filters run in workers. Put an item in with enqueue(…)."),
    ]  # fmt: skip
    for slip, said in slips:
        with pytest.raises(WorkflowInvalid if "in workers" in said else PipelineInvalid) as found:
            slip()
        assert said in str(found.value)


def test_an_empty_chain_is_refused(app: Lateshift) -> None:
    assert "has no filter: app.pipeline(parse | enrich) takes tasks" in refused(app, Chain(()))
    assert "a fan_out has no filter" in refused(app, app.tasks["parse"] | fan_out(Chain(())))


def test_a_fan_in_needs_a_fan_out_right_before_it(app: Lateshift) -> None:
    tasks = app.tasks
    said = "fan_in(total) has no fan_out right before it. After any other filter, write the task itself: … | total."
    assert said in refused(app, tasks["parse"] | fan_in(tasks["total"]))
    assert said in refused(app, fan_in(tasks["total"]))
    with pytest.raises(PipelineInvalid, match="fan_in takes one task, which gets the list of results"):
        fan_in(tasks["total"] | tasks["double"])


def test_a_name_is_given_once(app: Lateshift) -> None:
    double = app.tasks["double"]
    app.pipeline(double)
    with pytest.raises(
        PipelineInvalid,
        match=r"There is a pipeline or a task 'shop\.pipeline' already\. Give one of the two another name=",
    ):
        app.pipeline(double)
    with pytest.raises(PipelineInvalid, match="There is a pipeline or a task 'double' already"):
        app.pipeline(double, name="double")


def test_a_task_of_another_app_is_refused(app: Lateshift) -> None:
    elsewhere = Lateshift("elsewhere")

    @elsewhere.task
    def double(number: int) -> int:
        return number

    assert "double is a task of another app" in refused(app, app.tasks["double"] | double)


def test_filters_that_are_not_joined_are_refused_with_the_chain_that_was_meant(app: Lateshift) -> None:
    double = app.tasks["double"]
    with pytest.raises(PipelineInvalid) as said:
        app.pipeline(double, double, double)  # type: ignore[arg-type]
    assert "app.pipeline takes one chain, joined with |: app.pipeline(double | double | double)." in str(
        said.value
    )


def test_options_that_only_one_item_can_have_are_refused(app: Lateshift) -> None:
    double = app.tasks["double"]
    numbered = double.options(session="s", sequence=1)
    assert "double has a sequence=, which only one item can have" in refused(app, double | numbered)
    assert "double has a connection=" in refused(app, double | double.options(connection=object()))


def test_a_chain_has_so_many_parts_and_no_more(app: Lateshift) -> None:
    double: Any = app.tasks["double"]
    chain = double
    for _ in range(PARTS_MOST - 1):
        chain = chain | double
    app.pipeline(chain)
    with pytest.raises(PipelineInvalid, match=f"has 101 parts, over the limit of {PARTS_MOST}"):
        app.pipeline(chain | double, name="longer")
    deep = double
    for _ in range(PARTS_MOST):
        deep = fan_out(deep)
    with pytest.raises(PipelineInvalid, match="over the limit"):
        app.pipeline(deep, name="deeper")


def test_an_annotation_that_cannot_be_resolved_is_told(app: Lateshift) -> None:
    @app.task
    def later(number: "NotThereYet") -> int:  # type: ignore[name-defined]  # noqa: F821
        return 0

    with pytest.raises(TaskInvalid, match="later has an annotation that cannot be resolved"):
        app.pipeline(app.tasks["double"] | later)


def test_a_chain_is_walked_by_its_parts(app: Lateshift) -> None:
    tasks = app.tasks
    pipeline = app.pipeline(
        tasks["parse"]
        | fan_out(tasks["double"] | tasks["double"].options(queue="slow"))
        | fan_in(tasks["total"])
    )
    first, middle, last = pipeline.chain.parts
    assert isinstance(first, Filter)
    assert isinstance(middle, FanOut)
    assert isinstance(last, FanIn)
    assert [(each.name, each.queue) for each in pipeline.chain.filters()] == [
        ("parse", "texts"), ("double", "numbers"), ("double", "slow"), ("total", "sums"),
    ]  # fmt: skip
    assert str(pipeline.chain) == "parse | fan_out(double | double) | fan_in(total)"


def test_each_filter_that_feeds_another_queue_is_known_by_name(app: Lateshift) -> None:
    tasks = app.tasks
    app.pipeline(tasks["parse"] | fan_out(tasks["double"]) | fan_in(tasks["total"]) | tasks["untold"])
    assert app.client.feeds == {
        "parse": {("texts", "numbers")},
        "double": {("numbers", "sums")},
        "total": {("sums", "default")},
    }


def test_of_a_pipeline_that_is_a_filter_the_last_one_feeds_and_of_a_workflow_none(app: Lateshift) -> None:
    @app.workflow(queue="runs")
    async def wait(flow: Flow, number: int) -> int:
        return number

    tasks = app.tasks
    inner = app.pipeline(tasks["parse"] | tasks["total"], name="inner")
    app.pipeline(inner | tasks["double"] | wait | tasks["untold"])
    assert app.client.feeds == {
        "parse": {("texts", "sums")},
        "total": {("sums", "numbers")},
        "double": {("numbers", "runs")},
    }


def test_queues_that_would_feed_one_another_in_a_circle_are_not_held_back(app: Lateshift) -> None:
    tasks = app.tasks
    app.pipeline(tasks["double"] | tasks["double"].options(queue="slow"))
    app.pipeline(tasks["both"].options(queue="slow") | tasks["double"].options(queue="numbers"), name="back")
    app.pipeline(tasks["parse"] | tasks["total"], name="on")
    assert app.client.feeds == {"double": {("numbers", "slow")}, "parse": {("texts", "sums")}}
