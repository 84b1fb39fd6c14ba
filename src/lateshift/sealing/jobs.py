"""What of a job is sealed, and opened again: its payload where it is enqueued, and all that its attempts leave behind."""

from collections.abc import Sequence

import msgspec
from msgspec import structs

from lateshift.errors import OptionInvalid, SealBroken, SealKeyMissing
from lateshift.model import history
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.job import STRETCHES, Identity, JobView, Key, Lease, NewJob, Progress
from lateshift.model.outcome import Cancelled, DeadLettered, Later, Outcome
from lateshift.model.sealed import MASK, START, is_sealed, masked_text
from lateshift.sealing.ring import Ring, Seal

BY_THE_TASK = "cancelled by the task"

_encoder = msgspec.json.Encoder()


def sealed(job: NewJob, ring: Ring) -> NewJob:
    """As the store is given it. The text of its key, and what its key and its identity say of its arguments, go as digests that
    only the ring can make. Raises SealKeyMissing."""
    if job.spec.attempts == STRETCHES:
        raise OptionInvalid(
            f"{job.spec.task} is a workflow, and the queue {job.spec.queue} is sensitive: what a run keeps of its steps is not sealed. Run it "
            "in another queue."
        )
    key, unique = job.key, job.unique
    if ring.current is None:
        raise ring.missing(digest=key is not None or unique is not None)
    if key is not None:
        text = START + ring.digest(key.text.encode()).hex()
        key = Key(text, ring.digest(key.digest), key.window)
    if unique is not None:
        unique = Identity(ring.digest(unique.digest), unique.scope, unique.window)
    payload = ring.of_job(job.id).close("payload", job.payload)
    return structs.replace(job, payload=payload, key=key, unique=unique)


def opened_lease(lease: Lease, ring: Ring) -> tuple[Lease, Seal]:
    """The lease as the body needs it. What is in its history stays as it is. Raises SealKeyMissing, SealBroken."""
    seal = ring.of_job(lease.id)
    payload = seal.open("payload", lease.payload)
    checkpoint = None if lease.checkpoint is None else seal.open("checkpoint", lease.checkpoint)
    state = lease.session_state
    if state is not None:
        state = ring.of_session(lease.queue, lease.session or "").open("state", state)
    return structs.replace(lease, payload=payload, checkpoint=checkpoint, session_state=state), seal


def sealed_progress(progress: Progress, seal: Seal) -> Progress:
    """How far it is stays to be seen; the note does not."""
    return (
        progress
        if progress.note is None
        else structs.replace(progress, note=seal.close_text("note", progress.note))
    )


def sealed_log(log: AttemptLog, seal: Seal) -> AttemptLog:
    lines = [structs.replace(line, message=seal.close_text("log", line.message)) for line in log.lines]
    return structs.replace(log, lines=lines)


def sealed_outcome(outcome: Outcome, seal: Seal, cancelled_by: str | None = None) -> Outcome:
    """What its last attempt said. The type of an error stays to be seen: it is the code's, and dead letters are grouped by it. So does
    who cancelled it, if that was not the task."""
    match outcome:
        case DeadLettered(reason, kept, keep):
            return DeadLettered(reason, _last_sealed(kept, seal), keep)
        case Cancelled(_, keep, kept):
            why = BY_THE_TASK if cancelled_by is None else f"cancelled by {cancelled_by}"
            return Cancelled(why, keep, None if kept is None else _last_sealed(kept, seal))
        case Later(delay, counts, kept) if kept is not None:
            return Later(delay, counts, _last_sealed(kept, seal))
        case _:
            return outcome


def opened_view(view: JobView, ring: Ring) -> JobView:
    """With its result, and what its attempts said. Raises SealKeyMissing, SealBroken."""
    if not is_sealed(view.payload):
        return view
    seal = ring.of_job(view.id)
    result = None if view.result is None else seal.open("result", view.result)
    payload = seal.open("payload", view.payload)
    return structs.replace(readable_view(view, ring), payload=payload, result=result)


def readable_view(view: JobView, ring: Ring) -> JobView:
    """With what its attempts said, masked where the ring has no key; the rest as it is kept."""
    seal = ring.of_job(view.id)
    records = [
        structs.replace(
            record,
            message=_readable("message", record.message, seal),
            traceback=_readable("traceback", record.traceback, seal),
        )
        for record in view.history
    ]
    return structs.replace(view, history=records)


def opened_logs(logs: Sequence[AttemptLog], ring: Ring) -> list[AttemptLog]:
    """Of one job; what cannot be opened is masked."""
    return [
        structs.replace(
            log,
            lines=[
                structs.replace(line, message=_readable("log", line.message, ring.of_job(log.job)) or "")
                for line in log.lines
            ],
        )
        for log in logs
    ]


def _readable(field: str, text: str | None, seal: Seal) -> str | None:
    if text is None or masked_text(text) != MASK:
        return text
    try:
        return seal.open_text(field, text)
    except (SealKeyMissing, SealBroken):
        return MASK


def _last_sealed(kept: bytes, seal: Seal) -> bytes:
    records = history.read(kept)
    last = records[-1]
    message = None if last.message is None else seal.close_text("message", last.message)
    traceback = None if last.traceback is None else seal.close_text("traceback", last.traceback)
    return _encoder.encode([*records[:-1], structs.replace(last, message=message, traceback=traceback)])
