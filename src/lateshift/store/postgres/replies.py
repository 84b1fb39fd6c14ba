"""The events of jobs in PostgreSQL: told by triggers, in the transaction that makes them true, then sent on."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg import errors as pg

from lateshift.model.events import Kind, Told
from lateshift.model.job import NewJob
from lateshift.model.triggering.naming import ALERTS
from lateshift.store.contract import COUNT_LIMIT
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.postgres import enqueue
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.queues import concealed
from lateshift.store.postgres.wakes import NotifyWakes
from lateshift.store.reply_contract import Published
from lateshift.store.replying import EVENTS_KEPT, Refused, Sent, halving, is_fault_of_event, sent, set_aside

# Shared with nobody: whoever would take the term over waits for the commit. So numbers appear in their order.
TERM = "SELECT 1 FROM lateshift.lock WHERE name = 'courier' AND fence = %s AND owner IS NOT NULL FOR UPDATE"
ANY = "SELECT 1 FROM lateshift.outbox LIMIT 1"
# The oldest. Progress is also deleted by whoever writes newer, in the order of jobs: so it is held in that order first, whatever its
# numbers, and nobody waits in a circle. Primary key.
TAKE = """WITH oldest AS MATERIALIZED (SELECT number, kind FROM lateshift.outbox ORDER BY number LIMIT %s),
held AS MATERIALIZED (SELECT number FROM lateshift.outbox
 WHERE number = ANY(ARRAY(SELECT number FROM oldest WHERE kind = 2)) ORDER BY job FOR UPDATE)
DELETE FROM lateshift.outbox
 WHERE number = ANY(ARRAY(SELECT number FROM oldest WHERE kind <> 2 UNION ALL SELECT number FROM held))
 RETURNING number, job, kind, queue, task, attempt, at, progress, history, result, reason, reply"""
# The tasks that hear alerts. Triggers are few.
HEARERS = (
    f"SELECT DISTINCT task FROM lateshift.trigger WHERE starts_with(about, '{ALERTS}') AND removed_at IS NULL"
)
# Primary key.
WAITING = "SELECT count(*), min(at) FROM (SELECT at FROM lateshift.outbox ORDER BY number LIMIT %s) AS oldest"
PUBLISH = """INSERT INTO lateshift.event (channel, queue, told, expires_at)
 SELECT channel, queue, told, clock_timestamp() + %s::interval
 FROM unnest(%s::text[], %s::text[], %s::bytea[]) WITH ORDINALITY AS new (channel, queue, told, place) ORDER BY place"""
# Primary key. The newest may have stayed after its time.
PUBLISHED = """SELECT number, channel, queue, told FROM lateshift.event
 WHERE number > %s AND expires_at > clock_timestamp() + %s::interval ORDER BY number LIMIT %s"""
# As many as tell no more than so many bytes together, and the first one in any case. What they tell is read of these alone. Primary key.
PUBLISHED_WITHIN = """SELECT number, channel, queue, told FROM lateshift.event WHERE number = ANY(ARRAY(
 SELECT number FROM (SELECT number, sum(size) OVER (ORDER BY number) AS so_far, row_number() OVER (ORDER BY number) AS place
  FROM (SELECT number, octet_length(told) AS size FROM lateshift.event
   WHERE number > %s AND expires_at > clock_timestamp() + %s::interval ORDER BY number LIMIT %s) sized) summed
 WHERE so_far <= %s OR place = 1)) ORDER BY number"""
# Primary key. Not the sequence, which has counted what is not committed.
NEWEST = "SELECT coalesce(max(number), 0) FROM lateshift.event"
# event_expires. The newest stays until there is a newer one, so that its number is known.
PURGE_EVENTS = """DELETE FROM lateshift.event WHERE number = ANY(ARRAY(
 SELECT number FROM lateshift.event WHERE expires_at <= clock_timestamp() + %(skew)s::interval
 AND number < (SELECT max(number) FROM lateshift.event) LIMIT %(limit)s))"""


REFUSED = (psycopg.DataError, psycopg.IntegrityError, pg.ProgramLimitExceeded)


class PostgresReplies:
    """See reply_contract.Replies."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def forward(self, *, term: int, limit: int) -> int:
        count, jobs = self._database.run(self._forward, term, limit)
        self._wakes.hint(lines_of(jobs))
        return count

    def _forward(
        self, connection: Connection, again: bool, term: int, limit: int
    ) -> tuple[int, Sequence[NewJob]]:
        if not connection.execute(ANY).fetchall():
            return 0, []
        return halving(lambda most: self._send(connection, term, most), limit)

    def _send(self, connection: Connection, term: int, limit: int) -> tuple[int, Sequence[NewJob]]:
        with connection.transaction():
            if not connection.execute(TERM, (term,)).fetchall():
                return 0, []
            rows = sorted(connection.execute(TAKE, (limit,)).fetchall(), key=lambda row: row[0])
            made = self._make(connection, rows)
            crashpoint("courier.before_commit")
        crashpoint("courier.after_commit")
        return len(rows), made.jobs

    def _make(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> Sent:
        """Nothing of an event that is alone and refused; it is gone all the same."""
        try:
            with connection.transaction():
                made = sent(
                    [_told(row) for row in rows],
                    self._clock.now(),
                    concealed(connection),
                    hearers(connection),
                )
                if made.jobs:
                    enqueue.run(connection, enqueue.statements(made.jobs, self._clock.offset))
                if made.published:
                    columns = [list(column) for column in zip(*made.published, strict=True)]
                    connection.execute(PUBLISH, (EVENTS_KEPT + self._clock.offset, *columns))
                return made
        except Exception as error:
            if not is_fault_of_event(error, said=psycopg.Error, refused=REFUSED):
                raise
            if len(rows) > 1:
                raise Refused from error
            number, job, *_ = rows[0]
            set_aside(number, job, error)
            return Sent([], [])

    def waiting(self) -> tuple[int, datetime | None]:
        def look(connection: Connection, again: bool) -> tuple[int, datetime | None]:
            [(count, oldest)] = connection.execute(WAITING, (COUNT_LIMIT,)).fetchall()
            return count, oldest

        return self._database.run(look)

    def published(self, after: int, limit: int, *, most: int | None = None) -> list[Published]:
        asked: tuple[Any, ...] = (after, self._clock.offset, limit)
        sql = PUBLISHED
        if most is not None:
            sql, asked = PUBLISHED_WITHIN, (*asked, most)

        def look(connection: Connection, again: bool) -> list[Published]:
            return [Published(*row) for row in connection.execute(sql, asked).fetchall()]

        return self._database.run(look)

    def newest(self) -> int:
        def look(connection: Connection, again: bool) -> int:
            return int(connection.execute(NEWEST).fetchall()[0][0])

        return self._database.run(look)


def hearers(connection: Connection) -> frozenset[str]:
    return frozenset(task for (task,) in connection.execute(HEARERS).fetchall())


def _told(row: tuple[Any, ...]) -> Told:
    number, job, kind, queue, task, attempt, at, progress, history, result, reason, reply = row
    return Told(
        number=number, job=job, kind=Kind(kind), queue=queue, task=task, attempt=attempt, at=at, progress=progress,
        history=history, result=result, reason=reason, reply=reply,
    )  # fmt: skip
