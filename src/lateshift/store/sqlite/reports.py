"""Reading for people and callers, in SQLite. Nothing is decided from these."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from lateshift.model import history, saying
from lateshift.model.discard import Kept
from lateshift.model.explaining.facts import MEMBERS_LOOKED_AT, Facts
from lateshift.model.ids import JobId, MemberId
from lateshift.model.instants import to_instant, to_number
from lateshift.model.job import AttemptRecord, JobFilter, JobView, State
from lateshift.model.member import Loops, MemberView, Program, Serves
from lateshift.model.sealed import slim
from lateshift.model.search import Found, argument_parts, error_part
from lateshift.model.watching import bare
from lateshift.store import searching
from lateshift.store.contract import ENDINGS_LOOKED_AT
from lateshift.store.marks import Kin
from lateshift.store.searching import Choice, Source
from lateshift.store.sqlite import discarding, explaining, listing, marks
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.listing import COLD, HOT, HOT_JOBS

# One job, wherever it stands. Primary keys.
JOB = f"SELECT {HOT} FROM job WHERE id = ?1 UNION ALL SELECT {COLD} FROM settled WHERE id = ?1"
# The same, slim. Primary keys.
SLIM_JOB = listing.slim(JOB)
# The same with its whole history, for what events tell. Primary keys.
WATCHED = SLIM_JOB.replace(listing.END, "history")
# Its history. Primary keys.
HISTORY = "SELECT history FROM job WHERE id = ?1 UNION ALL SELECT history FROM settled WHERE id = ?1"
# Ids that begin so, wherever they stand. Primary keys.
BEGINNING = """SELECT id FROM job WHERE id BETWEEN ?1 AND ?2
 UNION ALL SELECT id FROM settled WHERE id BETWEEN ?1 AND ?2 LIMIT ?3"""
# Ids that end so, among the newest of each kind. Primary keys, job_running, settled_dead.
ENDING = """SELECT id FROM (
  SELECT * FROM (SELECT id FROM job WHERE id < ?1 ORDER BY id DESC LIMIT ?2)
  UNION SELECT * FROM (SELECT id FROM job WHERE state = 2 LIMIT ?2)
  UNION SELECT * FROM (SELECT id FROM settled WHERE id < ?1 ORDER BY id DESC LIMIT ?2)
  UNION SELECT * FROM (SELECT id FROM settled WHERE state = 6 AND id < ?1 ORDER BY id DESC LIMIT ?2))
 WHERE substr(lower(hex(id)), -length(?3)) = ?3 LIMIT ?4"""
# job_running
RUNNING = f"SELECT {HOT} FROM job WHERE state = 2 LIMIT ?"
# Not those that wait for another try; slim. job_scheduled.
UPCOMING = f"""SELECT {listing.SLIM_HOT} FROM job WHERE state = 0 AND fence = 0 AND blocked_by IS NULL AND (due_at, id) > (?, ?)
 ORDER BY due_at, id LIMIT ?"""
_MEMBERS = """SELECT id, name, kind, host, pid, started_at, expires_at, dead_at IS NOT NULL OR expires_at <= ?, stats,
 serves, loops FROM member"""
MEMBERS = f"{_MEMBERS} ORDER BY started_at"
MEMBERS_AFTER = f"{_MEMBERS} WHERE (started_at, id) > (?, ?) ORDER BY started_at, id LIMIT ?"
MEMBERS_ALIVE_FIRST = f"{_MEMBERS} ORDER BY dead_at IS NOT NULL, expires_at DESC LIMIT ?"

Row: TypeAlias = tuple[Any, ...]
Seen: TypeAlias = Callable[[Connection, Row], JobView]

_serves = msgspec.json.Decoder(Serves)
_loops = msgspec.json.Decoder(Loops)
_tags = msgspec.json.Decoder(list[str])
_LAST = b"\xff" * 16


class SqliteReports:
    """See contract.Reports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def job(self, id: JobId) -> JobView | None:
        with self._database.read() as connection:
            rows = connection.execute(JOB, (id.bytes,)).fetchall()
        return view_of(rows[0]) if rows else None

    def named(self, ids: Sequence[JobId], *, whole: bool = True) -> list[JobView | None]:
        return self._each(JOB, ids, _whole) if whole else self._each(SLIM_JOB, ids, _slim)

    def watched(self, ids: Sequence[JobId]) -> list[JobView | None]:
        return self._each(WATCHED, ids, lambda connection, row: bare(view_of(row)))

    def _each(self, sql: str, ids: Sequence[JobId], seen: Seen) -> list[JobView | None]:
        with self._database.read() as connection:
            found = [_views(connection, sql, (id.bytes,), seen) for id in ids]
        return [views[0] if views else None for views in found]

    def jobs(self, wanted: JobFilter, limit: int, *, whole: bool = True) -> list[JobView]:
        return searching.all_of(self.search, wanted, limit, whole=whole)

    def search(self, wanted: JobFilter, limit: int, *, whole: bool = True) -> Found:
        with self._database.read() as connection:
            keyed = None
            if wanted.key is not None:
                rows = connection.execute(listing.KEYED, (wanted.key,)).fetchall()
                keyed = [UUID(bytes=id) for (id,) in rows]

            def many(name: str) -> bool:
                row = _bound(wanted, *searching.bounds(wanted), 1)
                return bool(
                    connection.execute(
                        getattr(listing, name), row[: 7 if name == "MANY_OF_SESSION" else 8]
                    ).fetchall()[0][0]
                )

            parts = searching.parts(wanted, many, lambda first, most: _of_dead(connection, first, most))
            sources = [_source(connection, each, choice, whole) for each, choice in parts]
            return searching.search(sources, wanted, limit, self._database.clock.monotonic, keyed)

    def count_dead(self, most: int) -> tuple[int, bool]:
        with self._database.read() as connection:
            [(there, count)] = connection.execute(listing.COUNT_DEAD, (most,)).fetchall()
        return count, there == most

    def of_dead(self, most: int) -> list[tuple[str, str]]:
        with self._database.read() as connection:
            return _of_dead(connection, "", most)

    def kept(self, ids: Sequence[JobId]) -> dict[JobId, Kept]:
        return discarding.kept(self._database, ids)

    def kin(self, id: JobId, limit: int) -> Kin:
        with self._database.read() as connection:
            return marks.kin(connection, id, limit)

    def unsettled(self, before: JobId | None, limit: int) -> list[JobView]:
        row = _bound(JobFilter(), before or searching.HIGHEST, searching.LOWEST, limit)
        with self._database.read() as connection:
            return [view_of(row) for row in connection.execute(HOT_JOBS, row).fetchall()]

    def running(self, limit: int) -> list[JobView]:
        with self._database.read() as connection:
            return [view_of(row) for row in connection.execute(RUNNING, (limit,)).fetchall()]

    def upcoming(self, limit: int, after: tuple[datetime, JobId] | None = None) -> list[JobView]:
        at, id = (0, b"") if after is None else (to_number(after[0]), after[1].bytes)
        with self._database.read() as connection:
            return _views(connection, UPCOMING, (at, id, limit), _slim)

    def find(self, digits: str, limit: int) -> list[JobId]:
        low, high = bytes.fromhex(digits.ljust(32, "0")), bytes.fromhex(digits.ljust(32, "f"))
        with self._database.read() as connection:
            rows = connection.execute(BEGINNING, (low, high, limit)).fetchall()
            rows += connection.execute(ENDING, (_LAST, ENDINGS_LOOKED_AT, digits, limit)).fetchall()
        return [UUID(bytes=id) for id in sorted({bytes(id) for (id,) in rows}, reverse=True)[:limit]]

    def members(self, limit: int | None = None) -> list[MemberView]:
        now = self._database.clock.microseconds()
        with self._database.read() as connection:
            if limit is None:
                rows = connection.execute(MEMBERS, (now,)).fetchall()
            else:
                rows = connection.execute(MEMBERS_ALIVE_FIRST, (now, limit)).fetchall()
        return [_member(row) for row in rows]

    def members_after(self, after: tuple[datetime, MemberId] | None, limit: int) -> list[MemberView]:
        at, id = (0, b"") if after is None else (to_number(after[0]), after[1].bytes)
        with self._database.read() as connection:
            told = (self._database.clock.microseconds(), at, id, limit)
            return [_member(row) for row in connection.execute(MEMBERS_AFTER, told).fetchall()]

    def programs(self) -> list[Program]:
        with self._database.read() as connection:
            return [*explaining.programs(connection, self._database.clock.microseconds()).values()]

    def facts(self, id: JobId) -> Facts | None:
        with self._database.snapshot() as connection:
            rows = connection.execute(JOB, (id.bytes,)).fetchall()
            if not rows:
                return None
            now = self._database.clock.microseconds()
            members = connection.execute(MEMBERS_ALIVE_FIRST, (now, MEMBERS_LOOKED_AT)).fetchall()
            return explaining.gather(connection, view_of(rows[0]), [_member(row) for row in members], now)


def _of_dead(connection: Connection, first: str, most: int) -> list[tuple[str, str]]:
    """Queues and tasks that have dead letters, from this queue on."""
    found: list[tuple[str, str]] = []
    after = (first, "")
    while len(found) < most:
        rows = connection.execute(listing.NEXT_TASK_OF_DEAD, after).fetchall()
        rows = rows or connection.execute(listing.NEXT_QUEUE_OF_DEAD, after[:1]).fetchall()
        if not rows:
            break
        [after] = rows
        found.append(after)
    return found


def _source(connection: Connection, wanted: JobFilter, choice: Choice, whole: bool) -> Source:
    def page(above: JobId, lowest: JobId, limit: int) -> list[JobView]:
        row = _bound(wanted, above, lowest, limit)
        sql = getattr(listing, choice.page)
        if whole:
            return _views(connection, sql, row, _whole)
        return _views(connection, listing.slim(sql), row, _slim)

    def floor(above: JobId, lowest: JobId, count: int) -> JobId | None:
        of = wanted.tag if wanted.tag is not None else None if wanted.batch is None else wanted.batch.bytes
        row: tuple[Any, ...] = (above.bytes, lowest.bytes, count, of)
        sql = getattr(listing, str(choice.floor))
        if "?5" in sql:
            row = (*row[:3], wanted.queue, wanted.task)
        rows = connection.execute(sql, row if "?4" in sql else row[:3]).fetchall()
        return UUID(bytes=rows[0][0]) if rows else None

    return Source(None if choice.floor is None else floor, page)


def _bound(wanted: JobFilter, above: JobId, lowest: JobId, limit: int) -> tuple[Any, ...]:
    state = None if wanted.state is None else int(wanted.state)
    batch = None if wanted.batch is None else wanted.batch.bytes
    return (
        above.bytes, wanted.queue, wanted.task, state, limit, wanted.reason, wanted.session, wanted.tenant, batch, lowest.bytes,
        *argument_parts(wanted.argument), error_part(wanted.error), *([wanted.tag] if wanted.tag is not None else []),
    )  # fmt: skip


def _views(connection: Connection, sql: str, row: Row, seen: Seen) -> list[JobView]:
    return [seen(connection, found) for found in connection.execute(sql, row)]


def _whole(connection: Connection, row: Row) -> JobView:
    return view_of(row)


def _slim(connection: Connection, row: Row) -> JobView:
    records = history.at_end(row[21])
    if records is None:
        kept = connection.execute(HISTORY, (row[0],)).fetchall()
        records = history.read(kept[0][0] if kept else None)
    return slim(view_of(row, records))


def view_of(row: Row, records: list[AttemptRecord] | None = None) -> JobView:
    """`records`: its history, if that is not all in the row."""
    progress, said = saying.read(row[19])
    return JobView(
        id=UUID(bytes=row[0]), task=row[1], queue=row[2], state=State(row[3]), priority=row[4], attempt=row[5],
        attempts=row[6], fence=row[7], losses=row[8], created_at=to_instant(row[9]), due_at=to_instant(row[10]),
        started_at=_time(row[11]), complete_by=_time(row[12]), settled_at=_time(row[13]),
        holder=UUID(bytes=row[14]) if row[14] else None, cancel_requested=bool(row[15]), payload=row[16],
        result=row[17], reason=row[18], progress=progress, checkpoint=row[20],
        history=history.read(row[21]) if records is None else records, exclusive=row[22],
        batch=None if row[23] is None else UUID(bytes=row[23]), session=row[24], sequence=row[25], tenant=row[26],
        limit_key=row[27], tags=tuple(_tags.decode(row[28])), parent=None if row[29] is None else UUID(bytes=row[29]),
        said=said, sensitive=bool(row[30]),
    )  # fmt: skip


def _time(value: int | None) -> datetime | None:
    return None if value is None else to_instant(value)


def _member(row: tuple[Any, ...]) -> MemberView:
    id, name, kind, host, pid, started, expires, dead, stats, serves, loops = row
    return MemberView(
        id=UUID(bytes=id), name=name, kind=kind, host=host, pid=pid, started_at=to_instant(started),
        expires_at=to_instant(expires), dead=bool(dead), stats=msgspec.json.decode(stats),
        serves=_serves.decode(serves) if serves else None, loops=_loops.decode(loops) if loops else {},
    )  # fmt: skip
