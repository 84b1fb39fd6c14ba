"""How long ago each loop of this process last turned well. A loop that has stopped in silence grows old, whatever keeps it, and so does one
that fails at every turn."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from lateshift.clock import SYSTEM

LATE_AFTER = 3  # intervals without a turn
LEAST_INTERVAL = 5.0  # seconds: a busy loop asks for no pause at all, and one turn may wait for the store


class Loop:
    """Turned by whoever drives it, on any thread."""

    __slots__ = ("failed", "interval", "name", "turned")

    def __init__(self, name: str) -> None:
        self.name = name
        self.interval = 0.0
        self.turned = SYSTEM.monotonic()
        self.failed = False  # the turn that is under way

    def has_turned(self, pause: float) -> None:
        """Its next turn follows after `pause` seconds, or sooner. One that has failed leaves all as it was."""
        if not self.failed:
            self.interval = pause
            self.turned = SYSTEM.monotonic()
        self.failed = False


def has_failed() -> None:
    """Of the turn that is under way here: whatever pause it gives, it is none that counts."""
    loop = _turning.get()
    if loop is not None:
        loop.failed = True


class Age(Struct, frozen=True):
    """Of the oldest loop of a name, in seconds: since its last turn, and how long it meant to pause."""

    loop: str
    age: float
    interval: float

    @property
    def is_late(self) -> bool:
        return self.age > LATE_AFTER * max(self.interval, LEAST_INTERVAL)


_loops: set[Loop] = set()
_turning: ContextVar[Loop | None] = ContextVar("turning", default=None)


@contextmanager
def living(name: str) -> Iterator[Loop]:
    """While the block runs, a loop of this name should turn."""
    loop = Loop(name)
    _loops.add(loop)
    before = _turning.set(loop)
    try:
        yield loop
    finally:
        _turning.reset(before)
        _loops.discard(loop)


def turns() -> dict[str, tuple[float, float]]:
    """By name, when each loop last turned and how long it meant to pause; of several with one name, the one that is most behind."""
    found: dict[str, tuple[float, float]] = {}
    for loop in list(_loops):
        turned, interval = loop.turned, loop.interval
        known = found.get(loop.name)
        if known is None or turned + interval < sum(known):
            found[loop.name] = (turned, interval)
    return found


def ages_of(told: Mapping[str, tuple[float, float]], now: float | None = None) -> list[Age]:
    """By name, of what `turns` gave, here or in another process of this machine."""
    now = SYSTEM.monotonic() if now is None else now
    return [Age(name, max(0.0, now - turned), interval) for name, (turned, interval) in sorted(told.items())]


def ages(now: float | None = None) -> list[Age]:
    """Of this process."""
    return ages_of(turns(), now)
