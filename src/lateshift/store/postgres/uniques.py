"""Who is there already: each identity names one job, which stands for its duplicates as long as its own rule says. That is
judged here, when another comes; leasing and settling know nothing of it. Runs on a caller's connection too."""

from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from lateshift.model.job import Enqueued, NewJob
from lateshift.store.postgres.claims import GIVE_UP, RELET_KEY, TAKE_IDENTITIES
from lateshift.store.taking import IDENTITY_KEPT

# Which of the jobs that may have been sent before are there. Primary keys.
KNOWN_JOBS = """SELECT id::text FROM lateshift.job WHERE id = ANY(%s::uuid[])
 UNION ALL SELECT id::text FROM lateshift.settled WHERE id = ANY(%s::uuid[])"""


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
    rows = yield TAKE_IDENTITIES, [_columns(first, skew)]
    owners = {UUID(identity): UUID(owner) for identity, owner in rows}
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
            yield GIVE_UP, [(UUID(bytes=job.unique.digest), job.id)]


def _columns(jobs: dict[UUID, NewJob], skew: timedelta) -> tuple[Any, ...]:
    """What TAKE_IDENTITIES is told of these jobs, by their identities."""
    ids = [job.id for job in jobs.values()]
    rules = [job.unique for job in jobs.values() if job.unique is not None]
    scopes, windows = [int(rule.scope) for rule in rules], [rule.window for rule in rules]
    return list(jobs), ids, scopes, windows, IDENTITY_KEPT, skew
