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

    def count(self, outcome: Outcome) -> str:
        """Gives the word for it."""
        match outcome:
            case Completed():
                word = "completed"
            case DeadLettered():
                word = "dead"
            case Cancelled():
                word = "cancelled"
            case Later(counts=True):
                word = "retried"
            case Later():
                word = "snoozed"
        setattr(self, word, getattr(self, word) + 1)
        return word

    def numbers(self) -> dict[str, int]:
        return asdict(self)
