"""What every store does about the logs of attempts. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from typing import Protocol

from lateshift.model.attempt_log import AttemptLog
from lateshift.model.ids import JobId


class Logs(Protocol):
    def keep(self, logs: Sequence[AttemptLog]) -> None:
        """Instead of what was kept of the same attempts, unless that knew of more lines. Of a job that is gone nothing is kept, and
        of one that was leased very often the newest LEASES_LOGGED. An exchange keeps logs by itself: this is for attempts
        that run on."""

    def of(self, id: JobId) -> list[AttemptLog]:
        """The oldest first. They go with the job, at the end of its retention."""


def latest(logs: Sequence[AttemptLog]) -> list[AttemptLog]:
    """One for each attempt, the one that knows most."""
    found: dict[tuple[JobId, int], AttemptLog] = {}
    for log in logs:
        known = found.get((log.job, log.fence))
        if known is None or known.logged <= log.logged:
            found[log.job, log.fence] = log
    return list(found.values())
