"""Lateshift: background jobs for Python, on a SQLite file or PostgreSQL."""

from lateshift.agent.agent import Agent
from lateshift.app.app import Lateshift
from lateshift.batches.handle import Batch, BatchResult
from lateshift.errors import Cancel, LateshiftError, LeaseLost, Permanent, QueueFull, Snooze, StepFailed
from lateshift.handle import Job
from lateshift.model.batch import BatchView
from lateshift.model.breaker import Breaker, CircuitView
from lateshift.model.events import JobEvent
from lateshift.model.explaining.reason import Explanation, Reason
from lateshift.model.job import JobFilter, JobView, State
from lateshift.model.limit import Limit
from lateshift.model.pipeline.chain import fan_in, fan_out
from lateshift.model.pipeline.progress import FilterProgress, PipelineProgress
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
from lateshift.workflow.graph.graph import Graph
from lateshift.workflow.pipeline import Pipeline
from lateshift.workflow.workflow import Workflow

__all__ = [
    "NO_RETRY",
    "Agent",
    "Batch",
    "BatchResult",
    "BatchView",
    "Breaker",
    "Cancel",
    "CircuitView",
    "Event",
    "Explanation",
    "FileChange",
    "FilterProgress",
    "Flow",
    "Graph",
    "Job",
    "JobEvent",
    "JobFilter",
    "JobView",
    "Lateshift",
    "LateshiftError",
    "LeaseLost",
    "Limit",
    "Lock",
    "Message",
    "Permanent",
    "Pipeline",
    "PipelineProgress",
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
    "fan_in",
    "fan_out",
    "last_checkpoint",
    "progress",
    "session",
]
