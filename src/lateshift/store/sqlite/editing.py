"""Other arguments for a settled job, in the transaction that resubmits it."""

from datetime import datetime

from lateshift.model import history
from lateshift.model.edit import Edit, line_of
from lateshift.model.ids import JobId
from lateshift.store.sqlite.database import Connection

# A job that can be resubmitted, if its arguments are those that the edit was made for. Primary key.
READ_SETTLED = """SELECT attempt, fence, history FROM settled
 WHERE id = ? AND payload = ? AND state IN (5, 6)"""
# Primary key.
EDIT = "UPDATE settled SET payload = ?, history = ? WHERE id = ?"


def edit(connection: Connection, id: JobId, wanted: Edit, by: str, at: datetime) -> bool:
    """Whether the job was as the edit expects it."""
    rows = connection.execute(READ_SETTLED, (id.bytes, wanted.before)).fetchall()
    for attempt, fence, story in rows:
        line = line_of(wanted, by=by, attempt=attempt, fence=fence, at=at)
        connection.execute(EDIT, (wanted.after, history.append(story, line), id.bytes))
    return bool(rows)
