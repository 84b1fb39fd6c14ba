"""Another chain while items are under way: each goes on by the one that it began with."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lateshift import Job, Lateshift, Pipeline, fan_in, fan_out
from lateshift.model.workflow.run import Phase
from lateshift.testing import Kit
from tests.workflows.piping import Order, Shop, why


def deploy(app: Lateshift, pipeline: Pipeline[..., Any], chain: Any) -> Pipeline[..., Any]:
    """Another release of the program, with another chain."""
    del app._tasks[pipeline.name]
    return app.pipeline(chain, name=pipeline.name)


def begun(app: Lateshift, shop: Shop, kit: Kit, chain: Any) -> tuple[Pipeline[..., Any], Job[Any]]:
    """An item that waits for its second filter."""
    pipeline: Pipeline[..., Any] = app.pipeline(chain)
    app.store.queues.pause("more", by="the test")
    job = pipeline.enqueue(3)
    kit.drain()
    app.store.queues.resume("more", by="the test")
    return pipeline, job


CHANGES: dict[str, Callable[[Shop], Any]] = {
    "added": lambda shop: shop.double | shop.double | shop.increase | shop.double,
    "removed": lambda shop: shop.increase,
    "reordered": lambda shop: shop.increase | shop.double | shop.double,
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_item_under_way_goes_on_by_the_chain_it_began_with_and_new_ones_by_the_new(
    app: Lateshift, shop: Shop, kit: Kit, change: str
) -> None:
    pipeline, old = begun(app, shop, kit, shop.double | shop.increase | shop.double)
    waiting = pipeline.enqueue(3)  # not begun: it goes by the chain that is there when it begins
    changed = deploy(app, pipeline, CHANGES[change](shop))
    assert app.check().findings == []
    new = changed.enqueue(3)
    kit.drain()
    assert kit.result(old) == 14
    assert kit.result(waiting) == kit.result(new) == {"added": 26, "removed": 4, "reordered": 16}[change]


def test_a_filter_that_an_item_has_passed_may_go(app: Lateshift, shop: Shop, kit: Kit) -> None:
    pipeline, job = begun(app, shop, kit, shop.double | shop.increase)
    del app._tasks["double"]
    deploy(app, pipeline, shop.increase)
    kit.drain()
    assert kit.result(job) == 7


def test_an_item_that_needs_a_filter_which_is_gone_is_held_until_it_is_there_again(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    pipeline, job = begun(app, shop, kit, shop.double | shop.increase | shop.double)
    del app._tasks["double"]
    deploy(app, pipeline, shop.increase)
    kit.drain()
    assert why(app, job) == (
        "the code does not fit what is recorded: the item began with the filter double, and this code has no task of that name"
    )
    [finding] = app.check().findings
    assert (finding.kind, finding.examples) == ("filter_gone", [job.id])
    app._tasks["double"] = shop.double
    assert app.store.workflows.direct(job.id, Phase.FORWARD, why="", by="ana")
    kit.drain()
    assert kit.result(job) == 14


def test_a_class_between_two_filters_may_change_while_items_are_under_way(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    @app.task(name="make")
    def make(number: int) -> Order:
        return Order(number, [])

    @app.task(name="use", queue="more")
    def use(order: Order) -> int:
        return order.number

    pipeline, job = begun(app, shop, kit, make | use | shop.double)

    class NewOrder(msgspec.Struct):
        number: int
        lines: list[str]
        paid: bool = False

    del app._tasks["make"], app._tasks["use"]

    @app.task(name="make")
    def make_new(number: int) -> NewOrder:
        return NewOrder(number, [])

    @app.task(name="use", queue="more")
    def use_new(order: NewOrder) -> int:
        return order.number + 100

    make_new.__annotations__["return"] = NewOrder
    make_new.function.__annotations__["return"] = NewOrder
    use_new.function.__annotations__["order"] = NewOrder
    deploy(app, pipeline, make_new | use_new | shop.double)
    kit.drain()
    assert kit.result(job) == 206


def test_a_check_tells_of_filters_that_items_come_to_only_later(app: Lateshift, shop: Shop, kit: Kit) -> None:
    @app.task
    def last(number: int) -> int:
        return number

    pipeline, waits = begun(app, shop, kit, shop.double | shop.increase | last)
    other: Pipeline[..., Any] = app.pipeline(
        shop.parse | fan_out(shop.increase | shop.double) | fan_in(shop.total), name="other", queue="items"
    )
    app.store.queues.pause("more", by="the test")
    inside = other.enqueue("1,2")
    kit.drain()
    app.store.queues.pause("texts", by="the test")
    before = other.enqueue("3")
    kit.drain()
    del app._tasks["total"], app._tasks["last"]
    deploy(app, pipeline, shop.double | shop.increase)
    deploy(app, other, shop.parse | fan_out(shop.increase | shop.double))
    found = {finding.task: finding for finding in app.check().findings}
    assert {finding.kind for finding in found.values()} == {"filter_gone"}
    assert found[pipeline.name].examples == [waits.id]
    assert found["other"].examples == [before.id, inside.id]
    del app._tasks["double"]
    deploy(app, other, shop.parse | fan_out(shop.increase))
    errors = {finding.error for finding in app.check().findings if finding.task == "other"}
    assert errors == {
        "items have yet to pass the filters double, total, and this code has no task of that name"
    }


def test_the_first_filter_may_take_other_arguments_while_items_are_past_it(
    app: Lateshift, shop: Shop, kit: Kit
) -> None:
    pipeline, job = begun(app, shop, kit, shop.double | shop.increase)

    @app.task(queue="numbers")
    def parsed(text: str, base: int) -> int:
        return int(text, base)

    deploy(app, pipeline, parsed | shop.increase)
    assert app.check().findings == []
    kit.drain()
    assert kit.result(job) == 7
