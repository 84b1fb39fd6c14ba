"""A shop whose workflows stand still where an operator looks at them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from lateshift import Flow, Lateshift, Permanent
from lateshift.handle import Job
from lateshift.testing import Kit, testing

DAY = timedelta(days=1)


class Shop:
    """Workflows that stand still where an operator looks at them, and go on when the world is mended."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        app = kit.app
        self.done: list[str] = []
        self.broken = True

        @app.task(queue="slow")
        def pack(order: int) -> str:
            return f"packed {order}"

        @app.task
        def plain(order: int) -> None: ...

        @app.workflow
        async def approval(flow: Flow, order: int) -> Any:
            flow.status("waits for the boss")
            await flow.step(self.do, "stock", undo=self.undo)
            return await flow.wait_for("approve")

        @app.workflow(on_failure="hold")
        async def paying(flow: Flow, card: str) -> str:
            await flow.step(self.do, "stock", undo=self.undo)
            return await flow.step(self.charge, card, undo=self.undo)

        @app.workflow
        async def failing(flow: Flow) -> None:
            await flow.step(self.do, "stock", undo=self.undo)
            await flow.step(self.do, "card", undo=self.refund)
            await flow.step(self.fail)

        @app.workflow
        async def parted(flow: Flow, order: int) -> None:
            async def part(name: str) -> None:
                await flow.step(self.do, name)
                await flow.step(pack, order)

            await flow.step(self.do, "stock")
            await flow.gather(part("left"), part("right"), flow.sleep(DAY))

        @app.workflow
        async def parent(flow: Flow, order: int) -> None:
            await flow.child(parted, order)

        @app.workflow(on_failure="hold")
        async def twice(flow: Flow) -> list[str]:
            return list(await asyncio.gather(flow.step(self.charge, "old"), flow.step(self.charge, "stolen")))

        self.pack, self.plain = pack, plain
        self.approval, self.paying, self.failing = approval, paying, failing
        self.parted, self.parent, self.twice = parted, parent, twice

    def do(self, what: str) -> str:
        self.done.append(f"do {what}")
        return f"did {what}"

    def undo(self, what: str, result: str) -> None:
        self.done.append(f"undo {what}")

    def refund(self, what: str) -> None:
        if self.broken:
            raise Permanent("the bank says no")
        self.done.append(f"refund {what}")

    def charge(self, what: str) -> str:
        if self.broken and what in ("old", "stolen"):
            raise Permanent(f"the card is {what}")
        return self.do(what)

    def fail(self) -> None:
        raise ValueError("no van will come")


@contextmanager
def shop_on(store_url: str) -> Iterator[Shop]:
    """With a worker that tests turn. Nobody packs."""
    with testing(Lateshift("shop", store=store_url, version="2.3.1"), store=store_url) as kit:
        kit.app.store.queues.pause("slow", by="the test")
        yield Shop(kit)


def short(job: Job[Any]) -> str:
    """Its id, as tables show it."""
    return f"…{str(job.id)[-6:]}"
