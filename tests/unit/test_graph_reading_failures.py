"""The graph of a workflow, read from its code: what follows when a step has failed."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from lateshift import Flow, StepFailed
from lateshift.workflow.graph.reading import read
from tests.unit.graph_shop import ERRORS, Cases, a, b, c, drawn

CASES = Cases()
leads = CASES.leads

# -- failures ----------------------------------------------------------------------------------------------------------


@leads("START -> a", "a -> b", "a ~on failure~> c", "b -> END", "b ~on failure~> c", "c -> END")
async def a_failure_that_is_caught(flow: Flow) -> None:
    try:
        await flow.step(a)
        await flow.step(b)
    except Exception:
        await flow.step(c)


@leads("START -> a", "a -> b", "a ~on failure~> END", "b -> c", "c -> END")
async def a_failure_is_caught_where_it_is_and_what_is_in_else_is_not(flow: Flow) -> None:
    try:
        await flow.step(a)
    except StepFailed:
        return
    else:
        await flow.step(b)
    await flow.step(c)


@leads("START -> wait for pay (at most 2 days)", "wait for pay (at most 2 days) -> a",
       "wait for pay (at most 2 days) ~on TimeoutError~> b", "a -> END", "a ~on failure~> c", "b -> END", "c -> END")  # fmt: skip
async def each_failure_to_its_own(flow: Flow) -> None:
    try:
        await flow.wait_for("pay", timeout=timedelta(days=2))
        await flow.step(a)
    except TimeoutError:
        await flow.step(b)
    except (KeyError, StepFailed):
        await flow.step(c)


@leads("START -> a", "a -> END")
async def a_failure_that_changes_nothing(flow: Flow) -> None:
    try:
        await flow.step(a)
    except ERRORS:
        pass


@leads("START -> a", "a -> b", "a ~on failure~> c", "b -> c", "c -> END")
async def suppressed(flow: Flow) -> None:
    with suppress(StepFailed):
        await flow.step(a)
        await flow.step(b)
    await flow.step(c)


@leads("START -> <try number = int(text)>", "<try number = int(text)> -> b", "<try number = int(text)> ~on ValueError~> a",
       "a -> b", "b -> END")  # fmt: skip
async def a_failure_of_other_code(flow: Flow, text: str) -> None:
    try:
        number = int(text)
    except ValueError:
        number = await flow.step(a)
    await flow.step(b, number)


@leads("START -> a", "a -> c", "a ~on KeyError~> b", "b -> c", "c -> END")
async def a_failure_of_code_between_steps(flow: Flow) -> None:
    try:
        flow.status((await flow.step(a))["status"])
    except KeyError:
        await flow.step(b)
    await flow.step(c)


@leads("START -> a", "a -> END", "a ~on failure~> b", "b -> raise")
async def raised_again(flow: Flow) -> None:
    try:
        await flow.step(a)
    except StepFailed:
        await flow.step(b)
        raise


@leads("START -> a", "a -> END", "a ~on failure~> b", "b -> END")
async def raised_again_and_caught_by_its_class(flow: Flow) -> None:
    try:
        try:
            await flow.step(a)
        except Exception:
            flow.status("that was a failure")
            raise
    except StepFailed:
        await flow.step(b)


@leads("START -> a", "a -> <order>", "<order> -no-> END", "<order> ~yes~> b", "b -> END")
async def raised_and_caught(flow: Flow, order: int) -> None:
    try:
        await flow.step(a)
        if order:
            raise ValueError(order)
    except ValueError:
        await flow.step(b)


@leads("START -> a", "a -> b", "b -> c", "b -after a failure-> raise", "c -> END")
async def finally_done(flow: Flow) -> None:
    try:
        await flow.step(a)
    finally:
        await flow.step(b)
    await flow.step(c)


@leads("START -> <order>", "<order> -yes-> b", "<order> -no-> a", "a -> b", "b -> c", "b -to return-> END", "b -after a failure-> raise",
       "c -> END")  # fmt: skip
async def returned_through_finally(flow: Flow, order: int) -> None:
    try:
        if order:
            return
        await flow.step(a)
    finally:
        await flow.step(b)
    await flow.step(c)


@pytest.mark.parametrize(("function", "expected"), CASES)
def test_what_leads_where(function: Callable[..., Any], expected: list[str]) -> None:
    assert drawn(read(function.__name__, function)) == expected
