"""Enqueue as statements, so that it runs on Lateshift's own connection and on a caller's alike."""

from collections.abc import Generator, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from lateshift.errors import SequenceUsed
from lateshift.model.job import Enqueued, NewJob, Place, Spec
from lateshift.store.auditing import started, starters
from lateshift.store.contract import Asked, Rows, Statements
from lateshift.store.hints import written
from lateshift.store.keys import any_claims, key_conflict, number_passed, number_used, numbered
from lateshift.store.postgres import deeds, marks, uniques
from lateshift.store.postgres.arrays import Blobs, Texts, Uuids
from lateshift.store.postgres.claims import FREE_KEY, TAKE_KEY
from lateshift.store.postgres.database import Connection

_INSERT = """INSERT INTO lateshift.job (id, queue, lane, state, priority, attempts, due_at, created_at, time_limit,
 exclusive, task, payload)"""
_TIMES = """(SELECT at, coalesce(%s::timestamptz, at + %s::interval, at) AS due
 FROM (SELECT clock_timestamp() + %s::interval AS at OFFSET 0) clock OFFSET 0) times"""

# One job whose id was never sent before, for the caller who waits for it. Primary key.
INSERT_FIRST = f"""{_INSERT}
SELECT %b::uuid, %s::text, %s::smallint, CASE WHEN due > at THEN 0 ELSE 1 END, %s::smallint, %s::int,
 greatest(due, at), at, %s::interval, %s::text, %s::text, %b::bytea FROM {_TIMES}"""

# The same for a job that is due now: what most callers wait for, with the fewest parameters to send.
INSERT_NOW = f"""{_INSERT} VALUES (%b::uuid, %s::text, %s::smallint, 1, %s::smallint, %s::int, clock_timestamp(),
 clock_timestamp(), %s::interval, %s::text, %s::text, %b::bytea)"""

# And for one that is traced.
INSERT_NOW_TRACED = INSERT_NOW.replace("payload)", "payload, trace)").replace(
    "%b::bytea)", "%b::bytea, %s::text)"
)
# Both of a job that the attempt of another asked for, in one statement and so in one round trip.
_CHILD = """WITH made AS ({} RETURNING id)
INSERT INTO lateshift.job_parent (child, parent) SELECT id, %b::uuid FROM made"""
INSERT_CHILD, INSERT_CHILD_TRACED = _CHILD.format(INSERT_NOW), _CHILD.format(INSERT_NOW_TRACED)
# And of one that somebody has started, whom the audit names.
INSERT_STARTED = deeds.WITH_START.format(INSERT_NOW)
INSERT_STARTED_TRACED = deeds.WITH_START.format(INSERT_NOW_TRACED)

# One job, unless its id is there already or has been settled. A job that is seen is not met with ON CONFLICT, which would
# wait for one that is being settled, find it gone and bring it back. Primary keys.
INSERT_ONE = f"""{INSERT_FIRST}
WHERE NOT EXISTS (SELECT 1 FROM lateshift.settled WHERE id = %b::uuid)
 AND NOT EXISTS (SELECT 1 FROM lateshift.job WHERE id = %b::uuid) ON CONFLICT (id) DO NOTHING"""

# Many jobs of one spec whose ids were never sent before. Primary key.
INSERT_FIRSTS = f"""WITH times AS MATERIALIZED (SELECT * FROM {_TIMES})
{_INSERT}
SELECT new.id, %s::text, %s::smallint, CASE WHEN due > at THEN 0 ELSE 1 END, %s::smallint, %s::int,
 greatest(due, at), at, %s::interval, %s::text, %s::text, new.payload
FROM times, unnest(%b::uuid[], %b::bytea[]) AS new (id, payload)"""

INSERT_STARTED_FIRSTS = deeds.WITH_STARTS.format(INSERT_FIRSTS)

# Many jobs of a batch. Their ids were never sent before: the batch knows how far it has come. Primary key.
INSERT_BATCH = INSERT_FIRSTS.replace("payload)\nSELECT", "payload, batch)\nSELECT").replace(
    "new.payload\nFROM", "new.payload, %s::uuid\nFROM"
)

# The same, unless their ids are there already or have been settled. Primary keys.
INSERT_MANY = f"""{INSERT_FIRSTS}
WHERE new.id <> ALL(ARRAY(SELECT id FROM lateshift.settled WHERE id = ANY(%b::uuid[])))
 AND new.id <> ALL(ARRAY(SELECT id FROM lateshift.job WHERE id = ANY(%b::uuid[]))) ON CONFLICT (id) DO NOTHING"""

# Jobs of one spec with guards, unless their ids are there already or have been settled. Those that `wait` do so for the
# first of their session. Primary keys.
INSERT_GUARDED = f"""WITH times AS MATERIALIZED (SELECT * FROM {_TIMES})
{_INSERT[:-1]}, session, sequence, gap_after, holds, tenant, limit_key, blocked_by, turn, batch,
 reply)
SELECT new.id, %s::text, %s::smallint, CASE WHEN due > at THEN 0 WHEN waits THEN 3 ELSE 1 END, %s::smallint, %s::int,
 greatest(due, at), at, %s::interval, %s::text, %s::text, new.payload, session, sequence, gap_after, holds, tenant,
 limit_key, CASE WHEN due <= at AND waits THEN 'session:' || session END,
 CASE WHEN session IS NOT NULL THEN coalesce(sequence, nextval('lateshift.turn')) END, %s::uuid, %s::text
FROM times, (SELECT * FROM unnest(%b::uuid[], %b::bytea[], %s::text[], %s::bigint[], %s::interval[], %s::smallint[],
 %s::text[], %s::text[], %s::boolean[]) WITH ORDINALITY
 AS new (id, payload, session, sequence, gap_after, holds, tenant, limit_key, waits, place) ORDER BY place) AS new
WHERE new.id <> ALL(ARRAY(SELECT id FROM lateshift.settled WHERE id = ANY(%b::uuid[])))
 AND new.id <> ALL(ARRAY(SELECT id FROM lateshift.job WHERE id = ANY(%b::uuid[]))) ON CONFLICT (id) DO NOTHING"""
# Whose number it is: of a job that waits or runs, or of one that has had its turn. job_sequence, primary keys.
NUMBERED = """SELECT id::text FROM lateshift.job
 WHERE queue = %s::text AND session = %s::text AND sequence = %s::bigint AND session IS NOT NULL AND sequence IS NOT NULL"""
EXPECTED = "SELECT next_sequence FROM lateshift.session WHERE queue = %s::text AND name = %s::text"
SETTLED = "SELECT 1 FROM lateshift.settled WHERE id = %s::uuid"

# After a repeat: an insert that waited for a job to be settled elsewhere must not bring it back, nor tell that it has come. What this very
# transaction has written is known as by claims.claimed_just_now, which few roles may call. Primary keys.
_THIS = "pg_current_xact_id()::text::bigint"
_LATER = f"mod(xmin::text::bigint - mod({_THIS}, 4294967296) + 4294967296, 4294967296)"


def undone(ids: str) -> str:
    return f"""WITH undone AS (DELETE FROM lateshift.job WHERE fence = 0
 AND id = ANY(ARRAY(SELECT id FROM lateshift.settled WHERE id = ANY({ids}))) RETURNING id)
DELETE FROM lateshift.outbox WHERE job = ANY(ARRAY(SELECT id FROM undone)) AND kind = 0
 AND CASE WHEN {_LATER} < 2147483648 THEN pg_xact_status(({_THIS} + {_LATER})::text::xid8) = 'in progress' END"""


UNDO_REPEAT = undone("%s::uuid[]")

# The same for one who may only submit: see roles.
MAY_UNDO = "SELECT has_table_privilege('lateshift.job', 'DELETE')"
UNDO_REPEAT_FOR_ME = "SELECT lateshift.undo_repeat(%s::uuid[])"

# Of jobs that are traced, the context of whoever asked for them, by bisection in sorted arrays. Primary key.
TRACE = """UPDATE lateshift.job j SET trace = (%s::text[])[width_bucket(j.id, %b::uuid[])]
 WHERE j.id = ANY(%b::uuid[]) AND j.trace IS NULL"""

# The hint, heard when the transaction commits.
NOTIFY = "SELECT pg_notify('lateshift', %s::text)"

_spec_and_first = attrgetter("spec", "first")
_MICROSECOND = timedelta(microseconds=1)


def is_plain(job: NewJob, skew: timedelta) -> bool:
    """Whether `at_once` is all there is to do."""
    spec = job.spec
    now = spec.at is None and spec.delay is None and not skew
    bare = job.key is None and job.unique is None and not job.tags and (job.parent is None or job.by is None)
    return now and job.first and bare and not spec.lane.careful


def plain_row(job: NewJob) -> tuple[Any, ...]:
    return job.id, *shared(job.spec), job.payload


def at_once(job: NewJob) -> tuple[str, tuple[Any, ...]]:
    """The one statement that enqueues a plain job, with its context and who asked for it, if it has them."""
    row = plain_row(job) if job.trace is None else (*plain_row(job), job.trace)
    if job.parent is not None:
        return (INSERT_CHILD if job.trace is None else INSERT_CHILD_TRACED), (*row, job.parent)
    if job.by is not None:
        return (INSERT_STARTED if job.trace is None else INSERT_STARTED_TRACED), (*row, *started([job])[0])
    return (INSERT_NOW if job.trace is None else INSERT_NOW_TRACED), row


def alone(jobs: Sequence[NewJob], skew: timedelta) -> tuple[str, tuple[Any, ...]] | None:
    """The one statement that enqueues these, whose ids were never sent before; None if it takes more than one."""
    if len(jobs) == 1:
        return at_once(jobs[0]) if is_plain(jobs[0], skew) else None
    return together(jobs, skew) if jobs else None


def together(jobs: Sequence[NewJob], skew: timedelta) -> tuple[str, tuple[Any, ...]] | None:
    """The one statement that enqueues plain jobs of one kind, for callers who wait together; None if it takes more than one."""
    spec = jobs[0].spec
    if spec.batch is not None or not all(
        job.spec is spec and job.trace is None and job.parent is None and is_plain(job, skew) for job in jobs
    ):
        return None
    new = Uuids([job.id for job in jobs]), Blobs([job.payload for job in jobs])
    rows = (None, None, skew, *shared(spec), *new)
    if not (told := starters(jobs)):
        return INSERT_FIRSTS, rows
    return INSERT_STARTED_FIRSTS, (*rows, Uuids([id for id, _ in told]), Texts([by for _, by in told]))


@lru_cache
def shared(spec: Spec) -> tuple[str | None, ...]:
    """What jobs of one spec share, as text: psycopg weighs each number, and writes a timedelta in Python."""
    limit = None if spec.time_limit is None else f"{spec.time_limit // _MICROSECOND} microseconds"
    numbers = f"{spec.lane:d}", f"{spec.priority:d}", f"{spec.attempts:d}"
    return spec.queue, *numbers, limit, spec.exclusive, spec.task


def run(connection: Connection, statements: Statements) -> list[Enqueued]:
    """Drive the statements of an enqueue on Lateshift's own connection."""
    rows: Any = None
    try:
        while True:
            sql, [parameters] = statements.send(rows)
            cursor = connection.execute(sql, parameters)
            rows = cursor.fetchall() if cursor.description else []
    except StopIteration as stop:
        answers: list[Enqueued] = stop.value
        return answers


def statements(
    jobs: Sequence[NewJob], skew: timedelta, *, again: bool = False, notify: bool = False
) -> Statements:
    """Yields (statement, one row of parameters in a list) and is sent the rows it gave."""
    fresh, answers = jobs, [Enqueued(job.id, True) for job in jobs]
    if any_claims(jobs):
        fresh, answers = yield from _claim(jobs, skew, again)
    for (spec, first), group in groupby(fresh, key=_spec_and_first):
        same = list(group)
        first = first and not again
        when = (spec.at, spec.delay, skew)
        if spec.lane.careful:
            yield INSERT_GUARDED, [(*when, *shared(spec), spec.batch, spec.reply, *_guards(same))]
        elif spec.batch is not None:
            ids, payloads = [job.id for job in same], [job.payload for job in same]
            yield INSERT_BATCH, [(*when, *shared(spec), spec.batch, ids, payloads)]
        elif len(same) == 1:
            [job] = same
            if first and is_plain(job, skew):
                yield INSERT_NOW, [plain_row(job)]
                continue
            row = (job.id, *shared(spec), job.payload, *when)
            yield (INSERT_FIRST, [row]) if first else (INSERT_ONE, [(*row, job.id, job.id)])
        else:
            ids, payloads = [job.id for job in same], [job.payload for job in same]
            rows = (*when, *shared(spec), ids, payloads)
            yield (INSERT_FIRSTS, [rows]) if first else (INSERT_MANY, [(*rows, ids, ids)])
    if traced := sorted([(job.id, job.trace) for job in fresh if job.trace is not None]):
        ids = [id for id, _ in traced]
        yield TRACE, [([trace for _, trace in traced], ids, ids)]
    yield from marks.statements(fresh)
    yield from deeds.statements(fresh, skew)
    if again and fresh:
        [[may]] = yield MAY_UNDO, [()]
        yield UNDO_REPEAT if may else UNDO_REPEAT_FOR_ME, [([job.id for job in fresh],)]
    if notify:
        for line in {job.spec.line for job in fresh}:
            yield NOTIFY, [(written(line),)]
    return answers


def _claim(
    jobs: Sequence[NewJob], skew: timedelta, again: bool
) -> Generator[Asked, Rows, tuple[list[NewJob], list[Enqueued]]]:
    """The jobs that are to be made, and the answers to all: of some a key or an identity has been taken before."""
    answers: list[Enqueued] = []
    fresh: list[NewJob] = []
    taken: list[tuple[Any, ...]] = []
    for job in jobs:
        if job.key is not None:
            key = job.key
            mine = (job.spec.task, key.text, job.id)
            [(took, owner, same)] = yield TAKE_KEY, [(*mine, key.digest, key.window, skew)]
            if took:
                taken.append(mine)
            if not same:
                for row in taken:  # a caller may catch this and commit: no key without its job
                    yield FREE_KEY, [row]
                raise key_conflict(job)
            if UUID(owner) != job.id:
                answers.append(Enqueued(UUID(owner), created=False))
                continue
        fresh.append(job)
        answers.append(Enqueued(job.id, created=True))
    if any(job.unique is not None for job in fresh):
        fresh = yield from uniques.keep_first(fresh, answers, skew, again)
    wrong = yield from _wrong_number(fresh)
    if wrong is not None:
        owners = {job.id: answer.id for job, answer in zip(jobs, answers, strict=True)}
        for task, text, id in taken:  # of a duplicate the key names the job that is there by now
            yield FREE_KEY, [(task, text, owners[id])]
        yield from uniques.give_up(fresh)
        raise wrong
    return fresh, answers


def _guards(jobs: Sequence[NewJob]) -> tuple[list[Any], ...]:
    """In columns; the first of each session is ready, the others wait for it."""
    places = [job.place or Place() for job in jobs]
    begun: set[str] = set()
    waits: list[bool] = []
    for place in places:
        waits.append(place.session in begun)
        if place.session is not None:
            begun.add(place.session)
    ids = [job.id for job in jobs]
    return (
        ids, [job.payload for job in jobs], [place.session for place in places], [place.sequence for place in places],
        [place.gap_after for place in places], [int(place.holds) for place in places],
        [place.tenant for place in places], [place.limit_key for place in places], waits, ids, ids,
    )  # fmt: skip


def _wrong_number(jobs: Sequence[NewJob]) -> Generator[Asked, Rows, SequenceUsed | None]:
    """No number of a session is used twice. A job that is sent again has its own."""
    seen: set[tuple[str, str | None, int]] = set()
    for job, place, number in numbered(jobs):
        session = (job.spec.queue, place.session)
        if (*session, number) in seen:
            return number_used(place, None)
        seen.add((*session, number))
        owner = yield NUMBERED, [(*session, number)]
        if owner and UUID(owner[0][0]) != job.id:
            return number_used(place, UUID(owner[0][0]))
        expected = [] if owner else (yield EXPECTED, [session])
        if expected and (expected[0][0] or 0) > number and not (yield SETTLED, [(job.id,)]):
            return number_passed(place, expected[0][0])
    return None
