"""How long until what waits is done: numbers in, an estimate out, or why there is none."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from lateshift.model.figures import ALL, Figures, Sample
from lateshift.model.member import served

PAUSED, PARKED, HELD, NO_WORKER = "paused", "parked", "session held", "no worker"
DRAINS = "drains"  # what a worker tells under this name: of each queue, how many jobs it ended in a second, of late
QUEUES_TOLD = 100  # of which a worker tells that, those that end most
LONGEST = 10**9  # seconds
LEAST_SEEN = 10.0  # seconds: workers tell so often what they counted, so that less was not seen


class Drain(Struct, frozen=True, kw_only=True):
    """`takes`: until what moves is done, if nothing more comes; None if nothing moves, or nobody knows. `held_up`: jobs that do not
    move, and `why`."""

    takes: timedelta | None
    moving: int = 0
    held_up: int = 0
    why: str | None = None


def drain(
    backlog: int, ends: float | None, *, limit: float | None = None, rationed: bool = False, parked: int = 0,
    held: int = 0, paused: bool = False, served: bool = True,
) -> Drain:  # fmt: skip
    """Of one queue. `ends`: jobs that leave it in a second now, None if that is not known. `limit`: how many may start in a second;
    `rationed`: jobs wait for nothing else. `parked`: how many of the backlog wait for a breaker; `held`: for
    somebody who lets their session go on."""
    if not backlog:
        return Drain(takes=timedelta(0))
    still = parked + held
    whys = ", ".join(why for some, why in ((parked, PARKED), (held, HELD)) if some)
    for stands, why in ((paused, PAUSED), (not served, NO_WORKER), (still >= backlog, whys)):
        if stands:
            return Drain(takes=None, held_up=backlog, why=why)
    moving = backlog - still
    # Where they wait for something else, as for a worker that has no room, the limit tells nothing of when they are done.
    pace = limit if rationed and limit is not None else ends
    if pace and limit is not None:
        pace = min(pace, limit)
    takes = timedelta(seconds=min(moving / pace, LONGEST)) if pace else None
    return Drain(takes=takes, moving=moving, held_up=still, why=whys or None)


def slowest(drains: Iterable[Drain]) -> tuple[Drain, bool]:
    """Of several queues, which are done side by side; and whether it may take longer, for of one that moves nobody knows."""
    each = [it for it in drains if it.moving or it.held_up]
    known = [it.takes for it in each if it.takes is not None]
    reasons = sorted({why for it in each if it.why is not None for why in it.why.split(", ")})
    total = Drain(
        takes=max(known, default=None) if each else timedelta(0), moving=sum(it.moving for it in each),
        held_up=sum(it.held_up for it in each), why=", ".join(reasons) or None,
    )  # fmt: skip
    return total, any(it.takes is None and it.moving for it in each)


class Ends(Struct, frozen=True):
    """How a queue is worked on. `served`: a worker is there for it. `per_second`: how many of its jobs end, as workers tell of themselves;
    None where none ends any. `by_all`: all that have told anything tell of this queue; those of an older release do not, nor those that end jobs of
    more queues than they tell of."""

    served: bool
    per_second: float | None
    by_all: bool


class Told:
    """What all workers tell, added up once: then it is asked of a thousand queues without a look at each worker for each of them."""

    def __init__(self, workers: Iterable[tuple[Sequence[str], Mapping[str, Any]]]) -> None:
        """Of each the queues that it serves, none for all of them, and what it tells of itself."""
        self._ends: dict[str, float] = {}
        # By queues: whether those that have told anything tell this, and whether some leave queues out.
        self._serving: dict[tuple[str, ...], set[bool]] = {}
        self._cut: set[tuple[str, ...]] = set()
        for queues, stats in workers:
            tell = self._serving.setdefault(tuple(queues), set())
            ends = stats.get(DRAINS)
            if stats:
                tell.add(isinstance(ends, dict))
            if isinstance(ends, dict) and len(ends) >= QUEUES_TOLD:
                self._cut.add(tuple(queues))
            for queue, rate in ends.items() if isinstance(ends, dict) else ():
                self._ends[queue] = self._ends.get(queue, 0.0) + float(rate)

    def of(self, queue: str) -> Ends:
        """ALL is of whoever is there."""
        serving = [each for each in self._serving if queue == ALL or served(queue, each or None)]
        tell = set[bool]().union(*(self._serving[each] for each in serving))
        left_out = queue not in self._ends and not self._cut.isdisjoint(serving)
        return Ends(bool(serving), self._ends.get(queue) or None, tell == {True} and not left_out)


def seen_for(samples: Sequence[Sample], since: datetime, now: datetime, came: datetime | None) -> float:
    """Seconds of a window in which there was something to see: from the first minute in which a job started or ended, or from
    when the first of the workers came, if that is later."""
    first = min((it.at for it in samples if it.figures.started or ended(it.figures)), default=since)
    begun = max(since, first, *([came] if came is not None and came < now else []))
    return max(LEAST_SEEN, (now - begun).total_seconds())


def ended(figures: Figures) -> int:
    """Jobs that have left their queue for good."""
    return figures.completed + figures.dead + figures.cancelled
