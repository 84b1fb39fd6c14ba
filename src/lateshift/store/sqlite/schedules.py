"""Schedules in SQLite: made, changed, paused and fired."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from lateshift.model.guard import Turns
from lateshift.model.ids import JobId, job_id_of
from lateshift.model.instants import MICROSECOND, to_instant, to_number
from lateshift.model.job import Line
from lateshift.model.scheduling.schedule import NewSchedule, Reader, ScheduleView, TickView
from lateshift.model.scheduling.timing import next_tick
from lateshift.model.scheduling.zones import ZONES
from lateshift.store import scheduling
from lateshift.store.contract import Wakes
from lateshift.store.crashpoints import crashpoint
from lateshift.store.firing import OVERTAKEN, Firing
from lateshift.store.hints import lines_of
from lateshift.store.schedule_contract import Declared, Fired, ScheduleTally
from lateshift.store.sqlite import cancelling, deeds, enqueue, firing
from lateshift.store.sqlite.database import Connection, Database

# Primary key.
GET = f"SELECT {scheduling.VIEW} FROM schedule WHERE name = ? AND removed_at IS NULL"
LIST = f"SELECT {scheduling.VIEW} FROM schedule WHERE name > ? AND removed_at IS NULL ORDER BY name LIMIT ?"
HAD = "SELECT plan, generation, cursor FROM schedule WHERE name = ? AND removed_at IS NULL"
PUT = """INSERT INTO schedule (name, app, declared, plan, spec, payload, guards, overlap, generation, cursor, next_at, recent,
 zones, created_at, changed_at, changed_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, x'', ?12, ?13, ?13, ?14)
 ON CONFLICT (name) DO UPDATE SET app = coalesce(?2, app), declared = coalesce(?3, declared), plan = ?4, spec = ?5,
 payload = ?6, guards = ?7, overlap = ?8, generation = ?9, cursor = ?10, next_at = ?11, zones = ?12, removed_at = NULL,
 changed_at = ?13, changed_by = ?14"""
PAUSE = """UPDATE schedule SET paused_at = ?2, paused_by = ?3 WHERE name = ?1 AND paused_at IS NULL AND removed_at IS NULL
 RETURNING 1"""
RESUME = """UPDATE schedule SET paused_at = NULL, paused_by = NULL, cursor = ?2, next_at = ?3, recent = ?4 WHERE name = ?1"""
# It is as if it had gone, but for the code that still declares it: whatever comes back begins anew.
RETIRE = """UPDATE schedule SET removed_at = ?2, changed_at = ?2, changed_by = ?3, paused_at = NULL, paused_by = NULL,
 recent = x'' WHERE name = ?1"""
DELETE = "DELETE FROM schedule WHERE name = ?"
# What an app's code declared. A scan of the schedules, at the start of a scheduler.
OF_APP = "SELECT name, declared FROM schedule WHERE app = ?"
NAMES = "SELECT name FROM schedule WHERE name = ?"

# When the next one is due. schedule_due.
NEXT = f"SELECT min(next_at) FROM schedule WHERE {firing.LIVE}"
# Primary keys.
REMEMBER = "UPDATE schedule SET recent = ? WHERE name = ?"
TICKS = (
    "SELECT at, schedule, generation, until, count, outcome, job FROM tick WHERE at >= ? ORDER BY at LIMIT ?"
)
# Those whose newest record is of ticks that were too late. schedule_missed.
MISSED = f"""SELECT {scheduling.VIEW} FROM schedule WHERE cursor >= ? AND substr(recent, 13, 1) = x'02'
 AND paused_at IS NULL AND removed_at IS NULL ORDER BY cursor DESC LIMIT ?"""
# So many of them, in any order. A scan that ends.
COUNT_SCHEDULES = """SELECT count(*), count(paused_at) FROM (SELECT paused_at FROM schedule WHERE removed_at IS NULL LIMIT ?)"""
# schedule_due
COUNT_LATE = f"SELECT count(*) FROM (SELECT 1 FROM schedule WHERE {firing.LIVE} AND next_at <= ? LIMIT ?)"
# schedule_due
LATE_SCHEDULES = f"""SELECT {scheduling.VIEW} FROM schedule WHERE {firing.LIVE} AND next_at <= ? ORDER BY next_at, name LIMIT ?"""
# A scan of the schedules, once at the start of a scheduler.
OUTDATED = f"SELECT name, plan, cursor FROM schedule WHERE zones <> ? AND {firing.LIVE} LIMIT ?"
REFRESH = "UPDATE schedule SET next_at = ?2, zones = ?3 WHERE name = ?1"

_TIMES = (7, 8, 10, 12, 13)  # their places in VIEW


class SqliteSchedules:
    """See contract.Schedules."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes
        self._turns = Turns()

    def declare(self, schedules: Sequence[NewSchedule], *, app: str) -> Declared:
        wanted = scheduling.digests(schedules)
        with self._database.write() as connection:
            declared = dict(connection.execute(OF_APP, (app,)).fetchall())
            others = {
                new.name
                for new in schedules
                if new.name not in declared and connection.execute(NAMES, (new.name,)).fetchall()
            }
            news = scheduling.news(schedules, wanted, declared, others)
            for new in news.write:
                self._put(connection, new, self._had(connection, new.name), by=f"app {app}", app=app)
            connection.executemany(DELETE, [(name,) for name in news.removed])
        return Declared(news.added, news.changed, news.removed)

    def add(self, schedule: NewSchedule, *, by: str) -> bool:
        with self._database.write() as connection:
            if self._had(connection, schedule.name) is not None:
                return False
            self._put(connection, schedule, None, by=by)
            self._audit(connection, "add", schedule.name, by)
        return True

    def edit(self, schedule: NewSchedule, *, by: str) -> bool:
        with self._database.write() as connection:
            had = self._had(connection, schedule.name)
            if had is None:
                return False
            self._put(connection, schedule, had, by=by)
            self._audit(connection, "edit", schedule.name, by)
        return True

    def pause(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            paused = bool(connection.execute(PAUSE, (name, now, by)).fetchall())
            if paused:
                self._audit(connection, "pause", name, by)
        return paused

    def resume(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            view = self._view(connection, name)
            if view is None or view.paused_at is None:
                return False
            on = scheduling.resumed(view, self._clock.now())
            connection.execute(RESUME, (name, to_number(on.cursor), _number(on.next_at), on.recent))
            firing.write_ticks(connection, [on.tick] if on.tick else [])
            self._audit(connection, "resume", name, by)
        return True

    def remove(self, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            view = self._view(connection, name)
            if view is None:
                return False
            if view.app is None:
                connection.execute(DELETE, (name,))
            else:
                connection.execute(RETIRE, (name, self._clock.microseconds(), by))
            self._audit(connection, "remove", name, by)
        return True

    def fire_now(self, name: str, *, by: str) -> JobId | None:
        with self._database.write() as connection:
            view, now = self._view(connection, name), self._clock.now()
            if view is None:
                return None
            job = scheduling.job_by_hand(view, now)
            [answer] = enqueue.run(connection, enqueue.statements([job], to_number(now)))
            on = scheduling.fired(view, now, answer.id)
            firing.write_ticks(connection, [on.tick] if on.tick else [])
            connection.execute(REMEMBER, (on.recent, name))
            self._audit(connection, "fire", name, by)
        self._wakes.hint(lines_of([job]))
        return answer.id

    def fire(self, limit: int) -> Fired:
        with self._database.read() as connection:
            [(next_at,)] = connection.execute(NEXT).fetchall()
        now = self._clock.microseconds()
        if next_at is None or next_at > now:
            return Fired(0, None if next_at is None else timedelta(microseconds=next_at - now))
        crashpoint("schedule.before_fire")
        with self._database.write() as connection:
            at = self._clock.now()
            decided, now = Firing(at, to_instant), to_number(at)
            rows = firing.due(connection, now, limit)
            decided.look(rows, firing.unsettled(connection, decided.asks(rows)))
            lines = self._cancel(connection, decided.overtaken, now)
            for quick in decided.quick:
                firing.write(connection, quick, now)
            answers = enqueue.run(connection, enqueue.statements(decided.jobs, now))
            ticks, moved = decided.written(answers)
            firing.write_ticks(connection, ticks)
            firing.move(connection, moved)
            crashpoint("schedule.before_commit")
        crashpoint("schedule.after_commit")
        self._wakes.hint(lines | decided.lines)
        return Fired(decided.count, timedelta(0))

    def _cancel(self, connection: Connection, jobs: Sequence[bytes], now: int) -> set[Line]:
        ids = [job_id_of(job) for job in jobs]
        return cancelling.cancel(connection, ids, OVERTAKEN, now, self._turns)[1] if ids else set()

    def refresh(self, limit: int) -> int:
        with self._database.read() as connection:
            if not connection.execute(OUTDATED, (ZONES, 1)).fetchall():
                return 0
        reader = Reader()
        with self._database.write() as connection:
            rows = connection.execute(OUTDATED, (ZONES, limit)).fetchall()
            for name, plan, cursor in rows:
                found = next_tick(reader.plan(plan).timing, to_instant(cursor))
                connection.execute(REFRESH, (name, _number(found), ZONES))
        return len(rows)

    def get(self, name: str) -> ScheduleView | None:
        with self._database.read() as connection:
            return self._view(connection, name)

    def late(self, by: timedelta, limit: int) -> list[ScheduleView]:
        reader = Reader()
        with self._database.read() as connection:
            due = self._clock.microseconds() - by // MICROSECOND
            rows = connection.execute(LATE_SCHEDULES, (due, limit)).fetchall()
        return [_seen(reader, row) for row in rows]

    def tally(self, late: timedelta, most: int) -> ScheduleTally:
        with self._database.read() as connection:
            now = self._clock.microseconds()
            [(count, paused)] = connection.execute(COUNT_SCHEDULES, (most,)).fetchall()
            [(behind,)] = connection.execute(COUNT_LATE, (now - late // MICROSECOND, most)).fetchall()
            [(first,)] = connection.execute(NEXT).fetchall()
        latest = timedelta(microseconds=max(0, 0 if first is None else now - first))
        return ScheduleTally(count, paused, behind, latest)

    def missed(self, since: datetime, limit: int) -> list[ScheduleView]:
        reader = Reader()
        with self._database.read() as connection:
            rows = connection.execute(MISSED, (to_number(since), limit)).fetchall()
        return [_seen(reader, row) for row in rows]

    def ticks(self, since: datetime, limit: int) -> list[TickView]:
        with self._database.read() as connection:
            rows = connection.execute(TICKS, (to_number(since), limit)).fetchall()
        return [_tick(row) for row in rows]

    def list(self, after: str | None, limit: int) -> list[ScheduleView]:
        reader = Reader()
        with self._database.read() as connection:
            rows = connection.execute(LIST, (after or "", limit)).fetchall()
        return [_seen(reader, row) for row in rows]

    def _view(self, connection: Connection, name: str) -> ScheduleView | None:
        rows = connection.execute(GET, (name,)).fetchall()
        return _seen(Reader(), rows[0]) if rows else None

    def _had(self, connection: Connection, name: str) -> scheduling.Had | None:
        for plan, generation, cursor in connection.execute(HAD, (name,)).fetchall():
            return scheduling.Had(plan, generation, to_instant(cursor))
        return None

    def _put(
        self, connection: Connection, new: NewSchedule, had: scheduling.Had | None, *, by: str, app: str | None = None
    ) -> None:  # fmt: skip
        put = scheduling.put(new, self._clock.now(), had)
        kept = put.kept
        connection.execute(
            PUT,
            (new.name, app, kept.digest if app is not None else None, kept.plan, kept.spec, kept.payload, kept.guards, put.overlap,
             put.generation, to_number(put.cursor), _number(put.next_at), ZONES, self._clock.microseconds(), by),
        )  # fmt: skip

    def _audit(self, connection: Connection, action: str, name: str, by: str) -> None:
        deeds.write(connection, self._clock.microseconds(), action, [f"schedule {name}"], by)


def _number(instant: datetime | None) -> int | None:
    return None if instant is None else to_number(instant)


def _seen(reader: Reader, row: Sequence[Any]) -> ScheduleView:
    return scheduling.seen(
        reader,
        [
            to_instant(value) if place in _TIMES and value is not None else value
            for place, value in enumerate(row)
        ],
    )


def _tick(row: Sequence[Any]) -> TickView:
    at, name, generation, until, count, outcome, job = row
    job = UUID(bytes=job) if job else None
    return scheduling.tick_view((to_instant(at), name, generation, to_instant(until), count, outcome, job))
