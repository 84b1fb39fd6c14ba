"""Collects how attempts ended until the next exchange with the store takes them: one commit for many."""

from collections.abc import Callable

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.job import Line
from lateshift.model.outcome import Settlement

LOGS_AT_ONCE = 200  # logs of attempts in one exchange, at most; what is left follows in the next


class Settler:
    """A basket; `wake` is called when something falls into it while it is empty."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._basket: list[Settlement] = []
        self._logs: list[AttemptLog] = []

    def put(self, settlement: Settlement) -> None:
        if not self._basket:
            self._wake()
        self._basket.append(settlement)

    def take(self, limit: int) -> list[Settlement]:
        """The oldest, at most `limit`."""
        taken, self._basket = self._basket[:limit], self._basket[limit:]
        return taken

    def put_log(self, log: AttemptLog) -> None:
        """Before its settlement, so that both go out together."""
        if not self._basket:
            self._wake()
        self._logs.append(log)

    def take_logs(self) -> list[AttemptLog]:
        taken, self._logs = self._logs[:LOGS_AT_ONCE], self._logs[LOGS_AT_ONCE:]
        return taken

    def lines_given_on(self) -> set[Line]:
        """Lines in which another job may be ready as soon as these are settled."""
        return {
            Line(lease.queue, lease.lane)
            for settlement in self._basket
            if (lease := settlement.lease).lane.careful
        }

    def put_back(self, settlements: list[Settlement], logs: list[AttemptLog]) -> None:
        """The store did not answer: they will be sent again. Fences make that harmless."""
        self._basket = settlements + self._basket
        self._logs = logs + self._logs

    @property
    def waiting(self) -> list[Settlement]:
        return self._basket

    def __len__(self) -> int:
        return len(self._basket) + len(self._logs)
