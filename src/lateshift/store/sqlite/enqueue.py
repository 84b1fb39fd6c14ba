"""Enqueue as statements, so that it runs on Lateshift's own connection and on a caller's alike."""

from collections.abc import Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from lateshift.model.job import Enqueued, NewJob, Spec, State
from lateshift.store.contract import Statements
from lateshift.store.keys import key_conflict
from lateshift.store.sqlite import uniques
from lateshift.store.sqlite.times import MICROSECOND, to_number

# Plain question marks: the standard library's sqlite3, on which callers run these, wants no numbers.
_INSERT = """INSERT INTO job (id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, exclusive,
 task, payload)"""
# One job whose id was never sent before. Primary key.
INSERT_FIRST = f"{_INSERT} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# So many jobs of one spec: what they share is sent once, which halves the time.
BLOCK = 100
INSERT_BLOCK = f"""{_INSERT} SELECT column1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, column2
 FROM (VALUES {", ".join(["(?, ?)"] * BLOCK)})"""
# One job, unless its id is there already or has been settled. Primary keys.
INSERT = f"""{_INSERT} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
 WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?) ON CONFLICT (id) DO NOTHING"""

# Take a key that is free or past its window. Primary key.
TAKE_KEY = """INSERT INTO job_key (task, text, job_id, digest, expires_at) VALUES (?, ?, ?, ?, ?)
 ON CONFLICT (task, text) DO UPDATE SET job_id = excluded.job_id, digest = excluded.digest,
 expires_at = excluded.expires_at WHERE job_key.expires_at <= ?"""

# Whose the key is now. Primary key.
READ_KEY = "SELECT job_id, digest, expires_at FROM job_key WHERE task = ? AND text = ?"

# A key that this call took, given back because the call fails. Primary key.
FREE_KEY = "DELETE FROM job_key WHERE task = ? AND text = ? AND job_id = ?"


def statements(jobs: Sequence[NewJob], now: int) -> Statements:
    """Yields (statement, list of parameter rows) and is sent the rows of the last one."""
    answers: list[Enqueued] = []
    fresh: list[NewJob] = []
    taken: list[tuple[Any, ...]] = []
    for job in jobs:
        if job.key is not None:
            expires = now + job.key.window // MICROSECOND
            mine = (job.spec.task, job.key.text, job.id.bytes, job.key.digest, expires, now)
            yield TAKE_KEY, [mine]
            [(owner, digest, until)] = yield READ_KEY, [mine[:2]]
            if bytes(digest) != job.key.digest:
                for key in taken:  # a caller may catch this and commit: no key without its job
                    yield FREE_KEY, [key]
                raise key_conflict(job)
            if bytes(owner) != job.id.bytes:
                answers.append(Enqueued(UUID(bytes=bytes(owner)), created=False))
                continue
            if until == expires:
                taken.append(mine[:3])
        fresh.append(job)
        answers.append(Enqueued(job.id, created=True))
    if any(job.unique is not None for job in fresh):
        fresh = yield from uniques.keep_first(fresh, answers, now)
    for (spec, first), group in groupby(fresh, key=_spec_and_first):
        same, how = list(group), _how(spec, now)
        if first:
            for start in range(0, len(same) - BLOCK + 1, BLOCK):
                pairs = [(job.id.bytes, job.payload) for job in same[start : start + BLOCK]]
                yield INSERT_BLOCK, [(*how, *chain.from_iterable(pairs))]
            same = same[len(same) // BLOCK * BLOCK :]
        rows = [(job.id.bytes, *how, job.payload) for job in same]
        if rows:
            yield (INSERT_FIRST, rows) if first else (INSERT, [(*row, row[0]) for row in rows])
    return answers


_spec_and_first = attrgetter("spec", "first")


def _how(spec: Spec, now: int) -> tuple[Any, ...]:
    due = due_at(spec, now)
    state = int(State.SCHEDULED if due > now else State.READY)
    limit = None if spec.time_limit is None else spec.time_limit // MICROSECOND
    when = (due, now, limit)
    return (spec.queue, int(spec.lane), state, spec.priority, spec.attempts, *when, spec.exclusive, spec.task)


def due_at(spec: Spec, now: int) -> int:
    if spec.at is not None:
        return max(now, to_number(spec.at))
    return now if spec.delay is None else now + max(0, spec.delay // MICROSECOND)
