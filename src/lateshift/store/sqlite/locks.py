"""Locks and terms of leadership in SQLite. A lock is a row whose fence only grows."""

from datetime import timedelta

from lateshift.model.ids import MemberId
from lateshift.store.contract import Grip
from lateshift.store.sqlite.database import Database

# Free, expired or my own; the fence grows when it changes hands. Primary key.
ACQUIRE = """INSERT INTO lock (name, owner, fence, expires_at) VALUES (?1, ?2, 1, ?3)
 ON CONFLICT (name) DO UPDATE SET owner = ?2, expires_at = ?3,
 fence = fence + (owner IS NOT ?2 OR expires_at <= ?4)
 WHERE owner IS NULL OR owner = ?2 OR expires_at <= ?4 RETURNING fence"""
RENEW = """UPDATE lock SET expires_at = ?1 WHERE name = ?2 AND owner = ?3 AND fence = ?4 AND expires_at > ?5 RETURNING 1"""
RELEASE = (
    "UPDATE lock SET owner = NULL, expires_at = 0 WHERE name = ? AND owner = ? AND fence = ? RETURNING 1"
)
# Whether a term of the supervisor is the present one. Primary key.
TERM = "SELECT 1 FROM lock WHERE name = 'supervisor' AND fence = ? AND owner IS NOT NULL"


class SqliteLocks:
    """See contract.Locks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def acquire(self, name: str, owner: MemberId, ttl: timedelta) -> Grip | None:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            row = (name, owner.bytes, now + ttl // timedelta(microseconds=1), now)
            taken = connection.execute(ACQUIRE, row).fetchall()
        return Grip(name, owner, taken[0][0]) if taken else None

    def renew(self, grip: Grip, ttl: timedelta) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            row = (now + ttl // timedelta(microseconds=1), grip.name, grip.owner.bytes, grip.fence, now)
            return bool(connection.execute(RENEW, row).fetchall())

    def release(self, grip: Grip) -> bool:
        with self._database.write() as connection:
            return bool(connection.execute(RELEASE, (grip.name, grip.owner.bytes, grip.fence)).fetchall())
