"""Live processes and their heartbeats, in SQLite."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from lateshift.model.ids import MemberId
from lateshift.model.member import Loops, Lost, MemberView, Program, Serves
from lateshift.store.contract import COUNT_LIMIT
from lateshift.store.sqlite.database import Database

JOIN = """INSERT INTO member (id, name, kind, host, pid, started_at, expires_at, stats) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (id) DO NOTHING"""
# A program that is there stays as it is, and is marked as seen; a member says which is its own. Primary keys.
SEE_PROGRAM = "UPDATE program SET seen_at = ?2 WHERE code = ?1 RETURNING 1"
KEEP_PROGRAM = "INSERT INTO program (code, seen_at, told) VALUES (?, ?, ?)"
INTRODUCE = "UPDATE member SET serves = ?, code = ? WHERE id = ? RETURNING 1"
# One that was declared dead stays dead. Primary key.
BEAT = """UPDATE member SET expires_at = ?1, loops = coalesce(?3, loops) WHERE id = ?2 AND dead_at IS NULL RETURNING 1"""
REPORT = "UPDATE member SET stats = ? WHERE id = ?"
BURY = "UPDATE member SET dead_at = ? WHERE id = ? AND dead_at IS NULL"
LEAVE = "DELETE FROM member WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE holder = ?1 AND state = 2)"
# Who is gone, and has jobs. A scan of the members; job_running.
LOST = """SELECT id, name, host, (SELECT count(*) FROM (SELECT 1 FROM job WHERE holder = m.id AND state = 2 LIMIT ?3))
 FROM member m WHERE (dead_at IS NOT NULL OR expires_at <= ?1) AND EXISTS (SELECT 1 FROM job WHERE holder = m.id AND state = 2) LIMIT ?2"""


class SqliteMembers:
    """See contract.Members."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def join(self, member: MemberView, ttl: timedelta) -> None:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            expires = now + ttl // timedelta(microseconds=1)
            row = (member.id.bytes, member.name, member.kind, member.host, member.pid, now, expires)
            connection.execute(JOIN, (*row, msgspec.json.encode(member.stats)))

    def introduce(self, id: MemberId, serves: Serves, program: Program) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            known = connection.execute(
                INTRODUCE, (msgspec.json.encode(serves), serves.code, id.bytes)
            ).fetchall()
            if known and not connection.execute(SEE_PROGRAM, (serves.code, now)).fetchall():
                connection.execute(KEEP_PROGRAM, (serves.code, now, msgspec.json.encode(program)))
            return bool(known)

    def beat(
        self, ids: Sequence[MemberId], ttl: timedelta, loops: Mapping[MemberId, Loops] | None = None
    ) -> list[MemberId]:
        told = {id: msgspec.json.encode(some) for id, some in (loops or {}).items()}
        with self._database.write() as connection:
            expires = self._clock.microseconds() + ttl // timedelta(microseconds=1)
            return [
                id for id in ids if connection.execute(BEAT, (expires, id.bytes, told.get(id))).fetchall()
            ]

    def report(self, id: MemberId, stats: dict[str, Any]) -> None:
        with self._database.write() as connection:
            connection.execute(REPORT, (msgspec.json.encode(stats), id.bytes))

    def bury(self, ids: Sequence[MemberId]) -> None:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            connection.executemany(BURY, [(now, id.bytes) for id in ids])

    def leave(self, ids: Sequence[MemberId]) -> None:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            connection.executemany(BURY, [(now, id.bytes) for id in ids])
            connection.executemany(LEAVE, [(id.bytes,) for id in ids])

    def lost(self, limit: int) -> list[Lost]:
        with self._database.read() as connection:
            rows = connection.execute(LOST, (self._clock.microseconds(), limit, COUNT_LIMIT)).fetchall()
        return [Lost(id=UUID(bytes=id), name=name, host=host, jobs=jobs) for id, name, host, jobs in rows]
