"""Cancelled while a step runs, and while it is being undone, and killed at every write: what is in flight comes to its end first, and exactly what
was done is undone, the last first."""

from itertools import groupby
from uuid import uuid4

import pytest

from lateshift import Flow, Lateshift, State
from lateshift.model.ids import JobId
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import StepState, Undo
from tests.workflows.dying import Killer, live

STEPS = 3


class Shop:
    """A workflow of functions and jobs in turn, which is cancelled in the body of the step, or of the undo, of this name."""

    def __init__(self, url: str, killer: Killer, at: str) -> None:
        self.app = Lateshift("shop", store=url)
        self.url = url
        self.did: list[str] = []
        self.ran: JobId | None = None
        self.view: RunView | None = None
        self.reason: str | None = None
        self._killer = killer
        self._at = at
        do = self.app.task(name="do job", queue="agents")(self.do)
        undo = self.app.task(name="undo job", queue="agents")(self.undo)

        async def order(flow: Flow) -> None:
            for number in range(STEPS):
                if number % 2:
                    await flow.step(do, number, undo=undo)
                else:
                    await flow.step(self.do, number, undo=self.undo)
            raise ValueError("no")

        self.order = self.app.workflow(name="order")(order)

    def do(self, number: int) -> int:
        self._happen(f"do {number}")
        return number * 10

    def undo(self, number: int, result: int) -> None:
        assert result == number * 10
        self._happen(f"undo {number}")

    def _happen(self, what: str) -> None:
        self.did.append(what)
        if what == self._at and self.ran is not None:
            self._killer.looks_away = True  # it is an operator who writes
            self.app.store.jobs.cancel([self.ran], by="ann")
            self._killer.looks_away = False

    def begin(self) -> None:
        self.ran = self.order.enqueue().id

    def look(self) -> None:
        assert self.ran is not None
        self.view = self.app.store.workflows.view(self.ran)
        job = self.app.store.reports.job(self.ran)
        assert job is not None
        self.reason = job.reason


def lived(url: str, killer: Killer, at: str) -> Shop:
    shop = Shop(f"memory://{uuid4().hex}" if url == "memory" else url, killer, at)
    live(shop.app, shop.url, killer, shop.begin, shop.look)
    return shop


def check(url: str, at: str) -> None:
    verb, number = at.split()
    last = int(number) if verb == "do" else STEPS - 1
    expected = [f"do {each}" for each in range(last + 1)] + [f"undo {each}" for each in range(last, -1, -1)]
    counting = Killer(None, after=False)
    assert lived(url, counting, at).did == expected
    kills = 0
    for write in range(1, counting.count + 1):
        for after in (False, True):
            killer = Killer(write, after=after)
            shop = lived(url, killer, at)
            point = f"killed {'after' if after else 'before'} write {write}: {shop.did}"
            kills += killer.struck
            assert shop.view is not None, point
            assert (shop.view.state, shop.reason) == (State.CANCELLED, "cancelled by ann"), point
            steps = [step for step in shop.view.steps if step.undo]
            done = [step for step in steps if step.state is StepState.COMPLETED]
            assert all(step.undo_state is Undo.DONE for step in done), point
            assert all(not step.undo_state for step in steps if step not in done), point
            undone = [f"undo {len(done) - 1 - each}" for each in range(len(done))]
            once = [what for what, _ in groupby(shop.did)]
            assert [what for what in once if what.startswith("undo")] == undone, point
            assert len(shop.did) - len(once) <= 1, point
            # The job of the step in which it was cancelled may have been called off after its worker had died.
            called_off = verb == "do" and last % 2 == 1 and killer.struck
            assert len(done) == last + 1 or (called_off and len(done) == last), point
    assert kills > 2 * (last + 1), "too few kills to have met every write"


@pytest.mark.parametrize("at", ["do 0", "do 1", "do 2", "undo 2", "undo 1", "undo 0"])
def test_what_was_done_is_undone_whenever_it_is_cancelled_and_whenever_its_worker_dies(at: str) -> None:
    check("memory", at)


@pytest.mark.parametrize("at", ["do 0", "do 1", "undo 1"])
def test_it_is_so_on_every_store(store_url: str, at: str) -> None:
    check(store_url, at)
