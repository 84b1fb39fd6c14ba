"""The log lines of a shift without a live view: what they cost, and what they say."""

import logging
from uuid import uuid4

import pytest

from lateshift import Lateshift
from lateshift.cli.watch import TELL_EVERY, Watch
from lateshift.clock import ManualClock

pytestmark = pytest.mark.anyio


class Shift:
    """An app whose queues are counted so often."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.app = Lateshift("shop", store=f"memory://{uuid4().hex}", clock=self.clock)
        self.counted = 0
        queues = self.app.store.queues
        real = queues.list

        def counting() -> object:
            self.counted += 1
            return real()

        monkeypatch.setattr(queues, "list", counting)

    async def turn(self, watch: Watch, seconds: int) -> None:
        for _ in range(seconds):
            await watch.turn()
            self.clock.move(seconds=1)


async def test_queues_are_counted_only_when_a_line_is_due(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="lateshift")
    shift = Shift(monkeypatch)
    watch = Watch(shift.app)
    await shift.turn(watch, int(TELL_EVERY))
    assert (shift.counted, caplog.messages) == (0, [])
    await shift.turn(watch, 1)
    assert shift.counted == 1
    assert caplog.messages == [
        "0 completed, 0 a second; 0 running, 0 waiting, 0 dead letters",
    ]


async def test_while_nothing_moves_no_line_is_due(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="lateshift")
    shift = Shift(monkeypatch)
    watch = Watch(shift.app)
    await shift.turn(watch, 100)
    assert (shift.counted, len(caplog.messages)) == (1, 1)


async def test_whoever_stops_says_what_is_left_by_a_last_count(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = Shift(monkeypatch)

    @shift.app.task
    def pack() -> None: ...

    watch = Watch(shift.app)
    pack.enqueue()
    await shift.turn(watch, 3)
    watch.stopping.set()
    await watch.turn()
    assert "1 left for the next shift" in watch.summary()
