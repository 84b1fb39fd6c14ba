"""What a second use of an idempotency key, or of a number in a session, means."""

from collections.abc import Sequence

from lateshift.errors import KeyConflict, SequenceUsed
from lateshift.model.ids import JobId
from lateshift.model.job import NewJob, Place


def any_claims(jobs: Sequence[NewJob]) -> bool:
    """Whether any of them must be the only one of its key, its identity, or its number. Most calls make none."""
    for job in jobs:  # noqa: SIM110 - half the time of a generator, for each bulk enqueue
        if job.key is not None or job.unique is not None or job.place is not None:
            return True
    return False


def key_conflict(job: NewJob) -> KeyConflict:
    assert job.key is not None
    return KeyConflict(
        f"The key {job.key.text!r} was used for {job.spec.task} with other arguments, and its window has not passed. "
        "Use another key for another request."
    )


def numbered(jobs: Sequence[NewJob]) -> list[tuple[NewJob, Place, int]]:
    return [
        (job, job.place, job.place.sequence)
        for job in jobs
        if job.place is not None and job.place.sequence is not None
    ]


def number_used(place: Place, owner: JobId | None) -> SequenceUsed:
    by = "another job of this call" if owner is None else f"job {owner}"
    return SequenceUsed(
        f"The number {place.sequence} of the session {place.session!r} is that of {by}. Use each once."
    )


def number_passed(place: Place, expected: int) -> SequenceUsed:
    return SequenceUsed(
        f"The session {place.session!r} has gone on past {place.sequence} and expects {expected}. Give the job a later "
        "number, or none in another session."
    )
