"""One try at a job, from the lease to its outcome."""

import asyncio
from collections.abc import Sequence
from typing import Any

from lateshift.model.job import Lease, Progress
from lateshift.task import Task
from lateshift.worker.room import Room


class Attempt:
    """What the worker knows of a job it holds. Only the executor that runs it starts and ends it."""

    __slots__ = (
        "args", "cancelled_by", "checkpoint", "deadline", "desk", "ended", "kwargs", "lease", "lost", "progress",
        "received", "rooms", "runner", "session_state", "started", "stopping", "task",
    )  # fmt: skip

    def __init__(
        self, lease: Lease, task: Task[..., Any], received: float, desk: Any, rooms: Sequence[Room] = ()
    ) -> None:
        self.lease = lease
        self.task = task
        self.args, self.kwargs = task.arguments.decode(lease.payload)
        self.rooms = rooms  # where it takes a place
        self.desk = desk  # where checkpoints are saved: the worker's, or in a child the pipe to it
        self.received = received  # monotonic, from before the lease was asked for
        self.deadline = received + lease.time_limit.total_seconds() if lease.time_limit is not None else None
        self.started: float | None = None
        self.ended = False
        self.cancelled_by: str | None = None
        self.stopping = False
        self.lost = False
        self.progress: Progress | None = None
        self.checkpoint = lease.checkpoint
        self.session_state: bytes | None = None  # what its session is to keep, if it completes
        self.runner: asyncio.Task[None] | None = None

    def begin(self, now: float) -> bool:
        """False if its complete-by passed before it could begin: then its body must not run at all."""
        self.started = now
        return self.deadline is None or now < self.deadline
