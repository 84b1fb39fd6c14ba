"""The log lines of a shift without a live view: what they cost, and what they say."""

import logging
import re
from uuid import uuid4

import pytest

from lateshift import Lateshift
from lateshift.cli.watch import TELL_EVERY, Watch
from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.outcome import DeadLettered
from tests.store_contract.driving import DAY, Worker, added, make_job

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
        "0 completed, 0 a second over the last 10s; 0 running, 0 waiting, 0 dead letters",
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


async def test_whoever_stops_says_how_many_dead_letters_need_somebody_where_not_all_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shift = Shift(monkeypatch)
    store = shift.app.store
    worker = Worker(store)

    def died(reason: str) -> None:
        added(store, make_job())
        worker.settle(worker.lease_one(), DeadLettered(reason, b"[]", DAY))

    async def told() -> str:
        watch = Watch(shift.app)
        watch.stopping.set()
        await watch.turn()
        return watch.summary().partition("next shift, ")[2]

    assert await told() == "0 dead letters."
    died("undone")
    assert await told() == "1 dead letter, of which none needs anybody."
    died("exhausted")
    assert await told() == "2 dead letters, of which 1 needs somebody."
    died("exhausted")
    assert await told() == "3 dead letters, of which 2 need somebody."
    monkeypatch.setattr("lateshift.cli.watch.DEAD_JUDGED", 1)
    assert await told() == "3 dead letters, of which 1+ need somebody."


@pytest.mark.parametrize("reasons", [["exhausted"], ["exhausted", "permanent"]])
async def test_where_all_dead_letters_need_somebody_it_goes_without_saying(
    monkeypatch: pytest.MonkeyPatch, reasons: list[str]
) -> None:
    shift = Shift(monkeypatch)
    worker = Worker(shift.app.store)
    for reason in reasons:
        added(shift.app.store, make_job())
        worker.settle(worker.lease_one(), DeadLettered(reason, b"[]", DAY))
    sight = Watch(shift.app)
    sight.stopping.set()
    await sight.turn()
    assert "somebody" not in sight.summary()


async def test_the_rate_of_a_line_is_of_all_the_time_that_the_line_is_about(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="lateshift")
    shift = Shift(monkeypatch)
    watch = Watch(shift.app)
    worker = new_member_id()
    watch.count({}, 0)
    await shift.turn(watch, 1)
    watch.count({worker: 100_000}, shift.clock.monotonic())  # at once, and then nothing for ten seconds
    await shift.turn(watch, int(TELL_EVERY))
    watch.count({worker: 100_003}, shift.clock.monotonic())
    await shift.turn(watch, int(TELL_EVERY))
    first, second = [message.partition(";")[0] for message in caplog.messages]
    assert re.fullmatch(r"100,000 completed, (9,9\d\d|10,000) a second over the last 10s", first)
    assert second == "100,003 completed, 0.3 a second over the last 10s"


async def test_the_dead_letters_that_are_shown_are_those_that_died_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shift = Shift(monkeypatch)
    store, watch = shift.app.store, Watch(shift.app)
    watch.detailed = True
    worker = Worker(store)
    first, second, third = added(store, *(make_job() for _ in range(3)))
    leases = {lease.id: lease for lease in worker.lease(3)}
    for id in (second, third, first):
        worker.settle(leases[id], DeadLettered("failed", b"[]", DAY))
        shift.clock.move(seconds=5)

    assert [view.id for view in watch.look().dead] == [first, third, second]
