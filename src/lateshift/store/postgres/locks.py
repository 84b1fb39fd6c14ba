"""Locks and terms of leadership in PostgreSQL. A lock is a row whose fence only grows."""

from datetime import timedelta

from lateshift.model.ids import MemberId
from lateshift.store.contract import Grip
from lateshift.store.postgres.database import Connection, Database

_NOW = "clock_timestamp() + %(skew)s::interval"

# Free, expired or my own; the fence grows when it changes hands. Primary key.
ACQUIRE = f"""INSERT INTO lateshift.lock AS held (name, owner, fence, expires_at)
 VALUES (%(name)s, %(owner)s, 1, {_NOW} + %(ttl)s::interval)
 ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at,
 fence = held.fence + CASE WHEN held.owner = excluded.owner AND held.expires_at > {_NOW} THEN 0 ELSE 1 END
 WHERE held.owner IS NULL OR held.owner = excluded.owner OR held.expires_at <= {_NOW} RETURNING fence"""
RENEW = f"""UPDATE lateshift.lock SET expires_at = {_NOW} + %(ttl)s::interval
 WHERE name = %(name)s AND owner = %(owner)s AND fence = %(fence)s AND expires_at > {_NOW} RETURNING 1"""
RELEASE = """UPDATE lateshift.lock SET owner = NULL, expires_at = '-infinity'
 WHERE name = %s AND owner = %s AND fence = %s RETURNING 1"""

# Whether an earlier try released it, whose answer was lost. Primary key.
RELEASED = "SELECT 1 FROM lateshift.lock WHERE name = %s AND fence = %s AND owner IS NULL"
# Whether a term of the supervisor is the present one. Primary key.
TERM = "SELECT 1 FROM lateshift.lock WHERE name = 'supervisor' AND fence = %s AND owner IS NOT NULL FOR SHARE"


class PostgresLocks:
    """See contract.Locks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def acquire(self, name: str, owner: MemberId, ttl: timedelta) -> Grip | None:
        parameters = {"name": name, "owner": owner, "ttl": ttl, "skew": self._clock.offset}
        rows = self._database.run(
            lambda connection, again: connection.execute(ACQUIRE, parameters).fetchall()
        )
        return Grip(name, owner, rows[0][0]) if rows else None

    def renew(self, grip: Grip, ttl: timedelta) -> bool:
        parameters = {
            "name": grip.name, "owner": grip.owner, "fence": grip.fence, "ttl": ttl, "skew": self._clock.offset,
        }  # fmt: skip
        return bool(
            self._database.run(lambda connection, again: connection.execute(RENEW, parameters).fetchall())
        )

    def release(self, grip: Grip) -> bool:
        def work(connection: Connection, again: bool) -> bool:
            if connection.execute(RELEASE, (grip.name, grip.owner, grip.fence)).fetchall():
                return True
            return again and bool(connection.execute(RELEASED, (grip.name, grip.fence)).fetchall())

        return self._database.run(work)
