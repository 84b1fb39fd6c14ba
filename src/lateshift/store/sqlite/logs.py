"""The logs of attempts in SQLite: one row for each lease that logged something."""

from collections.abc import Iterable, Sequence
from typing import Any

from lateshift.model.attempt_log import LEASES_LOGGED, AttemptLog, read, write
from lateshift.model.ids import JobId
from lateshift.store.log_contract import latest
from lateshift.store.sqlite.database import Connection, Database

# What an attempt of a job that is still here has logged. Primary keys.
KEEP_LOG = """INSERT INTO attempt_log (job, fence, attempt, logged, lines) SELECT ?1, ?2, ?3, ?4, ?5
 WHERE EXISTS (SELECT 1 FROM job WHERE id = ?1) OR EXISTS (SELECT 1 FROM settled WHERE id = ?1)
 ON CONFLICT (job, fence) DO UPDATE SET logged = ?4, lines = ?5 WHERE attempt_log.logged <= ?4"""
# Primary key, all three.
TRIM_LOGS = "DELETE FROM attempt_log WHERE job = ? AND fence <= ?"
LOGS_OF = "SELECT fence, attempt, logged, lines FROM attempt_log WHERE job = ? ORDER BY fence"
FORGET_LOGS = "DELETE FROM attempt_log WHERE job = ?"
ANY_LOG = "SELECT 1 FROM attempt_log LIMIT 1"


class SqliteLogs:
    """See log_contract.Logs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, logs: Sequence[AttemptLog]) -> None:
        with self._database.write() as connection:
            keep(connection, logs)

    def of(self, id: JobId) -> list[AttemptLog]:
        with self._database.read() as connection:
            rows = connection.execute(LOGS_OF, (id.bytes,)).fetchall()
        return [
            AttemptLog(job=id, fence=fence, attempt=attempt, logged=logged, lines=read(lines))
            for fence, attempt, logged, lines in rows
        ]


def keep(connection: Connection, logs: Sequence[AttemptLog]) -> None:
    """In the transaction of an exchange, after what it settles."""
    kept = latest(logs)
    rows = [(log.job.bytes, log.fence, log.attempt, log.logged, write(log.lines)) for log in kept]
    connection.executemany(KEEP_LOG, rows)
    old = [(log.job.bytes, log.fence - LEASES_LOGGED) for log in kept if log.fence > LEASES_LOGGED]
    connection.executemany(TRIM_LOGS, old)


def forget(connection: Connection, ids: Iterable[tuple[Any, ...]]) -> None:
    """With the jobs that they are of."""
    if connection.execute(ANY_LOG).fetchall():
        connection.executemany(FORGET_LOGS, ids)
