"""A batch: many jobs under one handle. Plain data, the ids of its jobs, and when its callbacks are due."""

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.job import NewJob

BatchId: TypeAlias = UUID

JOBS_LIMIT = 10_000_000  # jobs in one batch
BATCH_NAME_LIMIT = 200  # characters of a batch's name

_PLACE_LOW = 20  # bits of a place that stand behind the variant of the id; those above stand before it
_TAIL = 42  # bits behind them, in which the jobs of two batches differ
_STEP = 0x1E3779B97F5  # odd: no two jobs of a batch have the same last digits, by which people name them


class NewBatch(Struct, frozen=True, kw_only=True):
    """A batch as it is asked for: how many jobs it will have, and what is to be enqueued when they have ended. `digest`
    is the same for the same calls; it is there where a key is."""

    id: BatchId
    total: int
    name: str | None = None
    key: str | None = None
    digest: bytes | None = None
    then: NewJob | None = None
    on_failure: NewJob | None = None


class BatchView(Struct, frozen=True, kw_only=True):
    """A batch as callers and operators see it: how far it is, as a whole."""

    id: BatchId
    name: str | None
    key: str | None
    total: int
    added: int  # jobs that are in the store, or have been
    running: int
    completed: int
    failed: int  # dead letters
    cancelled: int
    sealed: bool  # no more jobs will come
    created_at: datetime
    finished_at: datetime | None
    cancelled_by: str | None
    then: JobId | None  # the job that is enqueued when all are done, and whether it was
    then_enqueued: bool
    on_failure: JobId | None
    on_failure_enqueued: bool
    then_call: NewJob | None  # what those jobs run
    on_failure_call: NewJob | None
    to_come: list[NewJob]  # callbacks that may still be enqueued

    @property
    def done(self) -> int:
        """Jobs that have ended, one way or another."""
        return self.completed + self.failed + self.cancelled

    @property
    def waiting(self) -> int:
        """Jobs that have still to run, or to come."""
        return max(0, self.total - self.done - self.running)

    @property
    def finished(self) -> bool:
        """All have ended, and what follows is enqueued. Resubmitting one of them makes it unfinished again."""
        return self.finished_at is not None and self.done >= self.total


class Standing(Struct, frozen=True, kw_only=True):
    """What decides about a batch. `failures` counts every dead letter there ever was, `failed` those there are."""

    sealed: bool
    total: int
    completed: int
    failed: int
    cancelled: int
    failures: int
    called_off: bool  # the batch as a whole was cancelled


class Due(Struct, frozen=True):
    """What follows from it; a callback that was enqueued before is not enqueued again."""

    finished: bool
    then: bool
    on_failure: bool


def due(batch: Standing) -> Due:
    """`on_failure` as soon as one job has failed; `then` when all have ended and none is a dead letter. Neither for a
    batch that was called off."""
    finished = batch.sealed and batch.completed + batch.failed + batch.cancelled >= batch.total
    return Due(
        finished,
        then=finished and batch.failed == 0 and not batch.called_off,
        on_failure=batch.failures > 0 and not batch.called_off,
    )


def job_id_at(batch: BatchId, place: int) -> JobId:
    """The id of the job at this place, from 0 on: the same however often the batch is sent, and in the order of places.
    A UUIDv7 with the batch's own time."""
    head = (batch.int >> 80) << 80 | (place >> _PLACE_LOW) << 64 | 0x7 << 76 | 0x2 << 62
    tail = (batch.int + place * _STEP) & ((1 << _TAIL) - 1)
    return UUID(int=head | (place & ((1 << _PLACE_LOW) - 1)) << _TAIL | tail)


def place_of(job: JobId) -> int:
    """Where in its batch a job stands."""
    return (job.int >> 64 & 0xFFF) << _PLACE_LOW | job.int >> _TAIL & ((1 << _PLACE_LOW) - 1)
