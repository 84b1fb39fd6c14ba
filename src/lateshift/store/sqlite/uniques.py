"""Who is there already: each identity names one job, which stands for its duplicates as long as its own rule says. That is
judged here, when another comes; leasing and settling know nothing of it. Runs on a caller's connection too."""

from collections.abc import Generator, Sequence
from typing import Any
from uuid import UUID

from lateshift.model.instants import MICROSECOND
from lateshift.model.job import Enqueued, NewJob
from lateshift.store.taking import IDENTITY_KEPT

# Take an identity that is free, or whose job stands for nobody any more: by its state, by its window, or because it was
# cancelled. A job that is there takes none: sent again, it would begin its window anew. Primary keys.
TAKE_IDENTITY = """INSERT INTO job_identity (identity, job_id, scope, until, expires_at)
 SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?)
 AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?)
 ON CONFLICT (identity) DO UPDATE SET job_id = excluded.job_id, scope = excluded.scope, until = excluded.until,
 expires_at = excluded.expires_at
 WHERE (job_identity.until <= ? OR EXISTS (SELECT 1 FROM settled WHERE id = job_identity.job_id AND state = 5))
 AND NOT EXISTS (SELECT 1 FROM job WHERE id = job_identity.job_id
  AND (job_identity.scope = 2 OR job_identity.scope = 1 AND state <> 2))"""

# Whose the identity is now. Primary key.
READ_IDENTITY = "SELECT job_id FROM job_identity WHERE identity = ?"

# Whether a job that may have been sent before is there. Primary keys.
KNOWN_JOB = "SELECT 1 FROM job WHERE id = ? UNION ALL SELECT 1 FROM settled WHERE id = ?"

# An identity that this call took for a job that is not inserted. Primary keys.
GIVE_UP = """DELETE FROM job_identity WHERE identity = ?1 AND job_id = ?2
 AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?2) AND NOT EXISTS (SELECT 1 FROM settled WHERE id = ?2)"""

# A key that this call took names the job that is there. Primary key.
RELET_KEY = "UPDATE job_key SET job_id = ? WHERE task = ? AND text = ? AND job_id = ?"


def keep_first(
    jobs: Sequence[NewJob], answers: list[Enqueued], now: int
) -> Generator[tuple[str, Sequence[Any]], list[tuple[Any, ...]], list[NewJob]]:
    """Of the jobs to insert, those that are no duplicates; the answers to the others are changed to name the job that is
    there."""
    kept: list[NewJob] = []
    first: dict[bytes, NewJob] = {}  # in this call: not inserted yet, so the store would not find them
    instead: dict[UUID, UUID] = {}
    for job in jobs:
        if job.unique is None:
            kept.append(job)
            continue
        identity, mine = job.unique.digest, job.id.bytes
        if identity not in first:
            window = job.unique.window // MICROSECOND
            expires = now + max(window, IDENTITY_KEPT // MICROSECOND)
            yield (
                TAKE_IDENTITY,
                [(identity, mine, int(job.unique.scope), now + window, expires, mine, mine, now)],
            )
        if not job.first and (yield KNOWN_JOB, [(mine, mine)]):
            kept.append(job)
            continue
        if identity in first:
            owner = first[identity].id
        else:
            [(named,)] = yield READ_IDENTITY, [(identity,)]
            owner = UUID(bytes=bytes(named))
        if owner == job.id:
            kept.append(job)
            first.setdefault(identity, job)
            continue
        instead[job.id] = owner
        if job.key is not None:
            yield RELET_KEY, [(owner.bytes, job.spec.task, job.key.text, mine)]
    if instead:
        answers[:] = [
            Enqueued(instead[each.id], created=False) if each.id in instead else each for each in answers
        ]
    return kept


def give_up(jobs: Sequence[NewJob]) -> Generator[tuple[str, Sequence[Any]], list[tuple[Any, ...]], None]:
    """The call fails, and its caller may commit all the same: no identity without its job."""
    for job in jobs:
        if job.unique is not None:
            yield GIVE_UP, [(job.unique.digest, job.id.bytes)]
