"""Killed at every write: recorded steps are not repeated, and exactly what was done is undone, the last first."""

from collections.abc import Iterator
from itertools import groupby
from uuid import uuid4

import pytest

from lateshift import Flow, Lateshift, State
from lateshift.model.ids import JobId
from tests.workflows.dying import Killer, live

STEPS = 5


class Shop:
    """A workflow of so many steps, every other one a job of its own, which fails after all of them, or is cancelled, or ends well."""

    def __init__(self, url: str, steps: int, end: str) -> None:
        self.app = Lateshift("shop", store=url)
        self.url = url
        self.did: list[str] = []
        self.ran: JobId | None = None
        self.ended: tuple[State, str | None] | None = None
        self._end = end
        do = self.app.task(name="do job", queue="agents")(self.do)
        undo = self.app.task(name="undo job", queue="agents")(self.undo)

        async def order(flow: Flow) -> str:
            for number in range(steps):
                if number % 2:
                    await flow.step(do, number, undo=undo)
                else:
                    await flow.step(self.do, number, undo=self.undo)
            if end == "fails":
                raise ValueError("no")
            if end == "cancelled":
                await flow.wait_for("never")
            return "well"

        self.order = self.app.workflow(name="order")(order)

    def do(self, number: int) -> int:
        self.did.append(f"do {number}")
        return number * 10

    def undo(self, number: int, result: int) -> None:
        self.did.append(f"undo {number} {result}")

    def begin(self) -> None:
        self.ran = self.order.enqueue().id

    def cancel(self) -> None:
        if self._end == "cancelled" and self.ran is not None:
            self.app.store.jobs.cancel([self.ran], by="ann")

    def look(self) -> None:
        view = self.app.store.reports.job(self.ran) if self.ran else None
        assert view is not None
        self.ended = view.state, view.reason


def expected(steps: int, end: str) -> list[str]:
    """The oracle."""
    forward = [f"do {number}" for number in range(steps)]
    return (
        forward
        if end == "well"
        else forward + [f"undo {number} {number * 10}" for number in reversed(range(steps))]
    )


def lives(url: str, steps: int, end: str) -> Iterator[tuple[str, Shop]]:
    """One for each write and each side of it."""

    def lived(killer: Killer) -> Shop:
        shop = Shop(f"memory://{uuid4().hex}" if url == "memory" else url, steps, end)
        live(shop.app, shop.url, killer, shop.begin, shop.cancel, shop.look)
        return shop

    counting = Killer(None, after=False)
    yield "never", lived(counting)
    for number in range(1, counting.count + 1):
        for after in (False, True):
            killer = Killer(number, after=after)
            shop = lived(killer)
            if killer.struck:
                yield f"{'after' if after else 'before'} write {number}", shop


@pytest.mark.parametrize("end", ["well", "fails", "cancelled"])
@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_worker_killed_at_any_write_leaves_a_ledger_as_the_oracle_has_it(steps: int, end: str) -> None:
    check("memory", steps, end)


@pytest.mark.parametrize("end", ["well", "fails", "cancelled"])
def test_it_does_so_on_every_store(store_url: str, end: str) -> None:
    check(store_url, 3, end)


def check(url: str, steps: int, end: str) -> None:
    outcomes = {
        "well": (State.COMPLETED, None),
        "fails": (State.DEAD, "undone" if steps else "failed"),
        "cancelled": (State.CANCELLED, "cancelled by ann"),
    }
    count = 0
    for point, shop in lives(url, steps, end):
        count += 1
        once = [
            key for key, _ in groupby(shop.did)
        ]  # what was in flight at the kill may be done once more, and at once
        assert once == expected(steps, end), f"killed {point}: {shop.did}"
        assert len(shop.did) - len(once) <= (point != "never"), f"killed {point}: {shop.did}"
        assert shop.ended == outcomes[end], f"killed {point}"
    assert count > 2 * (steps + 1), "too few kills to have met every write"
