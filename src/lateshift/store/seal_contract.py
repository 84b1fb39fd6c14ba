"""What every store does about sealed values when keys are rotated. See contract.py for what holds of all verbs."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

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


class Seals(Protocol):
    def look(self, part: Part, after: tuple[Any, ...] | None, limit: int) -> list[Row]:
        """Rows in the order of their keys. Less than `limit`: there are no more."""

    def renew(self, part: Part, changes: Sequence[tuple[Row, tuple[bytes | None, ...]]]) -> int:
        """Put these values in the place of those, in one commit, where they are still the same. Gives how many rows it changed."""
