"""Sessions in PostgreSQL: who has the turn, what a session keeps, and what holds it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lateshift.model.guard import Guarded, Session
from lateshift.model.ids import JobId
from lateshift.model.job import Holds, Line
from lateshift.store.contract import Gap, Rows, SessionView
from lateshift.store.guards import IN_LINE, gap_of
from lateshift.store.lines import lines_there
from lateshift.store.postgres.arrays import BigInts, Blobs, Texts
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.deeds import Lines, do
from lateshift.store.postgres.rules import SHARE_RULES
from lateshift.store.postgres.wakes import NotifyWakes

Named = tuple[str, str]
"""A session's queue and name."""

_NOW = "clock_timestamp() + %(skew)s::interval"
# The first in its line. job_line.
_FIRST = f"""(SELECT {{}} FROM lateshift.job WHERE queue = s.queue AND session = s.name AND {IN_LINE}
  ORDER BY turn, id LIMIT 1)"""
_NAMED = "unnest(%(queues)b::text[], %(names)b::text[]) AS s (queue, name)"
# Primary key.
_KEPT = "(SELECT {} FROM lateshift.session k WHERE k.queue = s.queue AND k.name = s.name LIMIT 1)"
# What is known of each session: the first in its line, whether that runs or waits for another try, and what is kept.
_SEEN = "first.id, first.busy, kept.held_why, kept.next_sequence, kept.state"
_SEE = f"""LEFT JOIN LATERAL {_FIRST.format("id, state NOT IN (1, 3) AS busy")} AS first ON true
 LEFT JOIN LATERAL {_KEPT.format("held_why, next_sequence, state")} AS kept ON true"""
LOOK_AT_ALL = f"SELECT s.name, {_SEEN} FROM {_NAMED} {_SEE}"
LOOK = f"SELECT {_SEEN} FROM (SELECT %(queue)s::text AS queue, %(name)s::text AS name) AS s {_SEE}"
STATES = f"SELECT s.queue, s.name, {_KEPT.format('state')} FROM {_NAMED}"

_BLOCKED = """CASE WHEN state = 3 AND (blocked_by LIKE 'session:%%' OR (%(numbers)s AND blocked_by LIKE 'sequence:%%'))
  THEN id END"""
# The first in the line of each session, if it waits for the turn and the session is not held. job_line, primary keys.
READY_HEADS = f"""WITH head AS MATERIALIZED (SELECT {_FIRST.format(_BLOCKED)} AS id
 FROM {_NAMED} WHERE {_KEPT.format("held_why")} IS DISTINCT FROM 'dead'),
free AS MATERIALIZED (SELECT id FROM lateshift.job WHERE id = ANY(ARRAY(SELECT id FROM head)) FOR UPDATE SKIP LOCKED)
UPDATE lateshift.job SET state = 1, blocked_by = NULL WHERE id = ANY(ARRAY(SELECT id FROM free))
RETURNING queue, lane"""

# Primary key.
KEEP_STATE = f"""INSERT INTO lateshift.session (queue, name, state, touched_at)
 SELECT queue, name, state, {_NOW}
 FROM unnest(%(queues)b::text[], %(names)b::text[], %(states)b::bytea[]) AS s (queue, name, state)
 ON CONFLICT (queue, name) DO UPDATE SET state = excluded.state, touched_at = excluded.touched_at"""
EXPECT = f"""INSERT INTO lateshift.session AS k (queue, name, next_sequence, touched_at)
 SELECT %(queue)s, name, number, {_NOW} FROM unnest(%(names)b::text[], %(numbers)b::bigint[]) AS s (name, number)
 ON CONFLICT (queue, name) DO UPDATE SET next_sequence = greatest(k.next_sequence, excluded.next_sequence),
 gap_until = NULL, held_why = nullif(k.held_why, 'gap'), touched_at = excluded.touched_at"""
# A number is missing: how long that is borne is said by the job that waits. Primary keys.
MISS = f"""INSERT INTO lateshift.session AS k (queue, name, gap_until, gap_for, touched_at)
 SELECT queue, session, {_NOW} + coalesce(gap_after, %(gap_after)s::interval), sequence, {_NOW}
 FROM lateshift.job WHERE id = ANY(%(ids)s::uuid[])
 ON CONFLICT (queue, name) DO UPDATE SET gap_for = excluded.gap_for,
 gap_until = CASE WHEN k.gap_until IS NOT NULL AND k.gap_for = excluded.gap_for THEN k.gap_until
  ELSE excluded.gap_until END, touched_at = excluded.touched_at WHERE k.held_why IS NULL"""
# Jobs that have died hold their session, if they were to. Primary keys.
HOLD = f"""INSERT INTO lateshift.session (queue, name, held_by, held_why, touched_at)
 SELECT queue, session, id, 'dead', {_NOW} FROM lateshift.settled
 WHERE id = ANY(%(ids)s::uuid[]) AND state > 5 AND session IS NOT NULL AND holds & {Holds.ON_DEAD:d} <> 0
 ON CONFLICT (queue, name) DO UPDATE SET held_by = excluded.held_by, held_why = excluded.held_why,
 touched_at = excluded.touched_at"""
# What they held goes on. session_held.
LET_GO = f"""UPDATE lateshift.session SET held_by = NULL, held_why = NULL, touched_at = {_NOW}
 WHERE held_by = ANY(%(ids)s::uuid[]) RETURNING queue, name"""

# Numbers that are missing for too long. session_gap.
MISSING = f"""SELECT queue, name, next_sequence FROM lateshift.session WHERE gap_until <= (SELECT {_NOW})
 ORDER BY gap_until LIMIT %(limit)s"""
WAITING = f"""SELECT sequence, holds FROM lateshift.job WHERE queue = %s AND session = %s AND {IN_LINE}
 AND state IN (1, 3) ORDER BY turn, id LIMIT 1"""
BEAR = f"""UPDATE lateshift.session SET gap_until = NULL, held_why = 'gap', touched_at = {_NOW}
 WHERE queue = %(queue)s AND name = %(name)s"""
NOT_MISSING = "UPDATE lateshift.session SET gap_until = NULL WHERE queue = %s AND name = %s"

# What it keeps, for operators, also without its state. Primary key; session_held.
_VIEW = "queue, name, state, next_sequence, held_by, held_why, touched_at"
GET = f"SELECT {_VIEW} FROM lateshift.session WHERE queue = %s AND name = %s"
LIST = f"SELECT {_VIEW} FROM lateshift.session WHERE (queue, name) > (%s, %s) ORDER BY queue, name LIMIT %s"
LIST_HELD = f"""SELECT {_VIEW} FROM lateshift.session WHERE held_why IS NOT NULL AND (queue, name) > (%s, %s)
 ORDER BY queue, name LIMIT %s"""
BARE, BARE_HELD = (sql.replace("state", "NULL", 1) for sql in (LIST, LIST_HELD))
RELEASE = f"""UPDATE lateshift.session SET held_by = NULL, held_why = NULL, gap_until = NULL, touched_at = {_NOW}
 WHERE queue = %(queue)s AND name = %(name)s AND held_why IS NOT NULL RETURNING 1"""

# Whoever leases from the guarded lines of a queue, or gives a turn in it on, does so alone until the transaction ends.
LOCK_QUEUE = f"SELECT {SHARE_RULES}, pg_advisory_xact_lock(hashtextextended('lateshift queue ' || %s, 0))"


class PostgresSessions:
    """See contract.Sessions."""

    def __init__(self, database: Database, wakes: NotifyWakes) -> None:
        self._database = database
        self._wakes = wakes

    def get(self, queue: str, name: str) -> SessionView | None:
        rows = self._database.run(lambda connection, again: connection.execute(GET, (queue, name)).fetchall())
        return _view(rows[0]) if rows else None

    def list(
        self, *, held: bool, limit: int, after: tuple[str, str] | None = None, whole: bool = True
    ) -> list[SessionView]:
        told = (*(after or ("", "")), limit)
        sql = (LIST_HELD if held else LIST) if whole else (BARE_HELD if held else BARE)
        rows = self._database.run(lambda connection, again: connection.execute(sql, told).fetchall())
        return [_view(row) for row in rows]

    def release(self, queue: str, name: str, *, by: str) -> bool:
        skew = self._database.clock.offset

        def deed(connection: Connection, told: Lines) -> set[Line] | None:
            lock(connection, [queue])
            kept = connection.execute(GET, (queue, name)).fetchall()
            if not connection.execute(RELEASE, {"queue": queue, "name": name, "skew": skew}).fetchall():
                return None
            if kept[0][5] == "gap":
                go_on(connection, (queue, name), skew)
            told.write("release", [f"session {queue} {name}"], by)
            return ready_next(connection, [(queue, name)])

        lines = do(self._database, deed)
        self._wakes.hint(lines or ())
        return lines is not None


def _view(row: tuple[Any, ...]) -> SessionView:
    queue, name, state, expects, held_by, held_why, since = row
    return SessionView(
        queue=queue, name=name, state=state, expects=expects, held_by=held_by, held_why=held_why, since=since
    )


def lock(connection: Connection, queues: Iterable[str]) -> None:
    """In one order, so that nobody waits in a circle; before any row is touched."""
    for queue in sorted(set(queues)):
        connection.execute(LOCK_QUEUE, (queue,))


def _named(sessions: Iterable[Named]) -> dict[str, Any]:
    pairs = sorted(set(sessions))
    return {"queues": Texts(queue for queue, _ in pairs), "names": Texts(name for _, name in pairs)}


def seen(columns: str, jobs: str) -> str:
    """A statement for jobs of one queue that also sees the session of each. `jobs` has these columns and others, to order
    by. job_line, primary key."""
    named = 'SELECT %(queue)s::text AS queue, c.session COLLATE "C" AS name'
    return f"SELECT {columns}, {_SEEN} FROM ({jobs}) AS c CROSS JOIN LATERAL ({named}) AS s {_SEE}"


def with_seen(connection: Connection, queue: str, rows: Rows) -> Rows:
    """Rows of jobs that were found without: those of a session get what is known of it. Heads of tenants have none, as a rule."""
    names = {row[2] for row in rows if row[2] is not None}
    if not names:
        return rows
    found = connection.execute(LOOK_AT_ALL, _named((queue, name) for name in names), binary=True).fetchall()
    known = {name: rest for name, *rest in found}
    return [row if row[2] is None else (*row, *known[row[2]]) for row in rows]


def of(rows: Rows) -> dict[str, Session]:
    """The sessions of what such a statement found, each once."""
    return {row[2]: _session(*row[-5:]) for row in rows if row[2] is not None}


def look(connection: Connection, queue: str, name: str) -> Session:
    [row] = connection.execute(LOOK, {"queue": queue, "name": name}).fetchall()
    return _session(*row)


def _session(
    head: JobId | None, busy: bool | None, held: str | None, expects: int | None, state: bytes | None
) -> Session:
    return Session(bool(busy), None if busy else head, held == "dead", expects, state)


def states(connection: Connection, sessions: Iterable[Named]) -> dict[Named, bytes | None]:
    rows = connection.execute(STATES, _named(sessions), binary=True).fetchall()
    return {(queue, name): state for queue, name, state in rows}


def ready_next(connection: Connection, sessions: Iterable[Named], *, numbers: bool = True) -> set[Line]:
    """The first in the line of each session whose turn is free, unless it is held. Gives their lines. `numbers`: also where
    it waits for a number, as when that has had its turn."""
    named = {**_named(sessions), "numbers": numbers}
    return set(lines_there(connection.execute(READY_HEADS, named).fetchall())) if named["names"] else set()


def give_turns(connection: Connection, ended: Iterable[Guarded]) -> set[Line]:
    """The turns of these are free."""
    return ready_next(connection, [(job.queue, job.session) for job in ended if job.session is not None])


def keep_states(connection: Connection, said: Mapping[Named, bytes], skew: timedelta) -> None:
    if said:
        states = Blobs(said[pair] for pair in sorted(said))
        connection.execute(KEEP_STATE, {**_named(said), "states": states, "skew": skew})


def hold(connection: Connection, dead: Sequence[JobId], skew: timedelta) -> None:
    if dead:
        connection.execute(HOLD, {"ids": list(dead), "skew": skew})


def let_go(connection: Connection, ids: Iterable[JobId], skew: timedelta) -> list[Named]:
    return connection.execute(LET_GO, {"ids": list(ids), "skew": skew}).fetchall()


def expect(connection: Connection, queue: str, numbers: Mapping[str, int], skew: timedelta) -> None:
    if numbers:
        names = Texts(sorted(numbers))
        rest = {"names": names, "numbers": BigInts(numbers[name] for name in names), "skew": skew}
        connection.execute(EXPECT, {"queue": queue, **rest})


def go_on(connection: Connection, named: Named, skew: timedelta) -> None:
    """Without the number that is missing."""
    for number, _ in connection.execute(WAITING, named).fetchall():
        if number is not None:
            expect(connection, named[0], {named[1]: number}, skew)


def close_gaps(connection: Connection, missing: Sequence[tuple[Any, ...]], skew: timedelta) -> list[Gap]:
    """Sessions that have waited long enough for a number go on without it, or are held, as the next job says."""
    gaps: list[Gap] = []
    for queue, name, expected in missing:
        if look(connection, queue, name).busy:  # the number may be there, and wait for another try or a token
            continue
        waiting = connection.execute(WAITING, (queue, name)).fetchall()
        gap = gap_of(queue, name, expected, waiting)
        if gap is None:
            connection.execute(NOT_MISSING, (queue, name))
            continue
        if gap.held:
            connection.execute(BEAR, {"queue": queue, "name": name, "skew": skew})
        else:
            expect(connection, queue, {name: gap.next}, skew)
        gaps.append(gap)
    return gaps
