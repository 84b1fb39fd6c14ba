"""Dead letters without the wait: leased and settled as a worker would, with the failure that a test wants."""

from collections.abc import Sequence
from uuid import UUID

from lateshift import Lateshift
from lateshift.model.history import append
from lateshift.model.ids import JobId
from lateshift.model.job import AttemptRecord, NewJob
from lateshift.model.outcome import DeadLettered
from tests.store_contract.driving import DAY, Worker, added, make_job


def bury(
    app: Lateshift,
    *payloads: bytes,
    task: str = "pack",
    message: str = "no order 7",
    error: str = "ValueError",
    reason: str = "exhausted",
) -> list[JobId]:
    """Jobs with these arguments, as an older release may have enqueued them, that died of this."""
    return bury_jobs(app, [make_job(task=task, payload=each) for each in payloads], message, error, reason)


def bury_jobs(
    app: Lateshift,
    jobs: Sequence[NewJob],
    message: str = "no order 7",
    error: str = "ValueError",
    reason: str = "exhausted",
) -> list[JobId]:
    ids = added(app.store, *jobs)
    worker = Worker(app.store)
    wanted = set(ids)
    for lease in worker.lease(10_000):
        assert lease.id in wanted, "other jobs were waiting on this line"
        record = AttemptRecord(
            attempt=1, fence=lease.fence, at=app.clock.now(), reason="failed", error=error, message=message
        )
        worker.settle(lease, DeadLettered(reason, append(lease.history, record), DAY))
    app.store.members.leave([worker.id])
    return ids


def named(ids: Sequence[UUID]) -> list[str]:
    return [str(id) for id in ids]
