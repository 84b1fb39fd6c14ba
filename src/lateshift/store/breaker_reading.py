"""Breakers as a store has them, read: what both stores do alike, each with its own statements."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lateshift.model.breaker import Breaker, Circuit, CircuitView
from lateshift.model.gate import Gate
from lateshift.model.ids import JobId
from lateshift.store import gating
from lateshift.store.contract import Rows

Ask = Callable[..., Rows]  # a statement and what it asks for


@dataclass(frozen=True, slots=True)
class BreakerReading:
    """The statements of a store, and how it reads their rows."""

    breakers: str  # name, who declared it last, and what `breaker_of` reads
    stand: str  # the gates that an app has declared
    circuits: str
    of: str  # which breaker each circuit is of
    tasks: str  # before which tasks each breaker stands
    parked: str  # how many wait at a breaker, up to so many
    breaker_of: Callable[[tuple[Any, ...]], Breaker]
    circuit_of: Callable[[tuple[Any, ...]], Circuit]
    job_id: Callable[[Any], JobId]

    def declared(self, ask: Ask) -> dict[str, Breaker]:
        return {name: breaker for name, (_, breaker) in self._declared(ask).items()}

    def as_declared(
        self,
        ask: Ask,
        breakers: Mapping[str, Breaker],
        gates: Sequence[Gate],
        tasks: Collection[str],
        by: str,
    ) -> bool:
        """Whether all is as the app wants it: its breakers, with who declared each last, and what stands before its tasks."""
        known = self._declared(ask)
        mine = {gate for gate in (Gate(*row) for row in ask(self.stand, by)) if gate.task in tasks}
        return mine == set(gates) and all(
            known.get(name) == (by, breaker) for name, breaker in breakers.items()
        )

    def views(
        self,
        ask: Ask,
        most: int,
        wanted: gating.Wanted = gating.every,
        limit: int | None = None,
        after: str = "",
    ) -> list[CircuitView]:
        """Those circuits that are wanted, the first `limit` of them behind a name, and what is parked at each, up to `most`. What is parked at others is not counted."""
        circuits = [self.circuit_of(row) for row in ask(self.circuits)]
        found = gating.with_the_fresh(circuits, self.declared(ask))
        of: dict[str, str] = dict(ask(self.of))
        tasks = ask(self.tasks)
        views: list[CircuitView] = []
        for it in found:
            if len(views) == limit:
                break
            breaker = of.get(it.name, it.name)
            if it.name > after and wanted(it, breaker):
                [(parked,)] = ask(self.parked, f"breaker:{it.name}", most)
                probe = self.job_id(it.probe) if it.probing else None
                before = [task for name, task in tasks if name == breaker]
                views.append(gating.view(it, breaker, before, parked, probe))
        return views

    def _declared(self, ask: Ask) -> dict[str, tuple[str, Breaker]]:
        return {name: (by, self.breaker_of(tuple(row))) for name, by, *row in ask(self.breakers)}
