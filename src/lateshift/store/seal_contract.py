"""What every store does about sealed values when keys are rotated. See contract.py for what holds of all verbs."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from lateshift.model.sealed import key_of

RENEWED_AT_ONCE = 200  # rows that are looked at in one statement, and written in one commit


class Part(StrEnum):
    """Where sealed values stand, in the order in which jobs pass through."""

    BATCHES = "batches"
    JOBS = "jobs"
    SETTLED = "settled"
    LOGS = "logs"
    SESSIONS = "sessions"


class Row(Struct, frozen=True):
    """The values of one row that may be sealed; all None if none is. `key`: a batch's or a job's id, a job's id and a fence, or a queue
    and a session."""

    key: tuple[Any, ...]
    values: tuple[bytes | None, ...]


class SealedWaiting(Struct, frozen=True):
    """Jobs of one queue that one key has sealed and that wait: how many were seen, and since when the oldest of them is there."""

    queue: str
    key: str
    count: int
    since: datetime


class Seals(Protocol):
    def waiting(self, queues: Collection[str], most: int) -> list[SealedWaiting]:
        """Of these queues, by queue and key: `most` ready jobs of each are looked at, and as many of those that are due next."""

    def look(self, part: Part, after: tuple[Any, ...] | None, limit: int) -> list[Row]:
        """Rows in the order of their keys. Less than `limit`: there are no more."""

    def renew(self, part: Part, changes: Sequence[tuple[Row, tuple[bytes | None, ...]]]) -> int:
        """Put these values in the place of those, in one commit, where they are still the same. Gives how many rows it changed."""


def waiting_of(rows: Iterable[tuple[str, bytes, datetime]]) -> list[SealedWaiting]:
    """From queue, the beginning of the payload, and when it was made."""
    counts: Counter[tuple[str, str]] = Counter()
    since: dict[tuple[str, str], datetime] = {}
    for queue, head, made in rows:
        if (key := key_of(head)) is not None:
            counts[queue, key] += 1
            since[queue, key] = min(made, since.get((queue, key), made))
    return [SealedWaiting(*which, counts[which], since[which]) for which in sorted(counts)]
