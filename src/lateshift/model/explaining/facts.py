"""All that is known about one job and its surroundings, read in one look at the store. Every list is bounded."""

from datetime import datetime, timedelta

from msgspec import Struct

from lateshift.model.breaker import CircuitView
from lateshift.model.guard import FIRST_NUMBER
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import Holds, JobView, Lane, State
from lateshift.model.member import MemberView, Program
from lateshift.model.workflow.run import Phase

AHEAD_LOOKED_AT = 10_000  # jobs that stand before a job in its line, counted up to here
OTHERS_LOOKED_AT = 1_000  # running jobs of a limit, jobs before a job in its session
MEMBERS_LOOKED_AT = 1_000
PROGRAMS_LOOKED_AT = 20  # different versions of the code that are alive


class Guard(Struct, frozen=True, kw_only=True):
    """Where a job stands, beyond what everybody sees of it."""

    lane: Lane | None  # None: one that this release does not know
    blocked_by: str | None = None
    session: str | None = None
    turn: int | None = None
    sequence: int | None = None
    holds: Holds = Holds(0)
    tenant: str | None = None
    limit_key: str | None = None
    cancel_by: str | None = None
    kept_until: datetime | None = None


class Other(Struct, frozen=True, kw_only=True):
    """Another job, on which this one waits."""

    id: JobId
    task: str
    state: State
    due_at: datetime
    started_at: datetime | None = None
    complete_by: datetime | None = None
    holder: MemberId | None = None
    queue: str = ""
    elsewhere: bool = False  # it is of a queue that the reader may not see: it is counted, and not told of


class Paused(Struct, frozen=True):
    at: datetime
    by: str


class Limit(Struct, frozen=True, kw_only=True):
    """One rule that this job counts against, the jobs that fill it, and the tokens it had at an instant."""

    scope: str  # queue, task, key
    key: str  # the queue, the task, or the whole key, such as tenant:7
    concurrency: int | None = None
    rate: int | None = None
    per: timedelta | None = None
    burst: int = 1
    set_by: str = ""
    running: list[Other] = []
    tokens: float | None = None
    tokens_at: datetime | None = None
    promised: datetime | None = None  # until when the tokens to come are promised to jobs that wait


class OfRun(Struct, frozen=True):
    """The run whose step a job was, and the path of the step while that can be resubmitted."""

    run: JobId
    path: str | None = None


class Session(Struct, frozen=True, kw_only=True):
    """The session of this job: who has the turn or stands before it in the line, and what holds it. A gap is borne until
    an instant; then the session goes on without the number, or is held."""

    name: str
    before: list[Other] = []
    held_by: JobId | None = None
    held_of: OfRun | None = None  # of the one that holds it
    held_why: str | None = None  # dead, gap
    gap_until: datetime | None = None
    expects: int = FIRST_NUMBER


class Line(Struct, frozen=True, kw_only=True):
    """How many ready jobs stand before this one: of its queue and lane, and of its tenant alone."""

    ahead: int = 0
    of_tenant: int | None = None


class Run(Struct, frozen=True, kw_only=True):
    """What a run of a workflow is at, beside the job that it is. `waits_for`: of one that sleeps."""

    phase: Phase = Phase.FORWARD
    why: str | None = None
    waits_for: str | None = None


class Room(Struct, frozen=True):
    """A queue behind its task, how many wait there, and how many may."""

    queue: str
    waiting: int
    most: int


class Facts(Struct, frozen=True, kw_only=True):
    """`at` is the store's own time, by which all other times are to be read."""

    at: datetime
    job: JobView
    guard: Guard
    paused: Paused | None = None
    run: Run | None = None
    of_run: JobId | None = None  # the run of which it is a step
    session: Session | None = None
    singleton: Other | None = None  # the job that holds this one's exclusive key
    limits: list[Limit] = []
    breakers: list[
        CircuitView
    ] = []  # before its task, that are open; of those by version, the one that has parked it
    rooms: list[Room] = []  # of the queues that its task feeds, those that are full
    line: Line | None = None
    members: list[MemberView] = []
    programs: dict[str, Program] = {}  # of live members, by the digest
    sealed_with: str | None = None  # the id of the key that its payload is sealed with
    led_until: datetime | None = (
        None  # the supervisor's term; None if nobody ever led, or the leader resigned
    )
