"""Sealed values in PostgreSQL, for those who rotate keys."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from lateshift.model.sealed import HEAD_LIMIT
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.seal_contract import Part, Row, SealedWaiting, waiting_of

_SEALED = """substr(payload, 1, 10) = '"sealed:1:'::bytea"""


def _if_sealed(*columns: str) -> str:
    return ", ".join(f"CASE WHEN {_SEALED} THEN {column} END" for column in columns)


# Primary keys, all of them.
SEALED_JOBS = f"""SELECT id, {_if_sealed("payload", "checkpoint", "progress", "history")} FROM lateshift.job
 WHERE id > %s ORDER BY id LIMIT %s"""
SEALED_SETTLED = f"""SELECT id, {_if_sealed("payload", "result", "checkpoint", "progress", "history")} FROM lateshift.settled
 WHERE id > %s ORDER BY id LIMIT %s"""
SEALED_LOGS = """SELECT job, fence, CASE WHEN position('sealed:1:'::bytea IN lines) > 0 THEN lines END FROM lateshift.attempt_log
 WHERE (job, fence) > (%s, %s) ORDER BY job, fence LIMIT %s"""
SEALED_STATES = """SELECT queue, name, CASE WHEN substr(state, 1, 10) = '"sealed:1:'::bytea THEN state END FROM lateshift.session
 WHERE (queue, name) > (%s, %s) ORDER BY queue, name LIMIT %s"""
SEALED_CALLBACKS = (
    "SELECT id, then_call, failure_call FROM lateshift.batch WHERE id > %s ORDER BY id LIMIT %s"
)
# job_ready.
SEALED_READY = f"""SELECT queue, substr(payload, 1, {HEAD_LIMIT}), created_at FROM lateshift.job
 WHERE state = 1 AND queue = %s LIMIT %s"""
# Those that are due next, of any queue: what no worker could open comes back again and again. job_scheduled.
SEALED_SOON = f"""SELECT queue, substr(payload, 1, {HEAD_LIMIT}), created_at FROM lateshift.job
 WHERE state = 0 ORDER BY due_at LIMIT %s"""
RENEW_JOB = """UPDATE lateshift.job SET payload = %s, checkpoint = %s, progress = %s, history = %s
 WHERE id = %s AND payload = %s AND checkpoint IS NOT DISTINCT FROM %s AND progress IS NOT DISTINCT FROM %s
 AND history IS NOT DISTINCT FROM %s RETURNING 1"""
RENEW_SETTLED = """UPDATE lateshift.settled SET payload = %s, result = %s, checkpoint = %s, progress = %s, history = %s
 WHERE id = %s AND payload = %s AND result IS NOT DISTINCT FROM %s AND checkpoint IS NOT DISTINCT FROM %s
 AND progress IS NOT DISTINCT FROM %s AND history IS NOT DISTINCT FROM %s RETURNING 1"""
RENEW_LOG = (
    "UPDATE lateshift.attempt_log SET lines = %s WHERE job = %s AND fence = %s AND lines = %s RETURNING 1"
)
RENEW_STATE = (
    "UPDATE lateshift.session SET state = %s WHERE queue = %s AND name = %s AND state = %s RETURNING 1"
)
RENEW_CALLBACKS = """UPDATE lateshift.batch SET then_call = %s, failure_call = %s
 WHERE id = %s AND then_call IS NOT DISTINCT FROM %s AND failure_call IS NOT DISTINCT FROM %s RETURNING 1"""

_NOBODY = UUID(int=0)
# The statements, and the key that is before the first.
_OF: dict[Part, tuple[str, str, tuple[Any, ...]]] = {
    Part.BATCHES: (SEALED_CALLBACKS, RENEW_CALLBACKS, (_NOBODY,)),
    Part.JOBS: (SEALED_JOBS, RENEW_JOB, (_NOBODY,)),
    Part.SETTLED: (SEALED_SETTLED, RENEW_SETTLED, (_NOBODY,)),
    Part.LOGS: (SEALED_LOGS, RENEW_LOG, (_NOBODY, -1)),
    Part.SESSIONS: (SEALED_STATES, RENEW_STATE, ("", "")),
}


class PostgresSeals:
    """See seal_contract.Seals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self, queues: Collection[str], most: int) -> list[SealedWaiting]:
        def look(connection: Connection, again: bool) -> list[tuple[Any, ...]]:
            rows = [
                row
                for name in queues
                for row in connection.execute(SEALED_READY.encode(), (name, most)).fetchall()
            ]
            soon = connection.execute(SEALED_SOON.encode(), (most,)).fetchall()
            return rows + [row for row in soon if row[0] in queues]

        return waiting_of((row[0], row[1], row[2]) for row in self._database.run(look))

    def look(self, part: Part, after: tuple[Any, ...] | None, limit: int) -> list[Row]:
        sql, _, first = _OF[part]
        parameters = (*(after or first), limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(sql.encode(), parameters).fetchall()
        )
        width = len(first)
        return [Row(tuple(row[:width]), tuple(row[width:])) for row in rows]

    def renew(self, part: Part, changes: Sequence[tuple[Row, tuple[bytes | None, ...]]]) -> int:
        sql = _OF[part][1].encode()

        def work(connection: Connection, again: bool) -> int:
            with connection.transaction():
                return sum(
                    len(connection.execute(sql, (*after, *row.key, *row.values)).fetchall())
                    for row, after in changes
                )

        return self._database.run(work)
