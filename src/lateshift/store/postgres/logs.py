"""The logs of attempts in PostgreSQL: one row for each lease that logged something."""

from collections.abc import Sequence

from lateshift.model.attempt_log import LEASES_LOGGED, AttemptLog, read, write
from lateshift.model.ids import JobId
from lateshift.store.log_contract import latest
from lateshift.store.postgres.arrays import BigInts, Blobs, Uuids
from lateshift.store.postgres.database import Connection, Database

# What attempts of jobs that are still here have logged. Each is looked for by itself: see docs/decisions/plans.md. Primary keys.
KEEP_LOG = """INSERT INTO lateshift.attempt_log (job, fence, attempt, logged, lines)
SELECT s.job, s.fence, s.attempt, s.logged, s.lines FROM unnest(%(ids)b::uuid[], %(fences)b::bigint[], %(attempts)b::bigint[],
  %(logged)b::bigint[], %(lines)b::bytea[]) AS s(job, fence, attempt, logged, lines)
WHERE (SELECT true FROM lateshift.job j WHERE j.id = s.job LIMIT 1) IS NOT NULL
 OR (SELECT true FROM lateshift.settled d WHERE d.id = s.job LIMIT 1) IS NOT NULL
ON CONFLICT (job, fence) DO UPDATE SET logged = excluded.logged, lines = excluded.lines
 WHERE attempt_log.logged <= excluded.logged"""
# Primary key, all three.
TRIM_LOGS = "DELETE FROM lateshift.attempt_log WHERE job = %s AND fence <= %s"
LOGS_OF = "SELECT fence, attempt, logged, lines FROM lateshift.attempt_log WHERE job = %s ORDER BY fence"
FORGET_LOGS = "DELETE FROM lateshift.attempt_log WHERE job = ANY(%s)"
ANY_LOG = "SELECT 1 FROM lateshift.attempt_log LIMIT 1"


class PostgresLogs:
    """See log_contract.Logs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, logs: Sequence[AttemptLog]) -> None:
        def work(connection: Connection, again: bool) -> None:
            with connection.pipeline():
                keep(connection, logs)

        self._database.run(work)

    def of(self, id: JobId) -> list[AttemptLog]:
        rows = self._database.run(lambda connection, again: connection.execute(LOGS_OF, (id,)).fetchall())
        return [
            AttemptLog(job=id, fence=fence, attempt=attempt, logged=logged, lines=read(lines))
            for fence, attempt, logged, lines in rows
        ]


def keep(connection: Connection, logs: Sequence[AttemptLog]) -> None:
    """In the caller's pipeline, after what it settles."""
    kept = sorted(latest(logs), key=lambda log: (log.job.int, log.fence))  # always in one order: no deadlocks
    parameters = {
        "ids": Uuids(log.job for log in kept),
        "fences": BigInts(log.fence for log in kept),
        "attempts": BigInts(log.attempt for log in kept),
        "logged": BigInts(log.logged for log in kept),
        "lines": Blobs(write(log.lines) for log in kept),
    }
    connection.execute(KEEP_LOG, parameters, binary=True)
    for log in kept:
        if log.fence > LEASES_LOGGED:
            connection.execute(TRIM_LOGS, (log.job, log.fence - LEASES_LOGGED))


def forget(connection: Connection, ids: Sequence[JobId]) -> None:
    """With the jobs that they are of."""
    if connection.execute(ANY_LOG).fetchall():
        connection.execute(FORGET_LOGS, (list(ids),))
