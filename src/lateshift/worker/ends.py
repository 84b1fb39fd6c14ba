"""How many jobs of each queue a worker ends in a second, of late, so that others can tell when a queue will be empty. Counted when the
worker tells of itself, not for each job."""

from collections import deque
from collections.abc import Callable, Collection, Mapping

from lateshift.model.draining import QUEUES_TOLD

WINDOW = 300.0  # seconds that are looked back at most
SPACING = 5.0  # seconds between what is remembered
ENOUGH = 20  # ends that make a pace; with so many, no longer ago is looked at
IDLE = 10.0  # seconds without a job of a queue after which its pace is history

Mark = tuple[float, int]  # when, and how many had ended


class Ends:
    """Times are monotonic seconds. A pace is of the time in which there was something to end, and no longer."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._looked_at = now()
        self._marks: dict[str, deque[Mark]] = {}
        self._active: dict[str, float] = {}
        self._before: dict[str, int] = {}
        self._told: dict[str, tuple[float, int, float]] = {}  # when it was told, at how many, and what

    def per_second(self, ended: Mapping[str, int], busy: Collection[str]) -> dict[str, float]:
        """`ended`: of each queue, how many since this worker began. `busy`: queues of which it has jobs now."""
        now = self._now()
        for queue in {*busy, *(name for name, count in ended.items() if count != self._before.get(name, 0))}:
            if queue not in self._marks:
                self._marks[queue] = deque([(self._looked_at, self._before.get(queue, 0))])
            self._active[queue] = now
        for queue in [name for name, at in self._active.items() if now - at > IDLE]:
            del self._active[queue], self._marks[queue]
            self._told.pop(queue, None)
        self._before, self._looked_at = dict(ended), now
        found = {queue: self._pace(queue, ended.get(queue, 0), now) for queue in self._marks}
        most = sorted((name for name, pace in found.items() if pace), key=lambda name: (-found[name], name))
        return {queue: found[queue] for queue in most[:QUEUES_TOLD]}

    def _pace(self, queue: str, count: int, now: float) -> float:
        """Told anew when something has ended, and now and then if nothing does: a worker that waits for long bodies is not to write
        for this alone."""
        at, of, pace = self._told.get(queue, (-SPACING, -1, 0.0))
        if of != count or now - at >= IDLE:
            pace = pace_of(self._marks[queue], count, now)
            self._told[queue] = (now, count, pace)
        marks = self._marks[queue]
        if now - marks[-1][0] >= SPACING:
            marks.append((now, count))
        while len(marks) > 1 and now - marks[0][0] > WINDOW:
            marks.popleft()
        return pace


def pace_of(marks: Collection[Mark], count: int, now: float) -> float:
    """Over the least time in which enough have ended, else over all that is remembered."""
    since, had = next(iter(marks))
    for at, before in reversed(list(marks)):
        if count - before >= ENOUGH and now - at >= SPACING:
            since, had = at, before
            break
    return float(f"{(count - had) / (now - since):.3g}") if now > since else 0.0
