"""The store in one SQLite database, whichever way that is opened."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from lateshift.errors import ConnectionUnsupported
from lateshift.model.job import Enqueued, NewJob
from lateshift.store import borrowed
from lateshift.store.contract import Statements, Wakes
from lateshift.store.hints import lines_of
from lateshift.store.sqlite import enqueue
from lateshift.store.sqlite.answers import SqliteAnswers
from lateshift.store.sqlite.audit import SqliteAudit
from lateshift.store.sqlite.batches import SqliteBatches
from lateshift.store.sqlite.breakers import SqliteBreakers
from lateshift.store.sqlite.database import Database
from lateshift.store.sqlite.figures import SqliteFigures
from lateshift.store.sqlite.jobs import SqliteJobs
from lateshift.store.sqlite.locks import SqliteLocks
from lateshift.store.sqlite.logs import SqliteLogs
from lateshift.store.sqlite.members import SqliteMembers
from lateshift.store.sqlite.queues import SqliteQueues
from lateshift.store.sqlite.replies import SqliteReplies
from lateshift.store.sqlite.reports import SqliteReports
from lateshift.store.sqlite.rules import SqliteRules
from lateshift.store.sqlite.schedules import SqliteSchedules
from lateshift.store.sqlite.seals import SqliteSeals
from lateshift.store.sqlite.sessions import SqliteSessions
from lateshift.store.sqlite.tokens import SqliteTokens
from lateshift.store.sqlite.triggers import SqliteTriggers
from lateshift.store.sqlite.upkeep import SqliteUpkeep
from lateshift.store.sqlite.workflows import SqliteWorkflows


class ClosableWakes(Wakes, Protocol):
    """Named pipes between processes, or plain calls within one."""

    def close(self) -> None: ...


class SqliteStore:
    """See contract.Store."""

    poll = timedelta(milliseconds=500)
    one_machine = True

    def __init__(self, url: str, database: Database, wakes: ClosableWakes) -> None:
        self.url = url
        self.clock = database.clock
        self._database = database
        self.wakes = wakes
        self.jobs = SqliteJobs(self._database, self.wakes)
        self.batches = SqliteBatches(self._database, self.wakes)
        self.members = SqliteMembers(self._database)
        self.queues = SqliteQueues(self._database, self.wakes)
        self.rules = SqliteRules(self._database)
        self.breakers = SqliteBreakers(self._database, self.wakes)
        self.sessions = SqliteSessions(self._database, self.wakes)
        self.schedules = SqliteSchedules(self._database, self.wakes)
        self.triggers = SqliteTriggers(self._database, self.wakes)
        self.workflows = SqliteWorkflows(self._database, self.wakes)
        self.tokens = SqliteTokens(self._database)
        self.audit = SqliteAudit(self._database)
        self.answers = SqliteAnswers(self._database)
        self.locks = SqliteLocks(self._database)
        self.reports = SqliteReports(self._database)
        self.replies = SqliteReplies(self._database, self.wakes)
        self.logs = SqliteLogs(self._database)
        self.figures = SqliteFigures(self._database)
        self.seals = SqliteSeals(self._database)
        self.upkeep = SqliteUpkeep(self._database)

    def missing(self) -> str | None:
        return self._database.missing()

    def ready(self) -> None:
        self._database.ready()

    def migrate(self) -> list[int]:
        return self._database.migrate()

    def enqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        self._refuse_two_libraries(connection)
        answers = borrowed.run(connection, self._statements(jobs), "sqlite", borrowed.several(jobs))
        self.wakes.hint(lines_of(jobs))
        return answers

    async def aenqueue_on(self, connection: object, jobs: Sequence[NewJob]) -> list[Enqueued]:
        self._refuse_two_libraries(connection)
        answers = await borrowed.arun(connection, self._statements(jobs), "sqlite", borrowed.several(jobs))
        self.wakes.hint(lines_of(jobs))
        return answers

    def _statements(self, jobs: Sequence[NewJob]) -> Statements:
        """What a caller's connection runs, after a look at which file it has open."""
        databases = yield "PRAGMA database_list", [()]
        file = next(Path(path) for _, name, path in databases if name == "main")
        if not file.exists() or not file.samefile(self._database.path):
            raise ConnectionUnsupported(
                f"connection= is open on {file}, and the store is {self._database.path}: the job would be in another store."
            )
        return (yield from enqueue.statements(jobs, self.clock.microseconds()))

    def _refuse_two_libraries(self, connection: object) -> None:
        """See drivers: a file that two libraries open in one process can lose what was accepted."""
        if self._database.driver.name != "sqlite3" and borrowed.origin_of(connection):
            raise ConnectionUnsupported(
                "To enqueue on your own connection, Lateshift must open the file with the same SQLite library as you do: "
                f"add ?driver=sqlite3 to the store's URL ({self.url})."
            )

    def close(self) -> None:
        self.wakes.close()
        self._database.close()
