"""A schedule as it is asked for and as it is shown, and what is remembered of its last ticks. Plain data."""

from datetime import datetime, timedelta
from hashlib import blake2b
from struct import Struct as Layout
from uuid import UUID

import msgspec
from msgspec import Struct

from lateshift.model.ids import JobId
from lateshift.model.instants import to_instant
from lateshift.model.job import Identity, NewJob, Place, Spec
from lateshift.model.scheduling.plan import Outcome, Plan

REMEMBERED = 10  # ticks that a schedule shows, however long ago they were
SCHEDULE_NAME_LIMIT = 200  # characters
SCHEDULE_LATE = timedelta(minutes=1)  # after which a tick that nobody has decided is late

_RECORD = Layout(">qIB16s")
_JOB_AT = _RECORD.size - 16  # its place in a record
NO_JOB = bytes(16)


class NewSchedule(Struct, frozen=True, kw_only=True):
    """A name, a plan, and the job that each tick makes: its id means nothing."""

    name: str
    plan: Plan
    job: NewJob


class Tick(Struct, frozen=True, kw_only=True):
    """What became of a tick, or of `count` in a row."""

    at: datetime
    outcome: Outcome
    count: int = 1
    job: JobId | None = None


class TickView(Tick, frozen=True, kw_only=True):
    """The same, and whose it was. `until`: the last of several in a row."""

    schedule: str
    generation: int
    until: datetime


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A schedule, as callers and operators see it. `app`: the one whose code declares it. `recent`: the newest first."""

    name: str
    plan: Plan
    job: NewJob
    app: str | None
    generation: int
    cursor: datetime
    next_at: datetime | None
    recent: list[Tick]
    paused_at: datetime | None
    paused_by: str | None
    created_at: datetime
    changed_at: datetime
    changed_by: str


class Kept(Struct, frozen=True):
    """How a schedule is written down. Schedules that are alike have the same bytes, so that each is read once."""

    plan: bytes
    spec: bytes
    payload: bytes
    guards: bytes | None

    @property
    def digest(self) -> bytes:
        told = msgspec.msgpack.encode([self.plan, self.spec, self.payload, self.guards])
        return blake2b(told, digest_size=16).digest()


class _Guards(Struct, frozen=True, array_like=True):
    place: Place | None
    unique: Identity | None
    tags: tuple[str, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_plans = msgspec.msgpack.Decoder(Plan)
_specs = msgspec.msgpack.Decoder(Spec)
_guards = msgspec.msgpack.Decoder(_Guards)


def keep(new: NewSchedule) -> Kept:
    job = new.job
    guards = None
    if job.tags:
        guards = _encode(_Guards(job.place, job.unique, job.tags))
    elif job.place is not None or job.unique is not None:
        guards = _encode((job.place, job.unique))
    return Kept(_encode(new.plan), _encode(job.spec), job.payload, guards)


class Reader:
    """Reads what was kept, each piece once."""

    def __init__(self) -> None:
        self._plans: dict[bytes, Plan] = {}
        self._specs: dict[bytes, Spec] = {}

    def plan(self, kept: bytes) -> Plan:
        found = self._plans.get(kept)
        if found is None:
            found = self._plans[kept] = _plans.decode(kept)
        return found

    def spec(self, kept: bytes) -> Spec:
        found = self._specs.get(kept)
        if found is None:
            found = self._specs[kept] = _specs.decode(kept)
        return found

    def job(self, id: JobId, spec: bytes, payload: bytes, guards: bytes | None) -> NewJob:
        if guards is None:
            return NewJob(id, self.spec(spec), payload, None, True)
        read = _guards.decode(guards)
        return NewJob(id, self.spec(spec), payload, None, True, read.place, read.unique, tags=read.tags)


RECENT_LIMIT = REMEMBERED * _RECORD.size


def record(at: int, count: int, outcome: int, job: bytes | None) -> bytes:
    """How a tick is remembered. The newest stand first."""
    return _RECORD.pack(at, count, outcome, job or NO_JOB)


def remembered(recent: bytes) -> list[Tick]:
    return [
        Tick(
            at=to_instant(at), outcome=Outcome(outcome), count=count,
            job=None if job == NO_JOB else UUID(bytes=job),
        )
        for at, count, outcome, job in _RECORD.iter_unpack(recent)
    ]  # fmt: skip


def last_jobs(recent: bytes) -> list[bytes]:
    """The newest two jobs that it made."""
    found: list[bytes] = []
    for place in range(_JOB_AT, len(recent), _RECORD.size):
        job = recent[place : place + 16]
        if job != NO_JOB:
            found.append(job)
            if len(found) == 2:
                break
    return found
