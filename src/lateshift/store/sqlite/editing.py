"""What a settled job that is resubmitted comes back with: other arguments, if it gets any, and a line in its history that says by whom."""

from datetime import datetime

from lateshift.model import history
from lateshift.model.edit import Edit, line_of
from lateshift.model.ids import JobId
from lateshift.store.sqlite.database import Connection

# A job that can be resubmitted; its arguments, if it gets others. Primary key.
READ_SETTLED = """SELECT attempt, fence, CASE WHEN ?2 THEN payload END, history FROM settled
 WHERE id = ?1 AND state IN (5, 6)"""


def edited(
    connection: Connection, id: JobId, edit: Edit | None, by: str, at: datetime
) -> tuple[bytes | None, bytes] | None:
    """Its new arguments, None if it keeps what it has, and its history. None if it cannot be resubmitted, or is not as the edit, if there is
    one, expects it."""
    asked = (id.bytes, edit is not None)
    for attempt, fence, payload, story in connection.execute(READ_SETTLED, asked).fetchall():
        if edit is None or payload == edit.before:
            line = line_of(edit, by=by, attempt=attempt, fence=fence, at=at)
            return None if edit is None else edit.after, history.append(story, line)
    return None
