"""Figures in PostgreSQL: one row for each queue and period, to which is added."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from psycopg import Rollback

from lateshift.model.figures import ALL, COLUMNS, Figures, Grain, Sample, from_row, to_row, together
from lateshift.model.ids import MemberId
from lateshift.store.crashpoints import crashpoint
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.locks import TERM

_LARGEST = ("longest", "backlog")
NOW = "SELECT clock_timestamp() + %s::interval"
# A member's number only grows: what was told before is not told again. Primary key.
NUMBER = (
    "UPDATE lateshift.member SET figured = %(number)s WHERE id = %(id)s AND figured < %(number)s RETURNING 1"
)
# Primary key.
ADD = f"""INSERT INTO lateshift.figure AS f (grain, queue, at, {", ".join(COLUMNS)}) VALUES ({", ".join(["%s"] * (len(COLUMNS) + 3))})
 ON CONFLICT (grain, queue, at) DO UPDATE SET {", ".join(f"{it} = greatest(f.{it}, excluded.{it})" if it in _LARGEST else f"{it} = f.{it} + excluded.{it}" for it in COLUMNS)}"""
# Whether this minute was sampled: then somebody was there. Primary key.
SAMPLED = "SELECT 1 FROM lateshift.figure WHERE grain = %s AND queue = %s AND at = %s AND sampled"
# Of the periods since. Primary key.
SAMPLED_SINCE = "SELECT at FROM lateshift.figure WHERE grain = %s AND queue = %s AND at >= %s AND sampled"
# By one alone, of several that sample at once. Primary key.
MARK = "UPDATE lateshift.figure SET sampled = true WHERE grain = %s AND queue = %s AND at = %s AND NOT sampled RETURNING 1"
# Primary key.
OF = f"SELECT at, {', '.join(COLUMNS)} FROM lateshift.figure WHERE grain = %s AND queue = %s AND at >= %s ORDER BY at"
# As many rows as there are queues and periods. figure_at.
_TOTALS = ", ".join(f"max({it})" if it in _LARGEST else f"sum({it})" for it in COLUMNS)
BY_QUEUE = f"""SELECT queue, {_TOTALS} FROM lateshift.figure WHERE grain = %s AND at >= %s AND queue <> %s
 GROUP BY queue ORDER BY sum(ran) DESC, queue LIMIT %s"""
# figure_at.
PURGE_FIGURES = """DELETE FROM lateshift.figure WHERE ctid = ANY(ARRAY(SELECT ctid FROM lateshift.figure
 WHERE grain = %s AND at < (SELECT clock_timestamp() + %s::interval - %s::interval) LIMIT %s))"""


class PostgresFigures:
    """See figure_contract.FigureBook."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def add(self, member: MemberId, number: int, counted: Mapping[str, Figures], *, busy: float) -> bool:
        def work(connection: Connection, again: bool) -> bool:
            with connection.transaction():
                if not connection.execute(NUMBER, {"id": member, "number": number}).fetchall():
                    return False
                put(connection, now_of(connection, self._clock.offset), counted, Figures(busy=busy))
                return True

        return self._database.run(work)

    def sample(self, *, term: int | None, backlog: Mapping[str, int], workers: int) -> bool:
        def work(connection: Connection, again: bool) -> bool:
            told = False
            with connection.transaction() as transaction:
                if term is not None and not connection.execute(TERM, (term,)).fetchall():
                    return False
                now = now_of(connection, self._clock.offset)
                minute = (Grain.MINUTE.seconds, ALL, Grain.MINUTE.begins(now))
                if connection.execute(SAMPLED, minute).fetchall():
                    return False
                waiting = {queue: Figures(backlog=count) for queue, count in backlog.items() if count}
                seconds = workers * Grain.MINUTE.step.total_seconds()
                put(connection, now, waiting, Figures(present=seconds, backlog=sum(backlog.values())))
                told = bool(connection.execute(MARK, minute).fetchall())
                if not told:
                    raise Rollback(transaction)
                for grain in Grain:
                    connection.execute(MARK, (grain.seconds, ALL, grain.begins(now)))
            return told

        return self._database.run(work)

    def sampled(self, grain: Grain, since: datetime) -> set[datetime]:
        parameters = (grain.seconds, ALL, since)
        rows = self._database.run(
            lambda connection, again: connection.execute(SAMPLED_SINCE, parameters).fetchall()
        )
        return {at for (at,) in rows}

    def of(self, queue: str, grain: Grain, since: datetime) -> list[Sample]:
        parameters = (grain.seconds, queue, since)
        rows = self._database.run(lambda connection, again: connection.execute(OF, parameters).fetchall())
        return [Sample(at, from_row(row)) for at, *row in rows]

    def by_queue(self, grain: Grain, since: datetime, limit: int) -> dict[str, Figures]:
        parameters = (grain.seconds, since, ALL, limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(BY_QUEUE, parameters).fetchall()
        )
        return {queue: from_row(row) for queue, *row in rows}


def put(
    connection: Connection, now: datetime, counted: Mapping[str, Figures], besides: Figures | None = None
) -> None:
    """In the caller's transaction: of each queue, and the sum with what is of no one queue. Always in one order: no deadlocks."""
    if not counted and besides is None:
        return
    total = together([*counted.values(), besides or Figures()])
    total.backlog = 0 if besides is None else besides.backlog
    rows = [(queue, to_row(figures)) for queue, figures in [*sorted(counted.items()), (ALL, total)]]
    with connection.pipeline():
        for grain in Grain:
            crashpoint("figures.before_grain")
            at = grain.begins(now)
            for queue, row in rows:
                connection.execute(ADD, (grain.seconds, queue, at, *row))


def now_of(connection: Connection, skew: timedelta) -> datetime:
    [[now]] = connection.execute(NOW, (skew,)).fetchall()
    found: datetime = now
    return found


def purge(connection: Connection, skew: timedelta, limit: int) -> int:
    return sum(
        connection.execute(PURGE_FIGURES, (grain.seconds, skew, grain.kept, limit)).rowcount
        for grain in Grain
    )
