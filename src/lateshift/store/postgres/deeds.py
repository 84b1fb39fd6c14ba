"""What an operator does and the audit tells of, done and told once in PostgreSQL, also if the answer to its commit is lost."""

from datetime import timedelta

from lateshift.store.postgres.database import Connection

WRITE = """INSERT INTO lateshift.audit (at, action, subject, actor)
 VALUES (clock_timestamp() + %s::interval, %s, %s, %s) RETURNING number"""
# Primary key.
FIND = "SELECT 1 FROM lateshift.audit WHERE number = %s"


class Deed:
    """Its line of the audit has a number that no other ever has: whoever tries again finds out by it whether the try before was kept.
    One that the server still carries out is not seen yet, but holds what it changes: ask when you have that."""

    def __init__(self, action: str, subject: str, by: str) -> None:
        self._line = (action, subject, by)
        self._number: int | None = None

    def write(self, connection: Connection, skew: timedelta) -> None:
        [[self._number]] = connection.execute(WRITE, (skew, *self._line)).fetchall()

    def was_kept(self, connection: Connection) -> bool:
        return self._number is not None and bool(connection.execute(FIND, (self._number,)).fetchall())
