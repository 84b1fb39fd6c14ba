"""Dead letters that nobody wants any more, in PostgreSQL: deleted as retention would, and told in the audit."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lateshift.model.discard import Kept
from lateshift.model.ids import JobId
from lateshift.store.postgres.arrays import Uuids
from lateshift.store.postgres.database import Connection
from lateshift.store.postgres.deeds import Lines
from lateshift.store.postgres.upkeep import IS_TOLD, forget
from lateshift.store.taking import KEEP_LEAST

# What still needs one: a repeat of its enqueue, its session, the run that it is a step of or that has not been told of it, its own
# steps. All of it is there when a job dies, in the same commit, and comes later to none: what was true when its row was read stays
# true until the row is locked. Primary keys; session_held, job_batch, batch_count_batch.
_WHY = f"""CASE WHEN s.created_at > (SELECT clock_timestamp() + %(skew)s::interval - %(least)s::interval) THEN 'new'
 WHEN (SELECT true FROM lateshift.session k WHERE k.held_by = s.id LIMIT 1) THEN 'session'
 WHEN (SELECT true FROM lateshift.job r WHERE r.id = s.batch) OR NOT ({IS_TOLD}) THEN 'step'
 WHEN (SELECT true FROM lateshift.job j WHERE j.batch = s.id LIMIT 1) THEN 'run' END"""
# Dead letters that nothing needs, and nothing else. Primary key.
DISCARD_DEAD = f"""DELETE FROM lateshift.settled s WHERE id = ANY(%(ids)b::uuid[]) AND state = 6 AND {_WHY} IS NULL
 RETURNING id"""
# Why dead letters stay; NULL if they need not. Primary key.
WHY_KEPT = f"SELECT id, {_WHY} FROM lateshift.settled s WHERE id = ANY(%(ids)b::uuid[]) AND state = 6"


def discard(
    connection: Connection, ids: Sequence[JobId], by: str, skew: timedelta, told: Lines
) -> set[JobId]:
    """Which are gone. `told`: the audit, of it."""
    gone = {id for (id,) in connection.execute(DISCARD_DEAD, _asked(ids, skew)).fetchall()}
    forget(connection, sorted(gone))
    told.write("discard", map(str, sorted(gone)), by)
    return gone


def kept(connection: Connection, ids: Sequence[JobId], skew: timedelta) -> dict[JobId, Kept | None]:
    """Of each, why it stays; None if nothing keeps it."""
    rows = connection.execute(WHY_KEPT, _asked(ids, skew)).fetchall() if ids else []
    found = {id: None if why is None else Kept(why) for id, why in rows}
    return {id: found.get(id, Kept.OTHER) for id in ids}


def _asked(ids: Sequence[JobId], skew: timedelta) -> dict[str, Any]:
    return {"ids": Uuids(ids), "skew": skew, "least": KEEP_LEAST}
