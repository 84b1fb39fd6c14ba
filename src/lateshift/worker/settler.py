"""Collects how attempts ended until the next exchange with the store takes them: one commit for many."""

from collections.abc import Callable

from lateshift.model.job import Line
from lateshift.model.outcome import Settlement


class Settler:
    """A basket; `wake` is called when something falls into it while it is empty."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._basket: list[Settlement] = []

    def put(self, settlement: Settlement) -> None:
        if not self._basket:
            self._wake()
        self._basket.append(settlement)

    def take(self, limit: int) -> list[Settlement]:
        """The oldest, at most `limit`."""
        taken, self._basket = self._basket[:limit], self._basket[limit:]
        return taken

    def lines_given_on(self) -> set[Line]:
        """Lines in which another job may be ready as soon as these are settled."""
        return {
            Line(lease.queue, lease.lane)
            for settlement in self._basket
            if (lease := settlement.lease).lane.careful
        }

    def put_back(self, settlements: list[Settlement]) -> None:
        """The store did not answer: they will be sent again. Fences make that harmless."""
        self._basket = settlements + self._basket

    @property
    def waiting(self) -> list[Settlement]:
        return self._basket

    def __len__(self) -> int:
        return len(self._basket)
