"""The real store with somebody in between: every verb goes through one function, which may look, note or fail."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, cast

from lateshift.model.job import Enqueued, NewJob
from lateshift.store.contract import (
    Answers,
    AuditLog,
    Batches,
    Breakers,
    FigureBook,
    Jobs,
    Locks,
    Logs,
    Members,
    Queues,
    Replies,
    Reports,
    RuleBook,
    Schedules,
    Seals,
    Sessions,
    Store,
    Tokens,
    Triggers,
    Upkeep,
    Workflows,
)


class Around(Protocol):
    """`verb` is such as `jobs.enqueue`; `call` does it, with the arguments that follow."""

    def __call__(self, verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any: ...


class Verbs:
    """One part of a store."""

    def __init__(self, part: str, inner: object, around: Around) -> None:
        self._part = part
        self._inner = inner
        self._around = around

    def __getattr__(self, name: str) -> Any:
        return partial(self._around, f"{self._part}.{name}", getattr(self._inner, name))


class Interposed:
    """See contract.Store. Wake-ups, which are hints, pass by."""

    def __init__(self, store: Store, around: Around) -> None:
        self.url = store.url
        self.clock = store.clock
        self.poll = store.poll
        self.one_machine = store.one_machine
        self.jobs = cast(Jobs, Verbs("jobs", store.jobs, around))
        self.batches = cast(Batches, Verbs("batches", store.batches, around))
        self.members = cast(Members, Verbs("members", store.members, around))
        self.queues = cast(Queues, Verbs("queues", store.queues, around))
        self.rules = cast(RuleBook, Verbs("rules", store.rules, around))
        self.schedules = cast(Schedules, Verbs("schedules", store.schedules, around))
        self.triggers = cast(Triggers, Verbs("triggers", store.triggers, around))
        self.workflows = cast(Workflows, Verbs("workflows", store.workflows, around))
        self.logs = cast(Logs, Verbs("logs", store.logs, around))
        self.figures = cast(FigureBook, Verbs("figures", store.figures, around))
        self.breakers = cast(Breakers, Verbs("breakers", store.breakers, around))
        self.sessions = cast(Sessions, Verbs("sessions", store.sessions, around))
        self.tokens = cast(Tokens, Verbs("tokens", store.tokens, around))
        self.answers = cast(Answers, Verbs("answers", store.answers, around))
        self.audit = cast(AuditLog, Verbs("audit", store.audit, around))
        self.locks = cast(Locks, Verbs("locks", store.locks, around))
        self.reports = cast(Reports, Verbs("reports", store.reports, around))
        self.seals = cast(Seals, Verbs("seals", store.seals, around))
        self.replies = cast(Replies, Verbs("replies", store.replies, around))
        self.upkeep = cast(Upkeep, Verbs("upkeep", store.upkeep, around))
        self.wakes = store.wakes
        self._store = store
        self._around = around

    def missing(self) -> str | None:
        return self._store.missing()

    def ready(self) -> None:
        self._store.ready()

    def migrate(self) -> list[int]:
        return self._store.migrate()

    def enqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        call = partial(self._store.enqueue_on, connection)
        return cast(list[Enqueued], self._around("jobs.enqueue", call, jobs))

    async def aenqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers = await self._store.aenqueue_on(connection, jobs)
        return cast(list[Enqueued], self._around("jobs.enqueue", lambda jobs: answers, jobs))

    def close(self) -> None:
        self._store.close()
