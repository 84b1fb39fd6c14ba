"""What a worker has done since it started, for people to see."""

from dataclasses import asdict, dataclass

from lateshift.model.outcome import Cancelled, Completed, DeadLettered, Later, Outcome


@dataclass(slots=True)
class Tally:
    completed: int = 0
    retried: int = 0
    snoozed: int = 0  # snoozed, handed back
    dead: int = 0
    cancelled: int = 0
    lost: int = 0

    def count(self, outcome: Outcome) -> None:
        match outcome:
            case Completed():
                self.completed += 1
            case DeadLettered():
                self.dead += 1
            case Cancelled():
                self.cancelled += 1
            case Later(counts=True):
                self.retried += 1
            case Later():
                self.snoozed += 1

    def numbers(self) -> dict[str, int]:
        return asdict(self)
