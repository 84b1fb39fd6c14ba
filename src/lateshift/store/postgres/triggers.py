"""Triggers in PostgreSQL: what has arrived is written with the jobs that it becomes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from lateshift.errors import TriggerInvalid
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
from lateshift.store.contract import ENDINGS_LOOKED_AT
from lateshift.store.crashpoints import crashpoint
from lateshift.store.hints import lines_of
from lateshift.store.postgres import enqueue, receiving
from lateshift.store.postgres.arrays import Texts, Uuids
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.row_triggers import RowTriggers
from lateshift.store.postgres.wakes import NotifyWakes
from lateshift.store.schedule_contract import Declared
from lateshift.store.taking import REFUSED_KEPT
from lateshift.store.trigger_contract import Received, Standing, Taken

_NOW = "clock_timestamp() + %(skew)s::interval"
# Whether this is the present term of whoever reads it, which then stays so until we commit. Primary keys.
TERM = """SELECT 1 FROM lateshift.lock l JOIN lateshift.trigger t ON l.name = 'trigger ' || t.name
 WHERE t.name = %(name)s AND l.fence = %(term)s AND l.owner IS NOT NULL AND t.removed_at IS NULL FOR SHARE OF l"""
# One declares at a time: two releases that start together must not see each other's half.
LOCK_DECLARING = "SELECT pg_advisory_xact_lock(hashtextextended('lateshift triggers', 0))"
# Triggers are few: each statement on them goes by the primary key, or reads them all.
ALL = "SELECT name, app, kind, about, task, subscription, removed_at IS NOT NULL FROM lateshift.trigger"
PUT = f"""INSERT INTO lateshift.trigger (name, app, kind, about, task, subscription, counted_since)
 VALUES (%(name)s, %(app)s, %(kind)s, %(about)s, %(task)s, %(subscription)s, {_NOW})
 ON CONFLICT (name) DO UPDATE SET app = excluded.app, kind = excluded.kind, about = excluded.about, task = excluded.task,
 subscription = excluded.subscription, removed_at = NULL"""
REMOVE = f"UPDATE lateshift.trigger SET removed_at = {_NOW} WHERE name = ANY(%(names)s)"
STANDING = "SELECT position, paused_at IS NOT NULL, app FROM lateshift.trigger WHERE name = %s AND removed_at IS NULL"
# Of those that live; members are few.
ALIVE = f"SELECT serves FROM lateshift.member WHERE dead_at IS NULL AND expires_at > {_NOW} AND serves IS NOT NULL"
_LONG_OVER = f"t.counted_since <= n.at - interval '{2 * RATE_WINDOW} seconds'"
_OVER = f"t.counted_since <= n.at - interval '{RATE_WINDOW} seconds'"
MOVE = f"""UPDATE lateshift.trigger t SET position = coalesce(%(position)s::bytea, position), made = made + %(made)s,
 repeated = repeated + %(repeated)s, refused = refused + %(refused)s, lag = %(lag)s, looked_at = n.at,
 last_at = CASE WHEN %(made)s + %(refused)s > 0 THEN n.at ELSE last_at END,
 rate = CASE WHEN {_LONG_OVER} THEN 0 WHEN {_OVER} THEN counted / extract(epoch FROM n.at - counted_since)::float ELSE rate END,
 counted = CASE WHEN {_OVER} THEN %(made)s ELSE counted + %(made)s END,
 counted_since = CASE WHEN {_OVER} THEN n.at ELSE counted_since END
 FROM (SELECT {_NOW} AS at) n WHERE t.name = %(name)s"""
# What is told of last stays. It is over if somebody has looked later than that.
TELL = f"""UPDATE lateshift.trigger t SET failing_since = CASE WHEN %(error)s::text IS NULL THEN NULL
 WHEN error_at >= looked_at THEN coalesce(failing_since, error_at) ELSE n.at END, error = coalesce(%(error)s::text, error), looked_at = n.at,
 error_at = CASE WHEN %(error)s::text IS NOT NULL THEN n.at WHEN error_at IS NULL THEN NULL
 ELSE least(error_at, n.at - interval '1 microsecond') END,
 lag = coalesce(%(lag)s::bigint, lag) FROM (SELECT {_NOW} AS at) n WHERE t.name = %(name)s"""
PAUSE = f"""UPDATE lateshift.trigger SET paused_at = {_NOW}, paused_by = %(by)s
 WHERE name = %(name)s AND paused_at IS NULL RETURNING 1"""
RESUME = """UPDATE lateshift.trigger SET paused_at = NULL, paused_by = NULL
 WHERE name = %(name)s AND paused_at IS NOT NULL RETURNING 1"""
# refused_trigger; primary key of the locks.
_VIEW = f"""SELECT {triggering.VIEW},
 (SELECT count(*) FROM (SELECT 1 FROM lateshift.refused r WHERE r.trigger = t.name LIMIT {REFUSED_COUNTED}) counted),
 EXISTS (SELECT 1 FROM lateshift.lock l WHERE l.name = 'trigger ' || t.name AND l.owner IS NOT NULL AND l.expires_at > {_NOW}),
 {_NOW} FROM lateshift.trigger t WHERE removed_at IS NULL"""
GET = f"{_VIEW} AND name = %(name)s"
LIST = f"{_VIEW} AND name > %(after)s ORDER BY name LIMIT %(limit)s::bigint"
SUBSCRIPTIONS = "SELECT app, name, subscription FROM lateshift.trigger WHERE subscription IS NOT NULL AND removed_at IS NULL ORDER BY name"

# Primary key of the receipts.
MARKS = "SELECT event, mark FROM lateshift.receipt WHERE trigger = %s AND event = ANY(%b::text[])"
RECEIVE = f"""INSERT INTO lateshift.receipt AS r (trigger, event, mark, expires_at)
 SELECT %(name)s, event, mark, {_NOW} + %(keep)s::interval FROM unnest(%(events)b::text[], %(marks)b::text[])
 AS n (event, mark) ORDER BY event COLLATE "C"
 ON CONFLICT (trigger, event) DO UPDATE SET mark = excluded.mark, expires_at = excluded.expires_at
 WHERE r.mark <> excluded.mark OR r.expires_at <= {_NOW} RETURNING event"""
RECEIPTS = "SELECT event FROM lateshift.receipt WHERE trigger = %s AND event > %s ORDER BY event LIMIT %s"
FORGET = "DELETE FROM lateshift.receipt WHERE trigger = %s AND event = ANY(%b::text[])"
FORGET_BEFORE = "DELETE FROM lateshift.receipt WHERE trigger = %s AND event < %s"

_REFUSED = "id, trigger, event, mark, at, raw, rest, reason"
REFUSE = f"""INSERT INTO lateshift.refused ({_REFUSED}, expires_at) VALUES (%(id)s, %(name)s, %(event)s, %(mark)s, {_NOW},
 %(raw)s, %(rest)s, %(reason)s, {_NOW} + %(keep)s::interval) ON CONFLICT (id) DO NOTHING"""
# refused_trigger; primary key.
REFUSED_OF = f"SELECT {_REFUSED} FROM lateshift.refused WHERE trigger = %s AND id > %s ORDER BY id LIMIT %s"
REFUSED = f"SELECT {_REFUSED} FROM lateshift.refused WHERE id > %s ORDER BY id LIMIT %s"
FIND_REFUSED = f"SELECT {_REFUSED} FROM lateshift.refused WHERE id = %s"
# The ids of those of one trigger, without what came. refused_trigger.
WHICH_REFUSED = "SELECT id FROM lateshift.refused WHERE trigger = %s AND id > %s ORDER BY id LIMIT %s"
# Ids that begin so, and that end so among the newest. Primary key.
BEGINNING = "SELECT id FROM lateshift.refused WHERE id BETWEEN %(low)s AND %(high)s LIMIT %(limit)s"
ENDING = """SELECT id FROM (SELECT id FROM lateshift.refused ORDER BY id DESC LIMIT %(looked_at)s) newest
 WHERE right(replace(id::text, '-', ''), length(%(digits)s::text)) = %(digits)s LIMIT %(limit)s"""
DISCARD = "DELETE FROM lateshift.refused WHERE id = ANY(%b::uuid[]) RETURNING id, trigger"

_FIRST = UUID(int=0)
_serves = msgspec.json.Decoder(Serves)


class PostgresTriggers:
    """See trigger_contract.Triggers."""

    def __init__(self, database: Database, wakes: NotifyWakes, url: str) -> None:
        self._database = database
        self._wakes = wakes
        self._rows = RowTriggers(database, url)

    @property
    def _skew(self) -> timedelta:
        return self._database.clock.offset

    def declare(self, triggers: Sequence[NewTrigger], *, app: str, whole: bool = True) -> Declared:
        before: list[Declared] = []  # of the tries whose answers were lost

        def work(connection: Connection, again: bool) -> Declared:
            with connection.transaction():
                connection.execute(LOCK_DECLARING)
                rows = connection.execute(ALL).fetchall()
                there = {name: tuple(map(_plain, rest)) for name, *rest in rows}
                alive = self._alive(connection) if triggering.owners(triggers, there, app) else set[str]()
                news = triggering.news(triggers, there, app, alive, whole=whole)
                for new in news.write:
                    kind, about, task, subscription = triggering.row(new)
                    told = {"kind": kind, "about": about, "task": task, "subscription": subscription}
                    connection.execute(PUT, {"name": new.name, "app": app, "skew": self._skew, **told})
                if news.declared.removed:
                    connection.execute(REMOVE, {"names": news.declared.removed, "skew": self._skew})
                if before and news.declared == Declared([], [], []):
                    return before[-1]  # it is as that try has left it
                before.append(news.declared)
            return news.declared

        return self._database.run(work)

    def install(self, trigger: RowTrigger, *, app: str) -> bool:
        return self._rows.install(trigger, app=app)

    def uninstall(self, otherwise: list[str], *, app: str) -> list[str]:
        return self._rows.uninstall(otherwise, app=app)

    def standing(self, name: str) -> Standing | None:
        rows = self._read(STANDING, (name,))
        return Standing(_plain(rows[0][0]), rows[0][1], rows[0][2]) if rows else None

    def unseen(self, name: str, events: Sequence[tuple[str, str]]) -> list[bool]:
        marks = dict(self._read(MARKS, (name, Texts(event for event, _ in events))))
        return [marks.get(event) != mark for event, mark in events]

    def take(
        self, name: str, arrivals: Sequence[Arrival], *, term: int, position: bytes | None = None,
        keep: timedelta | None = None, lag: int | None = None,
    ) -> Taken | None:  # fmt: skip
        made: list[NewJob] = []

        def work(connection: Connection, again: bool) -> Taken | None:
            with connection.transaction():
                if not connection.execute(TERM, {"name": name, "term": term}).fetchall():
                    return None
                new = self._receive(connection, name, arrivals, keep)
                jobs = [arrival.job for arrival in new if arrival.job is not None]
                if jobs:
                    enqueue.run(connection, enqueue.statements(jobs, self._skew, again=again))
                refused = [arrival for arrival in new if arrival.refused is not None]
                for arrival in refused:
                    self._refuse(connection, name, arrival)
                taken = Taken(len(jobs), len(arrivals) - len(new), len(refused))
                counts = {"made": taken.made, "repeated": taken.repeated, "refused": taken.refused}
                told = {"name": name, "position": position, "lag": lag, "skew": self._skew}
                connection.execute(MOVE, {**told, **counts})
                crashpoint("trigger.before_commit")
            made[:] = jobs
            return taken

        taken = self._database.run(work)
        self._wakes.hint(lines_of(made))
        return taken

    def receive(self, name: str, arrivals: Sequence[Arrival], *, keep: timedelta) -> list[Received] | None:
        made: list[NewJob] = []

        def work(connection: Connection, again: bool) -> list[Received] | None:
            with connection.transaction():
                if not receiving.is_open(connection, name):
                    return None
                answers, new, made[:] = receiving.receive(
                    connection, name, arrivals, keep, self._skew, again=again
                )
                refused = [arrival for arrival in new if arrival.refused is not None]
                for arrival in refused:
                    self._refuse(connection, name, arrival)
                counts = {"made": len(made), "repeated": len(arrivals) - len(new), "refused": len(refused)}
                told = {"name": name, "position": None, "lag": None, "skew": self._skew}
                connection.execute(MOVE, {**told, **counts})
                crashpoint("trigger.before_commit")
            return answers

        answers = self._database.run(work)
        self._wakes.hint(lines_of(made))
        return answers

    def receipts(self, name: str, after: str, limit: int) -> list[str]:
        return [event for (event,) in self._read(RECEIPTS, (name, after, limit))]

    def forget(self, name: str, events: Sequence[str] = (), *, before: str | None = None, term: int) -> int:
        def work(connection: Connection, again: bool) -> int:
            with connection.transaction():
                if not connection.execute(TERM, {"name": name, "term": term}).fetchall():
                    return 0
                gone = connection.execute(FORGET, (name, Texts(events))).rowcount if events else 0
                if before is not None:
                    gone += connection.execute(FORGET_BEFORE, (name, before)).rowcount
            return gone

        return self._database.run(work)

    def tell(self, name: str, *, error: str | None, lag: int | None = None) -> None:
        told = {"name": name, "error": error, "lag": lag, "skew": self._skew}
        self._database.run(lambda connection, again: connection.execute(TELL, told))

    def pause(self, name: str, *, by: str) -> bool:
        if self._rows.is_installed(name):
            raise TriggerInvalid(
                f"The jobs of {name} are written by the database, in the transactions that change the rows: what came meanwhile would be "
                "lost. Pause its queue, where they wait: `lateshift queues pause`."
            )
        return self._change(PAUSE, "pause", name, by)

    def resume(self, name: str, *, by: str) -> bool:
        return self._change(RESUME, "resume", name, by)

    def get(self, name: str) -> TriggerView | None:
        rows = self._read(GET, {"name": name, "skew": self._skew})
        return _seen(rows[0]) if rows else None

    def all(self, limit: int | None = None, *, after: str = "") -> list[TriggerView]:
        return [_seen(row) for row in self._read(LIST, {"skew": self._skew, "after": after, "limit": limit})]

    def refused(self, name: str | None, after: UUID | None, limit: int) -> list[RefusedView]:
        start = after or _FIRST
        rows = (
            self._read(REFUSED, (start, limit))
            if name is None
            else self._read(REFUSED_OF, (name, start, limit))
        )
        return [_refused_view(row) for row in rows]

    def which_refused(self, name: str, after: UUID | None, limit: int) -> list[UUID]:
        return [id for (id,) in self._read(WHICH_REFUSED, (name, after or _FIRST, limit))]

    def find_refused(self, id: UUID) -> RefusedView | None:
        rows = self._read(FIND_REFUSED, (id,))
        return _refused_view(rows[0]) if rows else None

    def refused_ids(self, digits: str, limit: int) -> list[UUID]:
        parameters = {
            "low": batching.lowest(digits), "high": batching.highest(digits), "digits": digits, "limit": limit,
            "looked_at": ENDINGS_LOOKED_AT,
        }  # fmt: skip
        found = {id for sql in (BEGINNING, ENDING) for (id,) in self._read(sql, parameters)}
        return sorted(found, reverse=True)[:limit]

    def accept(self, id: UUID, job: NewJob, *, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            gone = connection.execute(DISCARD, (Uuids([id]),)).fetchall()
            if not gone:
                return False
            enqueue.run(connection, enqueue.statements([job], self._skew))
            lines.write("accept", [f"refused {id} of trigger {gone[0][1]}"], by)
            return True

        accepted = do(self._database, deed)
        if accepted:
            self._wakes.hint(lines_of([job]))
        return accepted

    def discard(self, ids: Sequence[UUID], *, by: str) -> int:
        def deed(connection: Connection, lines: Lines) -> int:
            gone = connection.execute(DISCARD, (Uuids(ids),)).fetchall()
            lines.write("discard", [f"refused {id} of trigger {trigger}" for id, trigger in gone], by)
            return len(gone)

        return do(self._database, deed)

    def subscriptions(self) -> list[tuple[str, str, Subscription]]:
        rows = self._read(SUBSCRIPTIONS)
        return [(app, name, triggering.subscription_of(bytes(kept))) for app, name, kept in rows]

    def _read(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return self._database.run(lambda connection, again: connection.execute(sql, parameters).fetchall())

    def _change(self, sql: str, action: str, name: str, by: str) -> bool:
        def deed(connection: Connection, lines: Lines) -> bool:
            if not connection.execute(sql, {"name": name, "by": by, "skew": self._skew}).fetchall():
                return False
            lines.write(action, [f"trigger {name}"], by)
            return True

        return do(self._database, deed)

    def _receive(
        self, connection: Connection, name: str, arrivals: Sequence[Arrival], keep: timedelta | None
    ) -> list[Arrival]:
        """Those that have not arrived before."""
        if not arrivals:
            return []
        each = triggering.last_of_each(arrivals)
        told = {
            "name": name, "keep": keep, "skew": self._skew, "events": Texts(arrival.event for arrival in each),
            "marks": Texts(arrival.mark for arrival in each),
        }  # fmt: skip
        new = {event for (event,) in connection.execute(RECEIVE, told).fetchall()}
        return [arrival for arrival in each if arrival.event in new]

    def _refuse(self, connection: Connection, name: str, arrival: Arrival) -> None:
        refused = arrival.refused
        assert refused is not None
        connection.execute(
            REFUSE,
            {
                "id": refused.id, "name": name, "event": arrival.event, "mark": arrival.mark, "raw": refused.raw,
                "rest": refused.rest, "reason": refused.reason, "keep": REFUSED_KEPT, "skew": self._skew,
            },
        )  # fmt: skip

    def _alive(self, connection: Connection) -> set[str]:
        """Apps that have a worker."""
        rows = connection.execute(ALIVE, {"skew": self._skew}).fetchall()
        return {_serves.decode(bytes(told)).app for (told,) in rows}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return bytes(value) if isinstance(value, memoryview) else value


def _seen(row: Sequence[Any]) -> TriggerView:
    *told, now = map(_plain, row)
    return triggering.seen(told, now)


def _refused_view(row: Sequence[Any]) -> RefusedView:
    id, trigger, event, mark, at, raw, rest, reason = map(_plain, row)
    return RefusedView(
        id=id, trigger=trigger, event=event, mark=mark, at=at, raw=raw, rest=rest, reason=reason
    )  # fmt: skip
