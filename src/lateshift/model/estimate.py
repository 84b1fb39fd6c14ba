"""How much room a queue has, as one process may assume between two counts. Numbers in, a decision out."""

from enum import Enum

SHARE = 20  # of the room that was counted, one process uses such a part before it counts again
REFRESH = 1.0  # seconds that a count is trusted
PATIENCE = 1.0  # seconds for which a count that is under way keeps others from counting
FULL_FOR = 5  # times as long as it took to count a full queue, it is taken to be full still
FULL_MOST = 0.25  # seconds, at most
PAUSE = 0.02  # seconds, at least, until one who waits has it counted again


class Asked(Enum):
    """The answers that are no number of jobs."""

    COUNT = "count, and ask again"
    COUNTING = "somebody counts: ask again in a moment"
    FULL = "there was no room a moment ago"


class Estimate:
    """Of one queue with room for `most` jobs. Times are monotonic seconds."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._full_for = 0.0
        self._room = 0
        self._full = False
        self._counted_at: float | None = None
        self._counting_since: float | None = None
        self._sending = 0

    @property
    def pause(self) -> float:
        return max(self._full_for, PAUSE)

    def ask(self, wanted: int, now: float) -> int | Asked:
        """How many of the wanted jobs may go now, at least one; `sent` is told when they are in the store, or failed."""
        age = None if self._counted_at is None else now - self._counted_at
        if age is not None and self._room and age < REFRESH:
            granted = min(wanted, self._room)
            self._room -= granted
            self._sending += granted
            return granted
        if age is not None and self._full and age < self._full_for:
            return Asked.FULL
        if self._counting_since is not None and now - self._counting_since < PATIENCE:
            return Asked.COUNTING
        self._counting_since = now
        return Asked.COUNT

    def counted(self, waiting: int, now: float, seconds: float) -> bool:
        """So many wait; it took so long to count them. What this process is sending may not be among them yet. Gives whether
        the queue is full."""
        room = self.most - waiting - self._sending
        self._full = room <= 0
        self._room = 0 if self._full else max(1, room // SHARE)
        self._counted_at = now
        self._full_for = min(FULL_FOR * seconds, FULL_MOST)
        return self._full

    def end_count(self) -> None:
        self._counting_since = None

    def forget(self) -> None:
        """Something has changed: the next to ask counts."""
        self._counted_at = None

    def force(self, jobs: int) -> int:
        """Room was made for so many."""
        self._sending += jobs
        return jobs

    def sent(self, jobs: int) -> None:
        self._sending -= jobs
