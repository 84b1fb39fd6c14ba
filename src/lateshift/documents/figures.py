"""Figures of what went on."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lateshift.model.figures import Figures, Over, Sample


class PeriodDocument(Struct, frozen=True, kw_only=True):
    """What went on from `at` on for one period. `start_p95_seconds`: within which 95 of a hundred jobs started after they were due.
    `failed`: attempts that failed. `worker_seconds`: how long all attempts ran. `busy_share`: of the workers' time, in which they had
    something to run; told of all queues together only. `backlog`: None where nobody has told what waits."""

    at: datetime
    started: int
    completed: int
    failed: int
    dead: int
    cancelled: int
    start_mean_seconds: float | None
    start_p95_seconds: float | None
    start_longest_seconds: float
    worker_seconds: float
    backlog: int | None
    busy_share: float | None


class HistoryDocument(Struct, frozen=True, kw_only=True):
    """The course of an hour, a day or a week, in periods of `step_seconds`; the last is under way. `queue`: None is all of them."""

    queue: str | None
    over: str
    step_seconds: int
    periods: list[PeriodDocument]


def period_document(sample: Sample) -> PeriodDocument:
    it: Figures = sample.figures
    idle = it.idle_share
    return PeriodDocument(
        at=sample.at, started=it.started, completed=it.completed, failed=it.failed, dead=it.dead, cancelled=it.cancelled,
        start_mean_seconds=it.mean_wait, start_p95_seconds=it.wait_within(0.95), start_longest_seconds=it.longest,
        worker_seconds=it.ran, backlog=it.backlog if sample.sampled else None, busy_share=None if idle is None else 1 - idle,
    )  # fmt: skip


def history_document(queue: str | None, over: Over, samples: Sequence[Sample]) -> HistoryDocument:
    return HistoryDocument(
        queue=queue, over=over.name.lower(), step_seconds=over.grain.seconds, periods=[period_document(it) for it in samples]
    )  # fmt: skip
