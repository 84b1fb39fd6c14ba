"""Which attempt runs this code. Set by executors, one for each attempt; tasks and coroutines that a body starts have it too."""

from contextvars import ContextVar
from typing import Any, Protocol

from lateshift.model.ids import JobId
from lateshift.model.job import Lease, Progress
from lateshift.telemetry.attempt_log import Log


class Running(Protocol):
    """An attempt, as its own code sees it."""

    lease: Lease
    desk: Any
    deadline: float | None
    progress: Progress | None
    checkpoint: bytes | None
    session_state: bytes | None
    cancelled_by: str | None
    lost: bool
    stopping: bool
    log: Log | None

    @property
    def sealed(self) -> bool:
        """Whether what it leaves behind is."""


running: ContextVar[Running] = ContextVar("lateshift_running")


def parent() -> JobId | None:
    """The job whose attempt runs this code, if one does: whatever it enqueues is its child."""
    found = running.get(None)
    return None if found is None else found.lease.id
