"""What the workers of this process have counted since it started. A worker adds to its own; only whoever looks adds up."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from lateshift.model.figures import ALL

BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)  # seconds, upper bounds
RUNS = (0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0)  # seconds that attempts ran, upper bounds
STARTS_TOLD, RUNS_TOLD = "starts", "runs"  # the histograms that a member reports of each queue
QUEUES_SPREAD = 50  # queues of which a worker tells them, the first that it had; the rest as OTHERS
TASKS_COUNTED = (
    50  # tasks in queues of which a process tells its counts, the first that it had; the rest as OTHERS
)
OTHERS = "(others)"


Named = tuple[str, str]  # queue, task
LEAVES = ("dead", "cancelled")  # how a job leaves its queue for good, but by its completion


class Histogram:
    """How many took up to how long."""

    __slots__ = ("bounds", "counts", "seconds")

    def __init__(self, bounds: Sequence[float] = BUCKETS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds

    def told(self) -> list[float]:
        """As a member reports it: the counts, then the sum."""
        return [*self.counts, round(self.seconds, 6)]

    @classmethod
    def read(cls, told: object, bounds: Sequence[float]) -> "Histogram | None":
        """None of one with other bounds or in another form, as another release may tell."""
        if not isinstance(told, list) or len(told) != len(bounds) + 2:
            return None
        if not all(type(each) in (int, float) for each in told):
            return None
        found = cls(bounds)
        found.counts, found.seconds = [int(count) for count in told[:-1]], float(told[-1])
        return found

    def add(self, other: "Histogram") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


class Measures:
    """Of one worker, on its loop. Completions are counted apart: one look-up for each job. `told`: the tasks in queues that have a count
    of their own, for as long as whoever tells them lives: a count that was told must not go down, also not that of the others."""

    __slots__ = ("completed", "lease", "others", "settle", "told")

    def __init__(self, told: dict[Named, None] | None = None) -> None:
        self.told: dict[Named, None] = {} if told is None else told
        self.completed: defaultdict[Named, int] = defaultdict(int)
        self.others: defaultdict[tuple[Named, str], int] = defaultdict(int)  # and by outcome
        self.lease = Histogram()  # exchanges that leased something
        self.settle = Histogram()  # exchanges that settled something

    def add(self, other: "Measures") -> None:
        for named, count in other.completed.items():
            self.completed[named] += count
        for key, count in other.others.items():
            self.others[key] += count
        self.lease.add(other.lease)
        self.settle.add(other.settle)

    def by_queue(self) -> dict[str, dict[str, dict[str, int]]]:
        """Attempts by queue, task and outcome, of TASKS_COUNTED tasks in queues, the rest together."""
        found: dict[Named, dict[str, int]] = {
            named: {"completed": count} for named, count in list(self.completed.items())
        }
        for (named, outcome), count in list(self.others.items()):
            outcomes = found.setdefault(named, {})
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        for named in sorted(found.keys() - self.told.keys()):
            if len(self.told) < TASKS_COUNTED:
                self.told[named] = None
        told: dict[str, dict[str, dict[str, int]]] = {}
        for (queue, task), counts in sorted(found.items()):
            own = (queue, task) in self.told
            of = told.setdefault(queue if own else OTHERS, {}).setdefault(task if own else OTHERS, {})
            for outcome, count in counts.items():
                of[outcome] = of.get(outcome, 0) + count
        return told

    def ended(self) -> dict[str, int]:
        """Jobs that have left each queue for good; and under ALL those that completed."""
        found: dict[str, int] = defaultdict(int)
        for (queue, _), count in list(self.completed.items()):
            found[queue] += count
            found[ALL] += count
        for ((queue, _), outcome), count in list(self.others.items()):
            if outcome in LEAVES:
                found[queue] += count
        return found


class Process:
    """All workers that this process has, and what those had counted that it had before: a sum never goes down."""

    def __init__(self) -> None:
        self._past = Measures()
        self._present: list[Measures] = []
        self._told: dict[Named, None] = {}

    def begin(self) -> Measures:
        measures = Measures()
        self._present.append(measures)
        return measures

    def retire(self, measures: Measures) -> None:
        if measures in self._present:
            self._present.remove(measures)
            self._past.add(measures)

    def total(self) -> Measures:
        total = Measures(self._told)
        for measures in (self._past, *self._present):
            total.add(measures)
        return total


PROCESS = Process()
