"""Sessions in SQLite: who has the turn, what a session keeps, and what holds it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from lateshift.model.guard import Session
from lateshift.model.instants import to_instant
from lateshift.model.job import Holds, Line
from lateshift.store.contract import Gap, Rows, SessionView, Wakes
from lateshift.store.guards import IN_LINE, WAITS_FOR_A_TURN, gap_of
from lateshift.store.lines import lines_there
from lateshift.store.sqlite import deeds
from lateshift.store.sqlite.blocks import blocks
from lateshift.store.sqlite.database import Connection, Database

# What it keeps, for operators, also without its state. Primary key; session_waits for those that are held.
_VIEW = "queue, name, state, next_sequence, held_by, held_why, touched_at"
GET = f"SELECT {_VIEW} FROM session WHERE queue = ? AND name = ?"
LIST = f"SELECT {_VIEW} FROM session WHERE (queue, name) > (?, ?) ORDER BY queue, name LIMIT ?"
LIST_HELD = f"""SELECT {_VIEW} FROM session WHERE held_why IS NOT NULL AND (queue, name) > (?, ?)
 ORDER BY queue, name LIMIT ?"""
BARE, BARE_HELD = (sql.replace("state", "NULL", 1) for sql in (LIST, LIST_HELD))
RELEASE = """UPDATE session SET held_by = NULL, held_why = NULL, gap_until = NULL, touched_at = ?3
 WHERE queue = ?1 AND name = ?2 AND held_why IS NOT NULL RETURNING 1"""

Named = tuple[str, str]
"""A session's queue and name."""

# So many sessions of one queue are looked at by one statement.
BLOCK = 100
_NAMES = f"WITH s(name) AS (VALUES {', '.join(['(?)'] * BLOCK)})"
# The first in its line. job_line.
_FIRST = (
    f"(SELECT {{}} FROM job WHERE queue = ? AND session = s.name AND {IN_LINE} ORDER BY turn, id LIMIT 1)"
)
# The first, or nothing of a length if it runs or waits for another try: so one probe says both.
_NEXT = "CASE WHEN state IN (1, 3) THEN id ELSE x'' END"
LOOK = f"""WITH s(name) AS (VALUES (?)) SELECT {_FIRST.format(_NEXT)}, k.held_why, k.next_sequence, k.state
 FROM s LEFT JOIN session k ON k.queue = ? AND k.name = s.name"""
_BLOCKED = """CASE WHEN state = 3 AND (blocked_by LIKE 'session:%' OR (? AND blocked_by LIKE 'sequence:%'))
  THEN id END"""
# job_blocked
ANYBODY_WAITS = f"SELECT {WAITS_FOR_A_TURN.format('')}"
# The first in the line of each session, if it waits for the turn and the session is not held. job_line, primary keys.
READY_HEADS = f"""{_NAMES} UPDATE job SET state = 1, blocked_by = NULL WHERE id IN
 (SELECT {_FIRST.format(_BLOCKED)} FROM s WHERE NOT EXISTS
  (SELECT 1 FROM session k WHERE k.queue = ? AND k.name = s.name AND k.held_why = 'dead')) RETURNING lane"""
# Who runs stays the first of its session, whoever comes into the line that was enqueued before. Said then, not at each
# lease: that would move every job within the index once more. job_line.
STAY_FIRST = f"""UPDATE job SET turn = 0 WHERE state = 2 AND id = (SELECT id FROM job WHERE queue = ? AND session = ?
 AND {IN_LINE} ORDER BY turn, id LIMIT 1)"""
# Primary key.
STATE = "SELECT state FROM session WHERE queue = ? AND name = ?"

# Primary key.
KEEP_STATE = """INSERT INTO session (queue, name, state, touched_at) VALUES (?, ?, ?, ?) ON CONFLICT (queue, name)
 DO UPDATE SET state = excluded.state, touched_at = excluded.touched_at"""
EXPECT = """INSERT INTO session (queue, name, next_sequence, touched_at) VALUES (?, ?, ?, ?) ON CONFLICT (queue, name)
 DO UPDATE SET next_sequence = max(coalesce(next_sequence, 0), excluded.next_sequence), gap_until = NULL,
 held_why = nullif(held_why, 'gap'), touched_at = excluded.touched_at"""
# A number is missing: how long that is borne is said by the job that waits. Primary keys.
MISS = """INSERT INTO session (queue, name, gap_until, gap_for, touched_at)
 SELECT queue, session, ?2 + coalesce(gap_after, ?3), sequence, ?2 FROM job WHERE id = ?1 ON CONFLICT (queue, name)
 DO UPDATE SET gap_until = CASE WHEN gap_until IS NOT NULL AND gap_for = excluded.gap_for THEN gap_until
  ELSE excluded.gap_until END, gap_for = excluded.gap_for, touched_at = excluded.touched_at WHERE held_why IS NULL"""
# Numbers that are missing for too long. session_gap.
MISSING = "SELECT queue, name, next_sequence FROM session WHERE gap_until <= ? LIMIT ?"
WAITING = f"""SELECT sequence, holds FROM job WHERE queue = ? AND session = ? AND {IN_LINE} AND state IN (1, 3)
 ORDER BY turn, id LIMIT 1"""
BEAR = "UPDATE session SET gap_until = NULL, held_why = 'gap', touched_at = ?3 WHERE queue = ?1 AND name = ?2"
NOT_MISSING = "UPDATE session SET gap_until = NULL WHERE queue = ? AND name = ?"
# A job that has died holds its session, if it was to. Primary keys.
HOLD = f"""INSERT INTO session (queue, name, held_by, held_why, touched_at)
 SELECT queue, session, id, 'dead', ?2 FROM settled WHERE id = ?1 AND state > 5 AND session IS NOT NULL
 AND holds & {Holds.ON_DEAD:d} ON CONFLICT (queue, name)
 DO UPDATE SET held_by = excluded.held_by, held_why = excluded.held_why, touched_at = excluded.touched_at"""
# What it held goes on. session_held.
LET_GO = "UPDATE session SET held_by = NULL, held_why = NULL, touched_at = ?2 WHERE held_by = ?1 RETURNING queue, name"


class SqliteSessions:
    """See contract.Sessions."""

    def __init__(self, database: Database, wakes: Wakes) -> None:
        self._database = database
        self._wakes = wakes

    def get(self, queue: str, name: str) -> SessionView | None:
        with self._database.read() as connection:
            rows = connection.execute(GET, (queue, name)).fetchall()
        return _view(rows[0]) if rows else None

    def list(
        self, *, held: bool, limit: int, after: tuple[str, str] | None = None, whole: bool = True
    ) -> list[SessionView]:
        told = (*(after or ("", "")), limit)
        sql = (LIST_HELD if held else LIST) if whole else (BARE_HELD if held else BARE)
        with self._database.read() as connection:
            rows = connection.execute(sql, told).fetchall()
        return [_view(row) for row in rows]

    def release(self, queue: str, name: str, *, by: str) -> bool:
        with self._database.write() as connection:
            now = self._database.clock.microseconds()
            kept = connection.execute(GET, (queue, name)).fetchall()
            if not connection.execute(RELEASE, (queue, name, now)).fetchall():
                return False
            if kept[0][5] == "gap":
                go_on(connection, (queue, name), now)
            deeds.write(connection, now, "release", [f"session {queue} {name}"], by)
            lines = ready_next(connection, [(queue, name)])
        self._wakes.hint(lines)
        return True


def _view(row: tuple[Any, ...]) -> SessionView:
    queue, name, state, expects, held_by, held_why, since = row
    return SessionView(
        queue=queue, name=name, state=state, expects=expects, held_by=UUID(bytes=held_by) if held_by else None,
        held_why=held_why, since=to_instant(since),
    )  # fmt: skip


def seen(jobs: str) -> str:
    """A statement for jobs of one queue, the first of its parameters, that also sees the session of each. job_line."""
    first = f"SELECT {_NEXT} FROM job WHERE queue = ?1 AND session = c.session AND {IN_LINE} ORDER BY turn, id LIMIT 1"
    return f"""SELECT c.*, ({first}), k.held_why, k.next_sequence, k.state FROM ({jobs}) AS c
 LEFT JOIN session k ON k.queue = ?1 AND k.name = c.session"""


def of(rows: Rows) -> dict[str, Session]:
    """The sessions of what such a statement found, each once."""
    return {row[2]: _session(*row[-4:]) for row in rows if row[2] is not None}


def look(connection: Connection, queue: str, name: str) -> Session:
    return _session(*connection.execute(LOOK, (name, queue, queue)).fetchall()[0])


def _session(next: bytes | None, held: str | None, expects: int | None, state: bytes | None) -> Session:
    return Session(next == b"", next or None, held == "dead", expects, state)


def states(connection: Connection, sessions: Iterable[Named]) -> dict[Named, bytes | None]:
    found = {named: connection.execute(STATE, named).fetchall() for named in set(sessions)}
    return {named: rows[0][0] if rows else None for named, rows in found.items()}


def ready_next(connection: Connection, sessions: Sequence[Named], *, numbers: bool = True) -> set[Line]:
    """The first in the line of each session whose turn is free, unless it is held. Gives their lines. `numbers`: also where
    it waits for a number, as when that has had its turn."""
    if not sessions or not connection.execute(ANYBODY_WAITS).fetchall()[0][0]:
        return set()
    named: dict[str, set[str]] = {}
    for queue, name in sessions:
        named.setdefault(queue, set()).add(name)
    readied = (
        (queue, lane)
        for queue, names in named.items()
        for block in blocks(sorted(names), BLOCK)
        for (lane,) in connection.execute(READY_HEADS, (*block, numbers, queue, queue)).fetchall()
    )
    return set(lines_there(readied))


def stay_first(connection: Connection, sessions: Iterable[Named]) -> None:
    """Before anybody comes into their lines who may stand before the one that runs."""
    connection.executemany(STAY_FIRST, list(sessions))


def keep_states(connection: Connection, said: Mapping[Named, bytes], now: int) -> None:
    connection.executemany(KEEP_STATE, [(*named, state, now) for named, state in said.items()])


def hold(connection: Connection, dead: Sequence[bytes], now: int) -> None:
    connection.executemany(HOLD, [(id, now) for id in dead])


def let_go(connection: Connection, ids: Sequence[bytes], now: int) -> list[Named]:
    return [named for id in ids for named in connection.execute(LET_GO, (id, now)).fetchall()]


def go_on(connection: Connection, named: Named, now: int) -> None:
    """Without the number that is missing."""
    for number, _ in connection.execute(WAITING, named).fetchall():
        if number is not None:
            connection.execute(EXPECT, (*named, number, now))


def close_gaps(connection: Connection, limit: int, now: int) -> list[Gap]:
    """Sessions that have waited long enough for a number go on without it, or are held, as the next job says."""
    gaps: list[Gap] = []
    for queue, name, expected in connection.execute(MISSING, (now, limit)).fetchall():
        if look(connection, queue, name).busy:  # the number may be there, and wait for another try or a token
            continue
        waiting = connection.execute(WAITING, (queue, name)).fetchall()
        gap = gap_of(queue, name, expected, waiting)
        if gap is None:
            connection.execute(NOT_MISSING, (queue, name))
            continue
        if gap.held:
            connection.execute(BEAR, (queue, name, now))
        else:
            connection.execute(EXPECT, (queue, name, gap.next, now))
        gaps.append(gap)
    return gaps
