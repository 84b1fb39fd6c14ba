"""How it goes now: how many jobs leave each queue, how long until it is empty or what holds it up; and the last minutes of all queues in
a few numbers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lateshift.model.draining import Drain, Told, drain, ended, seen_for, slowest
from lateshift.model.figures import ALL, BACKLOG_COUNTED, Figures, Grain, Sample, together
from lateshift.model.guard import queue_rates
from lateshift.model.lately import RECENT, per_second, seconds_counted
from lateshift.operating.attention import COUNTED_NOW
from lateshift.operating.overview import QUEUES_SUMMED
from lateshift.store.contract import MemberView, QueueView, Store
from lateshift.telemetry.of_members import told_by


class Recent(Struct, frozen=True):
    """What the last RECENT was: of each queue, of all that one may see, and for how many seconds there was something to see. How many jobs of
    a queue `left` it for good in a second, and how many of all were `completed`. Who works now, what they tell, and how many jobs of a queue may
    start in a second, where that is limited."""

    queues: Mapping[str, Figures]
    counted: Figures
    seconds: float
    left: Mapping[str, float]
    completed: float
    workers: Sequence[MemberView]
    told: Told
    limits: Mapping[str, float]


class QueuePace(Struct, frozen=True, kw_only=True):
    """`per_second`: jobs that left a queue for good, as they were counted in the last RECENT. `drain` goes by what workers tell of now."""

    per_second: float
    drain: Drain
    backlog: int
    cut: bool


class Pace(Struct, frozen=True, kw_only=True):
    """Of the last RECENT: jobs in a second, how long they waited until they started, and the share of attempts that failed; how many
    wait now, and until they are done: None if nothing moves, or nobody knows. `held_up`: those that do not move, and `why`. `cut`:
    more wait than are counted. How many workers run something, and how many do not."""

    completed_per_second: float
    wait_mean: float | None
    wait_most: float | None  # within which 95 of a hundred started
    failed: int
    failed_share: float | None
    backlog: int
    cut: bool
    drains_in: timedelta | None
    longer: bool  # it may take longer: of a queue that moves nobody knows
    held_up: int
    why: str | None
    busy_workers: int
    idle_workers: int


def recent(store: Store, queues: Sequence[QueueView], now: datetime, *, whole: bool) -> Recent:
    """`whole`: these are all queues there are, and their sum is kept ready."""
    since = Grain.MINUTE.begins(now) - RECENT
    samples = store.figures.of(ALL, Grain.MINUTE, since)
    workers = [it for it in store.reports.members() if it.kind == "worker" and not it.dead]
    came = min((it.started_at for it in workers), default=None)
    seconds = seconds_counted(samples, now, came)
    if whole:
        found = store.figures.by_queue(Grain.MINUTE, since, len(queues) + QUEUES_SUMMED)
        left = {name: ended(it) / (now - since).total_seconds() for name, it in found.items()}
        completed = per_second(samples, _completed, now, seconds)
    else:  # those that ran most may all be others'
        minutes_of = {
            it.name: store.figures.of(it.name, Grain.MINUTE, since) for it in queues[:QUEUES_SUMMED]
        }
        found = {name: together(it.figures for it in its) for name, its in minutes_of.items()}
        for name, its in minutes_of.items():
            found[name].backlog = _sampled(its)
        left = {name: per_second(its, ended, now, seconds) for name, its in minutes_of.items()}
        completed = sum(per_second(its, _completed, now, seconds) for its in minutes_of.values())
    for queue in queues:
        if (
            queue.ready >= COUNTED_NOW
        ):  # then the backlog is told as it was sampled: last, not when it was most
            minutes = store.figures.of(queue.name, Grain.MINUTE, since)
            found.setdefault(queue.name, Figures()).backlog = _sampled(minutes)
    mine = [it.figures for it in samples] if whole else [found[it.name] for it in queues if it.name in found]
    counted = together(mine)
    counted.backlog = _sampled(samples) if whole else sum(it.backlog for it in mine)
    return Recent(
        queues=found, counted=counted, seconds=seen_for(samples, since, now, came), left=left, completed=completed, workers=workers,
        told=told_by(workers), limits=queue_rates(store.rules.list()),
    )  # fmt: skip


def _completed(figures: Figures) -> int:
    return figures.completed


def _sampled(samples: Sequence[Sample]) -> int:
    """The last backlog of a few minutes."""
    return next((it.figures.backlog for it in reversed(samples) if it.figures.backlog), 0)


def waiting(queues: Sequence[QueueView], sampled: int) -> tuple[int, bool]:
    """What is due and waits, counted now; where that stops, as it was sampled last, and whether there may be more."""
    counted = sum(queue.ready + queue.blocked for queue in queues)
    stopped = any(it.ready >= COUNTED_NOW or it.blocked >= COUNTED_NOW for it in queues)
    if not stopped:
        return counted, False
    return max(counted, sampled), not 0 < sampled < BACKLOG_COUNTED


def of_queue(queue: QueueView, seen: Recent) -> QueuePace:
    figures = seen.queues.get(queue.name, Figures())
    backlog, cut = waiting([queue], figures.backlog)
    ends = seen.told.of(queue.name)
    mean = ended(figures) / seen.seconds
    parked, held = queue.parked, queue.held
    if parked + held == queue.blocked and queue.ready < COUNTED_NOW:  # also those that are counted no further
        rest = backlog - queue.ready - parked - held
        parked, held = (parked + rest, held) if parked >= held else (parked, held + rest)
    return QueuePace(
        per_second=seen.left.get(queue.name, 0.0), backlog=backlog, cut=cut,
        drain=drain(
            backlog, ends.per_second if ends.by_all else mean, limit=seen.limits.get(queue.name), rationed=queue.rationed > 0,
            parked=parked, held=held, paused=queue.paused_at is not None, served=ends.served,
        ),
    )  # fmt: skip


def of_all(queues: Sequence[QueueView], seen: Recent, *, whole: bool) -> Pace:
    each = [of_queue(queue, seen) for queue in queues]
    drained, unknown = slowest(it.drain for it in each)
    counted = seen.counted
    backlog, cut = waiting(queues, counted.backlog)
    attempts = counted.completed + counted.failed
    busy = sum(bool(member.stats.get("running")) for member in seen.workers)
    return Pace(
        completed_per_second=seen.completed, wait_mean=counted.mean_wait, wait_most=counted.wait_within(0.95), failed=counted.failed,
        failed_share=counted.failed / attempts if attempts else None, backlog=backlog, cut=cut,
        longer=unknown, drains_in=drained.takes, held_up=drained.held_up, why=drained.why,
        busy_workers=busy if whole else 0, idle_workers=len(seen.workers) - busy if whole else 0,
    )  # fmt: skip
