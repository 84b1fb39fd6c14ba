"""Cancelling jobs in SQLite, as part of a larger transaction: one that waits ends at once, one that runs is told to stop."""

from collections import Counter
from collections.abc import Sequence

from lateshift.model.guard import Guarded, Turns
from lateshift.model.ids import JobId
from lateshift.model.job import Line
from lateshift.store.sqlite import batches, deeds, guarding, runs, settling
from lateshift.store.sqlite.database import Connection

# A running job is told to stop. Primary key.
ORDER_STOP = "UPDATE job SET cancel_by = ? WHERE id = ? AND state = 2 RETURNING 1"


def cancel(
    connection: Connection, ids: Sequence[JobId], by: str, now: int, turns: Turns
) -> tuple[list[JobId], set[Line]]:
    """Which had not ended, and the lines of those whose turn it is now."""
    found: list[JobId] = []
    ended: list[Guarded] = []
    counts: Counter[batches.Ending] = Counter()
    lines: set[Line] = set()
    for id in ids:
        is_run, woken = runs.cancel(connection, id.bytes, by, now)
        lines |= woken
        waited = [] if is_run else settling.cancel_waiting(connection, id, by, now, counts)
        if is_run or waited or connection.execute(ORDER_STOP, (by, id.bytes)).fetchall():
            found.append(id)
        ended += [Guarded(*row[:4]) for row in waited if row[4] is not None]
    deeds.write(connection, now, "cancel", map(str, found), by)
    lines |= guarding.give_on(connection, ended, turns) | batches.count(connection, counts, now)
    return found, lines
