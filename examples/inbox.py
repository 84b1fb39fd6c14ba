"""Orders that another program puts on a queue of a broker: `python examples/inbox.py`, with lateshift[brokers] installed.

Each order is one job, however often it is sent or delivered. Without a broker, kombu's own in memory stands in for one;
INBOX_BROKER=redis://localhost/0 or amqp://guest:guest@localhost// in front of it takes a real one.
"""

import asyncio
import os
from dataclasses import dataclass

import kombu

from lateshift import Lateshift

BROKER = os.environ.get("INBOX_BROKER", "memory://")

app = Lateshift("inbox")
packed: list[int] = []
all_packed = asyncio.Event()


@dataclass
class Order:
    number: int
    good: str


@app.on_message(BROKER, "orders", key="number")
@app.task
async def pack(order: Order) -> None:
    print(f"order {order.number}: a {order.good}")
    packed.append(order.number)
    if len(packed) == 3:
        all_packed.set()


def another_program() -> None:
    """It knows nothing of Lateshift."""
    with kombu.Connection(BROKER) as connection:
        kombu.Queue("orders", channel=connection.channel()).declare()
        producer = connection.Producer()
        for number, good in [
            (1, "lamp"),
            (2, "kettle"),
            (2, "kettle"),
            (3, "chair"),
        ]:  # unsure whether 2 was sent
            producer.publish({"number": number, "good": good}, routing_key="orders", exchange="")
        producer.publish("no order at all", routing_key="orders", exchange="")


async def main() -> None:
    await asyncio.to_thread(another_program)
    async with app.running():
        await asyncio.wait_for(all_packed.wait(), timeout=30)
    trigger = app.store.triggers.get("pack")
    assert trigger is not None
    print(f"{trigger.made} jobs, {trigger.repeated} sent twice, {trigger.refused} refused:")
    for refused in app.store.triggers.refused("pack", None, 10):
        print(f"  {refused.reason}")


if __name__ == "__main__":
    asyncio.run(main())
    app.close()
