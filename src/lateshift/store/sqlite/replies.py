"""The events of jobs in SQLite: told in the transaction that makes them true, then sent on. How a job moves is told by triggers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import apsw

from lateshift.model.events import Kind, Told
from lateshift.model.instants import MICROSECOND, to_instant
from lateshift.model.triggering.naming import ALERTS
from lateshift.store.contract import COUNT_LIMIT, Wakes
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.reply_contract import Published
from lateshift.store.replying import EVENTS_KEPT, Refused, Sent, halving, is_fault_of_event, sent, set_aside
from lateshift.store.sqlite import enqueue
from lateshift.store.sqlite.blocks import blocks
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.queues import concealed

AT_ONCE = 50  # jobs that are looked at with one statement

TERM = "SELECT 1 FROM lock WHERE name = 'courier' AND fence = ? AND owner IS NOT NULL"

# That this job is about to end, if it has a reply: it stands in both tables only while it is moved. Primary keys.
TELL_ENDED = """INSERT INTO outbox (job, kind, queue, task, attempt, at, history, result, reason, reply)
 SELECT id, state, queue, task, attempt, settled_at, history, result, reason, reply FROM settled
 WHERE id = ?1 AND reply IS NOT NULL AND EXISTS (SELECT 1 FROM job WHERE id = ?1)"""
# Which of these jobs have a reply, as most have none. Primary key.
WITH_REPLY = f"SELECT id FROM job WHERE id IN ({', '.join('?' * AT_ONCE)}) AND reply IS NOT NULL"
ANY = "SELECT 1 FROM outbox LIMIT 1"
# The oldest. Primary key.
TAKE = """DELETE FROM outbox WHERE number IN (SELECT number FROM outbox ORDER BY number LIMIT ?)
 RETURNING number, job, kind, queue, task, attempt, at, progress, history, result, reason, reply"""
# The tasks that hear alerts. Triggers are few.
HEARERS = f"SELECT DISTINCT task FROM trigger WHERE about GLOB '{ALERTS}*' AND removed_at IS NULL"
# Primary key.
WAITING = "SELECT count(*), min(at) FROM (SELECT at FROM outbox ORDER BY number LIMIT ?)"
PUBLISH = "INSERT INTO event (channel, queue, told, expires_at) VALUES (?, ?, ?, ?)"
# Primary key. What has passed its time may not be purged yet.
PUBLISHED = "SELECT number, channel, queue, told FROM event WHERE number > ? AND expires_at > ? ORDER BY number LIMIT ?"
# As many as tell no more than so many bytes together, and the first one in any case. What they tell is read of these alone. Primary key.
PUBLISHED_WITHIN = """SELECT number, channel, queue, told FROM event WHERE number IN (
 SELECT number FROM (SELECT number, sum(size) OVER (ORDER BY number) AS so_far, row_number() OVER (ORDER BY number) AS place
  FROM (SELECT number, length(told) AS size FROM event WHERE number > ?1 AND expires_at > ?2 ORDER BY number LIMIT ?3))
 WHERE so_far <= ?4 OR place = 1) ORDER BY number"""
NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'event'"
# event_expires.
PURGE_EVENTS = "DELETE FROM event WHERE number IN (SELECT number FROM event WHERE expires_at <= ? LIMIT ?)"


REFUSED = (apsw.ConstraintError, apsw.MismatchError, apsw.TooBigError)


def tell_ended(connection: Connection, ids: Sequence[Any]) -> None:
    """After these jobs were copied to the settled, before they are deleted. In the order in which they ended."""
    if len(ids) == 1:
        connection.execute(TELL_ENDED, (ids[0],))
        return
    found = {
        id for block in blocks(ids, AT_ONCE) for (id,) in connection.execute(WITH_REPLY, block).fetchall()
    }
    if found:
        connection.executemany(TELL_ENDED, [(id,) for id in ids if id in found])


class SqliteReplies:
    """See reply_contract.Replies."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def forward(self, *, term: int, limit: int) -> int:
        with self._database.read() as connection:
            if not connection.execute(ANY).fetchall():
                return 0
        return halving(lambda most: self._send(term, most), limit)

    def _send(self, term: int, limit: int) -> int:
        with self._database.write() as connection:
            if not connection.execute(TERM, (term,)).fetchall():
                return 0
            rows = sorted(connection.execute(TAKE, (limit,)).fetchall(), key=lambda row: row[0])
            made = self._make(connection, rows)
            crashpoint("courier.before_commit")
        crashpoint("courier.after_commit")
        self._wakes.hint(lines_of(made.jobs))
        return len(rows)

    def _make(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> Sent:
        """Nothing of an event that is alone and refused; it is gone all the same."""
        connection.execute("SAVEPOINT made")
        try:
            now = self._clock.microseconds()
            made = sent(
                [_told(row) for row in rows], to_instant(now), concealed(connection), hearers(connection)
            )
            enqueue.run(connection, enqueue.statements(made.jobs, now))
            until = now + EVENTS_KEPT // MICROSECOND
            connection.executemany(PUBLISH, [(*message, until) for message in made.published])
        except Exception as error:
            if not is_fault_of_event(error, said=apsw.Error, refused=REFUSED):
                raise
            if len(rows) > 1:
                raise Refused from error
            connection.execute("ROLLBACK TO made")
            number, job, *_ = rows[0]
            set_aside(number, UUID(bytes=job), error)
            made = Sent([], [])
        connection.execute("RELEASE made")
        return made

    def waiting(self) -> tuple[int, datetime | None]:
        with self._database.read() as connection:
            [(count, oldest)] = connection.execute(WAITING, (COUNT_LIMIT,)).fetchall()
        return count, None if oldest is None else to_instant(oldest)

    def published(self, after: int, limit: int, *, most: int | None = None) -> list[Published]:
        asked: tuple[str, tuple[int, ...]] = PUBLISHED, (after, self._clock.microseconds(), limit)
        if most is not None:
            asked = PUBLISHED_WITHIN, (*asked[1], most)
        with self._database.read() as connection:
            return [Published(*found) for found in connection.execute(*asked).fetchall()]

    def newest(self) -> int:
        with self._database.read() as connection:
            rows = connection.execute(NEWEST).fetchall()
        return int(rows[0][0]) if rows else 0


def hearers(connection: Connection) -> frozenset[str]:
    return frozenset(task for (task,) in connection.execute(HEARERS).fetchall())


def _told(row: tuple[Any, ...]) -> Told:
    number, job, kind, queue, task, attempt, at, *rest = row
    progress, history, result, reason, reply = rest
    return Told(
        number=number, job=UUID(bytes=job), kind=Kind(kind), queue=queue, task=task, attempt=attempt,
        at=None if at is None else to_instant(at), progress=progress, history=history, result=result, reason=reason,
        reply=reply,
    )  # fmt: skip
