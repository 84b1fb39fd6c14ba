"""Cancelling jobs in PostgreSQL, as part of a larger transaction: one that waits ends at once, one that runs is told to stop."""

from collections.abc import Sequence
from datetime import timedelta

from lateshift.model.guard import Guarded, Limits, Turns
from lateshift.model.ids import JobId
from lateshift.model.job import Line
from lateshift.store.postgres import guarding, runs, sessions, settling
from lateshift.store.postgres.database import Connection
from lateshift.store.postgres.deeds import Lines

# Running jobs are told to stop. Primary key.
ORDER_STOP = "UPDATE lateshift.job SET cancel_by = %s WHERE id = ANY(%s) AND state = 2 RETURNING id"
# What these leave to others when they end. Primary key.
GUARDED = (
    "SELECT queue, task, session, limit_key FROM lateshift.job WHERE id = ANY(%s) AND tenant IS NOT NULL"
)


def cancel(
    connection: Connection, ids: Sequence[JobId], by: str, skew: timedelta, turns: Turns, told: Lines
) -> tuple[set[JobId], set[Line]]:
    """Which had not ended, and the lines of those whose turn it is now. `told`: the audit, of it."""
    freed = lock_guards(connection, ids)
    begun, woken = runs.cancel(connection, ids, by, skew)
    others = [id for id in ids if id not in begun]
    found, ended = settling.cancel_waiting(connection, others, by, skew)
    found |= begun | {id for (id,) in connection.execute(ORDER_STOP, (by, others)).fetchall()}
    lines = guarding.give_on(connection, ended, freed, turns)
    told.write("cancel", map(str, found), by)
    return found, lines | woken


def lock_guards(connection: Connection, ids: Sequence[JobId]) -> Limits:
    """What those with guards leave to others is given on while nobody else looks."""
    guarded = [Guarded(*row) for row in connection.execute(GUARDED, (list(ids),)).fetchall()]
    sessions.lock(connection, [job.queue for job in guarded])
    return guarding.lock_limits(connection, guarded)
