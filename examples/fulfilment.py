"""An order in four steps that survives any restart, and is undone if one of them fails.

python examples/fulfilment.py
"""

import asyncio
from datetime import timedelta

from lateshift import Flow, Lateshift, Permanent
from lateshift.errors import JobDead

app = Lateshift("fulfilment")


def reserve_stock(order: int) -> str:
    print(f"order {order}: stock reserved")
    return f"shelf {order % 10}"


def release_stock(order: int, result: str) -> None:
    print(f"order {order}: {result} released")


@app.task(queue="payments")  # a job of its own, on its own queue
def charge_card(order: int) -> int:
    print(f"order {order}: card charged")
    return order * 100


@app.task(queue="payments")
def refund(order: int, result: int) -> None:
    print(f"order {order}: {result} refunded")


async def ship(order: int) -> None:
    if order == 13:
        raise Permanent("no van goes there")
    print(f"order {order}: shipped")


@app.workflow
async def fulfil(flow: Flow, order: int) -> str:
    shelf = await flow.step(reserve_stock, order, undo=release_stock)
    await flow.step(charge_card, order, undo=refund)
    flow.status("waiting for the picker")
    picker = await flow.wait_for("picked", timeout=timedelta(days=2))
    await flow.step(ship, order)
    return f"{shelf}, picked by {picker}"


async def main() -> None:
    async with app.running():  # or `lateshift work examples/fulfilment.py`, anywhere
        good, bad = await fulfil.aenqueue(7), await fulfil.aenqueue(13)
        for run in (good, bad):
            await app.asignal(run.id, "picked", "ann")  # kept, if the run does not wait for it yet
        print(f"order 7: {await good.aresult()}")
        try:
            await bad.aresult()
        except JobDead as error:
            print(f"order 13: {error}")


if __name__ == "__main__":
    asyncio.run(main())
