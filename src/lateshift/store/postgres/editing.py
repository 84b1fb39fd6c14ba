"""Other arguments for settled jobs, in the transaction that resubmits them."""

from collections.abc import Mapping
from datetime import datetime

from lateshift.model import history
from lateshift.model.edit import Edit, line_of
from lateshift.model.ids import JobId
from lateshift.store.postgres.database import Connection

# Jobs that can be resubmitted, held until the end of the transaction. Primary key.
READ_SETTLED = """SELECT id, attempt, fence, payload, history FROM lateshift.settled
 WHERE id = ANY(%s) AND state IN (5, 6) ORDER BY id FOR UPDATE"""
# Primary key.
EDIT = "UPDATE lateshift.settled SET payload = %s, history = %s WHERE id = %s"


def edit(connection: Connection, edits: Mapping[JobId, Edit], by: str, at: datetime) -> set[JobId]:
    """Gives the jobs that were as their edit expects them."""
    edited: set[JobId] = set()
    rows = connection.execute(READ_SETTLED, (list(edits),)).fetchall()
    with connection.pipeline():
        for id, attempt, fence, payload, story in rows:
            wanted = edits[id]
            if payload == wanted.before:
                line = line_of(wanted, by=by, attempt=attempt, fence=fence, at=at)
                connection.execute(EDIT, (wanted.after, history.append(story, line), id))
                edited.add(id)
    return edited
