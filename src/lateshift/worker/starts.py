"""How many jobs of each line a worker began of late, so that others can tell when a job's turn will come."""

from collections import Counter
from collections.abc import Callable, Mapping

from lateshift.model.job import Lane

WINDOW = (
    10.0  # seconds; the pace is told when one is over, so that it costs no write of its own while jobs run
)
LINES_TOLD = 50  # the busiest

Line = tuple[str, Lane]  # queue, lane


class Starts:
    """Counted once for each exchange, not for each job."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since = now()
        self._counts: Counter[Line] = Counter()
        self._told: dict[str, dict[str, float]] = {}

    def add(self, given: Mapping[Line, int]) -> None:
        self._counts.update(given)

    def per_second(self) -> dict[str, dict[str, float]]:
        """Of the last whole window: for each queue and lane."""
        passed = self._now() - self._since
        if passed >= WINDOW:
            told: dict[str, dict[str, float]] = {}
            for (queue, lane), count in self._counts.most_common(LINES_TOLD):
                told.setdefault(queue, {})[lane.label] = float(f"{count / passed:.2g}")
            self._told, self._counts, self._since = told, Counter(), self._now()
        return self._told
