"""The gatekeeper of sensitive queues and their tasks: opens what is sealed with a key that this worker holds, leaves what it has no key for to others,
and refuses what is not sealed. See docs/sensitive.md."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lateshift.clock import Clock
from lateshift.config import Settings
from lateshift.errors import SealBroken, SealKeyMissing, SealKeysInvalid
from lateshift.model import history
from lateshift.model.job import AttemptRecord, Lease
from lateshift.model.member import served
from lateshift.model.outcome import Completed, DeadLettered, Later
from lateshift.model.queue import is_sensitive, sensitive_among
from lateshift.model.sealed import NOT_SEALED, SEAL_BROKEN, is_sealed, key_of
from lateshift.runtime.log import log
from lateshift.sealing.jobs import opened_lease
from lateshift.sealing.ring import Seal, ring_of
from lateshift.task import Task
from lateshift.telemetry.keeping import about

AGAIN_AFTER = 60.0  # seconds until a key that is missing here is named again


def concerns(lease: Lease, task: Task[..., Any]) -> bool:
    """Whether it is sealed, or should be: for its queue's sake, or for its task's, whatever queue somebody has put it into."""
    return is_sealed(lease.payload) or task.is_sensitive or is_sensitive(task.sender.queues, lease.queue)


def warn_of_no_key(tasks: Mapping[str, Task[..., Any]], settings: Settings) -> None:
    """Where workers begin that are to serve sensitive queues and can open nothing."""
    declared = {name for task in tasks.values() for name in sensitive_among(task.sender.queues)}
    served_here = [name for name in declared if served(name, settings.queues or None)]
    ring = ring_of(settings)
    if served_here and ring.current is None:
        log.warning("no job of %s runs here. %s", ", ".join(sorted(served_here)), ring.lacks())


class Gatekeeper:
    """Of one worker. A job that it has no key for waits as long as one that it has no task for."""

    def __init__(self, settings: Settings, member: str, clock: Clock) -> None:
        self._ring = ring_of(settings)
        self._delay = settings.unknown_delay
        self._member = member
        self._clock = clock
        self._told: dict[str | None, float] = {}

    def admit(self, lease: Lease, keep: timedelta) -> tuple[Lease, Seal] | Later | DeadLettered:
        """The lease with its values opened, and what seals those to come; or what becomes of a job that is not run here. A key
        that is missing costs no attempt."""
        if not is_sealed(lease.payload):
            return self._refused(
                lease, NOT_SEALED, "it was not sealed, and its queue, or its task's own, is sensitive", keep
            )
        try:
            return opened_lease(lease, self._ring)
        except (SealKeyMissing, SealKeysInvalid) as error:  # the latter where cryptography is not installed
            self._tell(
                lease,
                "lacks" if isinstance(error, SealKeyMissing) else "has, but lacks the extra `sensitive` for",
            )
            return Later(self._delay, counts=False)
        except SealBroken as error:
            return self._refused(lease, SEAL_BROKEN, str(error), keep)

    def sealed(self, outcome: Completed, lease: Lease, seal: Seal) -> Completed:
        """What it returned, and what its session keeps."""
        result, state = outcome.result, outcome.session_state
        if result is not None:
            result = seal.close("result", result)
        if state is not None:
            state = self._ring.of_session(lease.queue, lease.session or "").close("state", state)
        return Completed(result, outcome.keep, state, outcome.ran)

    def _refused(self, lease: Lease, reason: str, said: str, keep: timedelta) -> DeadLettered:
        log.error("%s %s is not run: %s (%s)", lease.task, lease.id, said, reason, extra=about(lease))
        record = AttemptRecord(
            attempt=lease.attempt, fence=lease.fence, at=self._clock.now(), reason=reason, message=said, member=self._member
        )  # fmt: skip
        return DeadLettered(reason, history.append(lease.history, record), keep)

    def _tell(self, lease: Lease, why: str) -> None:
        key, now = key_of(lease.payload), self._clock.monotonic()
        if now - self._told.get(key, -AGAIN_AFTER) >= AGAIN_AFTER:
            self._told[key] = now
            log.warning(
                "this worker cannot use the key %s, which it %s: jobs sealed with it, such as %s, go back for one that can",
                key,
                why,
                lease.id,
                extra=about(lease),
            )
