"""What the audit tells of, in SQLite: lines are written in the transaction of what they tell."""

from collections.abc import Generator, Iterable, Sequence

import msgspec

from lateshift.model.job import NewJob
from lateshift.store.auditing import START, started
from lateshift.store.contract import Asked, Rows
from lateshift.store.holding import begun_late, held
from lateshift.store.sqlite.database import Connection

WRITE = "INSERT INTO audit (at, action, subject, actor) VALUES (?, ?, ?, ?)"
# Primary key.
STILL_HELD = "SELECT 1 FROM answer WHERE id = ? AND turn = ? AND answer IS NULL AND until > ?"

# That somebody has started a job, once however often it is sent. One statement for all of a commit: each lets other threads go on, and
# has to wait for them again. audit_subject, which is named: see audit.
WRITE_STARTS = f"""INSERT INTO audit (at, action, subject, actor)
 SELECT ?1, '{START}', json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?2) WHERE NOT EXISTS
 (SELECT 1 FROM audit INDEXED BY audit_subject WHERE subject = json_extract(value, '$[0]') AND action = '{START}')"""


def statements(jobs: Sequence[NewJob], now: int) -> Generator[Asked, Rows, None]:
    """For an enqueue, after the jobs themselves."""
    if pairs := dict(started(jobs)):
        yield WRITE_STARTS, [(now, msgspec.json.encode(list(pairs.items())).decode())]


def write(connection: Connection, now: int, action: str, subjects: Iterable[str], by: str) -> None:
    """In the transaction of what they tell. Raises BegunLate if that is done under a hold that is over."""
    rows = [(now, action, subject, by) for subject in subjects]
    if not rows:
        return
    hold = held()
    if hold is not None:
        if not connection.execute(STILL_HELD, (hold.id, hold.turn, now)).fetchall():
            raise begun_late()
        hold.deeds += 1
    connection.executemany(WRITE, rows)
