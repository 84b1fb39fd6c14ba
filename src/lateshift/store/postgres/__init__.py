"""The store in PostgreSQL 14 and newer, shared by many machines; works behind a pooler in transaction mode."""

from collections.abc import Sequence
from datetime import timedelta

from lateshift.clock import Clock
from lateshift.errors import ConnectionUnsupported
from lateshift.model.job import Enqueued, NewJob
from lateshift.store import borrowed
from lateshift.store.contract import Statements
from lateshift.store.postgres import enqueue
from lateshift.store.postgres.answers import PostgresAnswers
from lateshift.store.postgres.audit import PostgresAudit
from lateshift.store.postgres.batches import PostgresBatches
from lateshift.store.postgres.breakers import PostgresBreakers
from lateshift.store.postgres.database import DATABASE, Database
from lateshift.store.postgres.figures import PostgresFigures
from lateshift.store.postgres.jobs import PostgresJobs
from lateshift.store.postgres.locks import PostgresLocks
from lateshift.store.postgres.logs import PostgresLogs
from lateshift.store.postgres.members import PostgresMembers
from lateshift.store.postgres.queues import PostgresQueues
from lateshift.store.postgres.replies import PostgresReplies
from lateshift.store.postgres.reports import PostgresReports
from lateshift.store.postgres.rules import PostgresRules
from lateshift.store.postgres.schedules import PostgresSchedules
from lateshift.store.postgres.seals import PostgresSeals
from lateshift.store.postgres.sessions import PostgresSessions
from lateshift.store.postgres.tokens import PostgresTokens
from lateshift.store.postgres.triggers import PostgresTriggers
from lateshift.store.postgres.upkeep import PostgresUpkeep
from lateshift.store.postgres.wakes import NotifyWakes
from lateshift.store.postgres.workflows import PostgresWorkflows
from lateshift.store.urls import shown


class PostgresStore:
    """See contract.Store."""

    poll = timedelta(seconds=1)
    one_machine = False

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.clock = clock
        self._database = Database(url, clock)
        self.wakes = NotifyWakes(self._database)
        self.jobs = PostgresJobs(self._database, self.wakes)
        self.batches = PostgresBatches(self._database, self.wakes)
        self.members = PostgresMembers(self._database)
        self.queues = PostgresQueues(self._database, self.wakes)
        self.rules = PostgresRules(self._database)
        self.breakers = PostgresBreakers(self._database, self.wakes)
        self.sessions = PostgresSessions(self._database, self.wakes)
        self.schedules = PostgresSchedules(self._database, self.wakes)
        self.triggers = PostgresTriggers(self._database, self.wakes, url)
        self.workflows = PostgresWorkflows(self._database, self.wakes)
        self.tokens = PostgresTokens(self._database)
        self.audit = PostgresAudit(self._database)
        self.answers = PostgresAnswers(self._database)
        self.locks = PostgresLocks(self._database)
        self.reports = PostgresReports(self._database)
        self.replies = PostgresReplies(self._database, self.wakes)
        self.logs = PostgresLogs(self._database)
        self.figures = PostgresFigures(self._database)
        self.seals = PostgresSeals(self._database)
        self.upkeep = PostgresUpkeep(self._database)

    def missing(self) -> str | None:
        return self._database.missing()

    def ready(self) -> None:
        self._database.ready()

    def migrate(self) -> list[int]:
        return self._database.migrate()

    def enqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return borrowed.run(
            connection,
            self._statements(jobs),
            "postgresql",
            borrowed.several(jobs),
        )

    async def aenqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await borrowed.arun(
            connection,
            self._statements(jobs),
            "postgresql",
            borrowed.several(jobs),
        )

    def _statements(self, jobs: Sequence[NewJob]) -> Statements:
        """What a caller's connection runs, after a look at which database it is."""
        [[theirs]] = yield DATABASE, [()]
        if theirs != self._database.called:
            raise ConnectionUnsupported(
                f"connection= is open on the database {theirs}, and the store is {shown(self.url)}: the job would be in "
                "another store."
            )
        return (yield from enqueue.statements(jobs, self.clock.offset, notify=True))

    def close(self) -> None:
        self.wakes.close()
        self._database.close()
