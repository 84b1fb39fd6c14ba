"""What a worker has counted since it last told the store: by queue what started and ended, and how long it had something to run. Told
under a number, so that what was told before its answer was lost is not counted twice."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from lateshift.model.figures import WAITS, Figures
from lateshift.model.job import Lease
from lateshift.telemetry.measures import OTHERS, QUEUES_SPREAD, RUNS, Histogram
from lateshift.worker.attempt import Attempt

TOLD_EVERY = 10.0  # seconds
QUEUES_TOLD = 100  # of which is told at once; of others the next time


class Telling(Struct, frozen=True):
    """What is told at once, until the store has it."""

    number: int
    queues: dict[str, Figures]
    busy: float


class Counting:
    """On the worker's loop. Times are monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._queues: defaultdict[str, Figures] = defaultdict(Figures)
        self._busy = 0.0
        self._busy_since: float | None = None
        self._counted_to = now()  # of what runs, the seconds until then are counted
        self._number = 0
        self._telling: Telling | None = None
        self._waits: dict[str, Histogram] = {}  # since it began, of what was told
        self._runs: dict[str, Histogram] = {}

    def start(self, lease: Lease) -> None:
        figures, waited = self._queues[lease.queue], lease.waited
        figures.started += 1
        figures.waited += waited
        figures.waits[bisect_left(WAITS, waited)] += 1
        if waited > figures.longest:
            figures.longest = waited

    def hold(self) -> None:
        """It has something to run."""
        if self._busy_since is None:
            self._busy_since = self._now()

    def close(self, attempt: Attempt, now: float, *, last: bool) -> None:
        """`last`: it has nothing more to run."""
        if (started := attempt.started) is not None:
            begun = max(self._counted_to, started)
            ended = now if attempt.finished is None else attempt.finished
            if ended > begun:
                self._queues[attempt.lease.queue].ran += ended - begun
            if attempt.ended:
                runs = self._runs.get(attempt.lease.queue) or _of(self._runs, attempt.lease.queue, RUNS)
                runs.counts[bisect_left(RUNS, ended - started)] += 1  # by hand: for each job
                runs.seconds += ended - started
        if last and self._busy_since is not None:
            self._busy += now - self._busy_since
            self._busy_since = None

    def complete(self, queue: str) -> None:
        self._queues[queue].completed += 1

    def end(self, queue: str, outcome: str) -> None:
        """Those that snoozed or were handed back are not counted: nothing has come of them yet."""
        if outcome in ("completed", "retried", "dead", "cancelled"):
            figures = self._queues[queue]
            setattr(figures, outcome, getattr(figures, outcome) + 1)

    @property
    def has_ended(self) -> bool:
        """Something has, of which nothing was told yet."""
        return any(it.completed or it.failed or it.cancelled for it in self._queues.values())

    def telling(self, held: Iterable[Attempt]) -> Telling | None:
        """What to tell now: what is not known to be told, else what came since. None if there is nothing."""
        if self._telling is None:
            self._count_up_to_now(held)
            if not self._queues and not self._busy:
                return None
            self._number += 1
            queues = {name: self._queues.pop(name) for name in list(self._queues)[:QUEUES_TOLD]}
            self._telling, self._busy = Telling(self._number, queues, self._busy), 0.0
            self._waits = self._spread(queues)
        return self._telling

    def starts(self) -> dict[str, list[float]]:
        """How long jobs of each queue had waited when they started, since this worker began."""
        return {queue: it.told() for queue, it in self._spread(self._queues).items()}

    def runs(self) -> dict[str, list[float]]:
        """How long attempts of each queue ran that have ended since."""
        return {queue: it.told() for queue, it in self._runs.items()}

    def _spread(self, more: Mapping[str, Figures]) -> dict[str, Histogram]:
        """What was told, and this besides."""
        found: dict[str, Histogram] = {}
        for queue, before in self._waits.items():
            _of(found, queue, WAITS).add(before)
        for queue, figures in more.items():
            if figures.started:
                of_queue = _of(found, queue, WAITS)
                of_queue.counts = [a + b for a, b in zip(of_queue.counts, figures.waits, strict=True)]
                of_queue.seconds += figures.waited
        return found

    def told(self) -> None:
        self._telling = None

    def _count_up_to_now(self, held: Iterable[Attempt]) -> None:
        """Also of what runs on."""
        now = self._now()
        for attempt in held:
            self.close(attempt, now, last=False)
        if self._busy_since is not None:
            self._busy += now - self._busy_since
            self._busy_since = now
        self._counted_to = now


def _of(all: dict[str, Histogram], queue: str, bounds: Sequence[float]) -> Histogram:
    """The first so many queues have one of their own, for as long as this worker lives: what is counted never goes down."""
    if queue not in all and len(all) >= QUEUES_SPREAD:
        queue = OTHERS
    return all.get(queue) or all.setdefault(queue, Histogram(bounds))
