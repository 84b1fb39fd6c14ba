"""What every store does about the events of jobs. See contract.py for what holds of all verbs.

An event is written in the transaction that makes it true, for jobs that have a reply; nobody calls a verb for that."""

from datetime import datetime
from typing import Protocol

from msgspec import Struct


class Published(Struct, frozen=True):
    """A message of a channel. `queue`: of the job that it tells of. `told`: a JobEvent as JSON."""

    number: int
    channel: str
    queue: str
    told: bytes


class LeftOut(Struct, frozen=True, kw_only=True):
    """Events with numbers between these two may have been told, and are kept no more."""

    after: int
    before: int


class Replies(Protocol):
    def forward(self, *, term: int, limit: int) -> int:
        """Of up to `limit` events, the oldest first, make what their routes ask for: jobs of their receivers, and messages of
        channels; all of it with the events' end, in one transaction. Gives how many events. One of which the store can keep
        nothing is logged and left out, so that those behind it go on; then it may be fewer than there are. Refused (0) unless `term` is the
        courier's present one: two at once could send what belongs in a row in the wrong order."""

    def published(self, after: int, limit: int, *, most: int | None = None) -> list[Published]:
        """Messages of all channels with a higher number that have not passed their time, in their order. None is missed by going on with the last number: none
        appears later with a lower one. `most`: no more of them than tell so many bytes together, nor are more read; the first in any case."""

    def newest(self) -> int:
        """The number of the newest message there was; 0 if there never was one. One that cannot be read yet has a higher number."""

    def waiting(self) -> tuple[int, datetime | None]:
        """How many events are not sent on yet, up to COUNT_LIMIT, and since when the oldest of them waits: of progress and retries
        no time is kept, so None if there are only such."""
