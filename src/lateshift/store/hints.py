"""Hints are coalesced: after one was sent for a line, none is for a while. A worker that was woken looks again in
quick steps before it rests, and so meets what came without a hint of its own."""

from collections.abc import Iterable, Sequence

from lateshift.clock import Clock
from lateshift.model.job import Line, NewJob
from lateshift.store.lines import LANES

QUIET_SECONDS = 0.01


def lines_of(jobs: Sequence[NewJob]) -> set[Line]:
    """The lines that these jobs stand in. Jobs of one call share their spec, so each is asked once."""
    if len(jobs) == 1:
        return {jobs[0].spec.line}
    specs = {id(job.spec): job.spec for job in jobs}
    return {spec.line for spec in specs.values()}


def written(line: Line) -> str:
    return f"{line.lane:d} {line.queue}"


def read(hint: str) -> Line | None:
    """The line that a hint names; None for anything else that came the same way, for a listener must not end."""
    lane, _, queue = hint.partition(" ")
    return Line(queue, LANES[int(lane)]) if lane in _CODES else None


_CODES = {f"{lane:d}" for lane in LANES}


class Coalesced:
    """Which of these lines are due for a hint."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[Line, float] = {}

    def of(self, lines: Iterable[Line]) -> list[Line]:
        now = self._clock.monotonic()
        due = [line for line in lines if now - self._sent.get(line, -1.0) >= QUIET_SECONDS]
        for line in due:
            self._sent[line] = now
        if len(self._sent) > 10_000:  # a program that makes up queue names must not grow this for ever
            self._sent.clear()
        return due
