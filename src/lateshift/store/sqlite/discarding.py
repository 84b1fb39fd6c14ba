"""Dead letters that nobody wants any more, in SQLite: deleted as retention would, and told in the audit."""

from collections.abc import Sequence

from lateshift.model.discard import Discarded, Kept
from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND
from lateshift.store.sqlite import deeds
from lateshift.store.sqlite.database import Connection, Database
from lateshift.store.sqlite.upkeep import forget
from lateshift.store.taking import KEEP_LEAST

# What still needs one: a repeat of its enqueue, its session, the run that it is a step of, its own steps. Primary keys; session_held,
# job_batch.
_WHY = """CASE WHEN s.created_at > ?2 THEN 'new' WHEN EXISTS (SELECT 1 FROM session WHERE held_by = s.id) THEN 'session'
 WHEN EXISTS (SELECT 1 FROM job WHERE job.id = s.batch) THEN 'step' WHEN EXISTS (SELECT 1 FROM job WHERE job.batch = s.id) THEN 'run' END"""
# A dead letter that nothing needs, and nothing else. Primary key.
DISCARD_DEAD = f"DELETE FROM settled AS s WHERE id = ?1 AND state = 6 AND {_WHY} IS NULL RETURNING id"
# Why a dead letter stays; NULL if it need not. Primary key.
WHY_KEPT = f"SELECT {_WHY} FROM settled s WHERE id = ?1 AND state = 6"


def discard(database: Database, ids: Sequence[JobId], by: str) -> Discarded:
    done = Discarded()
    with database.write() as connection:
        now = database.clock.microseconds()
        for id in ids:
            if connection.execute(DISCARD_DEAD, (id.bytes, _made_before(now))).fetchall():
                done.ids.append(id)
        forget(connection, [(id.bytes,) for id in done.ids])
        deeds.write(connection, now, "discard", map(str, done.ids), by)
        gone = set(done.ids)
        found = _look(connection, [id for id in ids if id not in gone], now)
        done.kept = {id: why or Kept.OTHER for id, why in found.items()}
    return done


def kept(database: Database, ids: Sequence[JobId]) -> dict[JobId, Kept]:
    with database.read() as connection:
        found = _look(connection, ids, database.clock.microseconds())
    return {id: why for id, why in found.items() if why is not None}


def _look(connection: Connection, ids: Sequence[JobId], now: int) -> dict[JobId, Kept | None]:
    found = {id: connection.execute(WHY_KEPT, (id.bytes, _made_before(now))).fetchall() for id in ids}
    return {
        id: Kept.OTHER if not rows else None if rows[0][0] is None else Kept(rows[0][0])
        for id, rows in found.items()
    }


def _made_before(now: int) -> int:
    return now - KEEP_LEAST // MICROSECOND
