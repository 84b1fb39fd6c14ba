"""Triggers in SQLite: what has arrived is written with the jobs that it becomes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from lateshift.errors import TriggerInvalid
from lateshift.model.instants import MICROSECOND, to_instant
from lateshift.model.job import NewJob
from lateshift.model.member import Serves
from lateshift.model.triggering.in_database import RowTrigger
from lateshift.model.triggering.trigger import (
    RATE_WINDOW,
    REFUSED_COUNTED,
    Arrival,
    NewTrigger,
    RefusedView,
    Subscription,
    TriggerView,
)
from lateshift.store import batching, triggering
from lateshift.store.contract import ENDINGS_LOOKED_AT, Wakes
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.schedule_contract import Declared
from lateshift.store.sqlite import deeds, enqueue, receiving
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.taking import REFUSED_KEPT
from lateshift.store.trigger_contract import Received, Standing, Taken

# Whether this is the present term of whoever reads it. Primary keys.
TERM = """SELECT 1 FROM lock, trigger WHERE lock.name = 'trigger ' || trigger.name AND trigger.name = ? AND fence = ?
 AND owner IS NOT NULL AND removed_at IS NULL"""
# Triggers are few: each statement on them goes by the primary key, or reads them all.
ALL = "SELECT name, app, kind, about, task, subscription, removed_at IS NOT NULL FROM trigger"
PUT = """INSERT INTO trigger (name, app, kind, about, task, subscription, counted_since) VALUES (?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (name) DO UPDATE SET app = excluded.app, kind = excluded.kind, about = excluded.about, task = excluded.task,
 subscription = excluded.subscription, removed_at = NULL"""
REMOVE = "UPDATE trigger SET removed_at = ?1 WHERE name = ?2"
STANDING = "SELECT position, paused_at IS NOT NULL, app FROM trigger WHERE name = ? AND removed_at IS NULL"
# Of those that live; members are few.
ALIVE = "SELECT serves FROM member WHERE dead_at IS NULL AND expires_at > ? AND serves IS NOT NULL"
_WINDOW = int(RATE_WINDOW * 1e6)
MOVE = f"""UPDATE trigger SET position = coalesce(?2, position), made = made + ?3, repeated = repeated + ?4,
 refused = refused + ?5, lag = ?6, looked_at = ?7, last_at = CASE WHEN ?3 + ?5 > 0 THEN ?7 ELSE last_at END,
 rate = CASE WHEN ?7 - counted_since >= {2 * _WINDOW} THEN 0 WHEN ?7 - counted_since >= {_WINDOW}
 THEN counted * 1e6 / (?7 - counted_since) ELSE rate END,
 counted = CASE WHEN ?7 - counted_since >= {_WINDOW} THEN ?3 ELSE counted + ?3 END,
 counted_since = CASE WHEN ?7 - counted_since >= {_WINDOW} THEN ?7 ELSE counted_since END
 WHERE name = ?1"""
# What is told of last stays. It is over if somebody has looked later than that.
TELL = """UPDATE trigger SET failing_since = CASE WHEN ?2 IS NULL THEN NULL WHEN error_at >= looked_at THEN coalesce(failing_since, error_at)
 ELSE ?3 END, error = coalesce(?2, error), error_at = CASE WHEN ?2 IS NULL THEN min(error_at, ?3 - 1) ELSE ?3 END,
 looked_at = ?3, lag = coalesce(?4, lag) WHERE name = ?1"""
PAUSE = "UPDATE trigger SET paused_at = ?2, paused_by = ?3 WHERE name = ?1 AND paused_at IS NULL RETURNING 1"
RESUME = "UPDATE trigger SET paused_at = NULL, paused_by = NULL WHERE name = ? AND paused_at IS NOT NULL RETURNING 1"
# refused_trigger; primary key of the locks.
_VIEW = f"""SELECT {triggering.VIEW},
 (SELECT count(*) FROM (SELECT 1 FROM refused r WHERE r.trigger = t.name LIMIT {REFUSED_COUNTED})),
 EXISTS (SELECT 1 FROM lock l WHERE l.name = 'trigger ' || t.name AND l.owner IS NOT NULL AND l.expires_at > ?1)
 FROM trigger t WHERE removed_at IS NULL"""
GET = f"{_VIEW} AND name = ?2"
LIST = f"{_VIEW} AND name > ?2 ORDER BY name LIMIT ?3"
SUBSCRIPTIONS = "SELECT app, name, subscription FROM trigger WHERE subscription IS NOT NULL AND removed_at IS NULL ORDER BY name"

# Primary key of the receipts.
MARK = "SELECT mark FROM receipt WHERE trigger = ? AND event = ?"
RECEIVE = """INSERT INTO receipt (trigger, event, mark, expires_at) VALUES (?1, ?2, ?3, ?4)
 ON CONFLICT (trigger, event) DO UPDATE SET mark = ?3, expires_at = ?4
 WHERE mark <> ?3 OR expires_at <= ?5 RETURNING 1"""
RECEIPTS = "SELECT event FROM receipt WHERE trigger = ? AND event > ? ORDER BY event LIMIT ?"
FORGET = "DELETE FROM receipt WHERE trigger = ? AND event = ?"
FORGET_BEFORE = "DELETE FROM receipt WHERE trigger = ? AND event < ?"

_REFUSED = "id, trigger, event, mark, at, raw, rest, reason"
REFUSE = f"INSERT INTO refused ({_REFUSED}, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
# refused_trigger; primary key.
REFUSED_OF = f"SELECT {_REFUSED} FROM refused WHERE trigger = ? AND id > ? ORDER BY id LIMIT ?"
REFUSED = f"SELECT {_REFUSED} FROM refused WHERE id > ? ORDER BY id LIMIT ?"
FIND_REFUSED = f"SELECT {_REFUSED} FROM refused WHERE id = ?"
# The ids of those of one trigger, without what came. refused_trigger.
WHICH_REFUSED = "SELECT id FROM refused WHERE trigger = ? AND id > ? ORDER BY id LIMIT ?"
# Ids that begin so, and that end so among the newest. Primary key.
BEGINNING = "SELECT id FROM refused WHERE id BETWEEN ?1 AND ?2 LIMIT ?3"
ENDING = """SELECT id FROM (SELECT id FROM refused ORDER BY id DESC LIMIT ?1)
 WHERE substr(lower(hex(id)), -length(?2)) = ?2 LIMIT ?3"""
DISCARD = "DELETE FROM refused WHERE id = ? RETURNING trigger"

_TIMES = (11, 12, 14, 15, 16, 18)  # their places in VIEW

_serves = msgspec.json.Decoder(Serves)


class SqliteTriggers:
    """See trigger_contract.Triggers."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._clock = database.clock
        self._wakes = wakes

    def declare(self, triggers: Sequence[NewTrigger], *, app: str, whole: bool = True) -> Declared:
        with self._database.write() as connection:
            there = {name: (*rest, bool(gone)) for name, *rest, gone in connection.execute(ALL).fetchall()}
            now = self._clock.microseconds()
            alive = self._alive(connection, now) if triggering.owners(triggers, there, app) else set[str]()
            news = triggering.news(triggers, there, app, alive, whole=whole)
            connection.executemany(PUT, [(new.name, app, *triggering.row(new), now) for new in news.write])
            connection.executemany(REMOVE, [(now, name) for name in news.declared.removed])
        return news.declared

    def install(self, trigger: RowTrigger, *, app: str) -> bool:
        raise TriggerInvalid(
            'by="database" needs a store in PostgreSQL, and this one is SQLite. Leave by= out, and the table is polled.'
        )

    def uninstall(self, otherwise: list[str], *, app: str) -> list[str]:
        return []

    def standing(self, name: str) -> Standing | None:
        with self._database.read() as connection:
            rows = connection.execute(STANDING, (name,)).fetchall()
        return Standing(rows[0][0], bool(rows[0][1]), rows[0][2]) if rows else None

    def unseen(self, name: str, events: Sequence[tuple[str, str]]) -> list[bool]:
        with self._database.read() as connection:
            return [connection.execute(MARK, (name, event)).fetchall() != [(mark,)] for event, mark in events]

    def take(
        self, name: str, arrivals: Sequence[Arrival], *, term: int, position: bytes | None = None,
        keep: timedelta | None = None, lag: int | None = None,
    ) -> Taken | None:  # fmt: skip
        with self._database.write() as connection:
            now = self._clock.microseconds()
            if not connection.execute(TERM, (name, term)).fetchall():
                return None
            expires = None if keep is None else now + keep // MICROSECOND
            new = [
                arrival
                for arrival in triggering.last_of_each(arrivals)
                if connection.execute(RECEIVE, (name, arrival.event, arrival.mark, expires, now)).fetchall()
            ]
            jobs = [arrival.job for arrival in new if arrival.job is not None]
            if jobs:
                enqueue.run(connection, enqueue.statements(jobs, now))
            refused = [arrival for arrival in new if arrival.refused is not None]
            for arrival in refused:
                self._refuse(connection, name, arrival, now)
            taken = Taken(len(jobs), len(arrivals) - len(new), len(refused))
            counts = (taken.made, taken.repeated, taken.refused)
            connection.execute(MOVE, (name, position, *counts, lag, now))
            crashpoint("trigger.before_commit")
        self._wakes.hint(lines_of(jobs))
        return taken

    def receive(self, name: str, arrivals: Sequence[Arrival], *, keep: timedelta) -> list[Received] | None:
        with self._database.write() as connection:
            if not receiving.is_open(connection, name):
                return None
            now = self._clock.microseconds()
            answers, new, jobs = receiving.receive(connection, name, arrivals, now, now + keep // MICROSECOND)
            refused = [arrival for arrival in new if arrival.refused is not None]
            for arrival in refused:
                self._refuse(connection, name, arrival, now)
            counts = (len(jobs), len(arrivals) - len(new), len(refused))
            connection.execute(MOVE, (name, None, *counts, None, now))
            crashpoint("trigger.before_commit")
        self._wakes.hint(lines_of(jobs))
        return answers

    def receipts(self, name: str, after: str, limit: int) -> list[str]:
        with self._database.read() as connection:
            return [event for (event,) in connection.execute(RECEIPTS, (name, after, limit)).fetchall()]

    def forget(self, name: str, events: Sequence[str] = (), *, before: str | None = None, term: int) -> int:
        with self._database.write() as connection:
            if not connection.execute(TERM, (name, term)).fetchall():
                return 0
            was = connection.total_changes()
            connection.executemany(FORGET, [(name, event) for event in events])
            if before is not None:
                connection.execute(FORGET_BEFORE, (name, before))
            return connection.total_changes() - was

    def tell(self, name: str, *, error: str | None, lag: int | None = None) -> None:
        with self._database.write() as connection:
            connection.execute(TELL, (name, error, self._clock.microseconds(), lag))

    def pause(self, name: str, *, by: str) -> bool:
        return self._change(PAUSE, (name, self._clock.microseconds(), by), "pause", name, by)

    def resume(self, name: str, *, by: str) -> bool:
        return self._change(RESUME, (name,), "resume", name, by)

    def get(self, name: str) -> TriggerView | None:
        with self._database.read() as connection:
            now = self._clock.microseconds()
            rows = connection.execute(GET, (now, name)).fetchall()
        return _seen(rows[0], now) if rows else None

    def all(self, limit: int | None = None, *, after: str = "") -> list[TriggerView]:
        with self._database.read() as connection:
            now = self._clock.microseconds()
            rows = connection.execute(LIST, (now, after, -1 if limit is None else limit)).fetchall()
            return [_seen(row, now) for row in rows]

    def refused(self, name: str | None, after: UUID | None, limit: int) -> list[RefusedView]:
        start = b"" if after is None else after.bytes
        with self._database.read() as connection:
            if name is None:
                rows = connection.execute(REFUSED, (start, limit)).fetchall()
            else:
                rows = connection.execute(REFUSED_OF, (name, start, limit)).fetchall()
        return [_refused_view(row) for row in rows]

    def which_refused(self, name: str, after: UUID | None, limit: int) -> list[UUID]:
        start = b"" if after is None else after.bytes
        with self._database.read() as connection:
            rows = connection.execute(WHICH_REFUSED, (name, start, limit)).fetchall()
        return [UUID(bytes=id) for (id,) in rows]

    def find_refused(self, id: UUID) -> RefusedView | None:
        with self._database.read() as connection:
            rows = connection.execute(FIND_REFUSED, (id.bytes,)).fetchall()
        return _refused_view(rows[0]) if rows else None

    def refused_ids(self, digits: str, limit: int) -> list[UUID]:
        low, high = batching.lowest(digits).bytes, batching.highest(digits).bytes
        with self._database.read() as connection:
            rows = connection.execute(BEGINNING, (low, high, limit)).fetchall()
            rows += connection.execute(ENDING, (ENDINGS_LOOKED_AT, digits, limit)).fetchall()
        return [UUID(bytes=id) for id in sorted({bytes(id) for (id,) in rows}, reverse=True)[:limit]]

    def accept(self, id: UUID, job: NewJob, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            gone = connection.execute(DISCARD, (id.bytes,)).fetchall()
            if gone:
                enqueue.run(connection, enqueue.statements([job], now))
                deeds.write(connection, now, "accept", [f"refused {id} of trigger {gone[0][0]}"], by)
        if gone:
            self._wakes.hint(lines_of([job]))
        return bool(gone)

    def discard(self, ids: Sequence[UUID], *, by: str) -> int:
        with self._database.write() as connection:
            now = self._clock.microseconds()
            gone = [
                f"refused {id} of trigger {trigger}"
                for id in ids
                for (trigger,) in connection.execute(DISCARD, (id.bytes,)).fetchall()
            ]
            deeds.write(connection, now, "discard", gone, by)
        return len(gone)

    def subscriptions(self) -> list[tuple[str, str, Subscription]]:
        with self._database.read() as connection:
            rows = connection.execute(SUBSCRIPTIONS).fetchall()
        return [(app, name, triggering.subscription_of(kept)) for app, name, kept in rows]

    def _change(self, sql: str, row: tuple[Any, ...], action: str, name: str, by: str) -> bool:
        with self._database.write() as connection:
            changed = bool(connection.execute(sql, row).fetchall())
            if changed:
                deeds.write(connection, self._clock.microseconds(), action, [f"trigger {name}"], by)
        return changed

    def _refuse(self, connection: Connection, name: str, arrival: Arrival, now: int) -> None:
        refused = arrival.refused
        assert refused is not None
        until = now + REFUSED_KEPT // MICROSECOND
        row = (refused.id.bytes, name, arrival.event, arrival.mark, now, refused.raw, refused.rest)
        connection.execute(REFUSE, (*row, refused.reason, until))

    def _alive(self, connection: Connection, now: int) -> set[str]:
        """Apps that have a worker."""
        return {_serves.decode(told).app for (told,) in connection.execute(ALIVE, (now,)).fetchall()}


def _seen(row: Sequence[Any], now: int) -> TriggerView:
    told = [
        to_instant(value) if place in _TIMES and value is not None else value
        for place, value in enumerate(row)
    ]
    return triggering.seen(told, to_instant(now))


def _refused_view(row: Sequence[Any]) -> RefusedView:
    id, trigger, event, mark, at, raw, rest, reason = row
    return RefusedView(
        id=UUID(bytes=id), trigger=trigger, event=event, mark=mark, at=to_instant(at), raw=raw, rest=rest, reason=reason
    )  # fmt: skip
