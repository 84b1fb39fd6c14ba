"""What settled jobs that are resubmitted come back with: their arguments, or others, and a line in their histories that says by whom."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from lateshift.model import history
from lateshift.model.edit import Edit, line_of
from lateshift.model.ids import JobId
from lateshift.store.postgres.database import Connection

# Jobs that can be resubmitted, held until the end of the transaction. Primary key.
READ_SETTLED = """SELECT id, attempt, fence, payload, history FROM lateshift.settled
 WHERE id = ANY(%s) AND state IN (5, 6) ORDER BY id FOR UPDATE"""


def edited(
    connection: Connection, ids: Sequence[JobId], edits: Mapping[JobId, Edit], by: str, at: datetime
) -> dict[JobId, tuple[bytes, bytes]]:
    """Of those that can be resubmitted, and are as their edit, if there is one, expects them: their arguments and their histories."""
    found: dict[JobId, tuple[bytes, bytes]] = {}
    for id, attempt, fence, payload, story in connection.execute(READ_SETTLED, (list(ids),)).fetchall():
        edit = edits.get(id)
        if edit is None or payload == edit.before:
            line = line_of(edit, by=by, attempt=attempt, fence=fence, at=at)
            found[id] = (payload if edit is None else edit.after, history.append(story, line))
    return found
