"""How jobs end: every statement compares the fence, so that a holder who lost its lease changes nothing."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct
from psycopg import Cursor

from lateshift.model import saying
from lateshift.model.guard import Guarded
from lateshift.model.ids import JobId
from lateshift.model.job import Lease, Note, State
from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome, Settlement
from lateshift.store.postgres.arrays import BigInts, Blobs, Uuids
from lateshift.store.postgres.database import Connection
from lateshift.store.taking import KEEP_CANCELLED, KEEP_LEAST

_PLAIN = """id, queue, lane, priority, attempt, attempts, losses, fence, due_at, created_at, time_limit, holder,
 leased_at, exclusive, task, payload, progress, checkpoint"""
KEPT = f"{_PLAIN}, session, turn, sequence, gap_after, holds, tenant, limit_key, batch, trace, reply"


def of(table: str, columns: str) -> str:
    return ", ".join(f"{table}.{column.strip()}" for column in columns.split(","))


GONE = of("gone", KEPT)
_NOW = "clock_timestamp() + %(skew)s::interval"
# What was said of a job stands at its place in arrays sorted by id, found by bisection. No statement joins: a join's plan
# is a guess, kept while the tables change, and the wrong one compares all with all. Running is having a holder.
_PLACE = "width_bucket(j.id, %(ids)b::uuid[])"
_MINE = f"j.id = ANY(%(ids)b::uuid[]) AND j.fence = (%(fences)b::bigint[])[{_PLACE}] AND j.holder IS NOT NULL"
# A completion after the complete-by is refused; that an attempt failed or was stopped may still be said.
_IN_TIME = f"(j.complete_by IS NULL OR j.complete_by > {_NOW})"


def counted(number: str, state: str, failures: str) -> str:
    """How many of the jobs that are gone belong to which batches, as a part of the statement that moves them: a job that is
    not moved is not counted. See batches.py."""
    return f"""counted AS (INSERT INTO lateshift.batch_count (batch, completed, failed, cancelled, failures)
 SELECT gone.batch, {number} FILTER (WHERE {state} = 4), {number} FILTER (WHERE {state} = 6),
 {number} FILTER (WHERE {state} = 5), {failures} FROM gone WHERE gone.batch IS NOT NULL GROUP BY gone.batch)"""


def _failures(state: str) -> str:
    return f"count(*) FILTER (WHERE {state} = 6)"


# How long its body ran is kept as the time of its start: it may have waited in its worker's hand.
_BEGUN = f"greatest(gone.leased_at, {_NOW} - (%(ran)b::bigint[])[gone.place] * interval '1 microsecond')"


def _complete_with(columns: str) -> str:
    return f"""WITH gone AS (DELETE FROM lateshift.job j WHERE {_MINE} AND {_IN_TIME}
 RETURNING {of("j", columns)}, j.history, {_PLACE} AS place)
INSERT INTO lateshift.settled ({columns}, history, state, settled_at, expires_at, result)
SELECT {of("gone", columns).replace("gone.leased_at", _BEGUN)}, gone.history, 4, {_NOW}, {_NOW} + %(keep)s::interval,
 (%(results)b::bytea[])[gone.place]
FROM gone"""


# Completed jobs whose leases still hold are settled with their results; of plain lanes and no batch, then of any.
# Primary keys.
COMPLETE = _complete_with(_PLAIN)
COMPLETE_ANY = _complete_with(KEPT)
COMPLETE_OF_BATCH = COMPLETE_ANY.replace("\nINSERT", f",\n{counted('count(*)', '4', '0')}\nINSERT")

# The same, saying which: for those that leave something to others.
COMPLETE_TELLING = f"{COMPLETE_ANY} RETURNING id, fence"
COMPLETE_OF_BATCH_TELLING = f"{COMPLETE_OF_BATCH} RETURNING id, fence"
_OF_BATCH = {
    COMPLETE: COMPLETE_OF_BATCH, COMPLETE_ANY: COMPLETE_OF_BATCH, COMPLETE_TELLING: COMPLETE_OF_BATCH_TELLING,
}  # fmt: skip

# The same for any end, with its reason and history. Primary keys.
END = f"""WITH gone AS (DELETE FROM lateshift.job j WHERE {_MINE} RETURNING j.*, {_PLACE} AS place)
INSERT INTO lateshift.settled ({KEPT}, history, state, settled_at, expires_at, reason)
SELECT {GONE}, coalesce((%(histories)b::bytea[])[gone.place], gone.history), (%(states)b::smallint[])[gone.place],
 {_NOW}, {_NOW} + (%(keeps)s::interval[])[gone.place], (%(reasons)s::text[])[gone.place]
FROM gone RETURNING id, fence"""
_SAID = "(%(states)b::smallint[])[gone.place]"
END_OF_BATCH = END.replace("\nINSERT", f",\n{counted('count(*)', _SAID, _failures(_SAID))}\nINSERT")

# Another attempt follows, unless an operator has cancelled the job. Primary key.
AGAIN = f"""UPDATE lateshift.job j SET
 state = CASE WHEN (%(delays)s::interval[])[{_PLACE}] > interval '0' THEN 0 ELSE 1 END,
 due_at = {_NOW} + (%(delays)s::interval[])[{_PLACE}], was_due = NULL, attempt = j.attempt - (%(backs)b::bigint[])[{_PLACE}]::int,
 history = coalesce((%(histories)b::bytea[])[{_PLACE}], j.history),
 holder = NULL, leased_at = NULL, complete_by = NULL
WHERE {_MINE} AND j.cancel_by IS NULL RETURNING j.id, j.fence"""
CANCELLED_BY = (
    "SELECT id, cancel_by FROM lateshift.job WHERE id = ANY(%s) AND state = 2 AND cancel_by IS NOT NULL"
)

# Whether these very settlements were written before (their answer had been lost). Primary key.
SETTLED_BY = f"""SELECT j.id, j.fence FROM lateshift.settled j WHERE j.id = ANY(%(ids)b::uuid[])
 AND j.fence = (%(fences)b::bigint[])[{_PLACE}] AND j.state = (%(states)b::smallint[])[{_PLACE}]
 AND j.reason IS NOT DISTINCT FROM (%(reasons)s::text[])[{_PLACE}]"""

# Jobs that stand among the settled too. It should not be, but must not keep others from being settled. Primary keys.
DROP_SETTLED = """DELETE FROM lateshift.job WHERE id = ANY(ARRAY(
 SELECT id FROM lateshift.settled WHERE id = ANY(%s::uuid[])))"""

# Waiting jobs are cancelled at once. Primary keys.
CANCEL_WAITING = f"""WITH gone AS (DELETE FROM lateshift.job WHERE id = ANY(%(ids)b::uuid[]) AND state IN (0, 1, 3)
  RETURNING *),
{counted("count(*)", "5", "0")}
INSERT INTO lateshift.settled ({KEPT}, history, state, settled_at, expires_at, reason)
SELECT {GONE}, gone.history, 5, {_NOW}, {_NOW} + %(keep)s::interval, %(reason)s::text FROM gone
RETURNING id, queue, task, session, limit_key, tenant"""

# The first of the blocked jobs of a key that nobody holds is ready, in each line: one of them may be paused, or served by
# nobody. Which of them runs is decided by who leases first. job_exclusive.
READY_NEXT = """UPDATE lateshift.job SET state = 1, blocked_by = NULL WHERE id = ANY(ARRAY(SELECT DISTINCT ON (queue, lane) id
  FROM lateshift.job WHERE exclusive = %(key)s AND state = 3 AND blocked_by = exclusive ORDER BY queue, lane, priority DESC, due_at, id))
 AND NOT EXISTS (SELECT 1 FROM lateshift.job WHERE exclusive = %(key)s AND state = 2)"""
WAIT_FOR_KEY = "SELECT pg_advisory_xact_lock(hashtextextended('lateshift ' || %s, 0))"


class Sent(Struct, frozen=True):
    """Statements on their way, and what each of them settles."""

    cursor: Cursor[Any]
    settlements: list[Settlement]


# Keep progress and checkpoint, if the lease still holds; not the same word of progress again, whose time was written. Primary key.
SAVE = f"""UPDATE lateshift.job SET checkpoint = coalesce(%(checkpoint)s::bytea, checkpoint),
 progress = CASE WHEN substr(progress, 1, length(%(same)s::bytea)) = %(same)s::bytea THEN progress
 ELSE coalesce(%(begun)s::bytea || convert_to((extract(epoch FROM {_NOW} - %(ago)s::interval) * 1000000)::bigint || '}}', 'UTF8'),
 progress) END WHERE id = %(id)s AND fence = %(fence)s AND state = 2 AND (complete_by IS NULL OR complete_by > {_NOW}) RETURNING 1"""


def save(connection: Connection, notes: Sequence[Note], skew: timedelta) -> list[tuple[Lease, Cursor[Any]]]:
    """Queue the statements in the caller's pipeline, in the order in which a courier takes progress: no deadlocks."""
    ordered = sorted(notes, key=lambda note: note.lease.id)
    return [(note.lease, connection.execute(SAVE, _saved(note, skew))) for note in ordered]


def _saved(note: Note, skew: timedelta) -> dict[str, Any]:
    begun, same = saying.begun(note)
    mine = {"id": note.lease.id, "fence": note.lease.fence, "skew": skew}
    return {**mine, "checkpoint": note.checkpoint, "begun": begun, "same": same, "ago": note.ago}


def send(
    connection: Connection, settlements: Sequence[Settlement], skew: timedelta, complete: str = COMPLETE
) -> list[Sent]:
    """Queue the statements in the caller's pipeline: one for each kind of end. `complete`: the statement for those of
    a guarded lane, or the one that says what it wrote."""
    settlements = sorted(settlements, key=_by_id)
    completed: dict[timedelta, list[Settlement]] = {}
    ended: list[Settlement] = []
    later: list[Settlement] = []
    for settlement in settlements:
        outcome = settlement.outcome
        if type(outcome) is Completed:
            completed.setdefault(max(outcome.keep, KEEP_LEAST), []).append(settlement)
        elif type(outcome) is Later:
            later.append(settlement)
        else:
            ended.append(settlement)
    sent = [
        Sent(_complete(connection, complete, group, keep, skew), group) for keep, group in completed.items()
    ]
    if ended:
        sent.append(Sent(_end(connection, ended, skew), ended))
    if later:
        sent.append(Sent(_again(connection, later, skew), later))
    return sent


def receive(connection: Connection, sent: Sequence[Sent], skew: timedelta) -> list[Lease]:
    """Gives the leases that were lost."""
    missing: list[Settlement] = []
    for group in sent:
        if group.cursor.rowcount < len(group.settlements):
            # Completions give no rows back, which saves their way: whether they were written is looked into.
            written = set(group.cursor.fetchall() if group.cursor.description else ())
            missing += [settlement for settlement in group.settlements if _named(settlement) not in written]
    return _look_into(connection, missing, skew) if missing else []


def receive_telling(
    connection: Connection, sent: Sequence[Sent], skew: timedelta
) -> tuple[list[Lease], list[Settlement]]:
    """The leases that were lost, and what was written now. Not what was written before, and had its answer lost."""
    written: list[Settlement] = []
    missing: list[Settlement] = []
    for group in sent:
        now = set(group.cursor.fetchall())
        for settlement in group.settlements:
            (written if _named(settlement) in now else missing).append(settlement)
    return _look_into(connection, missing, skew) if missing else [], written


def cancel_waiting(
    connection: Connection, ids: Sequence[JobId], by: str, skew: timedelta, *, reason: str | None = None
) -> tuple[set[JobId], list[Guarded]]:
    """Which it found, and what those with guards leave to others."""
    reason = reason or f"cancelled by {by}"
    parameters = {"ids": list(ids), "skew": skew, "keep": KEEP_CANCELLED, "reason": reason}
    rows = connection.execute(CANCEL_WAITING, parameters).fetchall()
    return {row[0] for row in rows}, [Guarded(*row[1:5]) for row in rows if row[5] is not None]


def _complete(
    connection: Connection, sql: str, group: Sequence[Settlement], keep: timedelta, skew: timedelta
) -> Cursor[Any]:
    outcomes = [settlement.outcome for settlement in group if type(settlement.outcome) is Completed]
    results = Blobs(outcome.result for outcome in outcomes)
    ran = BigInts(int(outcome.ran * 1_000_000) for outcome in outcomes)
    if results.count(None) == len(results):  # beyond the end of an array is NULL: nothing to search
        results.clear()
    if any(settlement.lease.batch is not None for settlement in group):
        sql = _OF_BATCH[sql]
    told = {**_leases(group, skew), "results": results, "ran": ran, "keep": keep}
    return connection.execute(sql, told, binary=True)


def _end(connection: Connection, group: Sequence[Settlement], skew: timedelta) -> Cursor[Any]:
    states: list[int] = []
    reasons: list[str] = []
    histories = Blobs()
    keeps: list[timedelta] = []
    for settlement in group:
        match settlement.outcome:
            case DeadLettered(reason, history, keep):
                states.append(int(State.DEAD))
            case Cancelled(reason, keep, history):
                states.append(int(State.CANCELLED))
            case outcome:
                raise TypeError(f"{outcome!r} is no end")
        reasons.append(reason)
        histories.append(history)
        keeps.append(max(keep, KEEP_LEAST))
    rest = {"states": states, "reasons": reasons, "histories": histories, "keeps": keeps}
    sql = END if all(settlement.lease.batch is None for settlement in group) else END_OF_BATCH
    return connection.execute(sql, _leases(group, skew) | rest, binary=True)


def _again(connection: Connection, group: Sequence[Settlement], skew: timedelta) -> Cursor[Any]:
    later = [settlement.outcome for settlement in group if type(settlement.outcome) is Later]
    rest = {
        "delays": [outcome.delay for outcome in later],
        "backs": BigInts(0 if outcome.counts else 1 for outcome in later),
        "histories": Blobs(outcome.history for outcome in later),
    }
    return connection.execute(AGAIN, _leases(group, skew) | rest, binary=True)


def _leases(group: Sequence[Settlement], skew: timedelta) -> dict[str, Any]:
    return {
        "ids": Uuids(settlement.lease.id for settlement in group),
        "fences": BigInts(settlement.lease.fence for settlement in group),
        "skew": skew,
    }


def _look_into(connection: Connection, missing: Sequence[Settlement], skew: timedelta) -> list[Lease]:
    """Not written now: because an operator cancelled the job, because it was written before, or because it is lost."""
    missing = sorted(missing, key=_by_id)
    ids = Uuids(settlement.lease.id for settlement in missing)
    by: dict[JobId, str] = dict(connection.execute(CANCELLED_BY, (ids,)).fetchall())
    said = [
        Settlement(lease, Cancelled(f"cancelled by {by[lease.id]}", KEEP_CANCELLED, outcome.history))
        if isinstance(outcome := settlement.outcome, Later) and (lease := settlement.lease).id in by
        else settlement
        for settlement in missing
    ]
    stopped = [new for old, new in zip(missing, said, strict=True) if new is not old]
    if stopped:
        _end(connection, stopped, skew)
    ends = [(settlement.lease, _end_of(settlement.outcome)) for settlement in said]
    parameters = {
        "ids": ids,
        "fences": BigInts(lease.fence for lease, _ in ends),
        "states": [state for _, (state, _) in ends],
        "reasons": [reason for _, (_, reason) in ends],
    }
    settled = set(connection.execute(SETTLED_BY, parameters).fetchall())
    return [settlement.lease for settlement in missing if _named(settlement) not in settled]


def _named(settlement: Settlement) -> tuple[JobId, int]:
    return settlement.lease.id, settlement.lease.fence


def _by_id(settlement: Settlement) -> tuple[int, int]:
    return settlement.lease.id.int, settlement.lease.fence


def _end_of(outcome: Outcome) -> tuple[int | None, str | None]:
    """The state and reason with which this outcome settles a job."""
    match outcome:
        case Completed():
            return int(State.COMPLETED), None
        case DeadLettered(reason, _, _):
            return int(State.DEAD), reason
        case Cancelled(reason, _, _):
            return int(State.CANCELLED), reason
        case Later():
            return None, None
