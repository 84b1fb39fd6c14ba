"""Which lines are worth asking for jobs. A line is hot after a hint, or while it gives what it is asked for; a cold one
is found by looking. Looks follow activity in quick steps, then rest: a hint that was coalesced away costs little."""

import math
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from lateshift.model.job import Lane, Lease, Line
from lateshift.store.contract import Want

FIRST_STEP = 0.002


class Lines:
    """Knows nothing of the store; times are monotonic seconds."""

    def __init__(self, poll: timedelta) -> None:
        self._poll = poll.total_seconds()
        self._step = FIRST_STEP
        self._next_look = 0.0
        self._last_look = 0.0
        self._hot: dict[Line, float] = {}  # since when

    def hot(self) -> list[Line]:
        return list(self._hot)

    def warm(self, line: Line, now: float) -> bool:
        """A hint. True if it was news."""
        self._stir(now)
        news = line not in self._hot
        self._hot[line] = now
        return news

    def look_due(self, now: float) -> bool:
        """While lines give jobs, what else there may be is looked for at the pace of polling only."""
        return now >= self._look_at

    def looked(self, found: Sequence[Line], next_due: timedelta | None, now: float) -> None:
        for line in found:
            self._hot[line] = now
        self._last_look = now
        self._next_look = now + self._step
        self._step = min(self._step * 2, self._poll)
        if next_due is not None:
            self.due_in(next_due, now)

    def answered(
        self, wants: Sequence[Want], leases: Sequence[Lease], asked: float, now: float
    ) -> Counter[tuple[str, Lane]]:
        """A line that gave less than it was asked for has no more; unless only one of its priorities was asked, or a
        hint came after the question. Gives how many each gave."""
        if leases:
            self._stir(now)
        given = Counter([(lease.queue, lease.lane) for lease in leases])
        for want in wants:
            short = given[want.line.queue, want.line.lane] < want.count and not want.by_age
            if short and self._hot.get(want.line, math.inf) <= asked:
                del self._hot[want.line]
        return given

    def due_in(self, delay: timedelta, now: float) -> None:
        """A scheduled job will be due: look then, if not before."""
        self._next_look = min(self._next_look, now + delay.total_seconds())

    def pause(self, now: float) -> timedelta:
        """Until the next look: a worker that is full of slow jobs, and has a hot line, must not turn meanwhile."""
        return timedelta(seconds=max(0.0, min(self._look_at - now, self._poll)))

    @property
    def _look_at(self) -> float:
        return max(self._next_look, self._last_look + self._poll) if self._hot else self._next_look

    def _stir(self, now: float) -> None:
        self._step = FIRST_STEP
        self._next_look = min(self._next_look, now + FIRST_STEP)
