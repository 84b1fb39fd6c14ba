"""Enqueue as statements, so that it runs on Lateshift's own connection and on a caller's alike."""

from collections.abc import Generator, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from lateshift.errors import SequenceUsed
from lateshift.model.instants import MICROSECOND, to_number
from lateshift.model.job import Enqueued, NewJob, Place, Spec, State
from lateshift.store.contract import Asked, Rows, Statements
from lateshift.store.keys import any_claims, key_conflict, number_passed, number_used, numbered
from lateshift.store.sqlite import deeds, marks, uniques
from lateshift.store.sqlite.database import Connection
from lateshift.store.sqlite.sessions import STAY_FIRST

# Plain question marks: the standard library's sqlite3, on which callers run these, wants no numbers.
_INSERT = """INSERT INTO job (id, queue, lane, state, priority, attempts, due_at, created_at, time_limit, exclusive,
 task, payload)"""
# One job whose id was never sent before. Primary key.
INSERT_FIRST = f"{_INSERT} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# So many jobs of one spec: what they share is sent once, which halves the time, and other threads are let go on once.
BLOCK = 100
INSERT_BLOCKS = {
    size: f"""{_INSERT} SELECT column1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, column2
 FROM (VALUES {", ".join(["(?, ?)"] * size)})"""
    for size in (BLOCK, 10)
}
# One job, unless its id is there already or has been settled. Primary keys.
INSERT = f"""{_INSERT} SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
 WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?) ON CONFLICT (id) DO NOTHING"""

# Jobs of a batch, one and so many. Their ids were never sent before: the batch knows how far it has come. Primary key.
_INSERT_BATCH = _INSERT.replace("payload)", "payload, batch)")
INSERT_BATCH = f"{_INSERT_BATCH} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_BATCH_BLOCK = f"""{_INSERT_BATCH} SELECT column1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, column2, ?
 FROM (VALUES {", ".join(["(?, ?)"] * BLOCK)})"""

# A job with guards, unless its id is there already or has been settled. Primary keys.
INSERT_GUARDED = f"""{_INSERT[:-1]}, session, sequence, gap_after, holds, tenant, limit_key, blocked_by, turn, batch,
 reply) SELECT {", ".join("?" * 22)} WHERE NOT EXISTS (SELECT 1 FROM settled WHERE id = ?) ON CONFLICT (id) DO NOTHING"""
# Before that, that such a job has come, if it has a reply and is not there. Primary keys.
TELL_RECEIVED = """INSERT INTO outbox (job, kind, queue, task, attempt, at, reply) SELECT ?, 0, ?, ?, 0, ?, ?
 WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = ?) AND NOT EXISTS (SELECT 1 FROM settled WHERE id = ?)"""
# The next places in their sessions for so many.
TURNS = "UPDATE turn SET last = last + ? RETURNING last"
# Whose number it is: of a job that waits or runs, or of one that has had its turn. job_sequence, primary keys.
NUMBERED = "SELECT id FROM job WHERE queue = ? AND session = ? AND sequence = ? AND session IS NOT NULL"
EXPECTED = "SELECT next_sequence FROM session WHERE queue = ? AND name = ?"
SETTLED = "SELECT 1 FROM settled WHERE id = ?"

# Take a key that is free or past its window. Primary key.
TAKE_KEY = """INSERT INTO job_key (task, text, job_id, digest, expires_at) VALUES (?, ?, ?, ?, ?)
 ON CONFLICT (task, text) DO UPDATE SET job_id = excluded.job_id, digest = excluded.digest,
 expires_at = excluded.expires_at WHERE job_key.expires_at <= ?"""

# Whose the key is now. Primary key.
READ_KEY = "SELECT job_id, digest, expires_at FROM job_key WHERE task = ? AND text = ?"

# A key that this call took, given back because the call fails. Primary key.
FREE_KEY = "DELETE FROM job_key WHERE task = ? AND text = ? AND job_id = ?"

# Of jobs that are traced, the context of whoever asked for them. Primary key.
TRACE = "UPDATE job SET trace = ? WHERE id = ?"

_spec_and_first = attrgetter("spec", "first")


def statements(jobs: Sequence[NewJob], now: int) -> Statements:
    """Yields (statement, list of parameter rows) and is sent the rows of the last one."""
    fresh, answers = jobs, [Enqueued(job.id, True) for job in jobs]
    if any_claims(jobs):
        fresh, answers = yield from _claim(jobs, now)
    for (spec, first), group in groupby(fresh, key=_spec_and_first):
        same, how = list(group), shared(spec, now)
        if spec.lane.careful:
            yield from _insert_guarded(same, how)
            continue
        if spec.batch is not None:
            yield from _of_batch(same, how, spec.batch.bytes)
            continue
        if first:
            for size, insert in INSERT_BLOCKS.items():
                while len(same) >= size:
                    pairs = [(job.id.bytes, job.payload) for job in same[:size]]
                    yield insert, [(*how, *chain.from_iterable(pairs))]
                    same = same[size:]
        rows = [(job.id.bytes, *how, job.payload) for job in same]
        if rows:
            yield (INSERT_FIRST, rows) if first else (INSERT, [(*row, row[0]) for row in rows])
    if traced := [(job.trace, job.id.bytes) for job in fresh if job.trace is not None]:
        yield TRACE, traced
    yield from marks.statements(fresh)
    yield from deeds.statements(fresh, now)
    return answers


def _claim(jobs: Sequence[NewJob], now: int) -> Generator[Asked, Rows, tuple[list[NewJob], list[Enqueued]]]:
    """The jobs that are to be made, and the answers to all: of some a key or an identity has been taken before."""
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
    wrong = yield from _wrong_number(fresh)
    if wrong is not None:
        owners = {job.id.bytes: answer.id.bytes for job, answer in zip(jobs, answers, strict=True)}
        for task, text, id in taken:  # of a duplicate the key names the job that is there by now
            yield FREE_KEY, [(task, text, owners[id])]
        yield from uniques.give_up(fresh)
        raise wrong
    return fresh, answers


def _of_batch(jobs: Sequence[NewJob], how: tuple[Any, ...], batch: bytes) -> Generator[Asked, Rows, None]:
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


def _insert_guarded(jobs: Sequence[NewJob], how: tuple[Any, ...]) -> Generator[Asked, Rows, None]:
    """The first of each session is ready, the others wait for it."""
    places = [(job, job.place or Place()) for job in jobs]
    counted = sum(place.session is not None and place.sequence is None for _, place in places)
    [(last,)] = (yield TURNS, [(counted,)]) if counted else [(0,)]
    turn = last - counted
    begun: set[str] = set()
    rows: list[tuple[Any, ...]] = []
    for job, place in places:
        state, blocked_by, at = how[2], None, place.sequence
        if place.session is not None:
            if place.session in begun and state == State.READY:
                state, blocked_by = int(State.BLOCKED), f"session:{place.session}"
            begun.add(place.session)
            if at is None:
                at = turn = turn + 1
        gap = None if place.gap_after is None else place.gap_after // MICROSECOND
        mine = (job.id.bytes, *how[:2], state, *how[3:], job.payload)
        guards = (place.session, place.sequence, gap, int(place.holds), place.tenant, place.limit_key)
        batch = None if job.spec.batch is None else job.spec.batch.bytes
        rows.append((*mine, *guards, blocked_by, at, batch, job.spec.reply, job.id.bytes))
    counted_by_caller = {(how[0], place.session) for _, place in places if place.sequence is not None}
    if counted_by_caller:
        yield STAY_FIRST, sorted(counted_by_caller)
    spec = jobs[0].spec
    if spec.reply is not None:
        told = (spec.queue, spec.task, how[6], spec.reply)
        yield TELL_RECEIVED, [(id, *told, id, id) for id in (job.id.bytes for job in jobs)]
    yield INSERT_GUARDED, rows


def _wrong_number(jobs: Sequence[NewJob]) -> Generator[Asked, Rows, SequenceUsed | None]:
    """No number of a session is used twice. A job that is sent again has its own."""
    seen: set[tuple[str, str | None, int]] = set()
    for job, place, number in numbered(jobs):
        session = (job.spec.queue, place.session)
        if (*session, number) in seen:
            return number_used(place, None)
        seen.add((*session, number))
        owner = yield NUMBERED, [(*session, number)]
        if owner and bytes(owner[0][0]) != job.id.bytes:
            return number_used(place, UUID(bytes=bytes(owner[0][0])))
        expected = [] if owner else (yield EXPECTED, [session])
        if expected and (expected[0][0] or 0) > number and not (yield SETTLED, [(job.id.bytes,)]):
            return number_passed(place, expected[0][0])
    return None


def shared(spec: Spec, now: int) -> tuple[Any, ...]:
    due = due_at(spec, now)
    state = int(State.SCHEDULED if due > now else State.READY)
    limit = None if spec.time_limit is None else spec.time_limit // MICROSECOND
    when = (due, now, limit)
    return (spec.queue, int(spec.lane), state, spec.priority, spec.attempts, *when, spec.exclusive, spec.task)


def due_at(spec: Spec, now: int) -> int:
    if spec.at is not None:
        return max(now, to_number(spec.at))
    return now if spec.delay is None else now + max(0, spec.delay // MICROSECOND)
