"""What the audit tells of, in SQLite: lines are written in the transaction of what they tell."""

from collections.abc import Generator, Sequence

from lateshift.model.job import NewJob
from lateshift.store.auditing import START, started
from lateshift.store.contract import Asked, Rows

WRITE = "INSERT INTO audit (at, action, subject, actor) VALUES (?, ?, ?, ?)"

# That somebody has started a job, once however often it is sent. audit_subject, which is named: see audit.
WRITE_START = f"""INSERT INTO audit (at, action, subject, actor) SELECT ?, '{START}', ?, ? WHERE NOT EXISTS
 (SELECT 1 FROM audit INDEXED BY audit_subject WHERE subject = ? AND action = '{START}')"""


def statements(jobs: Sequence[NewJob], now: int) -> Generator[Asked, Rows, None]:
    """For an enqueue, after the jobs themselves."""
    if rows := [(now, subject, by, subject) for subject, by in started(jobs)]:
        yield WRITE_START, rows
