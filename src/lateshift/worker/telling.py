"""What a worker says in its log: failures, and tasks that it lacks, each once in a while and never for long."""

from collections.abc import Callable

from lateshift.model.job import STRETCHES, Lease
from lateshift.model.outcome import DeadLettered, Decided, Ended, Failed, Killed, Later, Outcome, said
from lateshift.model.remote import name_of
from lateshift.model.sealed import MASK
from lateshift.model.words import duration
from lateshift.runtime.log import log
from lateshift.telemetry.keeping import about, masked

AGAIN_AFTER = 60.0  # seconds until a task that is missing here is named again


def tell(lease: Lease, how: Ended | Decided, outcome: Outcome, *, sealed: bool = False) -> None:
    """A failure is worth a line; snoozing, cancelling and stopping are not. Of a sealed job what it raised, and not what that said."""
    match how:
        case Failed(error) if sealed:
            what = f"{name_of(error)}: {MASK}"
        case Failed(error):
            what = f"{name_of(error)}: {said(error)}"
        case Killed(_, message):
            what = message
        case Decided(_, said_so):
            what = said_so
        case _:
            what = ""
    match outcome:
        case DeadLettered(reason):
            when = "" if lease.attempts == STRETCHES else f" at attempt {lease.attempt}"
            said_of = (lease.task, lease.id, reason, when, what)
            log.error("%s %s is a dead letter (%s)%s: %s", *said_of, extra=masked(lease))
        case Later(delay, counts=True):
            log.warning(
                "%s %s failed at attempt %d, again in %s: %s",
                lease.task,
                lease.id,
                lease.attempt,
                duration(delay),
                what,
                extra=masked(lease),
            )


class Missing:
    """Tasks that jobs here ask for and this worker does not have: a line for each task, not for each job."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._told: dict[str, float] = {}

    def tell(self, lease: Lease) -> None:
        now = self._now()
        if now - self._told.get(lease.task, -AGAIN_AFTER) >= AGAIN_AFTER:
            self._told[lease.task] = now
            log.warning(
                "this worker has no task %s: its jobs, such as %s, go back for one that has",
                lease.task,
                lease.id,
                extra=about(lease),
            )
