"""Held steps that begin anew, in SQLite: what their dead jobs leave behind, as part of a larger transaction."""

from collections.abc import Mapping, Sequence

from lateshift.model.job import STRETCHES, Line, State
from lateshift.model.workflow.run import GOES_ON
from lateshift.store.sqlite import sessions
from lateshift.store.sqlite.database import Connection

# The jobs of the steps that hold a run. Primary key.
HELD_JOBS = "SELECT path, job FROM step WHERE run = ? AND state = 4 AND job IS NOT NULL"
# A dead letter of which another job is made. A child that goes on where it stood is none. Primary key.
RESOLVE = f"""UPDATE settled SET state = {int(State.CANCELLED)}, reason = ?2 WHERE id = ?1 AND state = {int(State.DEAD)}
 AND NOT (attempts = {STRETCHES} AND reason IN {GOES_ON!r})"""


def held(connection: Connection, run: bytes) -> dict[str, bytes]:
    """The job of each step that holds it, by the path."""
    return dict(connection.execute(HELD_JOBS, (run,)).fetchall())


def resolve(
    connection: Connection, jobs: Mapping[str, bytes], anew: Sequence[tuple[str]], reason: str, now: int
) -> set[Line]:
    """Those of the steps that begin anew are dead letters no more, and hold no session. Gives the lines in which others go on."""
    ids = [jobs[path] for (path,) in anew if path in jobs]
    connection.executemany(RESOLVE, [(id, reason) for id in ids])
    return sessions.ready_next(connection, sessions.let_go(connection, ids, now))
