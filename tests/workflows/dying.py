"""A worker that is killed at one of its writes, and what the next one makes of it."""

from collections.abc import Callable
from typing import Any

from lateshift import Lateshift
from lateshift.testing.kit import Kit
from lateshift.testing.shift import ProcessDeath

WRITES = ("workflows.advance", "jobs.exchange", "jobs.cancel")
LIVES = 2  # of workers, of which the first may be killed


class Killer:
    """See interposed.Around. Kills before, or after, the write of this number; None never does, and counts."""

    def __init__(self, number: int | None, *, after: bool) -> None:
        self.count = 0
        self.is_dead = False
        self.struck = False
        self.looks_away = False  # while an operator writes
        self._number = number
        self._after = after

    def __call__(self, verb: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if self.is_dead:
            raise ProcessDeath
        if verb not in WRITES or self.looks_away:
            return call(*args, **kwargs)
        self.count += 1
        strikes = not self.struck and self.count == self._number
        if strikes and not self._after:
            self._die()
        answer = call(*args, **kwargs)
        if strikes:
            self._die()
        return answer

    def _die(self) -> None:
        self.struck = self.is_dead = True
        raise ProcessDeath


def live(app: Lateshift, url: str, killer: Killer, *acts: Callable[[], None]) -> None:
    """Do one thing after the other, and let workers run what follows from each; when one is killed, another comes."""
    with Kit(app, store=url, around=killer) as kit:
        for act in acts:
            killer.looks_away = True
            act()
            killer.looks_away = False
            for _ in range(LIVES):
                try:
                    kit.drain_here(dead=lambda: killer.is_dead)
                except ProcessDeath:
                    killer.is_dead = False
                kit.clock.move(minutes=2)  # the dead are seen to be dead
