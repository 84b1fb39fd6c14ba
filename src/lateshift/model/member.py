"""A live process as others see it: who it is, what it is there for, and which code it runs. Plain data."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from lateshift.model.ids import MemberId
from lateshift.model.job import Lane
from lateshift.model.queue import QUEUE_NAME

TASKS_TOLD = 10_000  # names that a program tells; more are counted only
QUEUES_DECLARED = 1_000  # names of queues that it tells, the first of them
VERSION_LIMIT = 100  # characters of an app's version
VERSION_DIGITS = 8  # of the digest that stands for a version where none was given

Loops: TypeAlias = dict[str, tuple[float, float]]
"""Of a process, by the name of each loop: seconds since its last turn, and how long it meant to pause."""


class Program(Struct, frozen=True, kw_only=True):
    """The code that a worker runs: its app, the version, for each task the lane where its body runs, and the queues that it declares.
    Workers of the same code have the same `digest`, and share one row."""

    app: str
    version: str
    tasks: dict[str, str]
    left_out: int = 0
    queues: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return sha256(msgspec.json.encode(self, order="sorted")).hexdigest()

    def knows(self, task: str) -> bool | None:
        """None if it does not say."""
        return True if task in self.tasks else None if self.left_out else False


def program_of(
    app: str, version: str | None, lanes: Mapping[str, Lane], queues: Iterable[str] = ()
) -> Program:
    """Without a version, one that changes whenever a task is added, is gone, or runs elsewhere."""
    tasks = {name: lanes[name].label for name in sorted(lanes)}
    if version is None:
        version = sha256(msgspec.json.encode(tasks)).hexdigest()[:VERSION_DIGITS]
    told = dict(list(tasks.items())[:TASKS_TOLD])
    named = tuple(sorted(set(queues))[:QUEUES_DECLARED])
    return Program(app=app, version=version, tasks=told, left_out=len(tasks) - len(told), queues=named)


class Serves(Struct, frozen=True, kw_only=True):
    """What a worker is there for. It says so once, when it begins; `code` is the digest of its program."""

    app: str
    version: str
    code: str
    queues: tuple[str, ...]  # patterns allowed; none is all queues
    slots: dict[str, int]  # jobs at once, for each lane that it can run
    heartbeat: float  # seconds of silence after which it is dead
    keys: tuple[str, ...] = ()  # the ids of those that it opens sealed jobs with

    @property
    def program(self) -> str:
        return f"{self.app} {self.version}"

    def takes_from(self, queue: str) -> bool:
        return served(queue, self.queues or None)

    @property
    def named(self) -> set[str]:
        """The queues that it names; a pattern names none."""
        return {queue for queue in self.queues if QUEUE_NAME.fullmatch(queue)}


class Lost(Struct, frozen=True, kw_only=True):
    """A member that is gone and has jobs still: how many, counted up to a limit."""

    id: MemberId
    name: str
    host: str
    jobs: int


class MemberView(Struct, frozen=True, kw_only=True):
    """A live process, as others see it. `loops`: as of its last heartbeat."""

    id: MemberId
    name: str
    kind: str
    host: str
    pid: int
    started_at: datetime
    expires_at: datetime
    dead: bool
    stats: dict[str, Any]
    serves: Serves | None = None
    loops: Loops = {}


def served(queue: str, queues: Sequence[str] | None) -> bool:
    """Whether a queue is among `queues`, which may hold patterns such as `images.*`; None is all of them."""
    return queues is None or any(fnmatchcase(queue, pattern) for pattern in queues)
