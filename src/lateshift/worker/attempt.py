"""One try at a job, from the lease to its outcome."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.job import Lease, Note, Progress
from lateshift.model.outcome import Outcome, Settlement
from lateshift.sealing.jobs import sealed_log, sealed_progress
from lateshift.sealing.ring import Seal
from lateshift.task import Task
from lateshift.telemetry.attempt_log import Log
from lateshift.worker.room import Room

if TYPE_CHECKING:
    from lateshift.telemetry.spans import AttemptSpan


class Attempt:
    """What the worker knows of a job it holds. Only the executor that runs it starts and ends it."""

    __slots__ = (
        "args", "cancelled_by", "checkpoint", "deadline", "desk", "ended", "finished", "kept", "kwargs", "lease", "log", "lost",
        "numbered", "received", "rooms", "runner", "said", "seal", "session_state", "span", "started", "stopping", "task",
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
        self.finished: float | None = None  # when its body ended, where that is not seen as it happens
        self.ended = False
        self.cancelled_by: str | None = None
        self.stopping = False
        self.lost = False
        self.said: tuple[Progress, float] | None = None  # how far it is, and when it said so, monotonic
        self.numbered: tuple[Progress, int] | None = (
            None  # what the store was told last, and which of its words that is
        )
        self.kept = 0  # the number of the last that the store has
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

    @property
    def progress(self) -> Progress | None:
        return None if self.said is None else self.said[0]

    @progress.setter
    def progress(self, progress: Progress | None) -> None:
        """What is said again was said when it was said first."""
        if progress is not None and self.progress != progress:
            self.said = progress, self.desk.now()

    def words(self) -> Note | None:
        """How far it says it is, if the store does not have it. Numbered on the worker's loop, and with one number however often it is
        tried: a look at the job may come between any two that the store has."""
        if self.said is None:
            return None
        progress, at = self.said
        if self.numbered is None or self.numbered[0] != progress:
            self.numbered = progress, 1 if self.numbered is None else self.numbered[1] + 1
        number = self.numbered[1]
        if number == self.kept:
            return None
        told = progress if self.seal is None else sealed_progress(progress, self.seal)
        return Note(self.lease, told, number=number, ago=timedelta(seconds=max(0.0, self.desk.now() - at)))

    def settled(self, outcome: Outcome) -> Settlement:
        """With how far it had come, if nobody has written that down yet."""
        return Settlement(self.lease, outcome, self.words())

    def begin(self, now: float) -> bool:
        """False if its complete-by passed before it could begin: then its body must not run at all."""
        self.started = now
        in_time = self.deadline is None or now < self.deadline
        if self.span is not None and in_time:
            self.span.begin()
        return in_time

    def ran(self, seconds: float) -> None:
        """For so long its body ran, as another process tells."""
        if self.started is not None:
            self.finished = self.started + seconds
