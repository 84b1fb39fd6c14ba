"""A second opinion: how a store must behave, as plain Python over dictionaries. It shares nothing with the stores but
the names of states and lanes. Time is whole minutes, and a deadline has passed once it is no later than now."""

from dataclasses import dataclass, field
from uuid import UUID

from lateshift.model.job import Lane, Line, State

DAYS = 24 * 60
KEEP_CANCELLED = 7 * DAYS
KEEP_DEAD = 90 * DAYS
KEEP_LEAST = 5
MEMBER_KEPT = 10
HISTORY_KEPT = 10

WAITING = (State.SCHEDULED, State.READY, State.BLOCKED)


@dataclass
class ModelJob:
    id: UUID
    queue: str
    lane: Lane
    priority: int
    attempts: int
    limit: int | None
    exclusive: str | None
    state: State
    due: tuple[int, int]  # the minute, and which step computed it: real time goes on a little within a minute
    attempt: int = 0
    fence: int = 0
    losses: int = 0
    holder: UUID | None = None
    complete_by: int | None = None
    cancel_by: str | None = None
    reason: str | None = None
    result: bytes | None = None
    checkpoint: bytes | None = None
    history: list[str] = field(default_factory=list)
    expires: int = 0

    @property
    def rank(self) -> tuple[int, tuple[int, int], int]:
        return (-self.priority, self.due, self.id.int)

    def remember(self, reason: str) -> list[str]:
        records = [*self.history, reason]
        return records if len(records) <= HISTORY_KEPT else records[:1] + records[1 - HISTORY_KEPT :]


@dataclass
class ModelMember:
    expires: int
    dead_since: int | None = None


@dataclass
class ModelKey:
    job: UUID
    body: bytes
    expires: int


@dataclass(frozen=True)
class End:
    """How an attempt says it ended: `state` for good, or None for another attempt after `delay`."""

    state: State | None
    reason: str | None = None
    result: bytes | None = None
    keep: int = 0
    delay: int = 0
    counts: bool = True
    history: bool = False  # whether the attempt is written into the history, as "failed"


class Model:
    def __init__(self) -> None:
        self.now = 0
        self.step = 0
        self.jobs: dict[UUID, ModelJob] = {}
        self.members: dict[UUID, ModelMember] = {}
        self.keys: dict[str, ModelKey] = {}
        self.paused: set[str] = set()

    # What callers do

    def enqueue(self, job: ModelJob, delay: int) -> None:
        job.due = (self.now + delay, self.step)
        job.state = State.SCHEDULED if delay > 0 else State.READY
        self.jobs.setdefault(job.id, job)

    def enqueue_keyed(self, job: ModelJob, text: str, body: bytes, window: int) -> tuple[UUID, bool] | None:
        """The id and whether it is new; None if the key is another's."""
        key = self.keys.get(text)
        if key is not None and key.expires > self.now:
            return (key.job, False) if key.body == body else None
        self.keys[text] = ModelKey(job.id, body, self.now + window)
        self.enqueue(job, 0)
        return job.id, True

    def cancel(self, id: UUID, by: str) -> bool:
        job = self.jobs.get(id)
        if job is None or job.state.settled:
            return False
        if job.state is State.RUNNING:
            job.cancel_by = by
        else:
            self._end(job, State.CANCELLED, f"cancelled by {by}", KEEP_CANCELLED)
        return True

    def resubmit(self, id: UUID, delay: int) -> bool:
        job = self.jobs.get(id)
        if job is None or job.state not in (State.DEAD, State.CANCELLED):
            return False
        job.state, job.due = State.SCHEDULED if delay else State.READY, (self.now + delay, self.step)
        job.attempt = job.losses = 0
        job.reason = job.result = job.holder = job.cancel_by = job.complete_by = None
        job.history = job.remember("resubmitted")
        return True

    # What workers do

    def alive(self, id: UUID) -> bool:
        return id in self.members and self.members[id].dead_since is None

    def beat(self, id: UUID, ttl: int) -> bool:
        if self.alive(id):
            self.members[id].expires = self.now + ttl
        return self.alive(id)

    def bury(self, id: UUID) -> None:
        if self.alive(id):
            self.members[id].dead_since = self.now

    def ready(self, line: Line) -> list[ModelJob]:
        jobs = [
            job
            for job in self.jobs.values()
            if job.state is State.READY and (job.queue, job.lane) == (line.queue, line.lane)
        ]
        return sorted(jobs, key=lambda job: job.rank)

    def heads(self, line: Line) -> list[ModelJob]:
        """The first ready job of each priority."""
        first: dict[int, ModelJob] = {}
        for job in self.ready(line):
            first.setdefault(job.priority, job)
        return sorted(first.values(), key=lambda job: job.due)

    def lines(self) -> set[Line]:
        ready = [job for job in self.jobs.values() if job.state is State.READY]
        return {Line(job.queue, job.lane) for job in ready if job.queue not in self.paused}

    def lease(self, holder: UUID, line: Line, count: int, by_age: bool) -> list[ModelJob]:
        if not self.alive(holder) or self.members[holder].expires <= self.now or line.queue in self.paused:
            return []
        if line.lane not in (Lane.SOLO, Lane.GUARDED):
            return [self._give(job, holder) for job in self._candidates(line, by_age)[:count]]
        leased: list[ModelJob] = []
        blocked = True
        while blocked:
            blocked = False
            for job in self._candidates(line, by_age)[: count - len(leased)]:
                if job.exclusive is not None and self.holder_of(job.exclusive):
                    self._block(job.exclusive)
                    blocked = True
                else:
                    leased.append(self._give(job, holder))
        return leased

    def _candidates(self, line: Line, by_age: bool) -> list[ModelJob]:
        ready = self.ready(line)
        heads = self.heads(line)
        return [job for job in ready if job.priority == heads[0].priority] if by_age and heads else ready

    def _give(self, job: ModelJob, holder: UUID) -> ModelJob:
        job.state, job.holder = State.RUNNING, holder
        job.attempt += 1
        job.fence += 1
        job.complete_by = None if job.limit is None else self.now + job.limit
        return job

    def holder_of(self, key: str) -> ModelJob | None:
        running = [job for job in self.jobs.values() if job.exclusive == key and job.state is State.RUNNING]
        assert len(running) <= 1, "two jobs of one exclusive key run"
        return running[0] if running else None

    def _block(self, key: str) -> None:
        for job in self.jobs.values():
            if job.exclusive == key and job.state is State.READY:
                job.state = State.BLOCKED

    def _ready_next(self, key: str | None) -> None:
        if key is None or self.holder_of(key):
            return
        heads: dict[Line, ModelJob] = {}
        for job in sorted(self.jobs.values(), key=lambda job: job.rank):
            if job.exclusive == key and job.state is State.BLOCKED:
                heads.setdefault(Line(job.queue, job.lane), job)
        for job in heads.values():
            job.state = State.READY

    def holds(self, id: UUID, fence: int) -> bool:
        """Whether a write with this fence counts."""
        job = self.jobs.get(id)
        return job is not None and job.state is State.RUNNING and job.fence == fence

    def in_time(self, id: UUID) -> bool:
        job = self.jobs[id]
        return job.complete_by is None or job.complete_by > self.now

    def settle(self, id: UUID, fence: int, exclusive: str | None, end: End) -> bool:
        """Whether it counts, or did before."""
        kept = self._settle(id, fence, end)
        self._ready_next(exclusive)
        return kept

    def _settle(self, id: UUID, fence: int, end: End) -> bool:
        job = self.jobs.get(id)
        late = end.state is State.COMPLETED and self.holds(id, fence) and not self.in_time(id)
        if late or not self.holds(id, fence):
            return job is not None and (job.fence, job.state, job.reason) == (fence, end.state, end.reason)
        assert job is not None
        if end.history:
            job.history = job.remember("failed")
        if end.state is None and job.cancel_by is not None:
            self._end(job, State.CANCELLED, f"cancelled by {job.cancel_by}", KEEP_CANCELLED)
            return True
        if end.state is not None:
            self._end(job, end.state, end.reason, max(end.keep, KEEP_LEAST))
            job.result = end.result
            return True
        job.state = State.SCHEDULED if end.delay > 0 else State.READY
        job.due = (self.now + end.delay, self.step)
        job.holder = job.complete_by = None
        job.attempt -= 0 if end.counts else 1
        return True

    def _end(self, job: ModelJob, state: State, reason: str | None, keep: int) -> None:
        job.state, job.reason, job.expires = state, reason, self.now + keep
        job.cancel_by = job.complete_by = None

    # What the supervisor and operators do

    def promote(self) -> set[Line]:
        due = [job for job in self.jobs.values() if job.state is State.SCHEDULED and job.due[0] <= self.now]
        for job in due:
            job.state = State.READY
        return {Line(job.queue, job.lane) for job in due}

    def take_back(self) -> set[tuple[UUID, str, bool]]:
        """Which jobs, why, and whether that made them dead letters."""
        for member in self.members.values():
            if member.dead_since is None and member.expires <= self.now:
                member.dead_since = self.now
        taken = set()
        keys = set()
        for job in [job for job in self.jobs.values() if job.state is State.RUNNING]:
            assert job.holder is not None
            gone = not self.alive(job.holder)
            # Within the minute of its complete-by, a live holder still has its grace.
            if gone or (job.complete_by is not None and job.complete_by < self.now):
                taken.add(self._take(job, gone))
                keys.add(job.exclusive)
        for key in keys:
            self._ready_next(key)
        return taken

    def _take(self, job: ModelJob, gone: bool) -> tuple[UUID, str, bool]:
        job.losses += 1 if gone else 0
        reason = "worker_lost" if gone else "complete_by"
        if job.cancel_by is not None:
            reason = f"cancelled by {job.cancel_by}"
            job.history = job.remember(reason)
            self._end(job, State.CANCELLED, reason, KEEP_CANCELLED)
            return job.id, reason, False
        job.history = job.remember(reason)
        if job.attempt >= job.attempts or job.losses >= 3:
            self._end(job, State.DEAD, reason, KEEP_DEAD)
            return job.id, reason, True
        job.state, job.due = State.READY, (self.now, self.step)
        job.holder = job.complete_by = None
        if job.losses >= 2:
            job.lane = Lane.SOLO
        return job.id, reason, False

    def unblock(self) -> int:
        held = {job.exclusive for job in self.jobs.values() if job.state is State.RUNNING}
        stranded = {key for key, _ in self._waits(State.BLOCKED) - self._waits(State.READY)} - held
        for key in stranded:
            self._ready_next(key)
        return len(stranded)

    def _waits(self, state: State) -> set[tuple[str | None, Line]]:
        """The keys and lines of the jobs in this state."""
        return {
            (job.exclusive, Line(job.queue, job.lane)) for job in self.jobs.values() if job.state is state
        }

    def purge(self) -> int:
        before = len(self.jobs) + len(self.keys) + len(self.members)
        self.jobs = {
            id: job for id, job in self.jobs.items() if not job.state.settled or job.expires > self.now
        }
        self.keys = {text: key for text, key in self.keys.items() if key.expires > self.now}
        holding = {job.holder for job in self.jobs.values() if job.state is State.RUNNING}
        self.members = {
            id: member
            for id, member in self.members.items()
            if member.dead_since is None or member.dead_since + MEMBER_KEPT > self.now or id in holding
        }
        return before - len(self.jobs) - len(self.keys) - len(self.members)
