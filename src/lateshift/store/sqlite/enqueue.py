"""Enqueue as statements, so that it runs on Lateshift's own connection and on a caller's alike."""

from collections.abc import Generator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from lateshift.model.job import Enqueued, NewJob, Spec, State
from lateshift.store.contract import Statements
from lateshift.store.keys import key_conflict
from lateshift.store.sqlite.database import Connection
from lateshift.store.sqlite.times import MICROSECOND, to_number

Inserts = Generator[tuple[str, Sequence[Any]], Any, None]

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

# Jobs of a batch, one and so many. Their ids were never sent before: the batch knows how far it has come. Primary key.
_INSERT_BATCH = _INSERT.replace("payload)", "payload, batch)")
INSERT_BATCH = f"{_INSERT_BATCH} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_BATCH_BLOCK = f"""{_INSERT_BATCH} SELECT column1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, column2, ?
 FROM (VALUES {", ".join(["(?, ?)"] * BLOCK)})"""

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
    for (spec, first), group in groupby(fresh, key=_spec_and_first):
        same, how = list(group), _how(spec, now)
        if spec.batch is not None:
            yield from _of_batch(same, how, spec.batch.bytes)
            continue
        if first:
            for start in range(0, len(same) - BLOCK + 1, BLOCK):
                pairs = [(job.id.bytes, job.payload) for job in same[start : start + BLOCK]]
                yield INSERT_BLOCK, [(*how, *chain.from_iterable(pairs))]
            same = same[len(same) // BLOCK * BLOCK :]
        rows = [(job.id.bytes, *how, job.payload) for job in same]
        if rows:
            yield (INSERT_FIRST, rows) if first else (INSERT, [(*row, row[0]) for row in rows])
    return answers


def _of_batch(jobs: Sequence[NewJob], how: tuple[Any, ...], batch: bytes) -> Inserts:
    whole = len(jobs) // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        pairs = [(job.id.bytes, job.payload) for job in jobs[start : start + BLOCK]]
        yield INSERT_BATCH_BLOCK, [(*how, batch, *chain.from_iterable(pairs))]
    rows = [(job.id.bytes, *how, job.payload, batch) for job in jobs[whole:]]
    if rows:
        yield INSERT_BATCH, rows


def run(connection: Connection, statements: Statements) -> list[Enqueued]:
    """Drive the statements of an enqueue on Lateshift's own connection."""
    rows: Any = None
    try:
        while True:
            sql, parameters = statements.send(rows)
            if len(parameters) == 1:
                rows = connection.execute(sql, parameters[0]).fetchall()
            else:
                connection.executemany(sql, parameters)
                rows = []
    except StopIteration as stop:
        answers: list[Enqueued] = stop.value
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
