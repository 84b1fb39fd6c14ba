"""Who is there already: each identity names one job, which stands for its duplicates as long as its own rule says. That is
judged here, when another comes; leasing and settling know nothing of it. Runs on a caller's connection too."""

from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from lateshift.model.job import Enqueued, NewJob
from lateshift.store.taking import IDENTITY_KEPT

_NOW = "clock_timestamp() + %s::interval"

# Take identities that are free, lock those that are not, and say whose each is. In the order of the identities, so that two
# callers never wait for each other in a circle. Primary key.
TAKE_IDENTITIES = f"""INSERT INTO lateshift.job_identity AS i (identity, job_id, scope, until, expires_at)
SELECT new.identity, new.job_id, new.scope, at + new.kept, at + greatest(new.kept, %s::interval)
FROM (SELECT {_NOW} AS at OFFSET 0) clock,
 unnest(%b::uuid[], %b::uuid[], %s::smallint[], %s::interval[]) AS new (identity, job_id, scope, kept)
ORDER BY new.identity
ON CONFLICT (identity) DO UPDATE SET job_id = i.job_id RETURNING i.identity::text, i.job_id::text"""

# Free, of identities that are locked, those whose job stands for nobody any more: by its state, by its window, or because it
# was cancelled. A statement of its own, which sees what the holder of the lock before us has written. Primary keys.
FREE_IDENTITIES = f"""DELETE FROM lateshift.job_identity i WHERE i.identity = ANY(%b::uuid[])
 AND (i.until <= (SELECT {_NOW}) OR (SELECT s.state FROM lateshift.settled s WHERE s.id = i.job_id) = 5)
 AND (SELECT i.scope = 2 OR i.scope = 1 AND j.state <> 2 FROM lateshift.job j WHERE j.id = i.job_id) IS NOT TRUE
RETURNING i.identity::text"""

# Which of the jobs that may have been sent before are there. Primary keys.
KNOWN_JOBS = """SELECT id::text FROM lateshift.job WHERE id = ANY(%s::uuid[])
 UNION ALL SELECT id::text FROM lateshift.settled WHERE id = ANY(%s::uuid[])"""

# An identity that this call took for a job that is not inserted. Primary keys.
GIVE_UP = """DELETE FROM lateshift.job_identity WHERE identity = %s::uuid AND job_id = %s::uuid
 AND NOT EXISTS (SELECT 1 FROM lateshift.job WHERE id = %s::uuid)
 AND NOT EXISTS (SELECT 1 FROM lateshift.settled WHERE id = %s::uuid)"""

# A key that this call took names the job that is there. Primary key.
RELET_KEY = """UPDATE lateshift.job_key SET job_id = %s::uuid
 WHERE task = %s::text AND text = %s::text AND job_id = %s::uuid"""


def keep_first(
    jobs: Sequence[NewJob], answers: list[Enqueued], skew: timedelta, again: bool
) -> Generator[tuple[str, Sequence[Any]], list[tuple[Any, ...]], list[NewJob]]:
    """Of the jobs to insert, those that are no duplicates; the answers to the others are changed to name the job that is
    there."""
    repeated = [job.id for job in jobs if job.unique is not None and (again or not job.first)]
    known: set[UUID] = set()
    if repeated:
        known = {UUID(id) for (id,) in (yield KNOWN_JOBS, [(repeated, repeated)])}
    first: dict[UUID, NewJob] = {}
    for job in jobs:
        if job.unique is not None and job.id not in known:
            first.setdefault(UUID(bytes=job.unique.digest), job)
    if not first:
        return list(jobs)
    owners = _pairs((yield TAKE_IDENTITIES, [_columns(first, skew)]))
    held = [identity for identity, job in first.items() if owners[identity] != job.id]
    if held and (rows := (yield FREE_IDENTITIES, [(held, skew)])):
        freed = {identity: first[identity] for (text,) in rows for identity in (UUID(text),)}
        owners |= _pairs((yield TAKE_IDENTITIES, [_columns(freed, skew)]))
    instead: dict[UUID, UUID] = {}
    for job in jobs:
        if job.unique is not None and job.id not in known:
            owner = owners[UUID(bytes=job.unique.digest)]
            if owner != job.id:
                instead[job.id] = owner
    if not instead:
        return list(jobs)
    for job in jobs:
        if job.id in instead and job.key is not None:
            yield RELET_KEY, [(instead[job.id], job.spec.task, job.key.text, job.id)]
    answers[:] = [
        Enqueued(instead[each.id], created=False) if each.id in instead else each for each in answers
    ]
    return [job for job in jobs if job.id not in instead]


def give_up(jobs: Sequence[NewJob]) -> Generator[tuple[str, Sequence[Any]], list[tuple[Any, ...]], None]:
    """The call fails, and its caller may commit all the same: no identity without its job."""
    for job in jobs:
        if job.unique is not None:
            yield GIVE_UP, [(UUID(bytes=job.unique.digest), job.id, job.id, job.id)]


def _columns(jobs: dict[UUID, NewJob], skew: timedelta) -> tuple[Any, ...]:
    """What TAKE_IDENTITIES is told of these jobs, by their identities."""
    ids = [job.id for job in jobs.values()]
    rules = [job.unique for job in jobs.values() if job.unique is not None]
    scopes, windows = [int(rule.scope) for rule in rules], [rule.window for rule in rules]
    return IDENTITY_KEPT, skew, list(jobs), ids, scopes, windows


def _pairs(rows: Sequence[tuple[Any, ...]]) -> dict[UUID, UUID]:
    return {UUID(identity): UUID(owner) for identity, owner in rows}
