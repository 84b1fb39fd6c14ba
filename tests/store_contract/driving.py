"""Short ways to drive a store: a worker that leases and settles, a supervisor that sweeps, a job to enqueue."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, LiteralString, cast

from msgspec.structs import replace

from lateshift.model.batch import BatchView, NewBatch, job_id_at
from lateshift.model.ids import JobId, new_job_id, new_member_id
from lateshift.model.job import (
    Identity,
    JobFilter,
    JobView,
    Key,
    Lane,
    Lease,
    Line,
    NewJob,
    Place,
    Scope,
    Spec,
)
from lateshift.model.member import Program, Serves
from lateshift.model.outcome import Completed, Later, Outcome, Settlement
from lateshift.store.contract import Gap, MemberView, Store, TakenBack, Want
from lateshift.store.postgres import PostgresStore
from lateshift.store.sqlite import SqliteStore

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
TTL = timedelta(seconds=30)
TABLES = (
    "job",
    "settled",
    "job_key",
    "job_identity",
    "queue",
    "member",
    "lock",
    "audit",
    "session",
    "rule",
    "bucket",
    "trigger",
    "receipt",
    "refused",
    "run",
    "step",
    "signal",
    "breaker",
    "gate",
    "circuit",
    "attempt_log",
    "token",
    "outbox",
    "event",
    "answer",
    "figure",
    "job_tag",
    "job_parent",
)
LINE = Line("default", Lane.COROUTINE)
GUARDED = Line("default", Lane.GUARDED)
SOLO = Line("default", Lane.SOLO)
DONE = Completed(b"1", DAY)
FAILED = Later(timedelta(0), counts=True, history=b"[]")
RELEASED = Later(timedelta(0), counts=False)


def make_job(
    *,
    task: str = "noop",
    queue: str = "default",
    lane: Lane = Lane.COROUTINE,
    priority: int = 0,
    attempts: int = 3,
    time_limit: timedelta | None = HOUR,
    delay: timedelta | None = None,
    at: datetime | None = None,
    exclusive: str | None = None,
    payload: bytes = b"[]",
    key: Key | None = None,
    place: Place | None = None,
    unique: Identity | None = None,
    tags: tuple[str, ...] = (),
    parent: JobId | None = None,
    by: str | None = None,
) -> NewJob:
    spec = Spec(
        task=task, queue=queue, lane=lane.guarded if exclusive or place else lane, priority=priority, attempts=attempts,
        time_limit=time_limit, delay=delay, at=at, exclusive=exclusive,
    )  # fmt: skip
    return NewJob(
        new_job_id(), spec, payload, key, place=place, unique=unique, tags=tags, parent=parent, by=by
    )


def make_batch(
    store: Store,
    count: int,
    *,
    added: int | None = None,
    then: bool = True,
    on_failure: bool = True,
    attempts: int = 3,
) -> tuple[NewBatch, list[NewJob]]:
    """A batch of so many jobs, of which the first `added` (else all) are in the store."""
    id = new_job_id()
    spec = replace(make_job(attempts=attempts).spec, batch=id)
    jobs = [NewJob(job_id_at(id, place), spec, b"[]", None, True) for place in range(count)]
    batch = NewBatch(
        id=id, total=count, then=make_job(task="then", queue="after") if then else None,
        on_failure=make_job(task="on_failure", queue="after") if on_failure else None,
    )  # fmt: skip
    store.batches.open(batch)
    if added != 0:
        store.batches.add(id, 0, jobs[:added])
    return batch, jobs


def look(store: Store, batch: NewBatch) -> BatchView:
    """A batch that must be there, when everybody has done what they owe it."""
    store.batches.finish(limit=100)
    view = store.batches.view(batch.id)
    assert view is not None
    return view


def callbacks(store: Store) -> list[str]:
    """The tasks of the callbacks that were enqueued, each as often as it was."""
    views = store.reports.jobs(JobFilter(queue="after"), 100)
    return sorted(view.task for view in views)


def make_key(text: str, body: bytes = b"[]", window: timedelta = DAY) -> Key:
    return Key(text, sha256(body).digest(), window)


def keyed(text: str, body: bytes = b"[]", *, task: str = "noop", window: timedelta = DAY) -> NewJob:
    return make_job(task=task, payload=body, key=make_key(text, body, window))


def only(text: str, scope: Scope = Scope.UNSETTLED, window: timedelta = timedelta(0)) -> Identity:
    return Identity(sha256(text.encode()).digest()[:16], scope, window)


def added(store: Store, *jobs: NewJob) -> list[JobId]:
    """Enqueues them; gives their ids."""
    return [answer.id for answer in store.jobs.enqueue(jobs)]


def see(store: Store, id: JobId) -> JobView:
    """A job that must be there."""
    view = store.reports.job(id)
    assert view is not None, f"job {id} is gone"
    return view


def member(name: str = "worker") -> MemberView:
    now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")  # the store writes its own times
    return MemberView(
        id=new_member_id(), name=name, kind="worker", host="host", pid=1, started_at=now, expires_at=now, dead=False,
        stats={},
    )  # fmt: skip


def serve(store: Store, worker: "Worker", app: str) -> None:
    """A worker says whose it is."""
    program = Program(app=app, version="1", tasks={})
    told = Serves(
        app=app, version="1", code=program.digest, queues=(), slots={}, heartbeat=TTL.total_seconds()
    )
    store.members.introduce(worker.id, told, program)


class Worker:
    """A member that leases and settles."""

    def __init__(self, store: Store, ttl: timedelta = TTL) -> None:
        me = member()
        self.id = me.id
        self._store = store
        self._ttl = ttl
        store.members.join(me, ttl)

    def lease(self, count: int = 1, line: Line = LINE, *, by_age: bool = False) -> list[Lease]:
        """After a beat, as its host gives it. Without one, `lease_in_silence`."""
        self.beat(self._ttl)
        return self.lease_in_silence(count, line, by_age=by_age)

    def lease_in_silence(self, count: int = 1, line: Line = LINE, *, by_age: bool = False) -> list[Lease]:
        return self._store.jobs.exchange(self.id, [], [Want(line, count, by_age)]).leases

    def lease_one(self, line: Line = LINE) -> Lease:
        [lease] = self.lease(1, line)
        return lease

    def settle(self, lease: Lease, outcome: Outcome = DONE) -> bool:
        """Whether the store took it; False where the lease is lost."""
        lost = self._store.jobs.exchange(self.id, [Settlement(lease, outcome)], []).lost
        assert lost in ([], [lease])
        return not lost

    def settle_all(self, leases: Sequence[Lease], outcome: Outcome = DONE) -> list[Lease]:
        """The leases that are lost."""
        return self._store.jobs.exchange(self.id, [Settlement(lease, outcome) for lease in leases], []).lost

    def beat(self, ttl: timedelta = TTL) -> bool:
        return self._store.members.beat([self.id], ttl) == [self.id]

    def die(self) -> None:
        self._store.members.bury([self.id])


class Supervisor:
    """A holder of the present term."""

    def __init__(self, store: Store) -> None:
        grip = store.locks.acquire("supervisor", new_member_id(), timedelta(days=10_000))
        assert grip is not None
        self.term = grip.fence
        self._store = store

    def sweep(self, limit: int = 1000) -> list[TakenBack]:
        return self._store.jobs.take_back(term=self.term, limit=limit)

    def unblock(self, limit: int = 1000) -> int:
        return self._store.jobs.unblock(term=self.term, limit=limit)

    def release_waiting(self, limit: int = 1000) -> list[Gap]:
        return self._store.jobs.release_waiting(term=self.term, limit=limit)

    def purge(self, limit: int = 1000) -> int:
        return self._store.upkeep.purge(term=self.term, limit=limit)


def query(store: Store, sql: LiteralString, *parameters: Any) -> list[tuple[Any, ...]]:
    """What stands in the tables, for what no report shows. Tables are written as {job}, parameters as {}."""
    if isinstance(store, SqliteStore):
        text = sql.replace("{}", "?").replace("{", "").replace("}", "")
        with store._database.write() as connection:
            return cast(list[tuple[Any, ...]], connection.execute(text, parameters).fetchall())
    assert isinstance(store, PostgresStore)
    with store._database.connect() as own:
        qualified = sql.replace("{}", "%s").replace("{", "lateshift.").replace("}", "")
        cursor = own.execute(qualified.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///").partition("?")[0])


def empty(store: Store) -> None:
    if isinstance(store, SqliteStore):
        with store._database.write() as file:
            for table in TABLES:
                file.execute(f"DELETE FROM {table}")
    elif isinstance(store, PostgresStore):
        with store._database.connect() as server:
            for table in TABLES:
                server.execute(f"DELETE FROM lateshift.{table}".encode())
