"""What the workers of this process have counted since it started. A worker adds to its own; only whoever looks adds up."""

from bisect import bisect_left
from collections import defaultdict

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
TASKS_COUNTED = 50  # tasks of which a worker tells its counts, the busiest; the rest as OTHERS
OTHERS = "(others)"


class Histogram:
    """How many took up to how long."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    def add(self, other: "Histogram") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds


class Measures:
    """Of one worker, on its loop. Completions are counted apart: one look-up for each job."""

    __slots__ = ("completed", "lease", "others", "settle")

    def __init__(self) -> None:
        self.completed: defaultdict[str, int] = defaultdict(int)  # by task
        self.others: defaultdict[tuple[str, str], int] = defaultdict(int)  # by task and outcome
        self.lease = Histogram()  # exchanges that leased something
        self.settle = Histogram()  # exchanges that settled something

    def add(self, other: "Measures") -> None:
        for task, count in other.completed.items():
            self.completed[task] += count
        for key, count in other.others.items():
            self.others[key] += count
        self.lease.add(other.lease)
        self.settle.add(other.settle)

    def by_task(self) -> dict[str, dict[str, int]]:
        """Attempts by task and outcome, of the TASKS_COUNTED busiest tasks, the rest together."""
        found: dict[str, dict[str, int]] = {
            task: {"completed": count} for task, count in list(self.completed.items())
        }
        for (task, outcome), count in list(self.others.items()):
            outcomes = found.setdefault(task, {})
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        if len(found) <= TASKS_COUNTED:
            return found
        busiest = sorted(found, key=lambda task: (-sum(found[task].values()), task))
        rest: defaultdict[str, int] = defaultdict(int)
        for task in busiest[TASKS_COUNTED:]:
            for outcome, count in found[task].items():
                rest[outcome] += count
        return {task: found[task] for task in busiest[:TASKS_COUNTED]} | {OTHERS: dict(rest)}


class Process:
    """All workers that this process has, and what those had counted that it had before: a sum never goes down."""

    def __init__(self) -> None:
        self._past = Measures()
        self._present: list[Measures] = []

    def begin(self) -> Measures:
        measures = Measures()
        self._present.append(measures)
        return measures

    def retire(self, measures: Measures) -> None:
        if measures in self._present:
            self._present.remove(measures)
            self._past.add(measures)

    def total(self) -> Measures:
        total = Measures()
        for measures in (self._past, *self._present):
            total.add(measures)
        return total


PROCESS = Process()
