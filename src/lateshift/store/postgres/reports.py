"""Reading for people and callers, in PostgreSQL. Nothing is decided from these."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from lateshift.errors import RightMissing
from lateshift.model import history, saying
from lateshift.model.discard import Kept
from lateshift.model.explaining.facts import MEMBERS_LOOKED_AT, Facts
from lateshift.model.ids import JobId, MemberId
from lateshift.model.job import WITHHELD, AttemptRecord, JobFilter, JobView, State
from lateshift.model.member import Loops, MemberView, Program, Serves
from lateshift.model.sealed import slim
from lateshift.model.search import Found, argument_parts, error_part
from lateshift.model.watching import bare
from lateshift.store import searching
from lateshift.store.contract import ENDINGS_LOOKED_AT
from lateshift.store.marks import Kin
from lateshift.store.postgres import discarding, explaining, listing, marks
from lateshift.store.postgres.arrays import Uuids
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.listing import COLD, HOT, HOT_JOBS
from lateshift.store.searching import Choice, Source


def _withheld(columns: str) -> str:
    """Without what a job was given, has returned and has said."""
    kept = columns.replace("payload,", f"'{WITHHELD.decode()}'::bytea,")
    for column in ("result", "progress", "checkpoint", "history"):
        kept = re.sub(rf"\b{column},", "NULL::bytea,", kept)
    return kept


# One job, wherever it stands. Primary keys.
JOB = f"""SELECT {HOT} FROM lateshift.job WHERE id = %(id)s
 UNION ALL SELECT {COLD} FROM lateshift.settled WHERE id = %(id)s"""
# So many, wherever they stand. Primary keys.
NAMED = f"""SELECT {HOT} FROM lateshift.job WHERE id = ANY(%(ids)b::uuid[])
 UNION ALL SELECT {COLD} FROM lateshift.settled WHERE id = ANY(%(ids)b::uuid[])"""
# The same, slim. Primary keys.
SLIM_NAMED = listing.slim(NAMED)
# The same with their whole histories, for what events tell. Primary keys.
WATCHED = SLIM_NAMED.replace(listing.END, "history")
# The history of one. Primary keys.
HISTORY = """SELECT history FROM lateshift.job WHERE id = %(id)s
 UNION ALL SELECT history FROM lateshift.settled WHERE id = %(id)s"""
# The same for one who may see how it is, and not what is in it. Primary keys.
STATUS = f"""SELECT {_withheld(HOT)} FROM lateshift.job WHERE id = %(id)s
 UNION ALL SELECT {_withheld(COLD)} FROM lateshift.settled WHERE id = %(id)s"""
NAMED_STATUS = f"""SELECT {_withheld(HOT)} FROM lateshift.job WHERE id = ANY(%(ids)b::uuid[])
 UNION ALL SELECT {_withheld(COLD)} FROM lateshift.settled WHERE id = ANY(%(ids)b::uuid[])"""
MAY_SEE_STATUS = "SELECT has_column_privilege('lateshift.settled', 'state', 'SELECT')"
# Ids that begin so, wherever they stand. Primary keys.
BEGINNING = """(SELECT id FROM lateshift.job WHERE id BETWEEN %(low)s AND %(high)s LIMIT %(limit)s)
 UNION ALL (SELECT id FROM lateshift.settled WHERE id BETWEEN %(low)s AND %(high)s LIMIT %(limit)s)"""
# Ids that end so, among the newest of each kind. Primary keys, job_running, settled_dead.
ENDING = """SELECT id FROM (
  (SELECT id FROM lateshift.job WHERE id < %(last)s ORDER BY id DESC LIMIT %(looked_at)s)
  UNION (SELECT id FROM lateshift.job WHERE state = 2 LIMIT %(looked_at)s)
  UNION (SELECT id FROM lateshift.settled WHERE id < %(last)s ORDER BY id DESC LIMIT %(looked_at)s)
  UNION (SELECT id FROM lateshift.settled WHERE state = 6 AND id < %(last)s ORDER BY id DESC LIMIT %(looked_at)s)) newest
 WHERE right(replace(id::text, '-', ''), length(%(digits)s::text)) = %(digits)s LIMIT %(limit)s"""
# job_running
RUNNING = f"SELECT {HOT} FROM lateshift.job WHERE state = 2 LIMIT %s"
# Not those that wait for another try; slim. job_scheduled.
UPCOMING = f"""SELECT {listing.SLIM_HOT} FROM lateshift.job WHERE state = 0 AND fence = 0 AND blocked_by IS NULL
 AND (due_at, id) > (%s::timestamptz, %s::uuid) ORDER BY due_at, id LIMIT %s"""
_MEMBERS = """SELECT id, name, kind, host, pid, started_at, expires_at,
 dead_at IS NOT NULL OR expires_at <= clock_timestamp() + %s::interval, stats, serves, loops FROM lateshift.member"""
MEMBERS = f"{_MEMBERS} ORDER BY started_at"
MEMBERS_AFTER = (
    f"{_MEMBERS} WHERE (started_at, id) > (%s::timestamptz, %s::uuid) ORDER BY started_at, id LIMIT %s"
)
MEMBERS_ALIVE_FIRST = f"{_MEMBERS} ORDER BY dead_at IS NOT NULL, expires_at DESC LIMIT %s"

Row: TypeAlias = tuple[Any, ...]
Seen: TypeAlias = Callable[[Connection, Row], JobView]

AT_ONCE = 50  # of those with these ids, where no more is kept of each than is wanted

_serves = msgspec.json.Decoder(Serves)
_loops = msgspec.json.Decoder(Loops)


class PostgresReports:
    """See contract.Reports."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._status_only = False  # what a submitter may see: see roles

    def job(self, id: JobId) -> JobView | None:
        found = self._read(JOB, STATUS, {"id": id}, _whole)
        return found[0] if found else None

    def named(self, ids: Sequence[JobId], *, whole: bool = True) -> list[JobView | None]:
        if not whole:
            return self._few(SLIM_NAMED, ids, _slim)
        found = {view.id: view for view in self._read(NAMED, NAMED_STATUS, {"ids": Uuids(ids)}, _whole)}
        return [found.get(id) for id in ids]

    def watched(self, ids: Sequence[JobId]) -> list[JobView | None]:
        return self._few(WATCHED, ids, lambda connection, row: bare(view_of(row)))

    def _few(self, sql: str, ids: Sequence[JobId], seen: Seen) -> list[JobView | None]:
        found: dict[JobId, JobView] = {}
        for start in range(0, len(ids), AT_ONCE):
            some = self._read(sql, NAMED_STATUS, {"ids": Uuids(ids[start : start + AT_ONCE])}, seen)
            found |= {view.id: view for view in some}
        return [found.get(id) for id in ids]

    def _read(self, whole: str, status: str, parameters: dict[str, Any], seen: Seen) -> list[JobView]:
        """Who has been refused the whole once is given the status from then on."""

        def ask(sql: str) -> list[JobView]:
            return self._database.run(lambda connection, again: _views(connection, sql, parameters, seen))

        if not self._status_only:
            try:
                return ask(whole)
            except RightMissing:
                if not self._database.run(_may_see_status):
                    raise
                self._status_only = True
        return ask(status)

    def jobs(self, wanted: JobFilter, limit: int, *, whole: bool = True) -> list[JobView]:
        return searching.all_of(self.search, wanted, limit, whole=whole)

    def search(self, wanted: JobFilter, limit: int, *, whole: bool = True) -> Found:
        def work(connection: Connection, again: bool) -> Found:
            keyed = None
            if wanted.key is not None:
                keyed = [id for (id,) in connection.execute(listing.KEYED, (wanted.key,)).fetchall()]

            def many(name: str) -> bool:
                asked = {"session": wanted.session, "tenant": wanted.tenant}
                return bool(connection.execute(getattr(listing, name), asked).fetchall()[0][0])

            parts = searching.parts(wanted, many, lambda first, most: _of_dead(connection, first, most))
            sources = [_source(connection, each, choice, whole) for each, choice in parts]
            return searching.search(sources, wanted, limit, self._database.clock.monotonic, keyed)

        return self._database.run(work)

    def count_dead(self, most: int) -> tuple[int, bool]:
        [(there, count)] = self._database.run(
            lambda connection, again: connection.execute(listing.COUNT_DEAD, (most,)).fetchall()
        )
        return count, there == most

    def of_dead(self, most: int) -> list[tuple[str, str]]:
        return self._database.run(lambda connection, again: _of_dead(connection, "", most))

    def kept(self, ids: Sequence[JobId]) -> dict[JobId, Kept]:
        skew = self._database.clock.offset
        found = self._database.run(lambda connection, again: discarding.kept(connection, ids, skew))
        return {id: why for id, why in found.items() if why is not None}

    def kin(self, id: JobId, limit: int) -> Kin:
        return self._database.run(lambda connection, again: marks.kin(connection, id, limit))

    def unsettled(self, before: JobId | None, limit: int) -> list[JobView]:
        parameters = _bound(JobFilter(), before or searching.HIGHEST, searching.LOWEST, limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(HOT_JOBS, parameters).fetchall()
        )
        return [view_of(row) for row in rows]

    def running(self, limit: int) -> list[JobView]:
        rows = self._database.run(lambda connection, again: connection.execute(RUNNING, (limit,)).fetchall())
        return [view_of(row) for row in rows]

    def upcoming(self, limit: int, after: tuple[datetime, JobId] | None = None) -> list[JobView]:
        told = (*(after or ("-infinity", searching.LOWEST)), limit)
        return self._database.run(lambda connection, again: _views(connection, UPCOMING, told, _slim))

    def find(self, digits: str, limit: int) -> list[JobId]:
        parameters = {
            "low": UUID(digits.ljust(32, "0")), "high": UUID(digits.ljust(32, "f")), "last": searching.HIGHEST, "digits": digits,
            "looked_at": ENDINGS_LOOKED_AT, "limit": limit,
        }  # fmt: skip

        def work(connection: Connection, again: bool) -> set[JobId]:
            return {
                id for sql in (BEGINNING, ENDING) for (id,) in connection.execute(sql, parameters).fetchall()
            }

        return sorted(self._database.run(work), reverse=True)[:limit]

    def members(self, limit: int | None = None) -> list[MemberView]:
        skew = self._database.clock.offset
        sql, given = (MEMBERS, (skew,)) if limit is None else (MEMBERS_ALIVE_FIRST, (skew, limit))
        rows = self._database.run(lambda connection, again: connection.execute(sql, given).fetchall())
        return [_member(row) for row in rows]

    def members_after(self, after: tuple[datetime, MemberId] | None, limit: int) -> list[MemberView]:
        at, id = after or ("-infinity", searching.LOWEST)
        told = (self._database.clock.offset, at, id, limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(MEMBERS_AFTER, told).fetchall()
        )
        return [_member(row) for row in rows]

    def programs(self) -> list[Program]:
        skew = self._database.clock.offset
        return [*self._database.run(lambda connection, again: explaining.programs(connection, skew)).values()]

    def facts(self, id: JobId) -> Facts | None:
        skew = self._database.clock.offset

        def look(connection: Connection) -> Facts | None:
            rows = connection.execute(JOB, {"id": id}).fetchall()
            if not rows:
                return None
            members = connection.execute(MEMBERS_ALIVE_FIRST, (skew, MEMBERS_LOOKED_AT)).fetchall()
            return explaining.gather(connection, view_of(rows[0]), [_member(row) for row in members], skew)

        return self._database.snapshot(look)


def _may_see_status(connection: Connection, again: bool) -> bool:
    return bool(connection.execute(MAY_SEE_STATUS).fetchall()[0][0])


def _of_dead(connection: Connection, first: str, most: int) -> list[tuple[str, str]]:
    """Queues and tasks that have dead letters, from this queue on."""
    return connection.execute(listing.OF_DEAD, {"queue": first, "limit": most}).fetchall()


def _source(connection: Connection, wanted: JobFilter, choice: Choice, whole: bool) -> Source:
    def page(above: JobId, lowest: JobId, limit: int) -> list[JobView]:
        parameters = _bound(wanted, above, lowest, limit)
        sql = getattr(listing, choice.page)
        if whole:
            return _views(connection, sql, parameters, _whole)
        return _views(connection, listing.slim(sql), parameters, _slim)

    def floor(above: JobId, lowest: JobId, count: int) -> JobId | None:
        asked = {
            "before": above,
            "lowest": lowest,
            "count": count,
            "tag": wanted.tag,
            "batch": wanted.batch,
            "queue": wanted.queue,
            "task": wanted.task,
        }
        rows = connection.execute(getattr(listing, str(choice.floor)), asked).fetchall()
        return rows[0][0] if rows else None

    return Source(None if choice.floor is None else floor, page)


def _bound(wanted: JobFilter, above: JobId, lowest: JobId, limit: int) -> dict[str, Any]:
    argument, or_argument = argument_parts(wanted.argument)
    return {
        "before": above, "lowest": lowest, "queue": wanted.queue, "task": wanted.task, "limit": limit,
        "state": None if wanted.state is None else int(wanted.state), "reason": wanted.reason,
        "session": wanted.session, "tenant": wanted.tenant, "batch": wanted.batch, "tag": wanted.tag,
        "argument": argument, "or_argument": or_argument, "error": error_part(wanted.error),
    }  # fmt: skip


def _views(connection: Connection, sql: str, parameters: Any, seen: Seen) -> list[JobView]:
    """Binary, as the text of what jobs hold is twice as long."""
    return [seen(connection, row) for row in connection.execute(sql.encode(), parameters, binary=True)]


def _whole(connection: Connection, row: Row) -> JobView:
    return view_of(row)


def _slim(connection: Connection, row: Row) -> JobView:
    records = history.at_end(row[21])
    if records is None:
        kept = connection.execute(HISTORY, {"id": row[0]}, binary=True).fetchall()
        records = history.read(kept[0][0] if kept else None)
    return slim(view_of(row, records))


def view_of(row: Row, records: list[AttemptRecord] | None = None) -> JobView:
    """`records`: its history, if that is not all in the row."""
    progress, said = saying.read(row[19])
    return JobView(
        id=row[0], task=row[1], queue=row[2], state=State(row[3]), priority=row[4], attempt=row[5], attempts=row[6],
        fence=row[7], losses=row[8], created_at=row[9], due_at=row[10], started_at=row[11], complete_by=row[12],
        settled_at=row[13], holder=row[14], cancel_requested=row[15], payload=row[16], result=row[17], reason=row[18],
        progress=progress, checkpoint=row[20], history=history.read(row[21]) if records is None else records,
        exclusive=row[22], batch=row[23], session=row[24], sequence=row[25], tenant=row[26], limit_key=row[27],
        tags=tuple(row[28]), parent=row[29], said=said, sensitive=row[30],
    )  # fmt: skip


def _member(row: tuple[Any, ...]) -> MemberView:
    id, name, kind, host, pid, started, expires, dead, stats, serves, loops = row
    return MemberView(
        id=id, name=name, kind=kind, host=host, pid=pid, started_at=started, expires_at=expires, dead=dead,
        stats=msgspec.json.decode(stats), serves=_serves.decode(serves) if serves else None, loops=_loops.decode(loops) if loops else {},
    )  # fmt: skip
