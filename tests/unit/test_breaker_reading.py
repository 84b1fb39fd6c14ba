"""Breakers as a store has them, read with the statements of a store that is not there."""

from typing import Any

from lateshift.model.breaker import Breaker, Circuit
from lateshift.store import gating
from lateshift.store.breaker_reading import BreakerReading
from lateshift.store.contract import Rows

READING = BreakerReading(
    breakers="breakers", stand="stand", circuits="circuits", of="of", tasks="tasks", parked="parked",
    breaker_of=lambda row: Breaker(by_version=row[0]),
    circuit_of=lambda row: Circuit(name=row[0], since=0.0, opened_at=row[1]),
    job_id=lambda job: job,
)  # fmt: skip

ROWS: dict[str, Rows] = {
    "breakers": [("payments", "shop", False), ("mail", "shop", True), ("maps", "shop", False)],
    "circuits": [("mail@1", 5.0), ("mail@2", 5.0), ("maps", 5.0), ("payments", None)],
    "of": [("mail@1", "mail"), ("mail@2", "mail"), ("maps", "maps"), ("payments", "payments")],
    "tasks": [("mail", "send"), ("payments", "send")],
}


class Asked:
    def __init__(self) -> None:
        self.counted: list[str] = []

    def __call__(self, sql: str, *given: Any) -> Rows:
        if sql == "parked":
            self.counted.append(given[0])
            return [(7,)]
        return ROWS[sql]


def test_only_what_is_parked_at_the_breakers_that_are_wanted_is_counted() -> None:
    ask = Asked()
    views = READING.views(ask, 100, gating.holding([("mail",), ("payments",)], "breaker:mail@2"))
    assert [(view.name, view.version, view.tasks, view.parked) for view in views] == [
        ("mail@2", "2", ["send"], 7)
    ]
    assert ask.counted == ["breaker:mail@2"]


def test_of_all_breakers_each_is_counted_once_and_one_that_has_seen_nothing_is_among_them() -> None:
    ask = Asked()
    fresh = {**ROWS, "circuits": []}
    views = READING.views(lambda sql, *given: [(0,)] if sql == "parked" else fresh[sql], 100)
    assert [view.name for view in views] == ["maps", "payments"]
    assert [view.name for view in READING.views(ask, 100)] == ["mail@1", "mail@2", "maps", "payments"]
    assert len(ask.counted) == 4
