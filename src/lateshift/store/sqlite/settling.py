"""How jobs end: every statement compares the fence, so that a holder who lost its lease changes nothing."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from lateshift.model import saying
from lateshift.model.ids import JobId
from lateshift.model.instants import MICROSECOND
from lateshift.model.job import CAREFUL, Lease, Note, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Settlement
from lateshift.store.guards import BEGUN
from lateshift.store.sqlite.database import Connection
from lateshift.store.sqlite.replies import tell_ended
from lateshift.store.taking import KEEP_CANCELLED, KEEP_LEAST

_MINE = "id = ?1 AND fence = ?2 AND state = 2"
# A completion after the complete-by is refused; that an attempt failed or was stopped may still be said.
_IN_TIME = "(?4 <> 4 OR complete_by IS NULL OR complete_by > ?3)"
# In the order of the table: any other costs a copy of every column.
_GUARDS = "session, turn, sequence, tenant, limit_key, gap_after, holds, batch"
_KEPT = f"""id, queue, lane, state, priority, attempt, attempts, losses, fence, due_at, created_at, time_limit, holder,
 leased_at, settled_at, expires_at, exclusive, task, payload, progress, checkpoint, history, result, reason,
 {_GUARDS}, trace, reply"""
# How long its body ran is kept as the time of its start: it may have waited in its worker's hand.
_MOVED = f"""id, queue, lane, ?4, priority, attempt, attempts, losses, fence, due_at, created_at, time_limit, holder,
 coalesce(max(leased_at, ?3 - ?9), leased_at), ?3, ?3 + ?5, exclusive, task, payload, progress, checkpoint, coalesce(?6, history), ?7, ?8,
 {_GUARDS}, trace, reply"""

Returned = tuple[Lease, bytes | None, int]  # what of, what, and how many microseconds its body ran

# A running job whose lease still holds is settled: copied, then deleted. Primary keys.
COPY = f"""INSERT INTO settled ({_KEPT}) SELECT {_MOVED} FROM job WHERE {_MINE} AND {_IN_TIME}
 ON CONFLICT (id) DO NOTHING"""
DROP = f"DELETE FROM job WHERE {_MINE} AND {_IN_TIME}"
# The same for so many completions with one retention and batch: few statements for many jobs, each of which lets the
# bodies run beside it. Primary keys, by the order of the join.
BLOCK = 100
PARTS = 4  # of each completion: id, fence, result, how long it ran
_SAID = f"""WITH said(id, fence, result, ran) AS (VALUES {", ".join(["(?, ?, ?, ?)"] * BLOCK)}),
 mine AS (SELECT job.*, said.result, said.ran FROM said CROSS JOIN job ON job.id = said.id
  WHERE job.fence = said.fence AND job.state = 2 AND (job.complete_by IS NULL OR job.complete_by > ?))"""


def _copy_block(guards: str) -> str:
    return f"""{_SAID} INSERT INTO settled ({_KEPT})
 SELECT id, queue, lane, 4, priority, attempt, attempts, losses, fence, due_at, created_at, time_limit, holder,
 max(leased_at, ? - ran), ?, ?, exclusive, task, payload, progress, checkpoint, history, result, NULL, {guards}
 FROM mine WHERE true ON CONFLICT (id) DO NOTHING"""


# Of plain lanes, which have no guards to read, and of guarded ones.
COPY_BLOCK = _copy_block("NULL, NULL, NULL, NULL, NULL, NULL, NULL, ?, NULL, NULL")
COPY_GUARDED_BLOCK = _copy_block(f"{_GUARDS.replace('batch', '?')}, NULL, reply")
DROP_BLOCK = f"{_SAID} DELETE FROM job WHERE id IN (SELECT id FROM mine)"
# When all of a block were copied, nothing is left to compare. Primary key.
DROP_THESE = f"DELETE FROM job WHERE id IN ({', '.join('?' * BLOCK)})"
# Whether this very settlement was written before (its answer had been lost). Primary key.
SETTLED_BY = "SELECT 1 FROM settled WHERE id = ? AND fence = ? AND state = ? AND reason IS ?"

# Another attempt follows, unless an operator has cancelled the job. Primary key.
AGAIN = f"""UPDATE job SET state = ?4, due_at = ?5, was_due = NULL, attempt = attempt - ?6, history = coalesce(?7, history),
 turn = {BEGUN}, holder = NULL, leased_at = NULL, complete_by = NULL WHERE {_MINE} AND cancel_by IS NULL RETURNING 1"""
CANCELLED_BY = f"SELECT cancel_by FROM job WHERE {_MINE}"

# A waiting job is cancelled at once. Primary keys.
COPY_WAITING = f"""INSERT INTO settled ({_KEPT}) SELECT {_MOVED} FROM job WHERE id = ?1 AND state IN (0, 1, 3)
 RETURNING queue, task, session, limit_key, tenant, batch"""
DROP_WAITING = "DELETE FROM job WHERE id = ?1 AND state IN (0, 1, 3)"

# The first of the blocked jobs of a key that nobody holds is ready, in each line: one of them may be paused, or served by
# nobody. Which of them runs is decided by who leases first. job_exclusive.
READY_NEXT = """UPDATE job SET state = 1, blocked_by = NULL WHERE id IN (SELECT id FROM (SELECT id,
  row_number() OVER (PARTITION BY queue, lane ORDER BY priority DESC, due_at, id) AS place
  FROM job WHERE exclusive = ?1 AND state = 3 AND blocked_by = exclusive) WHERE place = 1)
 AND NOT EXISTS (SELECT 1 FROM job WHERE exclusive = ?1 AND state = 2)"""


# Keep progress and checkpoint, if the lease still holds; not the same word of progress again, whose time was written. Primary key.
SAVE = """UPDATE job SET checkpoint = coalesce(?4, checkpoint),
 progress = CASE WHEN substr(progress, 1, length(?5)) = ?5 THEN progress ELSE coalesce(?6, progress) END
 WHERE id = ?1 AND fence = ?2 AND state = 2 AND (complete_by IS NULL OR complete_by > ?3) RETURNING 1"""


def save(connection: Connection, notes: Sequence[Note], now: int) -> list[Lease]:
    """Gives the leases that were lost."""
    lost: list[Lease] = []
    for note in notes:
        begun, same = saying.begun(note)
        kept = saying.closed(begun, now - note.ago // MICROSECOND)
        row = (note.lease.id.bytes, note.lease.fence, now, note.checkpoint, same, kept)
        if not connection.execute(SAVE, row).fetchall():
            lost.append(note.lease)
    return lost


def settle(
    connection: Connection, settlements: Sequence[Settlement], now: int, counts: Counter[tuple[bytes, int]]
) -> list[Lease]:
    """Gives the leases that were lost. Of jobs in a session, see guarding.settle. Those of a batch are counted in `counts`,
    by batch and state."""
    completed: dict[tuple[timedelta, UUID | None], list[Returned]] = {}
    final: list[tuple[Lease, tuple[Any, ...]]] = []
    lost: list[Lease] = []
    for settlement in settlements:
        lease = settlement.lease
        match settlement.outcome:
            case Completed(result, keep, _, ran):
                completed.setdefault((keep, lease.batch), []).append((lease, result, int(ran * 1_000_000)))
            case Later() as later if not _again(connection, lease, later, now):
                stopped = connection.execute(CANCELLED_BY, (lease.id.bytes, lease.fence)).fetchall()
                if stopped:
                    cancelled = Cancelled(f"cancelled by {stopped[0][0]}", KEEP_CANCELLED, later.history)
                    final.append((lease, _end(lease, cancelled, now)))
                else:
                    lost.append(lease)
            case Later():
                pass
            case outcome:
                final.append((lease, _end(lease, outcome, now)))
    for (keep, batch), group in completed.items():
        whole = len(group) // BLOCK * BLOCK
        for start in range(0, whole, BLOCK):
            late, written = _complete_block(connection, group[start : start + BLOCK], keep, batch, now)
            lost += late
            if batch is not None:
                counts[batch.bytes, 4] += written
        final += [(one[0], _completion(one, keep, now)) for one in group[whole:]]
    if final:
        before = connection.total_changes()
        if all(lease.batch is None for lease, _ in final):
            connection.executemany(COPY, [row for _, row in final])
        else:
            _copy_counted(connection, final, counts)
        if connection.total_changes() - before < len(final):
            lost += [lease for lease, row in final if not _settled_by(connection, row)]
        tell_ended(connection, [lease.id.bytes for lease, _ in final if lease.lane >= CAREFUL])
        connection.executemany(DROP, [row[:4] for _, row in final])
    for key in {settlement.lease.exclusive for settlement in settlements} - {None}:
        connection.execute(READY_NEXT, (key,))
    return lost


def _complete_block(
    connection: Connection,
    block: Sequence[Returned],
    keep: timedelta,
    batch: UUID | None,
    now: int,
) -> tuple[list[Lease], int]:
    """The leases that were lost, and how many jobs it settled."""
    said = [part for lease, result, ran in block for part in (lease.id.bytes, lease.fence, result, ran)]
    before = connection.total_changes()
    whose = None if batch is None else batch.bytes
    # Either all are plain, or none is.
    copy = COPY_BLOCK if block[0][0].lane < CAREFUL else COPY_GUARDED_BLOCK
    connection.execute(copy, (*said, now, now, now, now + _kept(keep), whose))
    written = connection.total_changes() - before
    if copy is COPY_GUARDED_BLOCK:
        tell_ended(connection, said[::PARTS])
    if written == len(block):
        connection.execute(DROP_THESE, said[::PARTS])
        return [], written
    connection.execute(DROP_BLOCK, (*said, now))
    rows = [(one[0], _completion(one, keep, now)) for one in block]
    return [lease for lease, row in rows if not _settled_by(connection, row)], written


def _copy_counted(
    connection: Connection,
    final: Sequence[tuple[Lease, tuple[Any, ...]]],
    counts: Counter[tuple[bytes, int]],
) -> None:
    """COPY one by one, to see which of them are settled now: one that was before has been counted."""
    for lease, row in final:
        before = connection.total_changes()
        connection.execute(COPY, row)
        if lease.batch is not None and connection.total_changes() > before:
            counts[lease.batch.bytes, row[3]] += 1


def _completion(one: Returned, keep: timedelta, now: int) -> tuple[Any, ...]:
    lease, result, ran = one
    return (lease.id.bytes, lease.fence, now, 4, _kept(keep), None, result, None, ran)


def _end(lease: Lease, outcome: DeadLettered | Cancelled, now: int) -> tuple[Any, ...]:
    state = State.DEAD if isinstance(outcome, DeadLettered) else State.CANCELLED
    ended = (int(state), _kept(outcome.keep), outcome.history, None, outcome.reason)
    return (lease.id.bytes, lease.fence, now, *ended, None)


def _kept(keep: timedelta) -> int:
    return max(keep, KEEP_LEAST) // MICROSECOND


def _again(connection: Connection, lease: Lease, later: Later, now: int) -> bool:
    delay = later.delay // MICROSECOND
    state = int(State.SCHEDULED if delay > 0 else State.READY)
    back = 0 if later.counts else 1
    row = (lease.id.bytes, lease.fence, now, state, now + delay, back, later.history)
    return bool(connection.execute(AGAIN, row).fetchall())


def _settled_by(connection: Connection, row: tuple[Any, ...]) -> bool:
    id, fence, _, state, *_, reason, _ = row
    return bool(connection.execute(SETTLED_BY, (id, fence, state, reason)).fetchall())


def settle_one(
    connection: Connection, settlement: Settlement, now: int, counts: Counter[tuple[bytes, int]]
) -> bool | None:
    """Whether it was written now; None if it is lost."""
    lease, outcome = settlement.lease, settlement.outcome
    match outcome:
        case Completed(result, keep, _, ran):
            row = _completion((lease, result, int(ran * 1_000_000)), keep, now)
        case DeadLettered() | Cancelled():
            row = _end(lease, outcome, now)
        case Later():
            raise TypeError(f"{outcome!r} is no end")
    written = bool(connection.execute(f"{COPY} RETURNING 1", row).fetchall())
    tell_ended(connection, [lease.id.bytes])
    connection.execute(DROP, row[:4])
    if written and lease.batch is not None:
        counts[lease.batch.bytes, row[3]] += 1
    return True if written else False if _settled_by(connection, row) else None


def cancel_waiting(
    connection: Connection,
    id: JobId,
    by: str,
    now: int,
    counts: Counter[tuple[bytes, int]],
    *,
    reason: str | None = None,
) -> list[tuple[Any, ...]]:
    """What it had, if it was there: queue, task, session, limit key, tenant, batch."""
    keep = KEEP_CANCELLED // MICROSECOND
    row = (id.bytes, None, now, int(State.CANCELLED), keep, None, None, reason or f"cancelled by {by}", None)
    moved: list[tuple[Any, ...]] = connection.execute(COPY_WAITING, row).fetchall()
    tell_ended(connection, [id.bytes])
    connection.execute(DROP_WAITING, (id.bytes,))
    for *_, batch in moved:
        if batch is not None:
            counts[batch, int(State.CANCELLED)] += 1
    return moved
