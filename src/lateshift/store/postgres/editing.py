"""What settled jobs that are resubmitted come back with: other arguments, if they get any, and a line in their histories that says by whom."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from lateshift.model import history
from lateshift.model.edit import Edit, line_of
from lateshift.model.ids import JobId
from lateshift.model.job import AttemptRecord
from lateshift.store.postgres.arrays import Uuids
from lateshift.store.postgres.database import Connection

HISTORY_BYTES = 1024 * 1024  # of histories that are read together, and sent back

# Jobs that can be resubmitted, held until the end of the transaction: whoever comes with an edit meanwhile waits, and finds them gone.
# Arguments are read of those alone that get others, and of histories how long they are. Primary key.
READ_SETTLED = """SELECT id, attempt, fence, CASE WHEN id = ANY(%(edited)b::uuid[]) THEN payload END, coalesce(octet_length(history), 0)
 FROM lateshift.settled WHERE id = ANY(%(ids)b::uuid[]) AND state IN (5, 6) ORDER BY id FOR UPDATE"""
# The histories of some of these. Primary key.
READ_HISTORIES = "SELECT id, history FROM lateshift.settled WHERE id = ANY(%(ids)b::uuid[])"


class Again(NamedTuple):
    """What one of them comes back with: other arguments, None if it keeps what it has, which never leaves the database then; and the line.
    `size`: bytes of its history."""

    payload: bytes | None
    line: AttemptRecord
    size: int


def edited(
    connection: Connection, ids: Sequence[JobId], edits: Mapping[JobId, Edit], by: str, at: datetime
) -> dict[JobId, Again]:
    """Of those that can be resubmitted, and are as their edit, if there is one, expects them."""
    found: dict[JobId, Again] = {}
    asked = {"ids": Uuids(ids), "edited": Uuids(id for id in ids if id in edits)}
    for id, attempt, fence, payload, size in connection.execute(READ_SETTLED, asked, binary=True):
        edit = edits.get(id)
        if edit is None or payload == edit.before:
            line = line_of(edit, by=by, attempt=attempt, fence=fence, at=at)
            found[id] = Again(None if edit is None else edit.after, line, size)
    return found


def lots(found: Mapping[JobId, Again]) -> Iterator[list[JobId]]:
    """So many at a time as have their histories read together: of HISTORY_BYTES, and at least one."""
    lot, size = list[JobId](), 0
    for id, again in found.items():
        size += again.size
        if lot and size > HISTORY_BYTES:
            yield lot
            lot, size = [], again.size
        lot.append(id)
    if lot:
        yield lot


def histories(connection: Connection, lot: Sequence[JobId], found: Mapping[JobId, Again]) -> list[bytes]:
    """Theirs, each with its line."""
    kept = dict(connection.execute(READ_HISTORIES, {"ids": Uuids(lot)}, binary=True))
    return [history.append(kept[id], found[id].line) for id in lot]
