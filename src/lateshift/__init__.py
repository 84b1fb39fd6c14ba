"""Lateshift: background jobs for Python, on a SQLite file or PostgreSQL."""

from lateshift.app import Lateshift
from lateshift.batches.handle import Batch, BatchResult
from lateshift.errors import Cancel, LateshiftError, LeaseLost, Permanent, Snooze
from lateshift.handle import Job
from lateshift.model.batch import BatchView
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.limit import Limit
from lateshift.model.retry import NO_RETRY, Retry
from lateshift.runtime.lock import Lock
from lateshift.task import Task
from lateshift.worker.current import acheckpoint, checkpoint, current, last_checkpoint, progress, session

__all__ = [
    "NO_RETRY",
    "Batch",
    "BatchResult",
    "BatchView",
    "Cancel",
    "Job",
    "JobFilter",
    "JobView",
    "Lateshift",
    "LateshiftError",
    "LeaseLost",
    "Limit",
    "Lock",
    "Permanent",
    "Retry",
    "Snooze",
    "State",
    "Task",
    "acheckpoint",
    "checkpoint",
    "current",
    "last_checkpoint",
    "progress",
    "session",
]
