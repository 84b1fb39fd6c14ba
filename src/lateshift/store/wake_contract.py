"""How stores wake those who wait for jobs. See contract.py for what holds of all verbs."""

from collections.abc import Callable, Iterable
from typing import Protocol

from lateshift.model.job import Line


class Wakes(Protocol):
    """Hints that there may be work; losing one costs a poll, never a job."""

    def hint(self, lines: Iterable[Line]) -> None: ...

    def listen(self, heard: Callable[[Line], None]) -> Callable[[], None]:
        """Call `heard` (on some thread) for each hint; gives what ends the listening."""
