"""Live processes and their heartbeats, in PostgreSQL."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from lateshift.model.ids import MemberId
from lateshift.model.member import Loops, Lost, MemberView, Program, Serves
from lateshift.store.contract import COUNT_LIMIT
from lateshift.store.postgres.database import Connection, Database

JOIN = """INSERT INTO lateshift.member (id, name, kind, host, pid, started_at, expires_at, stats)
 VALUES (%s, %s, %s, %s, %s, clock_timestamp() + %s::interval, clock_timestamp() + %s::interval + %s::interval, %s)
 ON CONFLICT (id) DO NOTHING"""
# A program that is there stays as it is, and is marked as seen; a member says which is its own. Primary keys.
SEE_PROGRAM = (
    "UPDATE lateshift.program SET seen_at = clock_timestamp() + %s::interval WHERE code = %s RETURNING 1"
)
KEEP_PROGRAM = """INSERT INTO lateshift.program (code, seen_at, told) VALUES (%s, clock_timestamp() + %s::interval, %s)
 ON CONFLICT (code) DO UPDATE SET seen_at = excluded.seen_at"""
INTRODUCE = "UPDATE lateshift.member SET serves = %s, code = %s WHERE id = %s RETURNING 1"
# One that was declared dead stays dead. Primary key.
BEAT = """UPDATE lateshift.member m SET expires_at = clock_timestamp() + %s::interval + %s::interval, loops = coalesce(told.loops, m.loops)
 FROM unnest(%s::uuid[], %s::bytea[]) AS told (id, loops) WHERE m.id = told.id AND dead_at IS NULL RETURNING m.id"""
REPORT = "UPDATE lateshift.member SET stats = %s WHERE id = %s"
BURY = "UPDATE lateshift.member SET dead_at = clock_timestamp() + %s::interval WHERE id = ANY(%s) AND dead_at IS NULL"
LEAVE = """DELETE FROM lateshift.member m WHERE m.id = ANY(%s) AND NOT EXISTS
 (SELECT 1 FROM lateshift.job j WHERE j.holder = m.id AND j.state = 2)"""
# Who is gone, and has jobs. A scan of the members; job_running.
LOST = """SELECT m.id, m.name, m.host, held.jobs FROM lateshift.member m CROSS JOIN LATERAL
  (SELECT count(*) AS jobs FROM (SELECT 1 FROM lateshift.job j WHERE j.holder = m.id AND j.state = 2 LIMIT %(most)s) AS counted) AS held
 WHERE (m.dead_at IS NOT NULL OR m.expires_at <= clock_timestamp() + %(skew)s::interval) AND held.jobs > 0 LIMIT %(limit)s"""


class PostgresMembers:
    """See contract.Members."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def join(self, member: MemberView, ttl: timedelta) -> None:
        skew, stats = self._clock.offset, msgspec.json.encode(member.stats)
        who = (member.id, member.name, member.kind, member.host, member.pid)
        self._database.run(lambda connection, again: connection.execute(JOIN, (*who, skew, skew, ttl, stats)))

    def introduce(self, id: MemberId, serves: Serves, program: Program) -> bool:
        skew, code = self._clock.offset, serves.code

        def work(connection: Connection, again: bool) -> bool:
            with connection.transaction():
                if not connection.execute(INTRODUCE, (msgspec.json.encode(serves), code, id)).fetchall():
                    return False
                if not connection.execute(SEE_PROGRAM, (skew, code)).fetchall():
                    connection.execute(KEEP_PROGRAM, (code, skew, msgspec.json.encode(program)))
                return True

        return self._database.run(work)

    def beat(
        self, ids: Sequence[MemberId], ttl: timedelta, loops: Mapping[MemberId, Loops] | None = None
    ) -> list[MemberId]:
        told = [msgspec.json.encode(loops[id]) if loops and id in loops else None for id in ids]
        parameters = (self._clock.offset, ttl, list(ids), told)
        rows = self._database.run(lambda connection, again: connection.execute(BEAT, parameters).fetchall())
        alive = {id for (id,) in rows}
        return [id for id in ids if id in alive]

    def report(self, id: MemberId, stats: dict[str, Any]) -> None:
        parameters = (msgspec.json.encode(stats), id)
        self._database.run(lambda connection, again: connection.execute(REPORT, parameters))

    def bury(self, ids: Sequence[MemberId]) -> None:
        parameters = (self._clock.offset, list(ids))
        self._database.run(lambda connection, again: connection.execute(BURY, parameters))

    def leave(self, ids: Sequence[MemberId]) -> None:
        def work(connection: Connection, again: bool) -> None:
            connection.execute(BURY, (self._clock.offset, list(ids)))
            connection.execute(LEAVE, (list(ids),))

        self._database.run(work)

    def lost(self, limit: int) -> list[Lost]:
        asked = {"skew": self._clock.offset, "limit": limit, "most": COUNT_LIMIT}
        rows = self._database.run(lambda connection, again: connection.execute(LOST, asked).fetchall())
        return [Lost(id=id, name=name, host=host, jobs=jobs) for id, name, host, jobs in rows]
