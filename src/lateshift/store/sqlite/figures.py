"""Figures in SQLite: one row for each queue and period, to which is added."""

from collections.abc import Mapping
from datetime import datetime

from lateshift.model.figures import ALL, COLUMNS, Figures, Grain, Sample, from_row, to_row, together
from lateshift.model.ids import MemberId
from lateshift.model.instants import MICROSECOND, to_instant, to_number
from lateshift.store.crashpoints import crashpoint
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.locks import TERM

_LARGEST = ("longest", "backlog")
# A member's number only grows: what was told before is not told again. Primary key.
NUMBER = "UPDATE member SET figured = ?2 WHERE id = ?1 AND figured < ?2 RETURNING 1"
# Primary key.
ADD = f"""INSERT INTO figure (grain, queue, at, {", ".join(COLUMNS)}) VALUES ({", ".join("?" * (len(COLUMNS) + 3))})
 ON CONFLICT (grain, queue, at) DO UPDATE SET {", ".join(f"{it} = max({it}, excluded.{it})" if it in _LARGEST else f"{it} = {it} + excluded.{it}" for it in COLUMNS)}"""
# Whether this minute was sampled: then somebody was there. Primary key.
SAMPLED = "SELECT 1 FROM figure WHERE grain = ? AND queue = ? AND at = ? AND sampled = 1"
# Of the periods since. Primary key.
SAMPLED_SINCE = "SELECT at FROM figure WHERE grain = ? AND queue = ? AND at >= ? AND sampled = 1"
MARK = "UPDATE figure SET sampled = 1 WHERE grain = ? AND queue = ? AND at = ?"
# Primary key.
OF = f"SELECT at, {', '.join(COLUMNS)} FROM figure WHERE grain = ? AND queue = ? AND at >= ? ORDER BY at"
# From one queue to the next: as many rows as there are queues and periods. figure_at.
_TOTALS = ", ".join(f"max({it})" if it in _LARGEST else f"sum({it})" for it in COLUMNS)
BY_QUEUE = f"""SELECT queue, {_TOTALS} FROM figure WHERE grain = ? AND at >= ? AND queue <> ?
 GROUP BY queue ORDER BY sum(ran) DESC, queue LIMIT ?"""
# figure_at.
PURGE_FIGURES = """DELETE FROM figure WHERE (grain, queue, at) IN
 (SELECT grain, queue, at FROM figure WHERE grain = ? AND at < ? LIMIT ?)"""


class SqliteFigures:
    """See figure_contract.FigureBook."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = database.clock

    def add(self, member: MemberId, number: int, counted: Mapping[str, Figures], *, busy: float) -> bool:
        with self._database.write() as connection:
            if not connection.execute(NUMBER, (member.bytes, number)).fetchall():
                return False
            put(connection, self._clock.microseconds(), counted, Figures(busy=busy))
            return True

    def sample(self, *, term: int | None, backlog: Mapping[str, int], workers: int) -> bool:
        with self._database.write() as connection:
            if term is not None and not connection.execute(TERM, (term,)).fetchall():
                return False
            now = self._clock.microseconds()
            minute = (Grain.MINUTE.seconds, ALL, _begins(Grain.MINUTE, now))
            if connection.execute(SAMPLED, minute).fetchall():
                return False
            waiting = {queue: Figures(backlog=count) for queue, count in backlog.items() if count}
            present = Figures(
                present=workers * Grain.MINUTE.step.total_seconds(), backlog=sum(backlog.values())
            )
            put(connection, now, waiting, present)
            for grain in Grain:
                connection.execute(MARK, (grain.seconds, ALL, _begins(grain, now)))
            return True

    def sampled(self, grain: Grain, since: datetime) -> set[datetime]:
        with self._database.read() as connection:
            rows = connection.execute(SAMPLED_SINCE, (grain.seconds, ALL, to_number(since))).fetchall()
        return {to_instant(at) for (at,) in rows}

    def of(self, queue: str, grain: Grain, since: datetime) -> list[Sample]:
        with self._database.read() as connection:
            rows = connection.execute(OF, (grain.seconds, queue, to_number(since))).fetchall()
        return [Sample(to_instant(at), from_row(row)) for at, *row in rows]

    def by_queue(self, grain: Grain, since: datetime, limit: int) -> dict[str, Figures]:
        with self._database.read() as connection:
            rows = connection.execute(BY_QUEUE, (grain.seconds, to_number(since), ALL, limit)).fetchall()
        return {queue: from_row(row) for queue, *row in rows}


def put(
    connection: Connection, now: int, counted: Mapping[str, Figures], besides: Figures | None = None
) -> None:
    """In the caller's transaction: of each queue, and the sum with what is of no one queue."""
    if not counted and besides is None:
        return
    total = together([*counted.values(), besides or Figures()])
    total.backlog = 0 if besides is None else besides.backlog
    rows = [(queue, to_row(figures)) for queue, figures in [*counted.items(), (ALL, total)]]
    for grain in Grain:
        crashpoint("figures.before_grain")
        at = _begins(grain, now)
        connection.executemany(ADD, [(grain.seconds, queue, at, *row) for queue, row in rows])


def purge(connection: Connection, now: int, limit: int) -> None:
    for grain in Grain:
        connection.execute(PURGE_FIGURES, (grain.seconds, now - grain.kept // MICROSECOND, limit))


def _begins(grain: Grain, now: int) -> int:
    return now - now % (grain.step // MICROSECOND)
