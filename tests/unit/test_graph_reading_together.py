"""The graph of a workflow, read from its code: steps all at once, and functions that take the flow along."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Flow, StepFailed
from lateshift.workflow.graph.reading import read
from tests.unit.graph_shop import (
    HANDLERS,
    Cases,
    Shop,
    a,
    b,
    c,
    charge,
    drawn,
    shop,
)

CASES = Cases()
leads = CASES.leads

# -- all at once -------------------------------------------------------------------------------------------------------


@leads("START -> ALL", "ALL -> a", "ALL -> task charge on payments", "ALL -> sleep 1 day", "a -> JOIN", "task charge on payments -> JOIN",
       "sleep 1 day -> JOIN", "JOIN -> c", "c -> END")  # fmt: skip
async def together(flow: Flow) -> None:
    await flow.gather(flow.step(a), flow.step(charge, 1), flow.sleep(timedelta(days=1)))
    await flow.step(c)


@leads("START -> a", "a -> ALL", "ALL -each x-> b", "b -> JOIN", "JOIN -> END")
async def one_for_each(flow: Flow) -> None:
    await flow.gather(*(flow.step(b, x) for x in await flow.step(a)))


@leads("START -> ALL", "ALL -> a", "ALL -> pack", "a -> b", "b -> JOIN", "pack -> JOIN", "JOIN -> END")
async def branches_of_functions(flow: Flow, order: int) -> None:
    async def part(name: str) -> None:
        await flow.step(a, name)
        await flow.step(b, name)

    async def load() -> int:
        return order

    await flow.gather(part("left"), shop.part(flow, order), load())


@leads("START -> c", "c -> ALL", "ALL -> a", "ALL -> b", "ALL -each-> task charge on payments", "a -> JOIN", "b -> JOIN",
       "task charge on payments -> JOIN", "JOIN -> END")  # fmt: skip
async def asked_for_before_it_is_waited_for(flow: Flow, parts: list[int]) -> None:
    first = flow.step(a)
    others = [flow.step(b)]
    await flow.step(c)
    for part in parts:
        others.append(flow.step(charge, part))  # noqa: PERF401
    await asyncio.gather(first, *others)


@leads(
    "START -> ALL",
    "ALL -> a",
    "ALL -> b",
    "ALL -each key-> c",
    "a -> JOIN",
    "b -> JOIN",
    "c -> JOIN",
    "JOIN -> END",
)
async def asked_for_in_one_line_and_in_a_dictionary(flow: Flow, keys: list[str]) -> None:
    first, second = flow.step(a), flow.step(b)
    others = {key: flow.step(c, key) for key in keys}
    await flow.gather(first, second, *others.values())


@leads("START -> <order>", "<order> -yes-> a", "<order> -no-> b", "a -> c", "b -> c", "c -> END")
async def one_name_for_two(flow: Flow, order: int) -> None:
    if order:
        asked = flow.step(a)
    else:
        asked = flow.step(b)
    await asked
    await flow.step(c)


@leads("START -> b", "b -> a", "a -> END")
async def waited_for_later(flow: Flow) -> None:
    first = flow.step(a)
    await flow.step(b)
    await first


@leads(
    "START -> ALL",
    "ALL -each-> branches of parts (chosen at run time)",
    "branches of parts (chosen at run time) -> JOIN",
    "JOIN -> END",
)
async def branches_chosen_at_run_time(flow: Flow, parts: list[Awaitable[Any]]) -> None:
    await flow.gather(*parts)


@leads("START -> a", "a -> END")
async def one_alone_is_not_together(flow: Flow) -> None:
    await flow.gather(flow.step(a))


@leads(
    "START -> ALL",
    "ALL -> a",
    "ALL -> b",
    "a -> JOIN",
    "b -> JOIN",
    "JOIN -> END",
    "JOIN ~on failure~> c",
    "c -> END",
)
async def failed_together(flow: Flow) -> None:
    try:
        await flow.gather(flow.step(a), flow.step(b))
    except StepFailed:
        await flow.step(c)


# -- functions that take the flow along ----------------------------------------------------------------------------------


async def twice(run: Flow, function: Callable[..., Any], *, last: Callable[..., Any] = b) -> None:
    for _ in range(2):
        await run.step(function)
    await run.step(last)


def asked(flow: Flow) -> Awaitable[Any]:
    return flow.step(a)


async def endless(flow: Flow) -> None:
    await flow.step(a)
    await endless(flow)


@leads("START -> <for _ in range(2)>", "<for _ in range(2)> -each-> task charge on payments", "<for _ in range(2)> -done-> c",
       "task charge on payments -> <for _ in range(2)>", "c -> a", "a -> pack", "pack -> b", "b -> END")  # fmt: skip
async def helpers(flow: Flow) -> None:
    ask = lambda what: flow.step(what)  # noqa: E731, PLW0108
    await twice(flow, charge, last=c)
    await Shop.alone(flow)
    await shop.part(flow, 7)
    await ask(b)  # type: ignore[no-untyped-call]


@leads("START -> a", "a -> END")
async def a_plain_function_that_asks(flow: Flow) -> None:
    await asked(flow)


@leads("START -> <for _ in range(2)>", "<for _ in range(2)> -each-> a", "<for _ in range(2)> -done-> b", "a -> <for _ in range(2)>",
       "b -> c", "c -> END")  # fmt: skip
async def what_is_not_given_has_its_default(flow: Flow) -> None:
    async def part(what: Any = c, run: Flow = flow) -> None:
        await run.step(what)

    await twice(flow, a)
    await part()


@leads("START -> a", "a -> endless(…) (it calls itself)", "endless(…) (it calls itself) -> END")
async def recursion(flow: Flow) -> None:
    await endless(flow)


NOT_READ = "(its steps are not known here)"


@leads(f"START -> given(…) {NOT_READ}", f"given(…) {NOT_READ} -> HANDLERS['x'](…) {NOT_READ}", f"HANDLERS['x'](…) {NOT_READ} -> print(…) {NOT_READ}",
       f"print(…) {NOT_READ} -> END")  # fmt: skip
async def given_away(flow: Flow, given: Callable[..., Any]) -> None:
    await given(flow)
    await HANDLERS["x"](1, flow=flow)
    print(flow)


@leads(f"START -> flow handed on {NOT_READ}", f"flow handed on {NOT_READ} -> flow.step handed on {NOT_READ}",
       f"flow.step handed on {NOT_READ} -> END")  # fmt: skip
async def handed_on(flow: Flow, kept: dict[str, Any]) -> None:
    kept["flow"] = flow
    kept["step"] = flow.step
    flow.status(str(flow.id))


@pytest.mark.parametrize(("function", "expected"), CASES)
def test_what_leads_where(function: Callable[..., Any], expected: list[str]) -> None:
    assert drawn(read(function.__name__, function)) == expected
