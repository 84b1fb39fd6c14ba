"""What bare SQL reaches from Python on Lateshift's own tables: the same indexes, the same durability, nothing else.

A ceiling checks no arguments, no fences, no pauses and no members, keeps no room, runs no bodies and takes no
precautions; its ids are made before the clock starts.
"""

from uuid import UUID

from lateshift.model.ids import new_job_id

LEASED = 100  # a lease or a settlement, in the drain
INSERTED = 1000  # rows, in the batch insert
UNCOUNTED = 2  # calls at most before the clock starts


def new_ids(jobs: int) -> list[UUID]:
    """Of the same kind as Lateshift's, for they decide where in an index a row falls."""
    return [new_job_id() for _ in range(jobs)]


def payload(number: int) -> bytes:
    return b'{"number":%d}' % number


def number_in(text: bytes) -> int:
    return int(text[10:-1])
