"""Schedules that are due in SQLite: found, and what was decided about them written. A hundred rows go with one statement, which
halves the time."""

from collections.abc import Sequence
from typing import Any

from lateshift.model.job import State
from lateshift.model.scheduling.zones import ZONES
from lateshift.store.firing import FIRED, DueRow, Moved, Quick, TickRow
from lateshift.store.sqlite import enqueue
from lateshift.store.sqlite.blocks import blocks
from lateshift.store.sqlite.database import Connection

BLOCK = 100
LIVE = "next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL"

# Those that are due, the first of them first. schedule_due.
DUE = f"""SELECT name, plan, spec, payload, guards, generation, next_at, recent, NULL FROM schedule
 WHERE {LIVE} AND next_at <= ? ORDER BY next_at, name LIMIT ?"""
# Which of these jobs have not ended. Primary key.
UNSETTLED = f"SELECT id FROM job WHERE id IN ({', '.join(['?'] * BLOCK)})"


def _rows(shared: int, each: int, rest: str = "") -> str:
    """A block of rows. Their first values are the same in all, and sent once: each that is sent costs, as does each character."""
    values = [f"?{number}" for number in range(1, shared + 1)] + ["?"] * each
    return ",".join([f"({','.join(values)}{rest})"] * BLOCK)


# Plain jobs of one spec, whose times to start are their own, or past in all. Primary key.
_INSERT = """INSERT INTO job (queue, lane, priority, attempts, created_at, time_limit, exclusive, task, state, due_at, id, payload)
 VALUES"""
INSERT_DUE = f"{_INSERT} ({', '.join('?' * 12)})"
INSERT_DUE_BLOCK = f"{_INSERT} {_rows(8, 4)}"
INSERT_PAST_BLOCK = f"{_INSERT} {_rows(10, 2)}"

# What became of ticks: unique by schedule, generation and instant. Those of one instant that all fired share the rest. Primary key.
_TICK = "INSERT INTO tick (at, until, count, outcome, schedule, generation, job) VALUES"
TICK = f"{_TICK} ({', '.join('?' * 7)})"
TICK_BLOCK = f"{_TICK} {_rows(0, 7)}"
TICK_FIRED_BLOCK = f"{_TICK} {_rows(4, 3)}"

# Schedules go on, each to an instant of its own or all to the same. They are there: this transaction has found them. So a block of
# them is an upsert that never inserts, for it looks for each row once, and UPDATE … FROM does so twice. Primary key.
MOVE = "UPDATE schedule SET zones = ?1, cursor = ?2, next_at = ?3, recent = ?5 WHERE name = ?4"
_MOVE = """INSERT INTO schedule (zones, cursor, next_at, name, recent,
 plan, spec, payload, overlap, generation, created_at, changed_at, changed_by) VALUES {} ON CONFLICT (name) DO UPDATE
 SET zones = excluded.zones, cursor = excluded.cursor, next_at = excluded.next_at, recent = excluded.recent"""
_NEVER_INSERTED = ",0,0,0,0,0,0,0,0"
MOVE_BLOCK = _MOVE.format(_rows(1, 4, _NEVER_INSERTED))
MOVE_ALIKE_BLOCK = _MOVE.format(_rows(3, 2, _NEVER_INSERTED))


def due(connection: Connection, now: int, limit: int) -> list[DueRow]:
    rows: list[DueRow] = connection.execute(DUE, (now, limit)).fetchall()
    return rows


def unsettled(connection: Connection, jobs: Sequence[bytes]) -> set[bytes]:
    return {id for block in blocks(jobs, BLOCK) for (id,) in connection.execute(UNSETTLED, block)}


def write(connection: Connection, quick: Quick, now: int) -> None:
    """The jobs, their ticks, and how the schedules go on."""
    queue, lane, _, priority, attempts, _, _, limit, exclusive, task = enqueue.shared(quick.spec, now)
    how = (queue, lane, priority, attempts, now, limit, exclusive, task)
    if max(quick.due) <= now:
        past = (*how, int(State.READY), now)
        _write(connection, INSERT_DUE, INSERT_PAST_BLOCK, past, [quick.ids, quick.payloads])
    else:
        states = [int(State.SCHEDULED if due > now else State.READY) for due in quick.due]
        when = [max(due, now) for due in quick.due]
        _write(connection, INSERT_DUE, INSERT_DUE_BLOCK, how, [states, when, quick.ids, quick.payloads])
    each: list[Sequence[Any]] = [quick.names, quick.generations, quick.ids]
    if len(quick.moments) == 1:
        [(at, next_at)] = quick.moments
        _write(connection, TICK, TICK_FIRED_BLOCK, (at, at, 1, FIRED), each)
        _write(connection, MOVE, MOVE_ALIKE_BLOCK, (ZONES, at, next_at), [quick.names, quick.recent])
    else:
        ones, fired = [1] * len(quick.at), [FIRED] * len(quick.at)
        _write(connection, TICK, TICK_BLOCK, (), [quick.at, quick.at, ones, fired, *each])
        _write(connection, MOVE, MOVE_BLOCK, (ZONES,), [quick.at, quick.next_at, quick.names, quick.recent])


def write_ticks(connection: Connection, ticks: Sequence[TickRow]) -> None:
    if ticks:
        at, names, generations, until, counts, outcomes, jobs = zip(*ticks, strict=True)
        _write(connection, TICK, TICK_BLOCK, (), [at, until, counts, outcomes, names, generations, jobs])


def move(connection: Connection, moved: Sequence[Moved]) -> None:
    if moved:
        names, cursors, nexts, recent = zip(*moved, strict=True)
        _write(connection, MOVE, MOVE_BLOCK, (ZONES,), [cursors, nexts, names, recent])


def _write(
    connection: Connection, one: str, block: str, shared: tuple[Any, ...], columns: Sequence[Sequence[Any]]
) -> None:
    width = len(columns)
    values: list[Any] = [None] * (width * len(columns[0]))
    for place, column in enumerate(columns):
        values[place::width] = column
    size = width * BLOCK
    whole = len(values) // size * size
    for start in range(0, whole, size):
        connection.execute(block, (*shared, *values[start : start + size]))
    rest = range(whole, len(values), width)
    connection.executemany(one, [(*shared, *values[start : start + width]) for start in rest])
