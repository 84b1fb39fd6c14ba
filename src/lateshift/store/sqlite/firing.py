"""Schedules that are due in SQLite: found, and what was decided about them written. A hundred rows go with one statement, which
halves the time."""

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

from lateshift.model.scheduling.zones import ZONES
from lateshift.store.firing import FIRED, DueRow, Moved, Quick, TickRow
from lateshift.store.sqlite import enqueue
from lateshift.store.sqlite.blocks import blocks
from lateshift.store.sqlite.database import Connection

BLOCK = 100
LIVE = "next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL"

# Those that are due, the first of them first. schedule_due.
DUE = f"""SELECT name, plan, spec, payload, guards, generation, next_at, recent, name FROM schedule
 WHERE {LIVE} AND next_at <= ? ORDER BY next_at, name LIMIT ?"""
# Which of these jobs have not ended. Primary key.
UNSETTLED = f"SELECT id FROM job WHERE id IN ({', '.join(['?'] * BLOCK)})"

# Plain jobs of one spec, each with a time before which it does not start: its id, that time, its payload. Primary key.
_INSERT = """INSERT INTO job (queue, lane, priority, attempts, created_at, time_limit, exclusive, task, id, state, due_at, payload)
 SELECT ?, ?, ?, ?, ?, ?, ?, ?, column1, column2 <= ?, max(column2, ?), column3 FROM (VALUES {})"""
INSERT_DUE = _INSERT.format("(?, ?, ?)")
INSERT_DUE_BLOCK = _INSERT.format(", ".join(["(?, ?, ?)"] * BLOCK))

# What became of ticks: unique by schedule, generation and instant. Primary key.
_TICK = "INSERT INTO tick (at, schedule, generation, until, count, outcome, job) VALUES {}"
TICK = _TICK.format("(?, ?, ?, ?, ?, ?, ?)")
TICK_BLOCK = _TICK.format(", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * BLOCK))

# Schedules go on. Primary key.
MOVE = "UPDATE schedule SET zones = ?1, cursor = ?3, next_at = ?4, recent = ?5 WHERE name = ?2"
MOVE_BLOCK = f"""UPDATE schedule SET zones = ?, cursor = column2, next_at = column3, recent = column4
 FROM (VALUES {", ".join(["(?, ?, ?, ?)"] * BLOCK)}) WHERE name = column1"""


def due(connection: Connection, now: int, limit: int) -> list[DueRow]:
    rows: list[DueRow] = connection.execute(DUE, (now, limit)).fetchall()
    return rows


def unsettled(connection: Connection, jobs: Sequence[bytes]) -> set[bytes]:
    return {id for block in blocks(jobs, BLOCK) for (id,) in connection.execute(UNSETTLED, block)}


def write(connection: Connection, quick: Quick, now: int) -> None:
    """The jobs, their ticks, and how the schedules go on."""
    queue, lane, _, priority, attempts, _, _, limit, exclusive, task = enqueue.shared(quick.spec, now)
    how = (queue, lane, priority, attempts, now, limit, exclusive, task, now, now)
    _write(
        connection,
        INSERT_DUE,
        INSERT_DUE_BLOCK,
        how,
        list(zip(quick.ids, quick.due, quick.payloads, strict=True)),
    )
    same = (quick.at, repeat(1), repeat(FIRED), quick.ids)
    write_ticks(connection, list(zip(quick.at, quick.names, quick.generations, *same, strict=False)))
    move(connection, list(zip(quick.places, quick.at, quick.next_at, quick.recent, strict=True)))


def write_ticks(connection: Connection, ticks: Sequence[TickRow]) -> None:
    _write(connection, TICK, TICK_BLOCK, (), ticks)


def move(connection: Connection, moved: Sequence[Moved]) -> None:
    _write(connection, MOVE, MOVE_BLOCK, (ZONES,), moved)


def _write(
    connection: Connection, one: str, block: str, shared: tuple[Any, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    whole = len(rows) // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        connection.execute(block, (*shared, *chain.from_iterable(rows[start : start + BLOCK])))
    connection.executemany(one, [(*shared, *row) for row in rows[whole:]])
