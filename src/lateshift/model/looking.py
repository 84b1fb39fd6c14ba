"""When whoever has started a job is to look at it first."""

from datetime import datetime, timedelta

from lateshift.model.job import Spec

LOOK_AFTER = 1  # seconds until a first look is worth it
RETRY_AFTER_MOST = timedelta(days=1)  # that `Retry-After` of a job says, however far away it is


def first_look(spec: Spec, now: datetime) -> int:
    """After how many seconds it is worth looking: not before the job is due, but once in a day."""
    wait = spec.delay or timedelta(0) if spec.at is None else spec.at - now
    return round(min(max(wait.total_seconds(), LOOK_AFTER), RETRY_AFTER_MOST.total_seconds()))
