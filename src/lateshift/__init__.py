"""Lateshift: background jobs for Python, on a SQLite file or PostgreSQL."""

from lateshift.app import Lateshift
from lateshift.batches.handle import Batch, BatchResult
from lateshift.errors import Cancel, LateshiftError, LeaseLost, Permanent, QueueFull, Snooze, StepFailed
from lateshift.handle import Job
from lateshift.model.batch import BatchView
from lateshift.model.explaining.reason import Explanation, Reason
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.limit import Limit
from lateshift.model.retry import NO_RETRY, Retry
from lateshift.model.scheduling.schedule import ScheduleView
from lateshift.model.triggering.events import Event, FileChange, Message, RowChange
from lateshift.model.unique import Unique
from lateshift.model.workflow.policy import Policy
from lateshift.runtime.lock import Lock
from lateshift.schedules import Schedule
from lateshift.task import Task
from lateshift.worker.current import acheckpoint, checkpoint, current, last_checkpoint, progress, session
from lateshift.workflow.flow import Flow
from lateshift.workflow.workflow import Workflow

__all__ = [
    "NO_RETRY",
    "Batch",
    "BatchResult",
    "BatchView",
    "Cancel",
    "Event",
    "Explanation",
    "FileChange",
    "Flow",
    "Job",
    "JobFilter",
    "JobView",
    "Lateshift",
    "LateshiftError",
    "LeaseLost",
    "Limit",
    "Lock",
    "Message",
    "Permanent",
    "Policy",
    "QueueFull",
    "Reason",
    "Retry",
    "RowChange",
    "Schedule",
    "ScheduleView",
    "Snooze",
    "State",
    "StepFailed",
    "Task",
    "Unique",
    "Workflow",
    "acheckpoint",
    "checkpoint",
    "current",
    "last_checkpoint",
    "progress",
    "session",
]
