"""What an undo is given: the arguments with which its step was done, whatever became of them since, and its result."""

from typing import Any

import pytest

from lateshift import Flow, Lateshift, Permanent, State
from lateshift.testing import Kit


@pytest.mark.parametrize("as_task", [False, True])
def test_an_undo_gets_the_arguments_as_they_were_though_the_step_and_the_code_changed_them(
    app: Lateshift, kit: Kit, done: list[str], as_task: bool
) -> None:
    def pack(items: list[str], marks: dict[str, int]) -> None:
        items.append("packed")
        marks["packed"] = 1

    def unpack(items: list[str], marks: dict[str, int]) -> None:
        done.append(f"unpack {items} {marks}")

    step: Any = app.task(pack) if as_task else pack

    @app.workflow
    async def order(flow: Flow) -> None:
        items, marks = ["cup"], {"blue": 2}
        await flow.step(step, items, marks=marks, undo=unpack)
        items.append("and more")
        raise ValueError("no")

    order.enqueue()
    kit.drain()
    assert done == ["unpack ['cup'] {'blue': 2}"]


def test_what_cannot_be_copied_is_given_as_it_is(app: Lateshift, kit: Kit, done: list[str]) -> None:
    class Till:
        def __deepcopy__(self, memo: object) -> "Till":
            raise TypeError("there is one till")

    till = Till()

    def charge(where: Till) -> None: ...

    def refund(where: Till) -> None:
        done.append(f"refund, at the same till: {where is till}")

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(charge, till, undo=refund)
        raise ValueError("no")

    order.enqueue()
    kit.drain()
    assert done == ["refund, at the same till: True"]


@pytest.mark.parametrize("as_task", [False, True])
def test_an_undo_gets_the_arguments_that_an_operator_gave_its_step(
    app: Lateshift, kit: Kit, done: list[str], as_task: bool
) -> None:
    def charge(card: str) -> str:
        if card == "old":
            raise Permanent("the card has expired")
        return f"{card} charged"

    def refund(its: str, result: str) -> None:
        done.append(f"refund {its}, {result}")

    step: Any = app.task(charge) if as_task else charge

    @app.workflow
    async def order(flow: Flow) -> None:
        await flow.step(step, "old", undo=refund, on_failure="hold")
        raise ValueError("no")

    job = order.enqueue()
    kit.drain()
    assert app.store.workflows.mend(job.id, "00001", b'{"card": "new"}', by="ann")
    kit.drain()
    assert job.state is State.DEAD
    assert done == ["refund new, new charged"]


@pytest.mark.parametrize("undo_as_task", [False, True])
@pytest.mark.parametrize("as_task", [False, True])
def test_what_an_operator_gave_a_step_reaches_its_undo_as_the_step_was_called(
    app: Lateshift, kit: Kit, done: list[str], as_task: bool, undo_as_task: bool
) -> None:
    def transfer(source: str, target: str, note: str = "none") -> str:
        if source == "A":
            raise Permanent("the account is closed")
        return "moved"

    def transfer_back(target: str, source: str) -> None:
        done.append(f"{source} has it back from {target}")

    def charge(order: int, card: str = "visa", sum: int = 1) -> int:
        if order == 7:
            raise Permanent("no such order")
        return order

    def refund(order: int, result: int, card: str = "", sum: int = 0) -> None:
        done.append(f"refund {order} {result} {card} {sum}")

    def made(function: Any, wanted: bool) -> Any:
        return app.task(function) if wanted else function

    step, pay = made(transfer, as_task), made(charge, as_task)
    back, refunded = made(transfer_back, undo_as_task), made(refund, undo_as_task)

    @app.workflow(on_failure="hold")
    async def order(flow: Flow, card: str) -> None:
        await flow.step(step, source="A", target="B", undo=back)
        await flow.step(pay, 7, card=card, undo=refunded)
        raise ValueError("no")

    first, second = order.enqueue("visa"), order.enqueue("amex")
    kit.drain()
    for job in (first, second):
        moved = b'{"source": "X", "target": "Y", "note": "an undo need not have what its step was not called with"}'
        assert app.store.workflows.mend(job.id, "00001", moved, by="ann")
    kit.drain()
    assert app.store.workflows.mend(first.id, "00002", b'{"order": 8, "card": "visa"}', by="ann")
    assert app.store.workflows.mend(second.id, "00002", b'{"order": 9, "sum": 5}', by="ann")
    kit.drain()
    assert [job.state for job in (first, second)] == [State.DEAD, State.DEAD]
    assert sorted(done) == sorted(["refund 8 8 visa 0", "refund 9 9 visa 5", *["X has it back from Y"] * 2])
