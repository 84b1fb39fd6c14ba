"""Held steps that begin anew, in PostgreSQL: what their dead jobs leave behind, as part of a larger transaction."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from lateshift.model.ids import JobId
from lateshift.model.job import STRETCHES, Line, State
from lateshift.model.workflow.run import GOES_ON
from lateshift.store.postgres import sessions
from lateshift.store.postgres.database import Connection

# The jobs of the steps that hold a run, and the queues in which they may hold sessions. Primary keys.
HELD_JOBS = "SELECT path, job FROM lateshift.step WHERE run = %s AND state = 4 AND job IS NOT NULL"
GUARDED_QUEUES = "SELECT DISTINCT queue FROM lateshift.settled WHERE id = ANY(%s) AND tenant IS NOT NULL"
# Dead letters of which other jobs are made. A child that goes on where it stood is none. Primary key.
RESOLVE = f"""UPDATE lateshift.settled SET state = {int(State.CANCELLED)}, reason = %(reason)s WHERE id = ANY(%(ids)s::uuid[])
 AND state = {int(State.DEAD)} AND NOT (attempts = {STRETCHES} AND reason IN {GOES_ON!r})"""


def held(connection: Connection, run: JobId) -> dict[str, JobId]:
    """The job of each step that holds it, by the path. Their queues are ours until the transaction ends: before any row is touched, as
    everybody does who gives turns on."""
    jobs = dict(connection.execute(HELD_JOBS, (run,)).fetchall())
    if jobs:
        queues = connection.execute(GUARDED_QUEUES, (list(jobs.values()),)).fetchall()
        sessions.lock(connection, [queue for (queue,) in queues])
    return jobs


def resolve(
    connection: Connection,
    jobs: Mapping[str, JobId],
    anew: Sequence[tuple[str]],
    reason: str,
    skew: timedelta,
) -> set[Line]:
    """Those of the steps that begin anew are dead letters no more, and hold no session. Gives the lines in which others go on."""
    ids = sorted(jobs[path] for (path,) in anew if path in jobs)
    if not ids:
        return set()
    connection.execute(RESOLVE, {"ids": ids, "reason": reason})
    return sessions.ready_next(connection, sessions.let_go(connection, ids, skew))
