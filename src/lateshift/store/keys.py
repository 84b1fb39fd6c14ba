"""What a second use of an idempotency key means."""

from lateshift.errors import KeyConflict
from lateshift.model.job import NewJob


def key_conflict(job: NewJob) -> KeyConflict:
    assert job.key is not None
    return KeyConflict(
        f"The key {job.key.text!r} was used for {job.spec.task} with other arguments, and its window has not passed. "
        "Use another key for another request."
    )
