"""What stands before a task over all machines: a breaker that may be open, a queue behind it that may be full. Whoever comes to a shut
gate is parked; no attempt is counted."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from lateshift.model.breaker import Circuit, circuit_name


class Gate(Struct, frozen=True):
    """Before `task`: the breaker of this name; or, where `most` is given, the room in the queue of this name, which may hold so many: then
    only jobs in `queue` are kept waiting, whose results go there."""

    task: str
    name: str
    most: int | None = None
    queue: str = ""
    by_version: bool = False

    @property
    def is_room(self) -> bool:
        return self.most is not None

    def stands_before(self, queue: str) -> bool:
        return not self.is_room or self.queue == queue


Before = Mapping[str, Sequence[Gate]]
"""The gates of each task that has some."""


class Gates(Struct):
    """As they stand while a lease is decided: what is let through counts."""

    before: Before
    now: float
    version: str | None = None  # of the code that asks
    known: set[str] = field(default_factory=set)  # circuits that were looked at
    circuits: dict[str, Circuit] = field(default_factory=dict)  # those of them that are open
    busy: set[str] = field(default_factory=set)  # of those, the ones that somebody else is looking at
    rooms: dict[str, int] = field(default_factory=dict)  # places left in each queue
    probes: dict[str, Any] = field(default_factory=dict)  # which job probes each circuit

    def of(self, task: str, queue: str) -> list[Gate]:
        """Those before the jobs of a task in a queue."""
        return [gate for gate in self.before.get(task, ()) if gate.stands_before(queue)]

    def shut(self, task: str, queue: str) -> str | None:
        """What keeps such a job from running, as it says what it waits for."""
        for gate in self.of(task, queue):
            if gate.is_room:
                if self.rooms.get(gate.name, 1) <= 0:
                    return f"room:{gate.name}"
                continue
            circuit = self.circuits.get(self.circuit(gate))
            if circuit is not None and not self._may_probe(circuit):
                return f"breaker:{circuit.name}"
        return None

    def let_through(self, task: str, queue: str, job: Any) -> None:
        for gate in self.of(task, queue):
            if gate.is_room and gate.name in self.rooms:
                self.rooms[gate.name] -= 1
            elif (name := self.circuit(gate)) in self.circuits:
                self.probes[name] = job

    def circuit(self, gate: Gate) -> str:
        return circuit_name(gate.name, self.version or "" if gate.by_version else None)

    def _may_probe(self, circuit: Circuit) -> bool:
        taken = circuit.name in self.probes or circuit.name in self.busy
        return not taken and circuit.lets_one_through(self.now)
