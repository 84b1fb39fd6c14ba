"""Times and jobs in the sentences of reasons."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from lateshift.model.explaining.facts import Other
from lateshift.model.job import AttemptRecord, State
from lateshift.model.words import counted, duration

NAMED = 5  # jobs, workers and programs that a sentence names at most
SAID = 200  # characters of an error's message
NOW = timedelta(milliseconds=50)
JUST = timedelta(seconds=1)


class Words:
    """Times as they are read at one instant in one zone; without a zone, the reader's own."""

    def __init__(self, at: datetime, zone: tzinfo | None = None) -> None:
        self.at = at
        self._zone = zone

    def time(self, moment: datetime) -> str:
        """12:03:10, with the date if that is another day."""
        there, here = moment.astimezone(self._zone), self.at.astimezone(self._zone)
        text = there.strftime("%H:%M:%S" if there.date() == here.date() else "%Y-%m-%d %H:%M:%S")
        return f"{text} UTC" if self._zone is UTC else text

    def coming(self, moment: datetime) -> str:
        """12:03:10 (in 3m 5s)"""
        left = moment - self.at
        return f"{self.time(moment)} ({'now' if left <= NOW else f'in {duration(left)}'})"

    def gone(self, moment: datetime) -> str:
        """11:40:02 (23m 8s ago)"""
        passed = self.at - moment
        return f"{self.time(moment)} ({'just now' if passed < JUST else f'{duration(passed)} ago'})"

    def other(self, other: Other, *, alive: bool = True) -> str:
        """Another job: which it is, and what it does."""
        which = "a job of another queue" if other.elsewhere else f"{other.task} {other.id}"
        return f"{which}, which {self._does(other)}" + ("" if alive else " on a worker that is dead")

    def _does(self, other: Other) -> str:
        if other.state is State.RUNNING and other.started_at is not None:
            return f"runs since {self.gone(other.started_at)}"
        if other.state is State.SCHEDULED and other.due_at > self.at:
            return f"is due at {self.coming(other.due_at)}"
        return f"is {other.state.label}"


def listed(things: Sequence[str], most: int = NAMED) -> str:
    """a, b and 3 more."""
    shown = list(things[:most])
    if len(things) > most:
        return f"{', '.join(shown)} and {len(things) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def bounded(number: int, limit: int, noun: str) -> str:
    """3 jobs; or at the limit, 10,000 jobs or more."""
    return counted(number, noun) + (" or more" if number >= limit else "")


def one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SAID else f"{text[: SAID - 1]}…"


def said(record: AttemptRecord | None) -> str:
    """What an attempt ended with, as a sentence of its own."""
    text = one_line(": ".join(part for part in (record.error, record.message) if part)) if record else ""
    return f" It said {text}{'' if text.endswith('.') else '.'}" if text else ""
