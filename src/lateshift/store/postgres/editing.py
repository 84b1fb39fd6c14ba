"""What settled jobs that are resubmitted come back with: other arguments, if they get any, and a line in their histories that says by whom."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from lateshift.model import history
from lateshift.model.edit import Edit, line_of
from lateshift.model.ids import JobId
from lateshift.store.postgres.arrays import Uuids
from lateshift.store.postgres.database import Connection

# Jobs that can be resubmitted, held until the end of the transaction: whoever comes with an edit meanwhile waits, and finds them gone.
# Arguments are read of those alone that get others. Primary key.
READ_SETTLED = """SELECT id, attempt, fence, CASE WHEN id = ANY(%(edited)s) THEN payload END, history FROM lateshift.settled
 WHERE id = ANY(%(ids)s) AND state IN (5, 6) ORDER BY id FOR UPDATE"""


def edited(
    connection: Connection, ids: Sequence[JobId], edits: Mapping[JobId, Edit], by: str, at: datetime
) -> dict[JobId, tuple[bytes | None, bytes]]:
    """Of those that can be resubmitted, and are as their edit, if there is one, expects them: their new arguments, None if they keep what they
    have, which never leaves the database then; and their histories."""
    found: dict[JobId, tuple[bytes | None, bytes]] = {}
    asked = {"ids": list(ids), "edited": Uuids(id for id in ids if id in edits)}
    for id, attempt, fence, payload, story in connection.execute(READ_SETTLED, asked).fetchall():
        edit = edits.get(id)
        if edit is None or payload == edit.before:
            line = line_of(edit, by=by, attempt=attempt, fence=fence, at=at)
            found[id] = (None if edit is None else edit.after, history.append(story, line))
    return found
