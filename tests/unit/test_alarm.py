"""What the log says of breakers."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from lateshift.agent.alarm import Alarm
from lateshift.model.breaker import Opened

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


class Breakers:
    """One of them, as a store has it."""

    def __init__(self) -> None:
        self.opened_at: datetime | None = None
        self._told = False

    def untold(self) -> list[Opened]:
        return (
            []
            if self.opened_at is None or self._told
            else [Opened(name="bank", at=self.opened_at, reason=None)]
        )

    def tell(self, opened: Opened, jobs: list[Any]) -> bool:
        self._told = True
        return True

    def list(self) -> list[Any]:
        return [SimpleNamespace(name="bank", opened_at=self.opened_at)]


def test_that_a_breaker_has_closed_again_stands_where_its_opening_does_and_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    breakers: Any = Breakers()
    store: Any = SimpleNamespace(breakers=breakers)
    alarm = Alarm(store, lambda event, data: [])
    with caplog.at_level("INFO", logger="lateshift"):
        for breakers.opened_at in (None, NOON, NOON, None, None):
            alarm.round()
    assert [record.message for record in caplog.records] == [
        "the breaker bank is open, and its jobs are parked: its calls fail", "the breaker bank is closed again",
    ]  # fmt: skip
