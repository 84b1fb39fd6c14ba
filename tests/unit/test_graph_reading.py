"""The graph of a workflow, read from its code: steps one after another, branches and loops, and what leads where in each."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from lateshift import Flow, StepFailed
from lateshift.workflow.graph.reading import read
from tests.unit.graph_shop import (
    CHOSEN,
    EPOCH,
    HANDLERS,
    MONTH,
    Cases,
    a,
    b,
    c,
    charge,
    drawn,
    packing,
    refund,
    shop,
)

CASES = Cases()
leads = CASES.leads

# -- one after another -------------------------------------------------------------------------------------------------


@leads("START -> END")
async def nothing(flow: Flow) -> int:
    flow.status("nothing to do")
    return flow.random().randint(1, 2) if flow.now() > EPOCH else 3


@leads("START -> a undone by b", "a undone by b -> task charge on payments undone by refunds.pay",
       "task charge on payments undone by refunds.pay -> c", "c -> END")  # fmt: skip
async def in_a_line(anything: Flow, order: int) -> Any:
    first = await anything.step(a, order, undo=b)
    paid = await anything.step(charge, order, undo=refund)
    return await anything.step(c, first, paid, undo=None)


@leads("START -> sleep 2 days", "sleep 2 days -> sleep 90 minutes", "sleep 90 minutes -> sleep 30 days",
       "sleep 30 days -> sleep 1d 0h", "sleep 1d 0h -> sleep pause * 2", "sleep pause * 2 -> wait for picked (at most 2 hours)",
       "wait for picked (at most 2 hours) -> wait for at last", "wait for at last -> emit order.placed",
       "emit order.placed -> child packing", "child packing -> END")  # fmt: skip
async def what_there_is(flow: Flow, pause: timedelta) -> None:
    await flow.sleep(timedelta(days=2))
    await flow.sleep(timedelta(minutes=90))
    await flow.sleep(MONTH)
    await flow.sleep(timedelta(hours=24, milliseconds=1))
    await flow.sleep(pause * 2)
    await flow.wait_for("picked", timeout=timedelta(hours=2))
    await flow.wait_for(name="at last", timeout=None)
    await flow.emit("order.placed", {"order": 7})
    await flow.child(packing, 7)


@leads("START -> b", "b -> a", "a -> c", "c -> END")
async def in_the_middle_of_expressions(flow: Flow) -> Any:
    return 1 + await flow.step(a, [await flow.step(b)]) + len(f"{await flow.step(c)}")


# -- what a step runs --------------------------------------------------------------------------------------------------


@leads("START -> first", "first -> part {number}", "part {number} -> a", "a -> <lambda>", "<lambda> -> inner", "inner -> pack",
       "pack -> b", "b -> task charge on fast", "task charge on fast -> task charge (on a queue chosen at run time)",
       "task charge (on a queue chosen at run time) -> task charge on payments", "task charge on payments -> END")  # fmt: skip
async def names(flow: Flow, number: int) -> None:
    def inner() -> None: ...

    await flow.step(a, name="first")
    await flow.step(a, name=f"part {number}")
    await flow.step(a, name=str(number))
    await flow.step(lambda: 7)
    await flow.step(inner)
    await flow.step(shop.pack, 7)
    await flow.step(partial(b, 7))
    await flow.step(charge.options(queue="fast"), 7)
    await flow.step(charge.options(queue=HANDLERS["queue"].__name__), 7)
    await flow.step(charge.options(priority=3), 7)


@leads(f"START -> given {CHOSEN}", f"given {CHOSEN} -> HANDLERS['x'] {CHOSEN}", f"HANDLERS['x'] {CHOSEN} -> shop.chosen {CHOSEN}",
       f"shop.chosen {CHOSEN} -> shop.missing {CHOSEN}", f"shop.missing {CHOSEN} -> local {CHOSEN}", f"local {CHOSEN} -> named {CHOSEN}",
       f"named {CHOSEN} -> END")  # fmt: skip
async def chosen_at_run_time(flow: Flow, given: Callable[..., Any], order: int) -> None:
    await flow.step(given)
    await flow.step(HANDLERS["x"])
    await flow.step(shop.chosen)
    await flow.step(shop.missing)  # type: ignore[attr-defined]
    local = a if order else b
    await flow.step(local)
    await flow.step(local, name="named")


# -- branches ----------------------------------------------------------------------------------------------------------


@leads("START -> <order > 3>", "<order > 3> -yes-> a", "<order > 3> -no-> <order == 1>", "a -> c", "<order == 1> -yes-> b",
       "<order == 1> -no-> c", "b -> c", "c -> END")  # fmt: skip
async def if_and_elif(flow: Flow, order: int) -> None:
    if order > 3:
        await flow.step(a)
    elif order == 1:
        await flow.step(b)
    await flow.step(c)


@leads("START -> a", "a -> END")
async def a_branch_without_steps_is_left_out(flow: Flow, order: int) -> int:
    if order > 3:
        order = 3
    elif order < 0:
        flow.status("odd")
    for number in range(3):
        while order:
            order -= number
    try:
        order = int("7")
    except ValueError:
        order = 0
    await flow.step(a)
    if order == 7:
        return 1
    match order:
        case 3:
            return 2
    return order if order > 9 else 3


@leads("START -> a", "a -> <a and order>", "<a and order> -yes-> b", "<a and order> -no-> END", "b -> END")
async def a_condition_that_is_a_step(flow: Flow, order: int) -> None:
    if await flow.step(a) and order:
        await flow.step(b)


@leads("START -> <patch 2026-12-call>", "<patch 2026-12-call> -old runs-> b", "<patch 2026-12-call> -new runs-> a", "b -> END",
       "a -> END")  # fmt: skip
async def patched(flow: Flow) -> None:
    if not flow.patched("2026-12-call"):
        await flow.step(b)
    else:
        await flow.step(a)


@leads("START -> <order>", "<order> -yes-> END", "<order> -no-> a", "a -> END")
async def early_return(flow: Flow, order: int) -> None:
    if order:
        return
    await flow.step(a)
    return
    await flow.step(b)  # type: ignore[unreachable]


@leads("START -> <order>", "<order> -yes-> raise ValueError", "<order> -no-> <order < 9>", "<order < 9> -yes-> a",
       "<order < 9> -no-> assert order < 9", "a -> END")  # fmt: skip
async def raised(flow: Flow, order: int) -> None:
    if order:
        raise ValueError("no")
    assert order < 9
    await flow.step(a)


@leads("START -> a", "a -> <match a>", "<match a> -1 | 2-> b", "<match a> -{'x': x} if x > 3-> c", "<match a> -otherwise-> END",
       "b -> END", "c -> END")  # fmt: skip
async def matched(flow: Flow) -> None:
    match await flow.step(a):
        case 1 | 2:
            await flow.step(b)
        case {"x": x} if x > 3:
            await flow.step(c)
        case []:
            pass


@leads("START -> <order>", "<order> -yes-> a", "<order> -no-> b", "a -> END", "b -> END")
async def a_ternary(flow: Flow, order: int) -> Any:
    return await (flow.step(a) if order else flow.step(b))


@leads("START -> a", "a -> <a>", "<a> -yes-> b", "<a> -no-> c", "b -> c", "c -> END")
async def and_stops_early(flow: Flow) -> None:
    flow.status(str(await flow.step(a) and await flow.step(b)))
    await flow.step(c)


@leads("START -> a", "a -> <a>", "<a> -yes-> c", "<a> -no-> b", "b -> c", "c -> END")
async def or_stops_early(flow: Flow) -> None:
    flow.status(str(await flow.step(a) or await flow.step(b)))
    await flow.step(c)


# -- loops -------------------------------------------------------------------------------------------------------------


@leads("START -> <for part in parts>", "<for part in parts> -each-> a", "<for part in parts> -done-> c",
       "a -> <part>", "<part> -yes-> END", "<part> -no-> b", "b -> <for part in parts>", "c -> END")  # fmt: skip
async def a_for_loop(flow: Flow, parts: list[str]) -> None:
    for part in parts:
        await flow.step(a, part)
        if part:
            break
        await flow.step(b, part)
    else:
        await flow.step(c)


@leads("START -> a", "a -> b", "a ~on failure~> sleep 1 hour", "sleep 1 hour -> a", "b -> END")
async def until_it_works(flow: Flow) -> None:
    while True:
        try:
            await flow.step(a)
            break
        except StepFailed:
            await flow.sleep(timedelta(hours=1))
            continue
    await flow.step(b)


@leads("START -> a", "a -> <a == 'more'>", "<a == 'more'> -yes-> b", "<a == 'more'> -no-> END", "b -> a")
async def a_while_that_asks_a_step(flow: Flow) -> None:
    while await flow.step(a) == "more":
        await flow.step(b)


@leads(
    "START -> <while order < 3>",
    "<while order < 3> -yes-> a",
    "<while order < 3> -no-> END",
    "a -> <while order < 3>",
)
async def a_while_loop(flow: Flow, order: int) -> None:
    while order < 3:
        order = await flow.step(a)


@leads("START -> a", "a -> a")
async def without_end(flow: Flow) -> None:
    while True:
        await flow.step(a)


@leads("START -> a", "a -> <for part in a>", "<for part in a> -each-> <part>", "<for part in a> -done-> c",
       "<part> -yes-> b", "<part> -no-> <for part in a>", "b -> <for part in a>", "c -> END")  # fmt: skip
async def a_comprehension(flow: Flow) -> None:
    await flow.step(c, [await flow.step(b, part) for part in await flow.step(a) if part])


@pytest.mark.parametrize(("function", "expected"), CASES)
def test_what_leads_where(function: Callable[..., Any], expected: list[str]) -> None:
    assert drawn(read(function.__name__, function)) == expected
