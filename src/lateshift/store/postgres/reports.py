"""Reading for people and callers, in PostgreSQL. Nothing is decided from these."""

from typing import Any
from uuid import UUID

import msgspec

from lateshift.model import history
from lateshift.model.explaining.facts import MEMBERS_LOOKED_AT, Facts
from lateshift.model.ids import JobId
from lateshift.model.job import JobFilter, JobView, Progress, State
from lateshift.model.member import MemberView, Serves
from lateshift.store.contract import ENDINGS_LOOKED_AT
from lateshift.store.postgres import explaining
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.listing import COLD, HOT, HOT_JOBS, read

# One job, wherever it stands. Primary keys.
JOB = f"""SELECT {HOT} FROM lateshift.job WHERE id = %(id)s
 UNION ALL SELECT {COLD} FROM lateshift.settled WHERE id = %(id)s"""
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
# Not those that wait for another try. job_scheduled.
UPCOMING = f"""SELECT {HOT} FROM lateshift.job WHERE state = 0 AND fence = 0 AND blocked_by IS NULL
 ORDER BY due_at LIMIT %s"""
_MEMBERS = """SELECT id, name, kind, host, pid, started_at, expires_at,
 dead_at IS NOT NULL OR expires_at <= clock_timestamp() + %s::interval, stats, serves FROM lateshift.member"""
MEMBERS = f"{_MEMBERS} ORDER BY started_at"
MEMBERS_ALIVE_FIRST = f"{_MEMBERS} ORDER BY dead_at IS NOT NULL, expires_at DESC LIMIT %s"

_progress = msgspec.json.Decoder(Progress)
_serves = msgspec.json.Decoder(Serves)
_LAST = UUID(int=2**128 - 1)


class PostgresReports:
    """See contract.Reports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def job(self, id: JobId) -> JobView | None:
        rows = self._database.run(lambda connection, again: connection.execute(JOB, {"id": id}).fetchall())
        return view_of(rows[0]) if rows else None

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobView]:
        parameters = _bound(wanted, limit)
        rows = self._database.run(lambda connection, again: read(connection, wanted, parameters))
        return [view_of(row) for row in sorted(rows, key=lambda row: row[0].int, reverse=True)[:limit]]

    def unsettled(self, before: JobId | None, limit: int) -> list[JobView]:
        parameters = _bound(JobFilter(before=before), limit)
        rows = self._database.run(
            lambda connection, again: connection.execute(HOT_JOBS, parameters).fetchall()
        )
        return [view_of(row) for row in rows]

    def running(self, limit: int) -> list[JobView]:
        rows = self._database.run(lambda connection, again: connection.execute(RUNNING, (limit,)).fetchall())
        return [view_of(row) for row in rows]

    def upcoming(self, limit: int) -> list[JobView]:
        rows = self._database.run(lambda connection, again: connection.execute(UPCOMING, (limit,)).fetchall())
        return [view_of(row) for row in rows]

    def find(self, digits: str, limit: int) -> list[JobId]:
        parameters = {
            "low": UUID(digits.ljust(32, "0")), "high": UUID(digits.ljust(32, "f")), "last": _LAST, "digits": digits,
            "looked_at": ENDINGS_LOOKED_AT, "limit": limit,
        }  # fmt: skip

        def work(connection: Connection, again: bool) -> set[JobId]:
            return {
                id for sql in (BEGINNING, ENDING) for (id,) in connection.execute(sql, parameters).fetchall()
            }

        return sorted(self._database.run(work), reverse=True)[:limit]

    def members(self) -> list[MemberView]:
        skew = (self._database.clock.offset,)
        rows = self._database.run(lambda connection, again: connection.execute(MEMBERS, skew).fetchall())
        return [_member(row) for row in rows]

    def facts(self, id: JobId) -> Facts | None:
        skew = self._database.clock.offset

        def look(connection: Connection) -> Facts | None:
            rows = connection.execute(JOB, {"id": id}).fetchall()
            if not rows:
                return None
            members = connection.execute(MEMBERS_ALIVE_FIRST, (skew, MEMBERS_LOOKED_AT)).fetchall()
            return explaining.gather(connection, view_of(rows[0]), [_member(row) for row in members], skew)

        return self._database.snapshot(look)


def _bound(wanted: JobFilter, limit: int) -> dict[str, Any]:
    return {
        "before": wanted.before or _LAST, "queue": wanted.queue, "task": wanted.task, "limit": limit,
        "state": None if wanted.state is None else int(wanted.state), "reason": wanted.reason,
        "session": wanted.session, "tenant": wanted.tenant, "batch": wanted.batch,
    }  # fmt: skip


def view_of(row: tuple[Any, ...]) -> JobView:
    return JobView(
        id=row[0], task=row[1], queue=row[2], state=State(row[3]), priority=row[4], attempt=row[5], attempts=row[6],
        fence=row[7], losses=row[8], created_at=row[9], due_at=row[10], started_at=row[11], complete_by=row[12],
        settled_at=row[13], holder=row[14], cancel_requested=row[15], payload=row[16], result=row[17], reason=row[18],
        progress=_progress.decode(row[19]) if row[19] else None, checkpoint=row[20], history=history.read(row[21]),
        exclusive=row[22], batch=row[23], session=row[24], sequence=row[25], tenant=row[26], limit_key=row[27],
    )  # fmt: skip


def _member(row: tuple[Any, ...]) -> MemberView:
    id, name, kind, host, pid, started, expires, dead, stats, serves = row
    return MemberView(
        id=id, name=name, kind=kind, host=host, pid=pid, started_at=started, expires_at=expires, dead=dead,
        stats=msgspec.json.decode(stats), serves=_serves.decode(serves) if serves else None,
    )  # fmt: skip
