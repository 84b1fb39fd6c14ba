"""Sealed values in SQLite, for those who rotate keys."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from lateshift.model.instants import to_instant
from lateshift.model.sealed import HEAD_LIMIT
from lateshift.store.seal_contract import Part, Row, SealedWaiting, waiting_of
from lateshift.store.sqlite.database import Database

_SEALED = """substr(payload, 1, 10) = CAST('"sealed:1:' AS BLOB)"""


def _if_sealed(*columns: str) -> str:
    return ", ".join(f"CASE WHEN {_SEALED} THEN {column} END" for column in columns)


# Primary keys, all of them.
SEALED_JOBS = f"""SELECT id, {_if_sealed("payload", "checkpoint", "progress", "history")} FROM job
 WHERE id > ? ORDER BY id LIMIT ?"""
SEALED_SETTLED = f"""SELECT id, {_if_sealed("payload", "result", "checkpoint", "progress", "history")} FROM settled
 WHERE id > ? ORDER BY id LIMIT ?"""
SEALED_LOGS = """SELECT job, fence, CASE WHEN instr(lines, CAST('sealed:1:' AS BLOB)) > 0 THEN lines END FROM attempt_log
 WHERE (job, fence) > (?, ?) ORDER BY job, fence LIMIT ?"""
SEALED_STATES = """SELECT queue, name, CASE WHEN substr(state, 1, 10) = CAST('"sealed:1:' AS BLOB) THEN state END FROM session
 WHERE (queue, name) > (?, ?) ORDER BY queue, name LIMIT ?"""
SEALED_CALLBACKS = "SELECT id, then_call, failure_call FROM batch WHERE id > ? ORDER BY id LIMIT ?"
# job_ready.
SEALED_READY = f"""SELECT queue, substr(payload, 1, {HEAD_LIMIT}), created_at FROM job WHERE state = 1 AND queue = ? LIMIT ?"""
# Those that are due next, of any queue: what no worker could open comes back again and again. job_scheduled.
SEALED_SOON = f"""SELECT queue, substr(payload, 1, {HEAD_LIMIT}), created_at FROM job WHERE state = 0 ORDER BY due_at LIMIT ?"""
RENEW_JOB = """UPDATE job SET payload = ?, checkpoint = ?, progress = ?, history = ?
 WHERE id = ? AND payload IS ? AND checkpoint IS ? AND progress IS ? AND history IS ? RETURNING 1"""
RENEW_SETTLED = """UPDATE settled SET payload = ?, result = ?, checkpoint = ?, progress = ?, history = ?
 WHERE id = ? AND payload IS ? AND result IS ? AND checkpoint IS ? AND progress IS ? AND history IS ? RETURNING 1"""
RENEW_LOG = "UPDATE attempt_log SET lines = ? WHERE job = ? AND fence = ? AND lines IS ? RETURNING 1"
RENEW_STATE = "UPDATE session SET state = ? WHERE queue = ? AND name = ? AND state IS ? RETURNING 1"
RENEW_CALLBACKS = """UPDATE batch SET then_call = ?, failure_call = ?
 WHERE id = ? AND then_call IS ? AND failure_call IS ? RETURNING 1"""

_NOBODY = UUID(int=0)
# The statements, and the key that is before the first.
_OF: dict[Part, tuple[str, str, tuple[Any, ...]]] = {
    Part.BATCHES: (SEALED_CALLBACKS, RENEW_CALLBACKS, (_NOBODY,)),
    Part.JOBS: (SEALED_JOBS, RENEW_JOB, (_NOBODY,)),
    Part.SETTLED: (SEALED_SETTLED, RENEW_SETTLED, (_NOBODY,)),
    Part.LOGS: (SEALED_LOGS, RENEW_LOG, (_NOBODY, -1)),
    Part.SESSIONS: (SEALED_STATES, RENEW_STATE, ("", "")),
}


class SqliteSeals:
    """See seal_contract.Seals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def waiting(self, queues: Collection[str], most: int) -> list[SealedWaiting]:
        with self._database.read() as connection:
            rows = [
                row for name in queues for row in connection.execute(SEALED_READY, (name, most)).fetchall()
            ]
            rows += [row for row in connection.execute(SEALED_SOON, (most,)).fetchall() if row[0] in queues]
        return waiting_of((queue, head, to_instant(made)) for queue, head, made in rows)

    def look(self, part: Part, after: tuple[Any, ...] | None, limit: int) -> list[Row]:
        sql, _, first = _OF[part]
        with self._database.read() as connection:
            rows = connection.execute(sql, (*_bound(after or first), limit)).fetchall()
        width = len(first)
        return [Row(_key(row[:width]), tuple(row[width:])) for row in rows]

    def renew(self, part: Part, changes: Sequence[tuple[Row, tuple[bytes | None, ...]]]) -> int:
        sql = _OF[part][1]
        with self._database.write() as connection:
            return sum(
                len(connection.execute(sql, (*after, *_bound(row.key), *row.values)).fetchall())
                for row, after in changes
            )


def _bound(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(part.bytes if isinstance(part, UUID) else part for part in key)


def _key(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(UUID(bytes=part) if isinstance(part, bytes) else part for part in row)
