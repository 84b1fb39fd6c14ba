"""Schedules in PostgreSQL: made, changed, paused and fired."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lateshift.model.guard import Turns
from lateshift.model.ids import JobId, job_id_of
from lateshift.model.job import Line, NewJob
from lateshift.model.scheduling.schedule import NewSchedule, Reader, ScheduleView, TickView
from lateshift.model.scheduling.timing import next_tick
from lateshift.model.scheduling.zones import ZONES
from lateshift.store import scheduling
from lateshift.store.crashpoints import crashpoint
from lateshift.store.firing import OVERTAKEN, Firing
from lateshift.store.hints import lines_of
from lateshift.store.postgres import cancelling, enqueue, firing
from lateshift.store.postgres.arrays import Texts
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.wakes import NotifyWakes
from lateshift.store.schedule_contract import Declared, Fired, ScheduleTally

_NOW = "clock_timestamp() + %(skew)s::interval"
NOW = f"SELECT {_NOW}"
# Primary key.
GET = f"SELECT {scheduling.VIEW} FROM lateshift.schedule WHERE name = %(name)s AND removed_at IS NULL"
LOCK = f"{GET} FOR UPDATE"
LIST = f"""SELECT {scheduling.VIEW} FROM lateshift.schedule WHERE name > %(after)s AND removed_at IS NULL
 ORDER BY name LIMIT %(limit)s"""
HAD = """SELECT name, plan, generation, cursor FROM lateshift.schedule WHERE name = ANY(%(names)b::text[]) AND removed_at IS NULL
 FOR UPDATE"""
PUT = f"""INSERT INTO lateshift.schedule AS s (name, app, declared, plan, spec, payload, guards, overlap, generation, cursor,
 next_at, recent, zones, created_at, changed_at, changed_by) VALUES (%(name)s, %(app)s, %(declared)s, %(plan)s, %(spec)s,
 %(payload)s, %(guards)s, %(overlap)s, %(generation)s, %(cursor)s, %(next_at)s, '', %(zones)s, {_NOW}, {_NOW}, %(by)s)
 ON CONFLICT (name) DO UPDATE SET app = coalesce(excluded.app, s.app), declared = coalesce(excluded.declared, s.declared),
 plan = excluded.plan, spec = excluded.spec, payload = excluded.payload, guards = excluded.guards,
 overlap = excluded.overlap, generation = excluded.generation, cursor = excluded.cursor, next_at = excluded.next_at,
 zones = excluded.zones, removed_at = NULL, changed_at = excluded.changed_at, changed_by = excluded.changed_by"""
PAUSE = f"""UPDATE lateshift.schedule SET paused_at = {_NOW}, paused_by = %(by)s
 WHERE name = %(name)s AND paused_at IS NULL AND removed_at IS NULL RETURNING 1"""
RESUME = """UPDATE lateshift.schedule SET paused_at = NULL, paused_by = NULL, cursor = %(cursor)s, next_at = %(next_at)s,
 recent = %(recent)s WHERE name = %(name)s"""
# It is as if it had gone, but for the code that still declares it: whatever comes back begins anew.
RETIRE = f"""UPDATE lateshift.schedule SET removed_at = {_NOW}, changed_at = {_NOW}, changed_by = %(by)s, paused_at = NULL,
 paused_by = NULL, recent = '' WHERE name = %(name)s"""
DELETE = "DELETE FROM lateshift.schedule WHERE name = ANY(%(names)s)"
# One declares at a time: two releases that start together must not see each other's half.
LOCK_DECLARING = "SELECT pg_advisory_xact_lock(hashtextextended('lateshift schedules', 0))"
# What an app's code declared. A scan of the schedules, at the start of a scheduler.
OF_APP = "SELECT name, declared FROM lateshift.schedule WHERE app = %s"
NAMES = "SELECT name FROM lateshift.schedule WHERE name = ANY(%s)"

# How long until the next one is due. schedule_due.
NEXT = f"SELECT next_at - ({_NOW}) FROM lateshift.schedule WHERE {firing.LIVE} ORDER BY next_at LIMIT 1"
# Primary keys.
REMEMBER = "UPDATE lateshift.schedule SET recent = %(recent)s WHERE name = %(name)s"
TICKS = """SELECT at, schedule, generation, until, count, outcome, job FROM lateshift.tick WHERE at >= %s
 ORDER BY at, schedule, generation LIMIT %s"""
# Those whose newest record is of ticks that were too late. schedule_missed.
MISSED = f"""SELECT {scheduling.VIEW} FROM lateshift.schedule WHERE cursor >= %s AND substring(recent, 13, 1) = '\\x02'
 AND paused_at IS NULL AND removed_at IS NULL ORDER BY cursor DESC LIMIT %s"""
# So many of them, in any order. A scan that ends.
COUNT_SCHEDULES = """SELECT count(*), count(paused_at) FROM (SELECT paused_at FROM lateshift.schedule WHERE removed_at IS NULL
 LIMIT %s) AS bounded"""
# schedule_due
COUNT_LATE = f"""SELECT count(*) FROM (SELECT FROM lateshift.schedule WHERE {firing.LIVE}
 AND next_at <= (SELECT {_NOW} - %(late)s::interval) LIMIT %(most)s) AS bounded"""
# schedule_due
LATE_SCHEDULES = f"""SELECT {scheduling.VIEW} FROM lateshift.schedule WHERE {firing.LIVE}
 AND next_at <= (SELECT {_NOW} - %(by)s::interval) ORDER BY next_at, name LIMIT %(limit)s"""
# A scan of the schedules, once at the start of a scheduler.
OUTDATED = f"""SELECT name, plan, cursor FROM lateshift.schedule WHERE zones <> %s AND {firing.LIVE} LIMIT %s
 FOR UPDATE SKIP LOCKED"""
REFRESH = "UPDATE lateshift.schedule SET next_at = %s, zones = %s WHERE name = %s"

PART = 1000  # schedules that are written with one call


class PostgresSchedules:
    """See contract.Schedules."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._wakes = wakes
        self._turns = Turns()

    @property
    def _skew(self) -> timedelta:
        return self._database.clock.offset

    def declare(self, schedules: Sequence[NewSchedule], *, app: str) -> Declared:
        wanted = scheduling.digests(schedules)
        before: list[Declared] = []  # of the tries whose answers were lost

        def work(connection: Connection, again: bool) -> Declared:
            with connection.transaction():
                connection.execute(LOCK_DECLARING)
                declared = dict(connection.execute(OF_APP, (app,)).fetchall())
                rest = [new.name for new in schedules if new.name not in declared]
                others = (
                    {name for (name,) in connection.execute(NAMES, (rest,)).fetchall()} if rest else set()
                )
                news = scheduling.news(schedules, wanted, declared, others)
                had = self._had(connection, [new.name for new in news.write])
                self._put(connection, news.write, had, by=f"app {app}", app=app)
                if news.removed:
                    connection.execute(DELETE, {"names": news.removed})
                declared_now = Declared(news.added, news.changed, news.removed)
                if before and declared_now == Declared([], [], []):
                    return before[-1]  # it is as that try has left it
                before.append(declared_now)
            return declared_now

        return self._database.run(work)

    def add(self, schedule: NewSchedule, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            connection.execute(LOCK_DECLARING)
            had = self._had(connection, [schedule.name])
            if had:
                return False
            self._put(connection, [schedule], had, by=by)
            lines.write("add", [_subject(schedule.name)], by)
            return True

        return do(self._database, deed)

    def edit(self, schedule: NewSchedule, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            had = self._had(connection, [schedule.name])
            if not had:
                return False
            self._put(connection, [schedule], had, by=by)
            lines.write("edit", [_subject(schedule.name)], by)
            return True

        return do(self._database, deed)

    def pause(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            if not connection.execute(PAUSE, {"name": name, "by": by, "skew": self._skew}).fetchall():
                return False
            lines.write("pause", [_subject(name)], by)
            return True

        return do(self._database, deed)

    def resume(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            view = self._view(connection, LOCK, name)
            if view is None or view.paused_at is None:
                return False
            on = scheduling.resumed(view, self._now(connection))
            told = {"name": name, "cursor": on.cursor, "next_at": on.next_at, "recent": on.recent}
            connection.execute(RESUME, told)
            firing.write_ticks(connection, [on.tick] if on.tick else [])
            lines.write("resume", [_subject(name)], by)
            return True

        return do(self._database, deed)

    def remove(self, name: str, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            view = self._view(connection, LOCK, name)
            if view is None:
                return False
            if view.app is None:
                connection.execute(DELETE, {"names": [name]})
            else:
                connection.execute(RETIRE, {"name": name, "by": by, "skew": self._skew})
            lines.write("remove", [_subject(name)], by)
            return True

        return do(self._database, deed)

    def fire_now(self, name: str, *, by: str) -> JobId | None:
        made: list[NewJob] = []

        def deed(connection: Connection, lines: Lines) -> JobId | None:
            view = self._view(connection, LOCK, name)
            if view is None:
                return None
            now = self._now(connection)
            made[:] = [scheduling.job_by_hand(view, now)]
            [answer] = enqueue.run(connection, enqueue.statements(made, self._skew))
            on = scheduling.fired(view, now, answer.id)
            firing.write_ticks(connection, [on.tick] if on.tick else [])
            connection.execute(REMEMBER, {"recent": on.recent, "name": name})
            lines.write("fire", [_subject(name)], by)
            return answer.id

        fired = do(self._database, deed)
        self._wakes.hint(lines_of(made))
        return fired

    def fire(self, limit: int) -> Fired:
        lines: set[Line] = set()

        def work(connection: Connection, again: bool) -> Fired:
            waits = connection.execute(NEXT, {"skew": self._skew}).fetchall()
            if not waits or waits[0][0] > timedelta(0):
                return Fired(0, waits[0][0] if waits else None)
            crashpoint("schedule.before_fire")
            with connection.transaction():
                now = self._now(connection)
                decided = Firing(now, _in_utc)
                rows = firing.due(connection, now, limit)
                decided.look(rows, firing.unsettled(connection, decided.asks(rows)))
                lines.update(self._cancel(connection, decided.overtaken))
                answers = enqueue.run(connection, enqueue.statements(decided.jobs, self._skew))
                # No answer is waited for: the next statement is made ready while one is carried out.
                with connection.pipeline():
                    sent = [firing.write(connection, quick, self._skew) for quick in decided.quick]
                    ticks, moved = decided.written(answers)
                    firing.write_ticks(connection, ticks)
                    sent += firing.move(connection, moved)
                firing.refuse_lost(sent)
                crashpoint("schedule.before_commit")
            crashpoint("schedule.after_commit")
            lines.update(decided.lines)
            return Fired(decided.count, timedelta(0))

        fired = self._database.run(work)
        self._wakes.hint(lines)
        return fired

    def _cancel(self, connection: Connection, jobs: Sequence[bytes]) -> set[Line]:
        ids = [job_id_of(job) for job in jobs]
        if not ids:
            return set()
        told = Lines(connection, self._skew)
        return cancelling.cancel(connection, ids, OVERTAKEN, self._skew, self._turns, told)[1]

    def refresh(self, limit: int) -> int:
        reader = Reader()

        def work(connection: Connection, again: bool) -> int:
            with connection.transaction():
                rows = connection.execute(OUTDATED, (ZONES, limit)).fetchall()
                for name, plan, cursor in rows:
                    found = next_tick(reader.plan(bytes(plan)).timing, cursor.astimezone(UTC))
                    connection.execute(REFRESH, (found, ZONES, name))
            return len(rows)

        return self._database.run(work)

    def get(self, name: str) -> ScheduleView | None:
        return self._database.run(lambda connection, again: self._view(connection, GET, name))

    def late(self, by: timedelta, limit: int) -> list[ScheduleView]:
        asked = {"by": by, "limit": limit, "skew": self._skew}
        rows = self._database.run(
            lambda connection, again: connection.execute(LATE_SCHEDULES, asked).fetchall()
        )
        reader = Reader()
        return [_seen(reader, row) for row in rows]

    def tally(self, late: timedelta, most: int) -> ScheduleTally:
        asked = {"late": late, "most": most, "skew": self._skew}

        def work(connection: Connection, again: bool) -> ScheduleTally:
            [(count, paused)] = connection.execute(COUNT_SCHEDULES, (most,)).fetchall()
            [(behind,)] = connection.execute(COUNT_LATE, asked).fetchall()
            first = [next_in for (next_in,) in connection.execute(NEXT, {"skew": self._skew}).fetchall()]
            latest = max([timedelta(0), *(-next_in for next_in in first)])
            return ScheduleTally(count, paused, behind, latest)

        return self._database.run(work)

    def missed(self, since: datetime, limit: int) -> list[ScheduleView]:
        rows = self._database.run(
            lambda connection, again: connection.execute(MISSED, (since, limit)).fetchall()
        )
        reader = Reader()
        return [_seen(reader, row) for row in rows]

    def ticks(self, since: datetime, limit: int) -> list[TickView]:
        rows = self._database.run(
            lambda connection, again: connection.execute(TICKS, (since, limit)).fetchall()
        )
        return [scheduling.tick_view([_in_utc(value) for value in row]) for row in rows]

    def list(self, after: str | None, limit: int) -> list[ScheduleView]:
        asked = {"after": after or "", "limit": limit}
        rows = self._database.run(lambda connection, again: connection.execute(LIST, asked).fetchall())
        reader = Reader()
        return [_seen(reader, row) for row in rows]

    def _now(self, connection: Connection) -> datetime:
        [(now,)] = connection.execute(NOW, {"skew": self._skew}).fetchall()
        at: datetime = now
        return at.astimezone(UTC)

    def _view(self, connection: Connection, sql: str, name: str) -> ScheduleView | None:
        rows = connection.execute(sql, {"name": name}).fetchall()
        return _seen(Reader(), rows[0]) if rows else None

    def _had(self, connection: Connection, names: Sequence[str]) -> dict[str, scheduling.Had]:
        rows = connection.execute(HAD, {"names": Texts(names)}).fetchall()
        return {
            name: scheduling.Had(bytes(plan), generation, cursor.astimezone(UTC))
            for name, plan, generation, cursor in rows
        }

    def _put(
        self, connection: Connection, schedules: Sequence[NewSchedule], had: Mapping[str, scheduling.Had], *, by: str,
        app: str | None = None,
    ) -> None:  # fmt: skip
        """Sent without waiting for each, for a program may have thousands; and in parts, for the server ends a transaction in
        which it hears nothing for a while."""
        now = self._now(connection)
        for start in range(0, len(schedules), PART):
            rows = []
            for new in schedules[start : start + PART]:
                put = scheduling.put(new, now, had.get(new.name))
                kept = put.kept
                rows.append({
                    "name": new.name, "app": app, "declared": kept.digest if app is not None else None, "plan": kept.plan,
                    "spec": kept.spec, "payload": kept.payload, "guards": kept.guards, "overlap": put.overlap,
                    "generation": put.generation, "cursor": put.cursor, "next_at": put.next_at, "zones": ZONES,
                    "skew": self._skew, "by": by,
                })  # fmt: skip
            self._database.watchdog.begin(connection)  # each part may take its time
            with connection.cursor() as cursor:
                cursor.executemany(PUT, rows)


def _subject(name: str) -> str:
    return f"schedule {name}"


def _in_utc(value: Any) -> Any:
    return (
        value.astimezone(UTC)
        if isinstance(value, datetime)
        else bytes(value)
        if isinstance(value, memoryview)
        else value
    )


def _seen(reader: Reader, row: Sequence[Any]) -> ScheduleView:
    return scheduling.seen(reader, [_in_utc(value) for value in row])
