"""Leadership as a term: a number that fences what the leader writes, trusted until a while before the store could have
given it to another. It saves work; nothing is exact because of it."""

from datetime import timedelta

from lateshift.clock import Clock
from lateshift.model.ids import MemberId
from lateshift.store.contract import Grip, Locks

TTL = timedelta(seconds=10)
MARGIN = 0.2  # of the lifetime
RENEW_AFTER = 0.3


class Leadership:
    """Ask `term()` each turn: the number of this member's term, or None while another leads. Blocking."""

    def __init__(self, locks: Locks, role: str, member: MemberId, clock: Clock, ttl: timedelta = TTL) -> None:
        self._locks = locks
        self._ttl = ttl
        self._role = role
        self._member = member
        self._clock = clock
        self._grip: Grip | None = None
        self._asked = 0.0

    def term(self) -> int | None:
        now = self._clock.monotonic()
        if self._grip is not None and now < self._asked + RENEW_AFTER * self._ttl.total_seconds():
            return self._grip.fence
        if self._grip is not None and self._locks.renew(self._grip, self._ttl):
            self._asked = now
        else:
            self._grip = self._locks.acquire(self._role, self._member, self._ttl)
            self._asked = now
        late = self._clock.monotonic() >= self._asked + (1 - MARGIN) * self._ttl.total_seconds()
        return None if self._grip is None or late else self._grip.fence

    def resign(self) -> None:
        grip, self._grip = self._grip, None
        if grip is not None:
            self._locks.release(grip)
