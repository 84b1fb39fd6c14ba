"""The order in which what was done is undone, where several things were done at the same time."""

from collections.abc import Callable
from typing import Any

import pytest

from lateshift import Flow, Lateshift, State
from lateshift.store.open import open_store
from lateshift.testing import Kit
from tests.store_contract.driving import query


@pytest.mark.parametrize("first", ["job", "function"])
def test_a_job_and_a_function_that_ended_together_are_undone_in_reverse_of_their_numbers(
    app: Lateshift, kit: Kit, store_url: str, done: list[str], first: str
) -> None:
    def pack(what: str) -> str:
        return what

    def unpack(what: str) -> None:
        done.append(what)

    kinds: dict[str, Callable[..., Any]] = {"job": app.task(pack), "function": pack}
    order = sorted(kinds, key=lambda kind: kind != first)

    @app.workflow
    async def parcel(flow: Flow) -> None:
        await flow.gather(*(flow.step(kinds[kind], kind, undo=unpack) for kind in order))
        await flow.wait_for("never")

    job = parcel.enqueue()
    kit.drain()
    store = open_store(store_url)
    query(store, "UPDATE {step} SET place = 1 WHERE undo IS NOT NULL")
    store.close()
    view = app.store.workflows.view(job.id)
    assert view is not None
    assert {step.place for step in view.steps if step.undo} == {1}
    job.cancel()
    kit.drain()
    assert job.state is State.CANCELLED
    assert done == order[::-1]


def test_whatever_was_done_after_the_end_of_a_job_is_undone_before_it(
    app: Lateshift, kit: Kit, done: list[str]
) -> None:
    """The clock stands still: places are told apart all the same."""

    @app.task
    def charge(what: str) -> str:
        return what

    def pack(what: str) -> str:
        return what

    @app.workflow
    async def parcel(flow: Flow) -> None:
        for number in range(3):
            await flow.step(charge, f"charge {number}", undo=done.append)
            await flow.step(pack, f"pack {number}", undo=done.append)
        raise ValueError("no")

    parcel.enqueue()
    kit.drain()
    assert done == [f"{what} {number}" for number in (2, 1, 0) for what in ("pack", "charge")]
