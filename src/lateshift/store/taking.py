"""What becomes of a job that the supervisor takes from its holder: a pure decision, the same on every store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from lateshift.model.guard import Guarded
from lateshift.model.history import append
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import (
    LOSSES_UNTIL_DEAD,
    LOSSES_UNTIL_SOLO,
    AttemptRecord,
    Lane,
    Lease,
    NewJob,
    State,
)
from lateshift.store.contract import TakenBack
from lateshift.store.lines import lines_there

KEEP_LEAST = timedelta(minutes=5)  # so that an enqueue repeated after its answer was lost still finds its job
GRACE = timedelta(seconds=2)  # in which a live holder may say itself that it stopped at the complete-by
AUDIT_KEPT = timedelta(days=365)  # how long it is known what operators did
STARTS_KEPT = timedelta(days=30)  # and who started a job
TOKEN_KEPT = timedelta(days=30)  # how long a token is shown that has expired or was revoked
# How long it is known what became of each tick; of the newest of a schedule, for ever.
TICKS_KEPT = timedelta(days=7)
# How often it is looked whether the job that an identity names is still there.
IDENTITY_KEPT = timedelta(hours=1)
SHED = "shed"  # why a job was cancelled that made room in a full queue
KEEP_CANCELLED = timedelta(days=7)  # how long a job stays that was settled without a worker
KEEP_DEAD = timedelta(days=90)
TRIGGER_KEPT = timedelta(days=30)  # how long it is known how far a trigger had read that no code has any more
REFUSED_KEPT = KEEP_DEAD  # how long an event stays that no job could be made of
# How long a session is remembered that no job has touched; and a limit's tokens.
SESSION_KEPT = timedelta(days=90)
# How long a breaker's circuit stays of a version of the code that nobody runs.
CIRCUIT_KEPT = timedelta(days=1)
# How long a numbered job waits for an earlier number, unless it says otherwise.
GAP_AFTER = timedelta(minutes=1)


class Overdue(Struct, frozen=True, kw_only=True):
    """A running job past its complete-by, or whose holder is gone."""

    id: JobId
    fence: int
    queue: str
    lane: int  # as the row has it: what a later release gave it stays
    attempt: int
    attempts: int
    losses: int
    holder: MemberId | None
    holder_gone: bool
    cancel_by: str | None
    exclusive: str | None
    history: bytes | None
    task: str
    session: str | None
    limit_key: str | None


class Verdict(Struct, frozen=True):
    """Where the job goes, and what is written with it."""

    job: Overdue
    state: State
    reason: str
    losses: int
    lane: int
    history: bytes


def verdict(job: Overdue, at: datetime) -> Verdict:
    losses = job.losses + 1 if job.holder_gone else job.losses
    reason = "worker_lost" if job.holder_gone else "complete_by"
    if job.cancel_by is not None:
        state, reason = State.CANCELLED, f"cancelled by {job.cancel_by}"
    elif job.attempt >= job.attempts or losses >= LOSSES_UNTIL_DEAD:
        state = State.DEAD
    else:
        state = State.READY
    lane = int(Lane.SOLO) if losses >= LOSSES_UNTIL_SOLO else job.lane
    record = AttemptRecord(
        attempt=job.attempt,
        fence=job.fence,
        at=at,
        reason=reason,
        member=str(job.holder) if job.holder else None,
        message="its worker died or fell silent" if job.holder_gone else "it ran past its complete-by",
    )
    return Verdict(job, state, reason, losses, lane, append(job.history, record))


def taken_back(case: Verdict) -> TakenBack:
    job = case.job
    return TakenBack(
        job.id,
        job.queue,
        next(iter(lines_there([(job.queue, case.lane)])), None),
        case.reason,
        case.state is State.DEAD,
        job.holder if job.holder_gone else None,
    )


def alerts_of(taken: Iterable[TakenBack], alerts: Mapping[MemberId, Sequence[NewJob]] | None) -> list[NewJob]:
    """Of those members from whom something was taken because they are gone."""
    gone = dict.fromkeys(job.holder for job in taken if job.holder is not None)
    return [alert for holder in gone for alert in (alerts or {}).get(holder, ())]


def left_by(job: Overdue) -> Guarded:
    """What it leaves to others if it ends."""
    return Guarded(job.queue, job.task, job.session, job.limit_key)


def guarded(lease: Lease, session: str | None, state: bytes | None, limit_key: str | None) -> Lease:
    """The same lease, with what guards its job. By hand: this is done for each of thousands in a second."""
    return Lease(
        lease.id, lease.fence, lease.task, lease.payload, lease.attempt, lease.attempts, lease.time_limit, lease.queue,
        lease.lane, lease.exclusive, lease.checkpoint, lease.history, lease.batch, session, state, limit_key,
        lease.probe, lease.trace, lease.waited,
    )  # fmt: skip


def split(waits: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """What blocked jobs wait for, as kind, name and queue."""
    for waits_for, queue in waits:
        kind, _, name = waits_for.partition(":")
        yield kind, name, queue
