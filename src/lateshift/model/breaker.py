"""A circuit breaker: when calls of a service fail, its jobs are parked; one of them is let through from time to time, and when that
one succeeds all are. Pure decisions, the same on every store."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, structs

from lateshift.errors import OptionInvalid
from lateshift.model import checks
from lateshift.model.history import read
from lateshift.model.ids import JobId
from lateshift.model.outcome import (
    RESULT_NOT_KEPT,
    Completed,
    DeadLettered,
    Later,
    Outcome,
    Settlement,
)
from lateshift.model.sealed import REFUSED, masked_text

MOST_FAILURES = 1_000_000
LONGEST = timedelta(days=365)  # of a window, and of the pause between probes
REASON_LIMIT = 500  # characters kept of the failure that opened it


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """It opens after `failures` in a row; or when within the window `within` as many have failed, and they are at least the `share`
    of all. Then jobs are parked, and after each `open_for` one of them probes. `by_version`: workers of each version of the code
    have one of their own, so that a bad release parks only what its own workers would run."""

    failures: int = 5
    share: float = 0.5
    within: timedelta = timedelta(minutes=1)
    open_for: timedelta = timedelta(seconds=30)
    by_version: bool = False

    def __post_init__(self) -> None:
        if type(self.failures) is not int or not 1 <= self.failures <= MOST_FAILURES:
            raise OptionInvalid(
                f"Breaker: failures is a whole number from 1 to {MOST_FAILURES:,}, not {self.failures!r}."
            )
        if type(self.share) not in (int, float) or not 0 < self.share <= 1:
            raise OptionInvalid(f"Breaker: share is a part of all, over 0 and up to 1, not {self.share!r}.")
        for name in ("within", "open_for"):
            if not timedelta(0) < checks.duration(f"Breaker: {name}", getattr(self, name)) <= LONGEST:
                raise OptionInvalid(f"Breaker: {name} is longer than nothing, and a year at most.")
        if not isinstance(self.by_version, bool):
            raise OptionInvalid(f"Breaker: by_version is True or False, not {self.by_version!r}.")


class Circuit(Struct, kw_only=True):
    """Where a breaker stands; one `by_version` has one for each version, named `payments@2.0`. Times are seconds."""

    name: str
    since: float  # the window's beginning
    failed: int = 0
    passed: int = 0
    in_a_row: int = 0
    opened_at: float | None = None
    opened_by: str | None = None  # an operator, who will close it; then nobody probes
    reason: str | None = None
    probe_at: float = 0.0
    open_for: float | None = None  # from one probe to the next, as the code has it now
    probe: Any = None  # the job, as the store has it
    probe_fence: int | None = None
    probing: bool = False  # whether that runs
    told: bool = False

    @property
    def is_open(self) -> bool:
        return self.opened_at is not None

    def lets_one_through(self, now: float) -> bool:
        """A clock that was set back makes nobody wait longer than from one probe to the next."""
        due = now >= self.probe_at or (self.open_for is not None and self.probe_at - now > self.open_for)
        return self.is_open and self.opened_by is None and not self.probing and due


class Verdict(Struct, frozen=True):
    """What the end of an attempt says of the service: it answered, it failed, or (None) nothing."""

    job: Any
    fence: int
    passed: bool | None
    why: str | None = None


def after(breaker: Breaker, before: Circuit, verdicts: Iterable[Verdict], now: float) -> Circuit:
    """Where it stands when these have ended together."""
    verdicts = list(verdicts)
    if before.is_open:
        return _after_probe(breaker, before, verdicts, now)
    failures = [verdict for verdict in verdicts if verdict.passed is False]
    passed = sum(verdict.passed is True for verdict in verdicts)
    over = not 0 <= now - before.since < breaker.within.total_seconds()
    circuit = Circuit(
        name=before.name,
        since=now if over else before.since,
        failed=(0 if over else before.failed) + len(failures),
        passed=(0 if over else before.passed) + passed,
        in_a_row=0 if passed else before.in_a_row + len(failures),
        open_for=before.open_for,
    )
    of_all = circuit.failed / max(1, circuit.failed + circuit.passed)
    many = circuit.failed >= breaker.failures and of_all >= breaker.share
    if failures and (many or circuit.in_a_row >= breaker.failures):
        circuit.opened_at = now
        circuit.probe_at = now + breaker.open_for.total_seconds()
        circuit.reason = (failures[-1].why or "")[:REASON_LIMIT] or None
    return circuit


def _after_probe(breaker: Breaker, before: Circuit, verdicts: Iterable[Verdict], now: float) -> Circuit:
    """Only the probe counts: what began before it opened says nothing of now."""
    for verdict in verdicts:
        if before.probe is None or (verdict.job, verdict.fence) != (before.probe, before.probe_fence):
            continue
        if verdict.passed and before.opened_by is None:
            return Circuit(name=before.name, since=now, passed=1, open_for=before.open_for)
        pause = breaker.open_for.total_seconds() if verdict.passed is False else 0.0
        reason = (verdict.why or "")[:REASON_LIMIT] or before.reason
        return structs.replace(
            before, probe=None, probe_fence=None, probing=False, probe_at=now + pause, reason=reason
        )
    return before


def circuit_name(breaker: str, version: str | None) -> str:
    """`version`: of a breaker that has one circuit for each."""
    return breaker if version is None else f"{breaker}@{version}"


class CircuitView(Struct, frozen=True, kw_only=True):
    """A circuit as operators see it. `parked` is counted up to COUNT_LIMIT."""

    name: str
    breaker: str
    version: str | None
    tasks: list[str]
    state: str  # closed, open, probing
    failed: int
    passed: int
    opened_at: datetime | None
    opened_by: str | None
    reason: str | None
    next_probe_at: datetime | None
    probe: JobId | None
    parked: int


class Opened(Struct, frozen=True, kw_only=True):
    """That a circuit has opened, and nobody was told yet."""

    name: str
    at: datetime
    reason: str | None


def verdict_of(settlement: Settlement, job: Any) -> Verdict:
    """A permanent fault is an answer: the service is there. Who was stopped by its worker, by an operator, or because its step was
    late, which may be for want of workers, says nothing."""
    lease, outcome = settlement.lease, settlement.outcome
    passed: bool | None = None
    match outcome:
        case Completed():
            passed = True
        case DeadLettered(reason=reason) if reason in ("permanent", RESULT_NOT_KEPT):
            passed = True
        case DeadLettered(reason=reason) if reason in ("undecodable", *REFUSED):
            passed = None
        case DeadLettered():
            passed = False
        case Later(counts=counts, history=history):
            passed = False if counts or (lease.probe and history is not None) else None
    why = _why(outcome) if passed is False else None
    return Verdict(job, lease.fence, passed, why)


def _why(outcome: Outcome) -> str | None:
    records = read(getattr(outcome, "history", None))
    if not records:
        return None
    last = records[-1]
    message = masked_text(last.message)
    return f"{last.error}: {message}" if last.error else message or last.reason
