"""Schedules that are due in PostgreSQL: found, and what was decided about them written."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from psycopg import Cursor
from psycopg.errors import SerializationFailure

from lateshift.model.scheduling.schedule import NO_JOB
from lateshift.model.scheduling.zones import ZONES
from lateshift.store.firing import FIRED, DueRow, Moved, Quick, TickRow
from lateshift.store.postgres import enqueue
from lateshift.store.postgres.arrays import BigInts, Blobs, Ids, Instants, Places, Texts
from lateshift.store.postgres.database import Connection

Sent: TypeAlias = tuple[Cursor[Any], int]
"""Schedules on their way, and how many."""

LIVE = "next_at IS NOT NULL AND paused_at IS NULL AND removed_at IS NULL"

# Those that are due, the first of them first; what another scheduler decides is passed over. schedule_due.
DUE = f"""SELECT name, plan, spec, payload, guards, generation, next_at, recent, ctid FROM lateshift.schedule
 WHERE {LIVE} AND next_at <= %(now)s ORDER BY next_at, name LIMIT %(limit)s FOR UPDATE SKIP LOCKED"""
# Which of these jobs have not ended. Primary key.
UNSETTLED = "SELECT id FROM lateshift.job WHERE id = ANY(%b::uuid[])"

# Plain jobs of one spec, each with a time before which it does not start. Primary key.
INSERT_DUE = """WITH times AS MATERIALIZED (SELECT clock_timestamp() + %(skew)s::interval AS now)
INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, exclusive, task, payload)
SELECT id, %(queue)s::text, %(lane)s::smallint, CASE WHEN due > now THEN 0 ELSE 1 END, %(priority)s::smallint,
 %(attempts)s::int, greatest(due, now), now, %(limit)s::interval, %(exclusive)s::text, %(task)s::text, payload
FROM times, unnest(%(ids)b::uuid[], %(due)b::timestamptz[], %(payloads)b::bytea[]) AS new (id, due, payload)"""
# What became of ticks: unique by schedule, generation and instant. Primary key.
TICK = """INSERT INTO lateshift.tick (at, schedule, generation, until, count, outcome, job)
 SELECT at, schedule, generation, until, count, outcome, nullif(job, '00000000-0000-0000-0000-000000000000'::uuid)
 FROM unnest(%b::timestamptz[], %b::text[], %b::bigint[], %b::timestamptz[], %b::bigint[], %b::bigint[], %b::uuid[])
 AS t (at, schedule, generation, until, count, outcome, job)"""
# Ticks that have each made a job. Primary key.
TICK_FIRED = f"""INSERT INTO lateshift.tick (at, schedule, generation, until, count, outcome, job)
 SELECT at, schedule, generation, at, 1, {FIRED:d}, job
 FROM unnest(%b::timestamptz[], %b::text[], %b::bigint[], %b::uuid[]) AS t (at, schedule, generation, job)"""
# Schedules go on. They are locked, so that each is still where it was found.
MOVE = """UPDATE lateshift.schedule s SET cursor = m.cursor, next_at = m.next_at, recent = m.recent, zones = %(zones)s
 FROM unnest(%(places)b::tid[], %(cursors)b::timestamptz[], %(nexts)b::timestamptz[], %(recent)b::bytea[])
 AS m (place, cursor, next_at, recent) WHERE s.ctid = m.place"""


def due(connection: Connection, now: datetime, limit: int) -> list[DueRow]:
    rows: list[DueRow] = connection.execute(DUE, {"now": now, "limit": limit}, binary=True).fetchall()
    return rows


def unsettled(connection: Connection, jobs: Sequence[bytes]) -> set[bytes]:
    if not jobs:
        return set()
    return {id.bytes for (id,) in connection.execute(UNSETTLED, (Ids(jobs),)).fetchall()}


def write(connection: Connection, quick: Quick, skew: timedelta) -> Sent:
    """The jobs, their ticks, and how the schedules go on."""
    queue, lane, priority, attempts, limit, exclusive, task = enqueue.shared(quick.spec)
    how = {
        "queue": queue, "lane": lane, "priority": priority, "attempts": attempts, "limit": limit, "exclusive": exclusive,
        "task": task, "skew": skew,
    }  # fmt: skip
    ids, at = Ids(quick.ids), Instants(quick.at)
    connection.execute(
        INSERT_DUE, {**how, "ids": ids, "due": Instants(quick.due), "payloads": Blobs(quick.payloads)}
    )
    connection.execute(TICK_FIRED, (at, Texts(quick.names), BigInts(quick.generations), ids))
    return _move(connection, quick.places, quick.at, quick.next_at, quick.recent)


def write_ticks(connection: Connection, ticks: Sequence[TickRow]) -> None:
    if ticks:
        at, names, generations, until, counts, outcomes, jobs = zip(*ticks, strict=True)
        numbers = BigInts(counts), BigInts(outcomes), Ids(job or NO_JOB for job in jobs)
        connection.execute(
            TICK, (Instants(at), Texts(names), BigInts(generations), Instants(until), *numbers)
        )


def move(connection: Connection, moved: Sequence[Moved]) -> list[Sent]:
    return [_move(connection, *zip(*moved, strict=True))] if moved else []


def _move(
    connection: Connection,
    places: Sequence[bytes],
    cursors: Sequence[int],
    nexts: Sequence[int | None],
    recent: Sequence[bytes],
) -> Sent:
    columns = Places(places), Instants(cursors), Instants(nexts), Blobs(recent)
    said = dict(zip(("places", "cursors", "nexts", "recent"), columns, strict=True))
    return connection.execute(MOVE, {**said, "zones": ZONES}), len(places)


def refuse_lost(sent: Iterable[Sent]) -> None:
    """None of them may have been elsewhere: it would have made its job, and would make it again. The whole is run again."""
    if any(cursor.rowcount != count for cursor, count in sent):
        raise SerializationFailure("a schedule was not where it was found")
