"""What every store does about breakers, and about the room in the queues behind a task. See contract.py for what holds of all verbs.

A gate is looked at where jobs are leased: who comes to a shut one is blocked by `breaker:NAME` or `room:QUEUE`, and its attempt is not
counted. Where jobs are settled, their ends are counted in the same commit. The supervisor lets the parked go on."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from lateshift.model.breaker import Breaker, CircuitView, Opened
from lateshift.model.gate import Gate
from lateshift.model.job import NewJob

PARKED_AT_ONCE = 10_000  # jobs of a line let go on together when their gate is open again
OTHERS_AT_ONCE = 200  # of a version whose breaker is open, jobs left to workers of another


class Breakers(Protocol):
    def declare(
        self, breakers: Mapping[str, Breaker], gates: Sequence[Gate], *, tasks: Collection[str], by: str
    ) -> None:
        """As the code of the app `by` has them now, which has these tasks. What stood before one of them and does not any more is
        withdrawn; a breaker goes when it stands before no task of anybody. Other tasks of the app are another program's matter."""

    def open(self, name: str, *, by: str) -> bool:
        """An operator parks what comes to it, until somebody closes it: nobody probes. False if there is none, or an operator
        had opened it."""

    def close(self, name: str, *, by: str) -> bool:
        """Let everything through, and count anew. False if it was closed."""

    def untold(self) -> list[Opened]:
        """Those that have opened by themselves, and nobody was told yet."""

    def tell(self, opened: Opened, jobs: Sequence[NewJob]) -> bool:
        """Enqueue these, which tell of it, and mark it as told: in one commit, once. False if another did."""

    def list(self, limit: int | None = None, *, after: str = "") -> list[CircuitView]:
        """Every breaker by name, or the first `limit` of them behind this name; one that counts by version, for each version that it has seen."""
