"""What both stores say alike about gates."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from lateshift.model.breaker import Breaker, Circuit, CircuitView, Verdict, circuit_name, verdict_of
from lateshift.model.explaining.facts import Room
from lateshift.model.gate import Before, Gate, Gates
from lateshift.model.ids import JobId
from lateshift.model.job import Lease
from lateshift.model.member import Serves
from lateshift.model.outcome import Settlement
from lateshift.store.breaker_contract import OTHERS_AT_ONCE, PARKED_AT_ONCE
from lateshift.store.contract import Rows

HEADS_LOOKED_AT = 100  # tenants and priorities of a line among which the next probe is looked for

Wanted = Callable[[Circuit, str], bool]  # a circuit, and the breaker that it is of

CIRCUIT_FIELDS = (
    "name", "since", "failed", "passed", "in_a_row", "opened_at", "opened_by", "reason", "probe_at", "probe", "probe_fence", "told",
    "open_for", "probing",
)  # fmt: skip


def before(gates: Sequence[Gate]) -> Before:
    of: dict[str, list[Gate]] = {}
    for gate in gates:
        of.setdefault(gate.task, []).append(gate)
    return of


def any_by_version(of: Before) -> bool:
    return any(gate.by_version for gates in of.values() for gate in gates)


def named(gates: Gates, jobs: set[tuple[str, str]]) -> tuple[dict[str, str], dict[str, int]]:
    """The circuits before these tasks in these queues, each with its breaker; and the queues behind them, each with what it may hold."""
    found = [gate for task, queue in jobs for gate in gates.of(task, queue)]
    circuits = {gates.circuit(gate): gate.name for gate in found if not gate.is_room}
    return circuits, {gate.name: gate.most for gate in found if gate.most is not None}


def verdicts(
    gates: Gates, settlements: Sequence[Settlement], lost: Sequence[Lease], key: Callable[[JobId], Any]
) -> dict[str, list[Verdict]]:
    """What the ends of these say, by circuit. What came too late says nothing."""
    late = {(lease.id, lease.fence) for lease in lost}
    of: dict[str, list[Verdict]] = {}
    for settlement in settlements:
        lease = settlement.lease
        doors = gates.of(lease.task, lease.queue)
        if doors and (lease.id, lease.fence) not in late:
            verdict = verdict_of(settlement, key(lease.id))
            for gate in doors:
                if not gate.is_room:
                    of.setdefault(gates.circuit(gate), []).append(verdict)
    return of


def probing(leases: list[Lease], gates: Gates, key: Callable[[JobId], Any]) -> list[Lease]:
    """The same, with those that probe marked as such."""
    probes = set(gates.probes.values())
    return [structs.replace(lease, probe=True) if key(lease.id) in probes else lease for lease in leases]


def let_go(circuit: Circuit | None, *, others: bool) -> int:
    """How many of a line may go on that are parked at a breaker, beside one that probes. `others`: workers of another version may run
    them."""
    if circuit is None or not circuit.is_open:
        return PARKED_AT_ONCE
    return OTHERS_AT_ONCE if others and circuit.opened_by is None else 0


def every(circuit: Circuit, breaker: str) -> bool:
    return True


def holding(before: Rows, blocked_by: str | None) -> Wanted:
    """Those that may hold a job up: the open ones of the breakers before its task, and of one that counts by version the one at which
    it is parked."""
    names = {name for (name,) in before}
    parked_by = (blocked_by or "").removeprefix("breaker:")
    return lambda circuit, breaker: (
        breaker in names and circuit.is_open and circuit.name in (breaker, parked_by)
    )


def full(behind: Rows, waiting: Callable[[str, int], int]) -> list[Room]:
    """The queues behind a task that have no room, of those that are bounded."""
    rooms = [Room(queue, waiting(queue, most), most) for queue, most in behind]
    return [room for room in rooms if room.waiting >= room.most]


def with_the_fresh(circuits: Sequence[Circuit], declared: Mapping[str, Breaker]) -> list[Circuit]:
    """By name; with those breakers that have seen nothing yet."""
    known = {circuit.name for circuit in circuits}
    fresh = [
        Circuit(name=name, since=0.0)
        for name, breaker in declared.items()
        if not breaker.by_version and name not in known
    ]
    return sorted([*circuits, *fresh], key=lambda it: it.name)


def view(it: Circuit, breaker: str, tasks: list[str], parked: int, probe: JobId | None) -> CircuitView:
    probes = it.is_open and it.opened_by is None
    return CircuitView(
        name=it.name,
        breaker=breaker,
        version=it.name.removeprefix(f"{breaker}@") if it.name != breaker else None,
        tasks=tasks,
        state="probing" if it.probing else "open" if it.is_open else "closed",
        failed=it.failed,
        passed=it.passed,
        opened_at=None if it.opened_at is None else datetime.fromtimestamp(it.opened_at, UTC),
        opened_by=it.opened_by,
        reason=it.reason,
        next_probe_at=datetime.fromtimestamp(it.probe_at, UTC) if probes else None,
        probe=probe,
        parked=parked,
    )


def breaker_of(circuit: str, known: Mapping[str, Breaker], of: str | None) -> str | None:
    """The breaker that a circuit belongs to, or would: one that counts by version has none until it has seen that version."""
    name = circuit if of is None else of
    return name if name in known and (of is not None or not known[name].by_version) else None


def others_serve(
    circuit: str, breaker: str, app: str, queues: Collection[str], alive: Iterable[Serves]
) -> bool:
    """Whether one of these runs another version of the app than the circuit is of, and takes from one of the queues."""
    return any(
        serves.app == app
        and circuit_name(breaker, serves.version) != circuit
        and any(serves.takes_from(queue) for queue in queues)
        for serves in alive
    )


def by_kind(waits: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for waits_for, _ in waits:
        kind, _, name = waits_for.partition(":")
        found.setdefault(kind, {})[name] = None
    return {kind: list(names) for kind, names in found.items()}
