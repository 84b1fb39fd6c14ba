"""Back-pressure: what happens to an enqueue when its queue holds as much as it may. Written once, as a function that yields
what to do next; a few lines carry it out for callers that block and for callers that await."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias, TypeVar

from lateshift.errors import QueueFull
from lateshift.model.estimate import Asked, Estimate
from lateshift.model.job import Spec
from lateshift.model.queue import QueueSettings, WhenFull
from lateshift.runtime.aside import aside
from lateshift.store.contract import Store
from lateshift.store.forks import forks
from lateshift.task import Call

T = TypeVar("T")

# In a caller's transaction, making room would be a write beside it: it is refused instead.
IN_TRANSACTION: Mapping[WhenFull, WhenFull] = {
    "raise": "raise", "shed_new": "shed_new", "shed_oldest": "raise", "shed_lowest": "raise",
}  # fmt: skip
A_MOMENT = 0.002  # seconds until another's count is asked for again

Calls: TypeAlias = Sequence[Call[Any]]
Steps: TypeAlias = Generator[float | Callable[[], Any], Any, T]
"""Yields seconds to pause, or a call to the store whose answer is sent back."""


class Gate:
    """One queue with a `max_ready`, and what this process knows of it."""

    def __init__(self, name: str, settings: QueueSettings, most: int, store: Store) -> None:
        self.name = name
        self.settings = settings
        self._store = store
        self._clock = store.clock
        self._estimate = Estimate(most)
        self._lock = threading.Lock()

    def room(self, wanted: int, seconds: float) -> Steps[int]:
        """How many of the wanted jobs may go, once some may; 0 if none may within so many seconds."""
        end = self._clock.monotonic() + seconds
        while True:
            now = self._clock.monotonic()
            with self._lock:
                answer = self._estimate.ask(wanted, now)
            if isinstance(answer, int):
                return answer
            if answer is Asked.COUNTING:
                yield A_MOMENT
                continue
            full = answer is Asked.FULL or (yield from self._count(now))
            now = self._clock.monotonic()
            if full and now >= end:
                return 0
            if full:
                yield min(self._estimate.pause, end - now)

    def _count(self, asked: float) -> Steps[bool]:
        """Whether the queue is full."""
        try:
            waiting = yield partial(self._store.queues.waiting, self.name, self._estimate.most)
            now = self._clock.monotonic()
            with self._lock:
                return self._estimate.counted(waiting, now, now - asked)
        finally:
            with self._lock:
                self._estimate.end_count()

    def make_room(self, calls: Calls) -> Steps[int]:
        """For some of these, at the cost of others; 0 if none had to give way."""
        below = calls[0].job.spec.priority if self.settings.when_full == "shed_lowest" else None
        gone = yield partial(self._store.jobs.shed, self.name, len(calls), below=below)
        with self._lock:
            self._estimate.forget()
            return self._estimate.force(len(gone))

    def sent(self, jobs: int) -> None:
        with self._lock:
            self._estimate.sent(jobs)

    def full(self, waited: bool) -> QueueFull:
        wait = self.settings.wait.total_seconds() if waited else 0
        within = f" and none went within {wait:g} s" if wait else ""
        return QueueFull(
            f"As many jobs wait in the queue {self.name} as its max_ready, {self._estimate.most:,}{within}. Nothing was "
            "enqueued. Try again later, start more workers for it, or raise its max_ready."
        )


class Part:
    """Calls that may go now, those that come after them, and those that were shed. Enter it to send."""

    def __init__(self, now: Calls = ()) -> None:
        self.now = now
        self.later: Calls = ()
        self.shed: Calls = ()
        self._granted: list[tuple[Gate, int]] = []

    def grant(self, gate: Gate, jobs: int) -> None:
        self._granted.append((gate, jobs))

    def __enter__(self) -> "Part":
        return self

    def __exit__(self, *_: object) -> None:
        for gate, jobs in self._granted:
            gate.sent(jobs)


class Pressure:
    """The gates of one client. Plain queues have none, and cost nothing here."""

    def __init__(self, queues: Mapping[str, QueueSettings]) -> None:
        self._queues = queues
        self._gates: dict[str, Gate] = {}
        self._made_for: tuple[Store, int] | None = None

    def concerns(self, spec: Spec) -> bool:
        """Whether a job that is due at once meets a limit of its queue."""
        settings = self._queues.get(spec.queue)
        if settings is None or settings.max_ready is None:
            return False
        return spec.delay is None and spec.at is None

    def part(self, store: Store, calls: Calls, *, waits: bool = True) -> Part:
        """Which of these calls may go, by the rules of their queues. Raises QueueFull, having sent nothing."""
        return carried_out(self.steps(store, calls, waits)) if self._queues else Part(calls)

    async def apart(self, store: Store, calls: Calls, *, waits: bool = True) -> Part:
        return await acarried_out(self.steps(store, calls, waits)) if self._queues else Part(calls)

    def steps(self, store: Store, calls: Calls, waits: bool) -> Steps[Part]:
        """A full queue does not keep the calls for others waiting: only when none may go, the queue of the first decides."""
        part = Part()
        places: dict[str, list[int]] = {}
        for place, call in enumerate(calls):
            if self.concerns(call.job.spec):
                places.setdefault(call.job.spec.queue, []).append(place)
        later: set[int] = set()
        try:
            for name, mine in places.items():
                gate = self._gate(store, name)
                granted = yield from gate.room(len(mine), 0.0)
                part.grant(gate, granted)
                later.update(mine[granted:])
            if len(later) < len(calls):
                part.now = _at(calls, set(range(len(calls))) - later)
            else:
                gate = self._gate(store, calls[0].job.spec.queue)
                later -= yield from self._by_rule(gate, calls, places[gate.name], part, waits)
            part.later = _at(calls, later)
            return part
        except BaseException:
            part.__exit__()
            raise

    def _by_rule(self, gate: Gate, calls: Calls, mine: list[int], part: Part, waits: bool) -> Steps[set[int]]:
        """Wait, then do what the queue says. Gives the places of the calls that have gone, one way or the other."""
        rule = gate.settings.when_full if waits else IN_TRANSACTION[gate.settings.when_full]
        granted = yield from gate.room(len(mine), gate.settings.wait.total_seconds() if waits else 0.0)
        if not granted and rule in ("shed_oldest", "shed_lowest"):
            if rule == "shed_lowest":  # each makes room at the cost of lower ones only
                priority = calls[mine[0]].job.spec.priority
                mine = [place for place in mine if calls[place].job.spec.priority == priority]
            granted = yield from gate.make_room(_at(calls, mine))
            if not granted:  # the queue may have been drained meanwhile
                granted = yield from gate.room(len(mine), 0.0)
        part.grant(gate, granted)
        if granted:
            part.now = _at(calls, mine[:granted])
            return set(mine[:granted])
        if rule in ("shed_new", "shed_lowest"):
            part.shed = _at(calls, mine)
            return set(mine)
        raise gate.full(waits)

    def _gate(self, store: Store, name: str) -> Gate:
        if self._made_for is None or self._made_for[0] is not store or self._made_for[1] != forks():
            self._gates, self._made_for = {}, (store, forks())
        gate = self._gates.get(name)
        if gate is None:
            settings = self._queues[name]
            assert settings.max_ready is not None
            gate = self._gates.setdefault(name, Gate(name, settings, settings.max_ready, store))
        return gate


def _at(calls: Calls, places: Iterable[int]) -> Calls:
    return [calls[place] for place in sorted(places)]


def carried_out(steps: Steps[T], sleep: Callable[[float], None] = time.sleep) -> T:
    with closing(steps):
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as stop:
                given: T = stop.value
                return given
            if callable(step):
                answer = step()
            else:
                sleep(step)
                answer = None


async def acarried_out(steps: Steps[T]) -> T:
    with closing(steps):
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as stop:
                given: T = stop.value
                return given
            if callable(step):
                answer = await aside(step)
            else:
                await asyncio.sleep(step)
                answer = None
