"""A named lock over all machines: `with app.lock("stock") as grip`, or `async with`. The fence token that comes with it
lets whatever the holder writes to refuse a holder that has lost it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import TracebackType

from lateshift.errors import LockLost, LockTimeout, StoreUnavailable
from lateshift.model.ids import new_member_id
from lateshift.runtime.aside import aside
from lateshift.store.contract import Grip, Locks

FIRST_TRY = 0.01
LAST_TRY = 0.5


class Lock:
    """One use of a lock. It is renewed on a thread of its own while it is held, whatever the holder's code does."""

    def __init__(self, locks: Callable[[], Locks], name: str, ttl: timedelta, wait: timedelta | None) -> None:
        self._locks = locks
        self._name = name
        self._ttl = ttl
        self._wait = wait
        self._owner = new_member_id()
        self._grip: Grip | None = None
        self._released = threading.Event()
        self._lost = threading.Event()

    @property
    def fence(self) -> int:
        """Higher each time the lock changes hands. Send it with what you write. Raises LockLost once it is lost."""
        if self._grip is None or self._lost.is_set():
            raise LockLost(f"The lock {self._name!r} is not held any more. Stop, and take it again.")
        return self._grip.fence

    def __enter__(self) -> "Lock":
        for pause in self._tries():
            if self._take():
                return self
            time.sleep(pause)
        raise self._late()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._release(error)

    async def __aenter__(self) -> "Lock":
        for pause in self._tries():
            if await aside(self._take):
                return self
            await asyncio.sleep(pause)
        raise self._late()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await aside(self._release, error)

    def _tries(self) -> Iterator[float]:
        end = None if self._wait is None else time.monotonic() + self._wait.total_seconds()
        pause = FIRST_TRY
        yield pause
        while end is None or time.monotonic() < end:
            yield pause
            pause = min(pause * 2, LAST_TRY)

    def _late(self) -> LockTimeout:
        return LockTimeout(f"The lock {self._name!r} was not free within {self._wait}.")

    def _take(self) -> bool:
        self._grip = self._locks().acquire(self._name, self._owner, self._ttl)
        if self._grip is None:
            return False
        self._released.clear()
        self._lost.clear()
        threading.Thread(target=self._keep, args=(self._grip,), name="lateshift-lock", daemon=True).start()
        return True

    def _keep(self, grip: Grip) -> None:
        """Renew three times in each lifetime; once it cannot have lasted, say that it is lost."""
        seconds = self._ttl.total_seconds()
        until = time.monotonic() + seconds
        while not self._released.wait(seconds / 3):
            asked = time.monotonic()
            try:
                renewed = self._locks().renew(grip, self._ttl)
            except StoreUnavailable:
                renewed = None
            if renewed:
                until = asked + seconds
            elif renewed is False or time.monotonic() > until:
                self._lost.set()
                return

    def _release(self, error: BaseException | None) -> None:
        self._released.set()
        grip, self._grip = self._grip, None
        if grip is not None and not self._locks().release(grip) and error is None:
            raise LockLost(
                f"The lock {self._name!r} was lost before its block ended; another may have held it too."
            )
