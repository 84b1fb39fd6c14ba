"""How many jobs of each lane a worker asks for: free slots, and for quick jobs some in hand, so that the next are
there when the present ones end. What waits in hand waits for at most IN_HAND seconds."""

from dataclasses import dataclass

from lateshift.model.job import Lane

BATCH = 1000  # jobs in one lease, at most
IN_HAND = 0.02  # seconds of work to have in hand
WEIGHT = 0.3  # of the newest batch in the mean


@dataclass(slots=True)
class Room:
    """One lane's."""

    slots: int
    ahead: bool = True  # whether to have some in hand
    held: int = 0  # leased and not yet settled by their executor
    mean: float | None = None  # seconds that a job takes, of late
    busy: float = 0.0
    ended: int = 0

    def end(self, seconds: float) -> None:
        self.held -= 1
        self.busy += seconds
        self.ended += 1

    def wanted(self, coming: int = 0) -> int:
        """How many more to lease now, when so many have come and are not yet counted as held."""
        if self.ended:
            newest = self.busy / self.ended
            self.mean = newest if self.mean is None else self.mean + WEIGHT * (newest - self.mean)
            self.busy, self.ended = 0.0, 0
        spare = 0
        if self.ahead and self.mean is not None:
            spare = min(BATCH, int(self.slots * IN_HAND / max(self.mean, 1e-5)))
        if spare < 2:
            spare = 0
        return max(0, min(BATCH, self.slots + spare - self.held - coming))


def rooms(concurrency: int, threads: int, processes: int) -> dict[Lane, Room]:
    """A room for each lane. Careful lanes have room of their own: their jobs are leased few at a time."""
    return {
        Lane.COROUTINE: Room(concurrency),
        Lane.THREAD: Room(threads),
        Lane.PROCESS: Room(processes),
        Lane.SOLO: Room(1, ahead=False),  # what it holds beside a poison is lost a third time, and dead
    }


def rooms_of(leased_from: Lane, runs_in: Lane) -> tuple[Lane, ...]:
    """Where a job takes a place: in the room it was leased for, and in the one where its body runs."""
    leased_for = leased_from.room
    return (leased_for,) if runs_in is leased_for else (leased_for, runs_in)
