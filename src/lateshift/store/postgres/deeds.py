"""What the audit tells of, done and told once in PostgreSQL, also if the answer to its commit is lost."""

from collections.abc import Generator, Sequence
from datetime import timedelta

from lateshift.model.job import NewJob
from lateshift.store.auditing import START, started
from lateshift.store.contract import Asked, Rows
from lateshift.store.postgres.database import Connection

WRITE = """INSERT INTO lateshift.audit (at, action, subject, actor)
 VALUES (clock_timestamp() + %s::interval, %s, %s, %s) RETURNING number"""
# Primary key.
FIND = "SELECT 1 FROM lateshift.audit WHERE number = %s"

# That somebody has started jobs, once however often they are sent. audit_subject.
WRITE_STARTS = f"""INSERT INTO lateshift.audit (at, action, subject, actor)
 SELECT clock_timestamp() + %s::interval, '{START}', new.subject, new.actor FROM unnest(%s::text[], %s::text[]) AS new (subject, actor)
 WHERE NOT EXISTS (SELECT 1 FROM lateshift.audit a WHERE left(a.subject, 200) = new.subject AND a.action = '{START}')"""
# The same in the statement that makes the jobs, whose ids were never sent before: one round trip, and no look.
WITH_START = f"""WITH made AS ({{}})
INSERT INTO lateshift.audit (at, action, subject, actor) VALUES (clock_timestamp(), '{START}', %s::text, %s::text)"""
WITH_STARTS = f"""WITH made AS ({{}})
INSERT INTO lateshift.audit (at, action, subject, actor) SELECT clock_timestamp(), '{START}', subject, actor
 FROM unnest(%s::text[], %s::text[]) AS new (subject, actor)"""


class Deed:
    """Its line of the audit has a number that no other ever has: whoever tries again finds out by it whether the try before was kept.
    One that the server still carries out is not seen yet, but holds what it changes: ask when you have that."""

    def __init__(self, action: str, subject: str, by: str) -> None:
        self._line = (action, subject, by)
        self._number: int | None = None

    def write(self, connection: Connection, skew: timedelta) -> None:
        [[self._number]] = connection.execute(WRITE, (skew, *self._line)).fetchall()

    def was_kept(self, connection: Connection) -> bool:
        return self._number is not None and bool(connection.execute(FIND, (self._number,)).fetchall())


def statements(jobs: Sequence[NewJob], skew: timedelta) -> Generator[Asked, Rows, None]:
    """For an enqueue, after the jobs themselves."""
    if told := started(jobs):
        yield WRITE_STARTS, [(skew, *columns(told))]


def columns(told: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [subject for subject, _ in told], [by for _, by in told]
