"""What every store does. Verbs are plain blocking calls, safe from any thread; lists in, lists out; each is one
transaction, durable when it returns. Loops call them on a thread (`runtime.aside`), callers directly.

A verb that cannot reach the store raises StoreUnavailable, and may then be repeated as it was: nothing is done twice.
"""

from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from lateshift.clock import Clock
from lateshift.model.attempt_log import AttemptLog
from lateshift.model.discard import Discarded, Kept
from lateshift.model.edit import Edit
from lateshift.model.explaining.facts import Facts
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import Enqueued, JobFilter, JobView, Lease, Line, NewJob, Note
from lateshift.model.member import Loops, Lost, Program, Serves
from lateshift.model.member import MemberView as MemberView
from lateshift.model.outcome import Settlement
from lateshift.model.search import Found as Found
from lateshift.store.access_contract import AuditLog as AuditLog
from lateshift.store.access_contract import Tokens as Tokens
from lateshift.store.answer_contract import Answers as Answers
from lateshift.store.batch_contract import Batches as Batches
from lateshift.store.breaker_contract import Breakers as Breakers
from lateshift.store.figure_contract import FigureBook as FigureBook
from lateshift.store.guard_contract import RuleBook as RuleBook
from lateshift.store.guard_contract import Sessions as Sessions
from lateshift.store.guard_contract import SessionView as SessionView
from lateshift.store.guard_contract import TenantView as TenantView
from lateshift.store.log_contract import Logs as Logs
from lateshift.store.marks import Kin as Kin
from lateshift.store.reply_contract import Replies as Replies
from lateshift.store.schedule_contract import Schedules as Schedules
from lateshift.store.seal_contract import Seals as Seals
from lateshift.store.trigger_contract import Triggers as Triggers
from lateshift.store.upkeep_contract import Upkeep as Upkeep
from lateshift.store.wake_contract import Wakes as Wakes
from lateshift.store.workflow_contract import Workflows as Workflows

Asked = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]
Statements = Generator[Asked, Rows, list[Enqueued]]
"""SQL to run on a connection, one at a time: yields (statement, parameters), is sent the rows."""


class Want(Struct, frozen=True):
    """Room for up to `count` jobs of one line; `by_age` takes from the priority whose head waits longest."""

    line: Line
    count: int
    by_age: bool = False


class Exchanged(Struct, frozen=True):
    """New leases in the order in which to start them, and the leases whose settlement came too late. `unsure` if an
    earlier try of this exchange, whose answer was lost, may have leased others: `held` tells which."""

    leases: list[Lease]
    lost: list[Lease]
    unsure: bool = False


class Promoted(Struct, frozen=True):
    """Which lines got jobs that were scheduled and are now due, and how long until the next one is."""

    lines: list[Line]
    next_in: timedelta | None


class StopOrder(Struct, frozen=True):
    """A running attempt that must end: an operator cancelled the job."""

    id: JobId
    fence: int
    by: str


class TakenBack(Struct, frozen=True):
    """A job the supervisor took from its holder: why, and whether that made it a dead letter."""

    id: JobId
    queue: str
    line: Line | None  # none that this release knows
    reason: str
    dead: bool
    holder: MemberId | None = None  # if that is gone


class Gap(Struct, frozen=True):
    """Numbers that did not come in time, from `missing` up to the one before `next`: the session goes on with that, or is
    held."""

    queue: str
    session: str
    missing: int
    next: int
    held: bool


class Grip(Struct, frozen=True):
    """A held lock (or term of leadership). The fence is higher at every change of hands."""

    name: str
    owner: MemberId
    fence: int


class QueueView(Struct, frozen=True, kw_only=True):
    """How many jobs stand in a queue. A count stops at a limit: a display must not cost more with a backlog. Of those that are blocked,
    `parked` wait for a breaker, `rationed` for the rate of their queue, `held` for somebody who lets their session go on. `more_running`:
    more run, of all queues, than were counted."""

    name: str
    ready: int
    scheduled: int
    running: int
    blocked: int
    dead: int
    oldest_ready: timedelta | None
    paused_by: str | None
    paused_at: datetime | None
    parked: int = 0
    rationed: int = 0
    held: int = 0
    more_running: bool = False


COUNT_LIMIT = 10_000
ENDINGS_LOOKED_AT = 100_000  # newest jobs of each kind among which the ending of an id is looked for


Finish: TypeAlias = Callable[[], list[Enqueued]]
EnqueueHere: TypeAlias = Callable[[Sequence[NewJob]], Awaitable[list[Enqueued] | Finish | None]]


class Jobs(Protocol):
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """All of them or none. Repeating an id is harmless, also after its job has run. One whose key or identity is another
        job's is not made; its answer names that job."""

    def enqueuing_here(self) -> AbstractAsyncContextManager[EnqueueHere]:
        """`enqueue` without a thread, on the running loop, while this is entered. It gives None where it has done nothing: then `enqueue` is
        to be asked. Where nobody knows whether it was done, it gives what sees to it on a thread: nothing else is to be asked then."""

    def exchange(
        self, holder: MemberId, settlements: Sequence[Settlement], wants: Sequence[Want],
        logged: Sequence[AttemptLog] = (),
    ) -> Exchanged:  # fmt: skip
        """Settle what has ended, with what it logged and the last progress of careful lanes, and lease what there is room for, in one durable commit. A dead or
        unknown member leases nothing, nor does one whose heartbeat has run out."""

    def held(self, holder: MemberId) -> list[Lease]:
        """Every lease of this holder, with the time that is left of its limit: what to look at when the answer to an
        exchange was lost."""

    def lines(self, queues: Sequence[str] | None = None) -> list[Line]:
        """Lines with a ready job, paused queues left out; `queues` may hold patterns such as `images.*`."""

    def promote(self, limit: int) -> Promoted:
        """Make up to `limit` scheduled jobs ready whose time has come."""

    def save(self, notes: Sequence[Note]) -> list[Lease]:
        """Keep progress and checkpoints; gives the leases that are lost."""

    def stop_orders(self, holder: MemberId) -> list[StopOrder]:
        """Running attempts of this holder that an operator cancelled."""

    def cancel(self, ids: Sequence[JobId], *, by: str) -> list[JobId]:
        """Waiting jobs are cancelled at once; running ones get a stop order. Gives those it found unsettled."""

    def shed(self, queue: str, count: int, *, below: int | None = None) -> list[JobId]:
        """Make room in a queue: cancel up to `count` ready jobs, those that wait longest; or, of those with a priority under
        `below`, the lowest, and of equals the one that came last. Gives which. The reason is `shed`."""

    def resubmit(
        self, ids: Sequence[JobId], *, by: str, edits: Mapping[JobId, Edit] | None = None,
        delays: Mapping[JobId, timedelta] | None = None,
    ) -> list[JobId]:  # fmt: skip
        """Dead and cancelled jobs are ready again, with fresh attempts, and a line in their history that says who did it. Gives those it found so. One that has an edit
        gets its arguments, and that line says what they were; it is left alone if its arguments are
        not those that the edit was made for. So is the job of a step, whose workflow would not hear of it: see run.is_step.
        One that has a delay is scheduled, for so long from now; if it ever ran, its session waits for it, as for a retry."""

    def discard(self, ids: Sequence[JobId], *, by: str) -> Discarded:
        """Dead letters that nothing needs any more are deleted, as retention would. Their keys stay for their window, and batches count
        them as before."""

    def take_back(
        self, *, term: int, limit: int, alerts: Mapping[MemberId, Sequence[NewJob]] | None = None
    ) -> list[TakenBack]:
        """Jobs whose holder is gone or whose complete-by has passed go back to ready, or become dead letters.
        Refused (empty) unless `term` is the present one. `alerts`: what is enqueued in the same commit, if anything is taken back from
        this member because it is gone."""

    def unblock(self, *, term: int, limit: int) -> int:
        """Ready one blocked job for each exclusive key that nobody holds, as when the one whose turn it was has been
        cancelled."""

    def release_waiting(self, *, term: int, limit: int) -> list[Gap]:
        """Look through what waits for a session or a limit, some at a time, and ready what need not: a net, for whoever
        ends or cancels a job readies the next. Sessions in which a number is missing for too long go on, or are held:
        these it gives."""


class Members(Protocol):
    def join(self, member: MemberView, ttl: timedelta) -> None:
        """Make a member known; its leases live as long as its heartbeat does."""

    def introduce(self, id: MemberId, serves: Serves, program: Program) -> bool:
        """What this member is there for, and which code it runs; said once, and again if that changes. The program is
        kept once for all members of the same code. False if the member is not known, as before it has joined."""

    def beat(
        self, ids: Sequence[MemberId], ttl: timedelta, loops: Mapping[MemberId, Loops] | None = None
    ) -> list[MemberId]:
        """Keep members alive. Gives those that still are: one that was declared dead stays dead. `loops`: how old those of some are, in
        the same write; of the others it stays as it was told."""

    def report(self, id: MemberId, stats: dict[str, Any]) -> None:
        """What this member wants shown: counts, running jobs, room."""

    def bury(self, ids: Sequence[MemberId]) -> None:
        """Declare dead at once, seen by somebody who knows (a host its child)."""

    def leave(self, ids: Sequence[MemberId]) -> None:
        """Go in good order, holding nothing."""

    def lost(self, limit: int) -> list[Lost]:
        """Those that were declared dead, or whose heartbeat has run out, and that have jobs still: of each counted up to COUNT_LIMIT."""


class Queues(Protocol):
    def pause(self, name: str, *, by: str) -> bool:
        """False if it is paused: then it stays so as it is, and nothing is audited."""

    def resume(self, name: str, *, by: str) -> bool: ...

    def waiting(self, name: str, limit: int) -> int:
        """How many jobs of a queue are due and wait, ready or blocked, counted up to `limit`."""

    def tenants(self, name: str, limit: int) -> list[TenantView]:
        """Tenants that have ready jobs in a queue, by name; those without a tenant are none."""

    def conceal(self, names: Collection[str]) -> None:
        """These are sensitive, by some program's code: whatever stands in them is not shown. For good: nothing takes it back.
        A role of PostgreSQL that may not say so leaves it to programs that may."""

    def concealed(self) -> frozenset[str]:
        """Those that are, by any program's code."""

    def names(self) -> list[str]:
        """Those that have jobs or were paused, in no order. Nothing is counted in them."""

    def list(
        self, most: int = COUNT_LIMIT, *, limit: int | None = None, of: Collection[str] | None = None
    ) -> list[QueueView]:
        """By name, `limit` of them: the first, or if so many have ready jobs, of those; or these, whether they are there or not. Jobs
        in a state are counted up to `most` in each queue; those that run, which no index knows by queue, up to COUNT_LIMIT in all."""


class Locks(Protocol):
    def acquire(self, name: str, owner: MemberId, ttl: timedelta) -> Grip | None:
        """Take a free or expired lock, or None. Taking one's own again keeps its fence."""

    def renew(self, grip: Grip, ttl: timedelta) -> bool: ...

    def release(self, grip: Grip) -> bool: ...


class Reports(Protocol):
    """Read for display and for callers; nothing is decided from these."""

    def job(self, id: JobId) -> JobView | None: ...

    def named(self, ids: Sequence[JobId], *, whole: bool = True) -> list[JobView | None]:
        """Those with these ids, in their order; None where there is none. `whole`: else they are slim (model/sealed), and little more is
        read of each than that."""

    def watched(self, ids: Sequence[JobId]) -> list[JobView | None]:
        """The same with no more of each than events tell (model/watching.bare), and no result."""

    def jobs(self, wanted: JobFilter, limit: int, *, whole: bool = True) -> list[JobView]:
        """Newest first, as many as are wanted. Reads on until they are found: for those who have bounded it. `whole` likewise."""

    def search(self, wanted: JobFilter, limit: int, *, whole: bool = True) -> Found:
        """Newest first, at a bounded cost whatever is wanted: where no index knows the filter, LOOKED_AT jobs are looked at, and
        the answer says where to go on. `whole` likewise."""

    def count_dead(self, most: int) -> tuple[int, bool]:
        """How many of the newest so many dead letters need somebody, as a run that was undone does not, nor a step whose run has ended; and whether there may be more."""

    def of_dead(self, most: int) -> list[tuple[str, str]]:
        """The queues and tasks that have dead letters, so many of these pairs, in the order of the store."""

    def kept(self, ids: Sequence[JobId]) -> dict[JobId, Kept]:
        """Which of these could not be discarded now, and why."""

    def kin(self, id: JobId, limit: int) -> Kin:
        """Which jobs asked for this one, and which it asked for, up to `limit` of these. Some may be gone from the store."""

    def unsettled(self, before: JobId | None, limit: int) -> list[JobView]:
        """What waits and what runs, newest first, whatever has ended."""

    def running(self, limit: int) -> list[JobView]: ...

    def upcoming(self, limit: int, after: tuple[datetime, JobId] | None = None) -> list[JobView]:
        """Jobs that wait for their first time to start, the next first, all slim. `after`: behind the one that is due then and has this id."""

    def find(self, digits: str, limit: int) -> list[JobId]:
        """Ids that begin with these hexadecimal digits, or end with them. Beginnings are found in the whole store;
        endings among the newest ENDINGS_LOOKED_AT jobs that wait, that run, that have ended, and that are dead."""

    def members(self, limit: int | None = None) -> list[MemberView]:
        """All, the first that started first; or so many of them, those that live before the others."""

    def members_after(self, after: tuple[datetime, MemberId] | None, limit: int) -> list[MemberView]:
        """So many, the first that started first, behind the one that started then."""

    def programs(self) -> list[Program]:
        """The code that living members run, PROGRAMS_LOOKED_AT of them."""

    def facts(self, id: JobId) -> Facts | None:
        """All that explains where a job is, as it was at one instant. Each part is bounded; None if there is no job."""


class Store(Protocol):
    """Lateshift's state. Opening one does not connect."""

    url: str
    clock: Clock
    poll: timedelta  # how long an idle worker pauses at most
    one_machine: bool  # whether all who work on it share a machine, and a store that is away is away for all

    @property
    def jobs(self) -> Jobs: ...
    @property
    def batches(self) -> Batches: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def triggers(self) -> Triggers: ...
    @property
    def workflows(self) -> Workflows: ...
    @property
    def members(self) -> Members: ...
    @property
    def queues(self) -> Queues: ...
    @property
    def rules(self) -> RuleBook: ...
    @property
    def breakers(self) -> Breakers: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def audit(self) -> AuditLog: ...
    @property
    def answers(self) -> Answers: ...
    @property
    def locks(self) -> Locks: ...
    @property
    def reports(self) -> Reports: ...
    @property
    def replies(self) -> Replies: ...
    @property
    def logs(self) -> Logs: ...
    @property
    def figures(self) -> FigureBook: ...
    @property
    def seals(self) -> Seals: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def wakes(self) -> Wakes: ...

    def missing(self) -> str | None:
        """What is not there yet, in words; None if there is a store to open. Nothing is made."""

    def ready(self) -> None:
        """Connect, look whether this store is safe and its schema fits; a new store is migrated at once."""

    def migrate(self) -> list[int]:
        """Bring the schema up to this code's version; gives the versions applied."""

    def enqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue in the caller's own open transaction."""

    async def aenqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """The same on an async connection."""

    def close(self) -> None: ...
