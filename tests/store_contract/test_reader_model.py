"""Long random lives of readers that die between any two steps, over a broker that delivers again what was not acknowledged:
each message is one job in the end.

LATESHIFT_EXAMPLES=1000 runs that many lives of each store instead of the usual few."""

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.job import JobFilter
from lateshift.store.contract import Store
from lateshift.triggers import reader as reading
from lateshift.triggers.reader import Reader
from tests.store_contract.driving import empty
from tests.store_contract.test_reader import Broker, FromBroker, reader

EXAMPLES = int(os.environ.get("LATESHIFT_EXAMPLES", "30"))
STEPS = 30
POINTS = ("trigger.after_read", "trigger.after_commit")


class Killed(BaseException):
    """As kill -9 would: nothing after it is done."""


class Lives(RuleBasedStateMachine):
    def __init__(self, app: Lateshift, clock: ManualClock, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.app = app
        self.clock = clock
        self.sent = 0
        self.die_at: str | None = None
        patch.setattr(reading, "crashpoint", self._crash)

    def _crash(self, point: str) -> None:
        if point == self.die_at:
            raise Killed

    @initialize()
    def begin(self) -> None:
        empty(self.app.store)
        self.broker = Broker()
        self.lost: list[FromBroker] = []
        trigger = self.app.triggers["place"]
        trigger.open = lambda: FromBroker(self.broker)
        self.app.readers()[0].say()  # type: ignore[attr-defined]
        self.readers = [reader(self.app) for _ in range(2)]

    @rule(count=st.integers(1, 4), wrong=st.booleans())
    def publish(self, count: int, wrong: bool) -> None:
        for _ in range(count):
            self.sent += 1
            self.broker.put((f"m{self.sent}", b"oops" if wrong else b'{"n":1}'))

    @rule(which=st.integers(0, 1))
    def look(self, which: int) -> None:
        self.die_at = None
        self.readers[which].round()

    @rule(which=st.integers(0, 1), where=st.sampled_from(POINTS))
    def look_and_die(self, which: int, where: str) -> None:
        self.die_at = where
        try:
            self.readers[which].round()
        except Killed:
            self.bury(which)

    @rule(which=st.integers(0, 1))
    def pause_beyond_the_term(self, which: int) -> None:
        """It reads, is stopped before it stores, and wakes when another has read."""
        self.die_at = None
        self.clock.move(seconds=12)
        self.readers[1 - which].round()
        self.readers[which].round()

    @rule(seconds=st.sampled_from([1, 5, 12]))
    def wait(self, seconds: int) -> None:
        self.clock.move(seconds=seconds)

    @rule()
    def deliver_again(self) -> None:
        """The broker sees that those who died are gone."""
        for source in self.lost:
            source.close()
        self.lost = []

    def bury(self, which: int) -> None:
        dead: Reader = self.readers[which]
        if dead._source is not None:
            self.lost.append(dead._source)  # type: ignore[arg-type]
        self.readers[which] = reader(self.app)

    def teardown(self) -> None:
        if not hasattr(self, "readers"):
            return
        self.die_at = None
        self.deliver_again()
        for _ in range(4):
            self.clock.move(seconds=12)
            for each in self.readers:
                each.round()
        store = self.app.store
        made = len(store.reports.jobs(JobFilter(), 10_000))
        refused = len(store.triggers.refused("place", None, 10_000))
        assert made + refused == self.sent
        assert self.broker.waiting == []
        view = store.triggers.get("place")
        assert view is not None
        assert (view.made, view.refused) == (made, refused)


def test_each_message_is_one_job_whoever_dies_and_whenever(
    quick_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Lateshift("shop", store="memory://unused")
    with app.using(quick_store):

        @app.on_message("amqp://host", "orders")
        @app.task
        def place(order: dict[str, int]) -> None: ...

        few = settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, derandomize=EXAMPLES <= 30,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip

        run_state_machine_as_test(lambda: Lives(app, clock, monkeypatch), settings=few)  # type: ignore[arg-type]


def test_the_term_outlasts_a_look() -> None:
    from lateshift.runtime.leadership import MARGIN, TTL

    assert timedelta(seconds=reading.WAIT) * 4 < TTL * (1 - MARGIN)
