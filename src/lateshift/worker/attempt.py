"""One try at a job, from the lease to its outcome."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.job import Lease, Progress
from lateshift.model.outcome import Outcome, Settlement
from lateshift.sealing.jobs import sealed_log, sealed_progress
from lateshift.sealing.ring import Seal
from lateshift.task import Task
from lateshift.telemetry.attempt_log import Log

if TYPE_CHECKING:
    from lateshift.telemetry.spans import AttemptSpan
from lateshift.worker.room import Room


class Attempt:
    """What the worker knows of a job it holds. Only the executor that runs it starts and ends it."""

    __slots__ = (
        "args", "cancelled_by", "checkpoint", "deadline", "desk", "ended", "kwargs", "lease", "log", "lost",
        "progress",
        "received", "rooms", "runner", "seal", "session_state", "span", "started", "stopping", "task",
    )  # fmt: skip

    def __init__(
        self, lease: Lease, task: Task[..., Any], received: float, desk: Any, rooms: Sequence[Room] = (),
        seal: Seal | None = None,
    ) -> None:  # fmt: skip
        self.lease = lease
        self.task = task
        self.args, self.kwargs = task.read(lease)
        self.seal = seal  # what it leaves behind is sealed with, if its job is
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
        self.log: Log | None = None  # what its body has logged, if anything
        self.span: AttemptSpan | None = None  # where attempts are traced

    @property
    def sealed(self) -> bool:
        return self.seal is not None

    def kept_log(self, log: Log) -> AttemptLog:
        """The attempt has ended: what it logged, as the store keeps it."""
        kept = log.close(self.lease)
        return kept if self.seal is None else sealed_log(kept, self.seal)

    def settled(self, outcome: Outcome) -> Settlement:
        """With how far it had come, which nobody else may have written down yet. Of plain lanes nobody is told that."""
        told = self.progress if self.lease.lane.careful else None
        if told is not None and self.seal is not None:
            told = sealed_progress(told, self.seal)
        return Settlement(self.lease, outcome, told)

    def begin(self, now: float) -> bool:
        """False if its complete-by passed before it could begin: then its body must not run at all."""
        self.started = now
        in_time = self.deadline is None or now < self.deadline
        if self.span is not None and in_time:
            self.span.begin()
        return in_time
