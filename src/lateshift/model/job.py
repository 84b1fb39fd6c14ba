"""A job as it is asked for, as it is leased, and as it is shown. Plain data."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import IntEnum, IntFlag
from typing import Any
from uuid import UUID

from msgspec import Struct

from lateshift.model.ids import JobId, MemberId

PRIORITIES = range(-100, 101)
TASK_NAME_LIMIT = 200  # characters
OWN = "lateshift."  # how the names of tasks begin that Lateshift has itself
PAYLOAD_LIMIT = 256 * 1024
TRACE_LIMIT = 2048  # characters of a context that a job keeps; of a larger one, such as with much baggage, the ids alone
RESULT_LIMIT = 256 * 1024
WITHHELD = b'"[withheld]"'  # instead of the payload of a job that one may see the state of, and no more
LOSSES_UNTIL_DEAD = 3  # a job whose worker died this often is dead-lettered
LOSSES_UNTIL_SOLO = 2  # from here on it runs beside no other suspect
STRETCHES = 1_000_000  # attempts of the job that a run of a workflow is, by which it is known; one is given back whenever it sleeps


class State(IntEnum):
    """Where a job is. The first four live in the hot table, the last three in the table of settled jobs."""

    SCHEDULED = 0
    READY = 1
    RUNNING = 2
    BLOCKED = 3
    COMPLETED = 4
    CANCELLED = 5
    DEAD = 6

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def settled(self) -> bool:
        return self >= State.COMPLETED

    @property
    def uncompleted(self) -> bool:
        """Whether it has ended, and not completed: such a job can be resubmitted."""
        return self in (State.DEAD, State.CANCELLED)


CAREFUL = 3  # the first of the lanes that are leased so; a plain number, for it is compared thousands of times a second


class Lane(IntEnum):
    """Which kind of room in a worker a job needs. Each lane of a queue is leased on its own, so that a hundred
    jobs that wait for a process do not fill the room of coroutines."""

    COROUTINE = 0
    THREAD = 1
    PROCESS = 2
    SOLO = 3  # its worker died twice: one such job at a time in a worker
    GUARDED = (
        4  # coroutines with a session, a tenant, a limit, or a key that only one may hold over all machines
    )
    GUARDED_THREAD = 5  # threads with such
    GUARDED_PROCESS = 6  # processes with such

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def careful(self) -> bool:
        """Leased with a look at the other running jobs, in a transaction of its own."""
        return self >= CAREFUL

    @property
    def guarded(self) -> "Lane":
        """The lane for such jobs that run in the same room."""
        return _GUARDED.get(self, self)

    @property
    def room(self) -> "Lane":
        """The lane whose places its jobs take in a worker."""
        return _ROOMS.get(self, self)


_GUARDED = {
    Lane.COROUTINE: Lane.GUARDED, Lane.THREAD: Lane.GUARDED_THREAD, Lane.PROCESS: Lane.GUARDED_PROCESS,
}  # fmt: skip
_ROOMS = {guarded: plain for plain, guarded in _GUARDED.items()}


class Line(Struct, frozen=True):
    """One lane of one queue: what a worker leases from, and what a wake-up names."""

    queue: str
    lane: Lane


class Spec(Struct, frozen=True, kw_only=True, array_like=True):
    """How a job is to run. Jobs of one call share it, so stores group by it."""

    task: str
    queue: str
    lane: Lane
    priority: int = 0
    attempts: int = 1
    time_limit: timedelta | None = None
    delay: timedelta | None = None
    at: datetime | None = None
    exclusive: str | None = None
    batch: UUID | None = None
    reply: str | None = None  # where its events go, see model.reply; only jobs of a guarded lane have it

    @property
    def line(self) -> Line:
        return Line(self.queue, self.lane)


class Key(Struct, frozen=True):
    """An idempotency key: within the window, one job per task and key."""

    text: str
    digest: bytes
    window: timedelta


class Scope(IntEnum):
    """In which states a job stands for its duplicates."""

    NONE = 0
    WAITING = 1
    UNSETTLED = 2


class Identity(Struct, frozen=True, gc=False):
    """What a job is the only one of: a digest of its task and the arguments that count; for how long, by its states and by
    time from its enqueue."""

    digest: bytes
    scope: Scope
    window: timedelta


class Holds(IntFlag):
    """What holds a session until somebody lets it go on."""

    NOTHING = 0
    ON_DEAD = 1  # the death of this job
    ON_GAP = 2  # a number before this job's that never came


class Place(Struct, frozen=True, gc=False):
    """What guards one job: the session in which it has its turn, the tenant it shares its queue as, the limit it counts
    against. Only jobs of a guarded lane have one."""

    session: str | None = None
    sequence: int | None = None  # its number in the session
    gap_after: timedelta | None = None  # how long it waits for an earlier number
    holds: Holds = Holds.NOTHING
    tenant: str = ""
    limit_key: str | None = None


class NewJob(Struct, frozen=True, gc=False):
    """One request to run one task with given arguments. `first`: this id was never sent to a store before, so none need
    look whether it is there."""

    id: JobId
    spec: Spec
    payload: bytes
    key: Key | None = None
    first: bool = False
    place: Place | None = None
    unique: Identity | None = None
    trace: str | None = None  # the context of whoever asked, see telemetry/spans.py
    tags: tuple[str, ...] = ()
    parent: JobId | None = None  # the job whose attempt asked for it
    by: str | None = None  # whom the audit names; code that has the store names nobody


class Enqueued(Struct, frozen=True, gc=False):
    """The answer to one NewJob: the job's id, and whether this call made it (else one with its key or its identity did)."""

    id: JobId
    created: bool


class Lease(Struct, frozen=True, eq=False, gc=False):
    """The right to work on one job. The fence is one higher at every lease of the job and never goes down; every
    write on behalf of the attempt names it, and changes nothing once a higher one was given out. `probe`: it was let through
    an open breaker, and if it fails, that is no attempt of the job. `waited`: seconds from when it was due, by the store's clock."""

    id: JobId
    fence: int
    task: str
    payload: bytes
    attempt: int
    attempts: int
    time_limit: timedelta | None
    queue: str
    lane: Lane
    exclusive: str | None = None
    checkpoint: bytes | None = None
    history: bytes | None = None
    batch: UUID | None = None
    session: str | None = None
    session_state: bytes | None = None
    limit_key: str | None = None
    probe: bool = False
    trace: str | None = None
    waited: float = 0.0


class JobView(Struct, frozen=True, kw_only=True):
    """A job as callers and operators see it."""

    id: JobId
    task: str
    queue: str
    state: State
    priority: int
    attempt: int
    attempts: int
    fence: int
    losses: int
    created_at: datetime
    due_at: datetime
    started_at: datetime | None
    complete_by: datetime | None
    settled_at: datetime | None
    holder: MemberId | None
    cancel_requested: bool
    payload: bytes
    result: bytes | None
    reason: str | None
    progress: "Progress | None"
    checkpoint: bytes | None
    history: list["AttemptRecord"]
    exclusive: str | None
    batch: UUID | None = None
    session: str | None = None
    sequence: int | None = None
    tenant: str | None = None
    limit_key: str | None = None
    tags: tuple[str, ...] = ()
    parent: JobId | None = None
    said: "Saying | None" = None  # its progress
    sensitive: bool = False  # its queue is: what it holds is shown to nobody, sealed or not

    @property
    def is_run(self) -> bool:
        """Whether it is a run of a workflow: its attempts are stretches of one life, and are not told."""
        return self.attempts == STRETCHES


class Progress(Struct, frozen=True):
    """How far an attempt says it is."""

    done: float
    total: float | None = None
    note: str | None = None


class Saying(Struct, frozen=True):
    """Which of a job's words on its progress one is: the lease under which it was said, which of that lease's it is, from 1 on, and
    when by the store's clock. 0 and None: an older release has written it, and nobody knows."""

    fence: int
    number: int
    at: datetime | None


RESUBMITTED = "resubmitted"  # the reason of a line that tells of that, and of no attempt
WITH_OTHERS = ", with other arguments"  # in its message, after who gave them and before what they were


class AttemptRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt that did not complete: what ended it, and when. Or that an operator resubmitted the job; if with
    other arguments, `was` has the old values."""

    attempt: int
    fence: int
    at: datetime
    reason: str
    ran_for: float | None = None
    error: str | None = None
    message: str | None = None
    traceback: str | None = None
    member: str | None = None
    was: dict[str, Any] | None = None


class Note(Struct, frozen=True):
    """What a running attempt wants kept: its progress, its checkpoint, or both. Fenced like any other write. `number`: which of its
    words on its progress that is; the same is not written twice. `ago`: how long since it was said."""

    lease: Lease
    progress: Progress | None = None
    checkpoint: bytes | None = None
    number: int = 0
    ago: timedelta = timedelta(0)


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs a listing or a bulk action means; what is None does not narrow. `since` and `until`: made from then on, and
    before then, by the time in their ids. `argument`: a text in the arguments, or name=value for one of them. `error`: a text in
    what went wrong. `key`: the idempotency key, as long as it counts."""

    queue: str | None = None
    task: str | None = None
    state: State | None = None
    reason: str | None = None
    session: str | None = None
    tenant: str | None = None
    batch: UUID | None = None
    before: JobId | None = None
    tag: str | None = None
    key: str | None = None
    argument: str | None = None
    error: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def describe(self) -> dict[str, Any]:
        pairs = {
            "queue": self.queue, "task": self.task, "session": self.session, "tenant": self.tenant,
            "batch": None if self.batch is None else str(self.batch), "reason": self.reason, "tag": self.tag, "key": self.key,
            "argument": self.argument, "error": self.error, "since": _text(self.since), "until": _text(self.until),
        }  # fmt: skip
        named = {name: value for name, value in pairs.items() if value is not None}
        return named | ({"state": self.state.label} if self.state is not None else {})

    def narrows_beyond(self, served: Iterable[str]) -> bool:
        """Whether something must be looked for among the jobs that an index gives for the filters in `served`."""
        looked_for = (
            "queue",
            "task",
            "state",
            "reason",
            "session",
            "tenant",
            "batch",
            "tag",
            "argument",
            "error",
        )
        return any(getattr(self, name) is not None for name in looked_for if name not in served)


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
