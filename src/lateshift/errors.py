"""Every exception of Lateshift, the tree on top. A name states a fact; a message ends with what to do.

LateshiftError
├── UsageError            the call was wrong; nothing was written
│   ├── TaskInvalid · TaskUnknown · ArgumentsInvalid · OptionInvalid · AppInvalid
│   ├── PayloadTooLarge · KeyConflict · SequenceUsed · ConnectionUnsupported
│   ├── ScheduleInvalid · ScheduleUnknown · TriggerInvalid · TriggerUnknown · EventInvalid · SignatureInvalid
│   ├── WorkflowInvalid (PipelineInvalid) · RunUnknown · RunEnded · PipelineUnknown · BreakerUnknown
│   ├── TokenUnknown · TokenNameTaken · TokenRevoked · SealKeysInvalid · SealKeyMissing · RolesUnsupported
│   └── JobUnknown · BatchUnknown
├── StoreError            the store refused, or did not answer
│   ├── StoreUrlInvalid · StoreUnavailable · StoreReadOnly · StoreFull · StoreUnsafe · StoreCorrupt
│   ├── RightMissing · BegunLate
│   └── SchemaTooNew · SchemaTooOld
├── ResultWithheld        the job has completed, and this role in the database may not read its result
├── JobNotCompleted       what `job.result()` raises: JobDead · JobCancelled · ResultTimeout
├── StepFailed            raised in a workflow: a step of it has failed for good
├── BatchClosed           a batch that takes no more jobs
├── SealBroken            a sealed value that was changed, or is another job's
├── WebhookFailed         a webhook that was not taken; it is tried again (WebhookGone, a Permanent: never)
├── WebhookClosed         a webhook that takes nothing for now; its sender tries again
├── ResultInvalid         a result that this code's annotation cannot read
├── StateInvalid          a session's state, or a checkpoint, that is not of the type asked for
├── EventsLeftOut         what a channel was told and is kept no more, of a listener that comes late
├── QueueFull             as many jobs wait as the queue may hold; nothing was written
├── LeaseLost · LockLost · LockTimeout
└── NotDrained · CrashUnsafe      in tests, from lateshift.testing

Raised by a task's own code to say how its attempt ends: Snooze · Permanent · Cancel.
"""

from datetime import timedelta
from uuid import UUID


class LateshiftError(Exception):
    """The root: `except LateshiftError` catches all that Lateshift raises on purpose."""


class Permanent(Exception):
    """Raise in a task, or derive from it: no retry can help, make this job a dead letter now."""


class UsageError(LateshiftError):
    """The call was wrong. Nothing was written."""


class TaskInvalid(UsageError):
    """A function that cannot be a task, found when it is registered or first used."""


class TaskUnknown(UsageError):
    """No task of that name is registered in this app."""


class ArgumentsInvalid(UsageError, TypeError):
    """The arguments do not fit the task's signature or annotations. `field`: which of them, and where in it, as far as it is one."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class OptionInvalid(UsageError, ValueError):
    """An option has a value that it cannot have. `field`: which option, as far as it is said."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class AppInvalid(UsageError):
    """The program named on the command line holds no app, or could not be imported."""


class PayloadTooLarge(UsageError, ValueError):
    """The arguments, encoded, are over the payload limit."""


class ScheduleInvalid(UsageError, ValueError):
    """A schedule that cannot be: its expression, its time zone or one of its rules. `field`: which of them, as far as it is one."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ScheduleUnknown(UsageError, LookupError):
    """No schedule of that name is in the store."""


class TriggerInvalid(UsageError, ValueError):
    """A trigger that cannot be: where it looks, or what it makes of what it sees."""


class TriggerUnknown(UsageError, LookupError):
    """No trigger of that name is in the store."""


class EventInvalid(UsageError, ValueError, Permanent):
    """An event that no job can be made of: its name, its data, or a message's body. It is the same at every try: a job that raises it is a
    dead letter at once."""


class SignatureInvalid(UsageError):
    """A webhook that is not signed with a secret of ours, or too old, or that says too little. Nothing was taken."""


class WorkflowInvalid(UsageError, ValueError):
    """A workflow, or a step of one, that cannot be."""


class PipelineInvalid(WorkflowInvalid):
    """A pipeline that cannot be: a filter that is no task, or filters whose types do not fit. Found when it is built."""


class PipelineUnknown(UsageError, LookupError):
    """No item of a pipeline of that name is in the store."""


class RunUnknown(UsageError, LookupError):
    """No run of a workflow of that id is in the store (it may have passed its retention)."""


class RunEnded(UsageError):
    """The run has ended: nobody will take what it is told."""


class BreakerUnknown(UsageError, LookupError):
    """No circuit breaker of that name is in the store."""


class TokenUnknown(UsageError, LookupError):
    """No token of that name or id is in the store."""


class TokenNameTaken(UsageError):
    """Another token that is not revoked has this name."""


class TokenRevoked(UsageError):
    """The token from which a browser's would be made is revoked, or gone."""


class SealKeysInvalid(UsageError, ValueError):
    """The key ring for sensitive queues cannot be read, or what it needs is not installed."""


class SealKeyMissing(UsageError):
    """This program's key ring lacks the key to seal with, or the one that something was sealed with. Nothing was written.
    `key`: which, for those to whom the rest is of no use."""

    def __init__(self, message: str, key: str = "to seal with") -> None:
        super().__init__(message)
        self.key = key


class RolesUnsupported(UsageError):
    """The store has no roles of its own to give rights to."""


class KeyConflict(UsageError):
    """The idempotency key is taken, within its window, by a job with other arguments, by a batch of other calls or with
    other callbacks, or by a signal of another name or with other data."""


class SequenceUsed(UsageError):
    """Another job of the session has this number, or the session has gone on past it."""


class ConnectionUnsupported(UsageError, TypeError):
    """`connection=` was given something that is no open connection to the store's database."""


class JobUnknown(UsageError, LookupError):
    """No job of that id is in the store (it may have passed its retention)."""


class BatchUnknown(UsageError, LookupError):
    """No batch of that id is in the store (it may have passed its retention)."""


class StoreError(LateshiftError):
    """The store refused, or did not answer."""


class StoreUrlInvalid(StoreError, ValueError):
    """The store URL cannot be read."""


class StoreUnavailable(StoreError):
    """The store did not answer in time. What was asked may be repeated safely."""


class StoreReadOnly(StoreError):
    """The store cannot be written to."""


class RightMissing(StoreError):
    """This program's user of the database has no right to do that. Nothing was done."""


class StoreFull(StoreError):
    """The disk that holds the store is full. Nothing was lost; nothing was accepted."""


class StoreUnsafe(StoreError):
    """The store could lose accepted jobs as it is set up, so it is refused."""


class StoreCorrupt(StoreError):
    """The store's file is damaged, or is no store."""


class BegunLate(StoreError):
    """A request with an Idempotency-Key was held up for longer than it is held: what it was about to do was not done."""


class SchemaTooNew(StoreError):
    """The store was migrated by a newer Lateshift than this one."""


class SchemaTooOld(StoreError):
    """The store must be migrated before this Lateshift can use it."""


class QueueFull(LateshiftError):
    """As many jobs wait in the queue as its `max_ready`. Nothing was enqueued; it may be tried again."""


class ResultWithheld(LateshiftError):
    """The job has completed, but the role that this program has in the database may not read what it returned."""


class JobNotCompleted(LateshiftError):
    """`job.result()` has no result to give."""


class JobDead(JobNotCompleted):
    """The job is a dead letter."""


class JobCancelled(JobNotCompleted):
    """The job was cancelled."""


class SealBroken(LateshiftError):
    """What should be sealed is not, or was changed after it was, or belongs to another job."""


class ResultInvalid(LateshiftError, ValueError):
    """The job has completed, but its result is not of the type that this code's annotation names."""


class StateInvalid(LateshiftError, ValueError):
    """What a session keeps, or the last checkpoint, is not of the type that the task's code asks for."""


class EventsLeftOut(LateshiftError, LookupError):
    """Events that were told between these two numbers may be gone. `go_on_after`: what to subscribe with, to hear those that are kept."""

    def __init__(self, said: str, go_on_after: int = 0) -> None:
        super().__init__(said, go_on_after)
        self.go_on_after = go_on_after

    def __str__(self) -> str:
        return str(self.args[0])


class ResultTimeout(JobNotCompleted, TimeoutError):
    """The job has not ended within the time given; it goes on."""


class StepFailed(LateshiftError):
    """A step of a workflow has failed for good. Raised where the workflow waits for it, at first and at every replay.

    `step`: its name. `error`: the name of what was raised. `message`: what that said."""

    def __init__(self, step: str, error: str, message: str = "") -> None:
        super().__init__(f"{step}: {error}: {message}" if message else f"{step}: {error}")
        self.step = step
        self.error = error
        self.message = message


class BatchClosed(LateshiftError):
    """The batch was cancelled, or sealed, before all of its jobs were in. What is in stays."""


class WebhookFailed(LateshiftError):
    """The receiver of a webhook was not reached, or did not take it. `retry_after`: how long it wants to be left alone, if it said."""

    def __init__(self, message: str, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class WebhookClosed(LateshiftError):
    """A webhook of ours is paused, has no secret to verify with, or is another app's. Nothing was taken; its sender tries again."""


class LeaseLost(LateshiftError):
    """This attempt no longer holds its job: whatever it would write is refused. Stop working."""


class LockLost(LateshiftError):
    """The lock's time ran out while it was held, and another may hold it now."""


class LockTimeout(LateshiftError, TimeoutError):
    """The lock was not free within the time given."""


class NotDrained(LateshiftError):
    """A test's `drain()` gave up: jobs make jobs without an end, or one does not end."""


class CrashUnsafe(LateshiftError, AssertionError):
    """A task that was killed at some step did not do its work exactly once. The message is the report."""


class Snooze(Exception):
    """Raise in a task: run me again after `delay`, and do not count this attempt."""

    def __init__(self, delay: timedelta) -> None:
        super().__init__(delay)
        self.delay = delay


class WebhookGone(Permanent):
    """The receiver of a webhook says that it wants no more of them (410)."""


class Cancel(Exception):
    """Raise in a task: end this job as cancelled."""


def no_job(id: UUID) -> JobUnknown:
    return JobUnknown(f"There is no job {id} in the store; it may have passed its retention.")


def no_run(id: UUID) -> RunUnknown:
    return RunUnknown(f"There is no run {id} in the store; it may have passed its retention.")


def no_event(after: int, newest: int, remedy: str) -> OptionInvalid:
    """Of whoever goes on after an event that never was."""
    return OptionInvalid(
        f"There is no event {after}; the newest is {newest}. It is of another store, or of one that was restored from a backup since: {remedy}"
    )
