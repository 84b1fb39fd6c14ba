"""Cancelled while a step runs, and while it is being undone, and killed at every write: what is in flight comes to its end first, and exactly what
was done is undone, the last first."""

from itertools import groupby
from uuid import uuid4

import pytest

from lateshift import State
from lateshift.model.workflow.run import RunView
from lateshift.model.workflow.step import StepState, Undo
from tests.workflows.dying import Killer, live
from tests.workflows.test_crashes import Shop, expected

STEPS = 3


class Cancelled(Shop):
    """Cancelled in the body of the step, or of the undo, of this name; if that does not come, it fails."""

    def __init__(self, url: str, killer: Killer, at: str) -> None:
        super().__init__(url, STEPS, "fails")
        self.view: RunView | None = None
        self._killer = killer
        self._at = at

    def do(self, number: int) -> int:
        result = super().do(number)
        self._pass(f"do {number}")
        return result

    def undo(self, number: int, result: int) -> None:
        super().undo(number, result)
        self._pass(f"undo {number}")

    def _pass(self, point: str) -> None:
        if point == self._at and self.ran is not None:
            self._killer.looks_away = True  # it is an operator who writes
            self.app.store.jobs.cancel([self.ran], by="ann")
            self._killer.looks_away = False

    def look(self) -> None:
        super().look()
        assert self.ran is not None
        self.view = self.app.store.workflows.view(self.ran)


def lived(url: str, killer: Killer, at: str) -> Cancelled:
    shop = Cancelled(f"memory://{uuid4().hex}" if url == "memory" else url, killer, at)
    live(shop.app, shop.url, killer, shop.begin, shop.look)
    return shop


def check(url: str, at: str) -> None:
    verb, number = at.split()
    steps = int(number) + 1 if verb == "do" else STEPS  # that are begun
    counting = Killer(None, after=False)
    assert lived(url, counting, at).did == expected(steps, "cancelled")
    kills = 0
    for write in range(1, counting.count + 1):
        for after in (False, True):
            killer = Killer(write, after=after)
            shop = lived(url, killer, at)
            point = f"killed {'after' if after else 'before'} write {write}: {shop.did}"
            kills += killer.struck
            assert shop.ended == (State.CANCELLED, "cancelled by ann"), point
            assert shop.view is not None, point
            done = [step for step in shop.view.steps if step.state is StepState.COMPLETED]
            assert [step for step in shop.view.steps if step.undo_state is Undo.DONE] == done, point
            once = [what for what, _ in groupby(shop.did)]
            undone = expected(len(done), "cancelled")[len(done) :]
            assert [what for what in once if what.startswith("undo")] == undone, point
            assert len(shop.did) - len(once) <= 1, point
            # The job of the step in which it was cancelled may be called off after its worker has died.
            called_off = verb == "do" and steps % 2 == 0 and killer.struck
            assert len(done) == steps or (called_off and len(done) == steps - 1), point
    assert kills > 2 * steps, "too few kills to have met every write"


@pytest.mark.parametrize("at", ["do 0", "do 1", "do 2", "undo 2", "undo 1", "undo 0"])
def test_what_was_done_is_undone_whenever_it_is_cancelled_and_whenever_its_worker_dies(at: str) -> None:
    check("memory", at)


@pytest.mark.parametrize("at", ["do 0", "do 1", "undo 1"])
def test_it_is_so_on_every_store(store_url: str, at: str) -> None:
    check(store_url, at)
