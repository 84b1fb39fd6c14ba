"""What both stores do about batches alike: how a callback is kept, how long a batch is, and what is said of a wrong one."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from lateshift.errors import BatchClosed, BatchUnknown, KeyConflict
from lateshift.model.batch import BatchId, NewBatch
from lateshift.model.ids import JobId
from lateshift.model.job import NewJob

BATCH_KEPT = timedelta(days=7)  # how long a finished batch stays at least; longer while one of its jobs does
LOOK_AGAIN = timedelta(days=1)  # at a batch whose jobs are still there after that

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(NewJob)


def written(call: NewJob | None) -> bytes | None:
    return None if call is None else _encoder.encode(call)


def read(kept: bytes | None) -> NewJob | None:
    """A callback to enqueue. The mark on its batch, in the same transaction, says that it never was; its id is looked up
    all the same, for a callback that cannot be inserted must not keep jobs from being settled. Nor one that this release
    cannot read: it stays due."""
    try:
        return None if kept is None else msgspec.structs.replace(_decoder.decode(kept), first=False)
    except msgspec.DecodeError:
        return None


def id_of(kept: bytes | None) -> JobId | None:
    call = read(kept)
    return None if call is None else call.id


def to_come(row: Sequence[Any]) -> list[NewJob]:
    """Callbacks that may still follow. Of a batch that has failures, also when it has finished: they may be resubmitted."""
    failed, finished_at, cancelled_by, then, then_at, on_failure, failure_at = row[6], *row[10:16]
    if cancelled_by is not None or (finished_at is not None and not failed):
        return []
    calls = [read(call) for call, at in ((then, then_at), (on_failure, failure_at)) if at is None]
    return [call for call in calls if call is not None]


def refuse_other_calls(batch: NewBatch, digest: bytes | None) -> None:
    if batch.digest != digest:
        raise KeyConflict(
            f"The key {batch.key!r} was used for a batch of other calls, which is still in the store. Use another key for "
            "another batch."
        )


def closed(id: BatchId, added: int, total: int, cancelled_by: str | None) -> BatchClosed:
    if cancelled_by is not None:
        return BatchClosed(
            f"The batch {id} was cancelled by {cancelled_by} when {added:,} of its jobs were in. Make another batch to run them."
        )
    return BatchClosed(
        f"The batch {id} was sealed when {total:,} of its jobs were in. Put the rest into another batch."
    )


def gap(id: BatchId, added: int, place: int) -> ValueError:
    return ValueError(f"The batch {id} has {added} jobs: nothing can be added at {place}.")


def unknown(id: BatchId) -> BatchUnknown:
    return BatchUnknown(f"There is no batch {id} in the store; it may have passed its retention.")


def spec_of(job: NewJob) -> tuple[bool, int]:
    """To sort by: jobs of one spec stand together, and are inserted together. Those with guards keep their order, in which
    they have their turns."""
    careful = job.spec.lane.careful
    return careful, 0 if careful else id(job.spec)


FIRST = UUID(int=0)
LAST = UUID(int=2**128 - 1)


def lowest(digits: str) -> UUID:
    return UUID(digits.ljust(32, "0"))


def highest(digits: str) -> UUID:
    return UUID(digits.ljust(32, "f"))
