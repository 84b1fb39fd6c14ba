"""How it goes: the last minutes in a few numbers, the course of an hour, a day or a week, and what each queue costs."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lateshift.model.figures import BACKLOG_COUNTED, Figures, Grain, Over, Sample, filled, together
from lateshift.operating.attention import COUNTED_NOW, Shows
from lateshift.store.contract import MemberView, QueueView, Store

RECENT = timedelta(minutes=5)  # of which the present pace is told
QUEUES_SUMMED = 100  # whose figures are added up for one who may not see all queues
QUEUES_COSTED = 20  # told one by one in what it costs, those that ran longest


class Pace(Struct, frozen=True, kw_only=True):
    """The last RECENT: jobs in a second, how long they waited until they started, the share of attempts that failed; how many wait now
    and how long that takes at this pace; how many workers run something, and how many do not. `drains_in`: None if nothing ends.
    `cut`: more wait than are counted."""

    completed_per_second: float
    wait_mean: float | None
    wait_most: float | None  # within which 95 of a hundred started
    failed: int
    failed_share: float | None
    backlog: int
    cut: bool
    drains_in: timedelta | None
    busy_workers: int
    idle_workers: int


def recent(store: Store, queues: Sequence[str], now: datetime) -> tuple[Figures, float]:
    """Of these queues together, which may be ALL, with the seconds in which it was; the backlog as it was sampled last."""
    since = Grain.MINUTE.begins(now) - RECENT
    of_each = [store.figures.of(queue, Grain.MINUTE, since) for queue in queues[:QUEUES_SUMMED]]
    counted = together(sample.figures for samples in of_each for sample in samples)
    counted.backlog = sum(
        next((it.figures.backlog for it in reversed(samples) if it.figures.backlog), 0) for samples in of_each
    )
    return counted, (now - since).total_seconds()


def waiting(queues: Sequence[QueueView], sampled: int) -> tuple[int, bool]:
    """What is due and waits, counted now; where that stops, as it was sampled last, and whether there may be more."""
    counted = sum(queue.ready + queue.blocked for queue in queues)
    stopped = any(it.ready >= COUNTED_NOW for it in queues) or sum(it.blocked for it in queues) >= COUNTED_NOW
    if not stopped:
        return counted, False
    return max(counted, sampled), not 0 < sampled < BACKLOG_COUNTED


def pace(
    counted: Figures, seconds: float, queues: Sequence[QueueView], members: Sequence[MemberView]
) -> Pace:
    per_second = counted.completed / seconds
    backlog, cut = waiting(queues, counted.backlog)
    workers = [member for member in members if member.kind == "worker" and not member.dead]
    busy = sum(bool(member.stats.get("running")) for member in workers)
    ended = counted.completed + counted.failed
    return Pace(
        completed_per_second=per_second, wait_mean=counted.mean_wait, wait_most=counted.wait_within(0.95), failed=counted.failed,
        failed_share=counted.failed / ended if ended else None, backlog=backlog,
        cut=cut, drains_in=drains_in(backlog, per_second),
        busy_workers=busy, idle_workers=len(workers) - busy,
    )  # fmt: skip


def drains_in(backlog: int, per_second: float) -> timedelta | None:
    """If nothing more came. None if nothing is done."""
    if not backlog:
        return timedelta(0)
    return timedelta(seconds=min(backlog / per_second, 10**9)) if per_second else None


def course(store: Store, queue: str, over: Over, now: datetime) -> list[Sample]:
    """One sample for each period, of a queue or of ALL."""
    return filled(store.figures.of(queue, over.grain, over.begins(now)), over.periods(now))


def course_of(store: Store, queues: Sequence[str], over: Over, now: datetime) -> list[Sample]:
    """The same of several queues together."""
    summed: dict[datetime, Figures] = {}
    for queue in queues[:QUEUES_SUMMED]:
        for sample in store.figures.of(queue, over.grain, over.begins(now)):
            before = summed.setdefault(sample.at, Figures())
            backlog = before.backlog + sample.figures.backlog
            before.add(sample.figures)
            before.backlog = backlog
    return filled((Sample(at, figures) for at, figures in summed.items()), over.periods(now))


class Cost(Struct, frozen=True, kw_only=True):
    """Seconds that attempts of a queue ran, and which part that is of all."""

    queue: str
    seconds: float
    share: float


def costs(store: Store, over: Over, now: datetime, shows: Shows) -> list[Cost]:
    """By queue, the dearest first. An hour is read in steps of five minutes, anything longer in hours."""
    grain = Grain.FIVE_MINUTES if over is Over.HOUR else Grain.HOUR
    found = store.figures.by_queue(grain, over.begins(now), QUEUES_SUMMED)
    shown = {queue: figures.ran for queue, figures in found.items() if shows(queue) and figures.ran}
    total = sum(shown.values())
    return [
        Cost(queue=queue, seconds=seconds, share=seconds / total)
        for queue, seconds in list(shown.items())[:QUEUES_COSTED]
    ]


def merged(samples: Sequence[Sample], most: int) -> list[Sample]:
    """As few periods as a chart has room for; each several of the next finer ones together."""
    each = -(-len(samples) // most)
    lots = [samples[start : start + each] for start in range(0, len(samples), each)]
    return [Sample(lot[0].at, together(it.figures for it in lot)) for lot in lots]
