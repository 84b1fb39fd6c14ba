"""Live processes and their heartbeats, in PostgreSQL."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from lateshift.model.ids import MemberId
from lateshift.store.contract import MemberView
from lateshift.store.postgres.database import Connection, Database

JOIN = """INSERT INTO lateshift.member (id, name, kind, host, pid, started_at, expires_at, stats)
 VALUES (%s, %s, %s, %s, %s, clock_timestamp() + %s::interval, clock_timestamp() + %s::interval + %s::interval, %s)
 ON CONFLICT (id) DO NOTHING"""
# One that was declared dead stays dead. Primary key.
BEAT = """UPDATE lateshift.member SET expires_at = clock_timestamp() + %s::interval + %s::interval
 WHERE id = ANY(%s) AND dead_at IS NULL RETURNING id"""
REPORT = "UPDATE lateshift.member SET stats = %s WHERE id = %s"
BURY = "UPDATE lateshift.member SET dead_at = clock_timestamp() + %s::interval WHERE id = ANY(%s) AND dead_at IS NULL"
LEAVE = """DELETE FROM lateshift.member m WHERE m.id = ANY(%s) AND NOT EXISTS
 (SELECT 1 FROM lateshift.job j WHERE j.holder = m.id AND j.state = 2)"""


class PostgresMembers:
    """See contract.Members."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def join(self, member: MemberView, ttl: timedelta) -> None:
        skew, stats = self._clock.offset, msgspec.json.encode(member.stats)
        who = (member.id, member.name, member.kind, member.host, member.pid)
        self._database.run(lambda connection, again: connection.execute(JOIN, (*who, skew, skew, ttl, stats)))

    def beat(self, ids: Sequence[MemberId], ttl: timedelta) -> list[MemberId]:
        parameters = (self._clock.offset, ttl, list(ids))
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
