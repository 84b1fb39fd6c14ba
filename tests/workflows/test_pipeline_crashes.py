"""Killed at every write: each item comes out once, with what an undisturbed one gives, and no filter runs twice whose end was stored."""

from collections import Counter
from uuid import uuid4

import pytest

from lateshift import Lateshift, Permanent, State, fan_in, fan_out
from lateshift.model.ids import JobId
from lateshift.model.workflow.run import Phase
from lateshift.model.workflow.step import StepState
from tests.workflows.dying import Killer, live

EXPECTED = Counter(
    [
        "parse 1,2,3",
        "double 1",
        "double 2",
        "double 3",
        "increase 2",
        "increase 4",
        "increase 6",
        "total [3, 5, 7]",
    ]
)


AT_ONCE = 2  # of the three elements


class Shop:
    """One item that fans out and in again, with one element that has to wait for its turn. `fails`: one of its elements is held until an
    operator says that it goes on."""

    def __init__(self, url: str, *, fails: bool) -> None:
        self.app = Lateshift("shop", store=url)
        self.url = url
        self.did: list[str] = []
        self.fails = fails
        self.item: JobId | None = None
        self.under_way = 0
        self.ended: tuple[State, bytes | None] | None = None
        parse = self.app.task(queue="texts")(self.parse)
        double, increase = self.app.task(queue="numbers")(self.double), self.app.task(self.increase)
        total = self.app.task(queue="sums")(self.total)
        self.pipeline = self.app.pipeline(parse | fan_out(double | increase, at_once=AT_ONCE) | fan_in(total))

    def parse(self, text: str) -> list[int]:
        self.did.append(f"parse {text}")
        return [int(part) for part in text.split(",")]

    def double(self, number: int) -> int:
        self.count()
        if self.fails and number == 2:
            raise Permanent("not yet")
        self.did.append(f"double {number}")
        return number * 2

    async def increase(self, number: int) -> int:
        self.count()
        self.did.append(f"increase {number}")
        return number + 1

    def total(self, numbers: list[int]) -> int:
        self.did.append(f"total {numbers}")
        return sum(numbers)

    def count(self) -> None:
        """The elements that are under way now."""
        view = self.app.store.workflows.view(self.item) if self.item else None
        steps = [] if view is None else view.steps
        inner = [step for step in steps if step.name.endswith(("double", "increase"))]
        running = sum(step.state is StepState.RUNNING for step in inner)
        self.under_way = max(self.under_way, running)

    def begin(self) -> None:
        self.item = self.pipeline.enqueue("1,2,3").id

    def mend(self) -> None:
        if self.fails and self.item is not None:
            self.fails = False
            assert self.app.store.workflows.direct(self.item, Phase.FORWARD, why="", by="ana")

    def look(self) -> None:
        view = self.app.store.reports.job(self.item) if self.item else None
        assert view is not None
        self.ended = view.state, view.result


def lived(url: str, killer: Killer, *, fails: bool) -> Shop:
    shop = Shop(f"memory://{uuid4().hex}" if url == "memory" else url, fails=fails)
    live(shop.app, shop.url, killer, shop.begin, shop.mend, shop.look)
    return shop


def check(url: str, *, fails: bool) -> None:
    counting = Killer(None, after=False)
    assert Counter(lived(url, counting, fails=fails).did) == EXPECTED
    kills = 0
    for number in range(1, counting.count + 1):
        for after in (False, True):
            killer = Killer(number, after=after)
            shop = lived(url, killer, fails=fails)
            point = f"{'after' if after else 'before'} write {number}"
            kills += killer.struck
            assert shop.ended == (State.COMPLETED, b"15"), f"killed {point}"
            assert 0 < shop.under_way <= AT_ONCE, f"killed {point}: {shop.under_way} elements at once"
            did = Counter(shop.did)
            assert did.keys() == EXPECTED.keys(), f"killed {point}: {shop.did}"
            # What was in the worker's hands at the kill may be done once more; what was stored is not.
            assert max(did.values()) <= 2, f"killed {point}: {shop.did}"
            assert not killer.struck or did["parse 1,2,3"] + did["total [3, 5, 7]"] <= 3, (
                f"killed {point}: {shop.did}"
            )
    assert kills > 2 * 6, "too few kills to have met every write"


@pytest.mark.parametrize("fails", [False, True])
def test_an_item_comes_out_whole_whenever_its_worker_dies(fails: bool) -> None:
    check("memory", fails=fails)


@pytest.mark.parametrize("fails", [False, True])
def test_it_does_so_on_every_store(store_url: str, fails: bool) -> None:
    check(store_url, fails=fails)
