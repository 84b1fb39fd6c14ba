"""What the audit tells of, done and told once in PostgreSQL, also if the answer to its commit is lost."""

import secrets
from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import timedelta
from typing import TypeVar

from lateshift.model.job import NewJob
from lateshift.store.auditing import START, started
from lateshift.store.contract import Asked, Rows
from lateshift.store.holding import begun_late, held
from lateshift.store.postgres.database import Connection, Database

T = TypeVar("T")

LOCK_BITS = 63

# The lines of one transaction, and the number of the last. Who asks for its lock waits until this transaction has ended, also where the
# server is still at its commit and its client is gone. The lock is drawn for this deed: else whoever may connect could hold it before.
WRITE = """WITH line AS (INSERT INTO lateshift.audit (at, action, subject, actor)
  SELECT clock_timestamp() + %(skew)s::interval, %(action)s, subject, %(by)s FROM unnest(%(subjects)s::text[]) AS subject RETURNING number)
SELECT number, pg_advisory_xact_lock(%(lock)s::bigint) FROM (SELECT max(number) AS number FROM line) AS last"""
WAIT = "SELECT pg_advisory_xact_lock(%s::bigint)"
# Primary key.
FIND = "SELECT 1 FROM lateshift.audit WHERE number = %s"
# It stays so until this transaction ends: who asks with the same key waits here. Primary key.
STILL_HELD = """SELECT 1 FROM lateshift.answer WHERE id = %(id)s AND turn = %(turn)s AND answer IS NULL
 AND until > clock_timestamp() + %(skew)s::interval FOR UPDATE"""

# That somebody has started jobs, once however often they are sent. audit_subject.
WRITE_STARTS = f"""INSERT INTO lateshift.audit (at, action, subject, actor)
 SELECT clock_timestamp() + %s::interval, '{START}', new.subject, new.actor FROM unnest(%s::text[], %s::text[]) AS new (subject, actor)
 WHERE NOT EXISTS (SELECT 1 FROM lateshift.audit a WHERE left(a.subject, 200) = new.subject AND a.action = '{START}')"""
# The same in the statement that makes the jobs, whose ids were never sent before: one round trip, and no look.
WITH_START = f"""WITH made AS ({{}})
INSERT INTO lateshift.audit (at, action, subject, actor) VALUES (clock_timestamp(), '{START}', %s::text, %s::text)"""
WITH_STARTS = f"""WITH made AS ({{}})
INSERT INTO lateshift.audit (at, action, subject, actor) SELECT clock_timestamp(), '{START}', id::text, actor
 FROM unnest(%b::uuid[], %b::text[]) AS new (id, actor)"""


class Lines:
    """What one try tells the audit of its deed."""

    def __init__(self, connection: Connection, skew: timedelta) -> None:
        self._connection = connection
        self._skew = skew
        self._lock = secrets.randbits(LOCK_BITS)
        self.last: int | None = None  # the number of the last line

    def write(self, action: str, subjects: Iterable[str], by: str) -> None:
        """Raises BegunLate if the deed is done under a hold that is over."""
        named = list(subjects)
        if not named:
            return
        if self.last is None:
            self._look()
        told = {"action": action, "subjects": named, "by": by, "skew": self._skew, "lock": self._lock}
        [(self.last, _)] = self._connection.execute(WRITE, told).fetchall()

    def are_kept(self, connection: Connection) -> bool:
        """Whether their transaction was committed; by another, which waits for its end."""
        connection.execute(WAIT, (self._lock,))
        return bool(connection.execute(FIND, (self.last,)).fetchall())

    def _look(self) -> None:
        hold = held()
        if hold is not None:
            told = {"id": hold.id, "turn": hold.turn, "skew": self._skew}
            if not self._connection.execute(STILL_HELD, told).fetchall():
                raise begun_late()
            hold.deeds += 1


def do(database: Database, deed: Callable[[Connection, Lines], T]) -> T:
    """One transaction, which tells the audit of what it does. When the answer to its commit is lost, the next try finds out by the line,
    whose number no other ever has, whether it was kept. If it was, the answer is what it gave, and nothing is done again, whatever
    has become of it meanwhile."""
    kept: tuple[Lines, T] | None = None  # what the try before has told, and what it gave

    def work(connection: Connection, again: bool) -> T:
        nonlocal kept
        with connection.transaction():
            if kept is not None and kept[0].are_kept(connection):
                return kept[1]
            lines = Lines(connection, database.clock.offset)
            answer = deed(connection, lines)
            kept = None if lines.last is None else (lines, answer)
        return answer

    return database.run(work)


def statements(jobs: Sequence[NewJob], skew: timedelta) -> Generator[Asked, Rows, None]:
    """For an enqueue, after the jobs themselves."""
    if told := started(jobs):
        yield WRITE_STARTS, [(skew, *columns(told))]


def columns(told: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [subject for subject, _ in told], [by for _, by in told]
