"""A named lock over all machines: `with app.lock("stock") as grip`, or `async with`. The fence token that comes with it
lets whatever the holder writes to refuse a holder that has lost it."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from types import TracebackType

from lateshift.errors import LockLost, LockTimeout, StoreError
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
        self._until = 0.0  # monotonic: the store's word holds at least so long
        self._released = threading.Event()
        self._lost = threading.Event()

    @property
    def fence(self) -> int:
        """Higher each time the lock changes hands. Send it with what you write. Raises LockLost once it is lost."""
        grip = self._grip
        if grip is None or self._lost.is_set() or time.monotonic() >= self._until:
            raise LockLost(f"The lock {self._name!r} is not held any more. Stop, and take it again.")
        return grip.fence

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
            given_up = threading.Event()
            try:
                if await aside(self._take_unless, given_up):
                    return self
            except asyncio.CancelledError:
                # The thread goes on. Either it still sees that it is given up, or we see here what it has taken.
                given_up.set()
                if self._grip is not None:
                    threading.Thread(target=self._abandon, name="lateshift-lock", daemon=True).start()
                raise
            await asyncio.sleep(pause)
        raise self._late()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._released.set()  # not renewed from now on, even if we are cancelled before a thread is free
        await asyncio.shield(aside(self._release, error))

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
        asked = time.monotonic()
        grip = self._locks().acquire(self._name, self._owner, self._ttl)
        if grip is None:
            return False
        self._until = asked + self._ttl.total_seconds()
        self._released.clear()
        self._lost.clear()
        self._grip = grip
        threading.Thread(target=self._keep, args=(grip,), name="lateshift-lock", daemon=True).start()
        return True

    def _take_unless(self, given_up: threading.Event) -> bool:
        taken = self._take()
        if taken and given_up.is_set():
            self._abandon()
        return taken

    def _abandon(self) -> None:
        """Nobody waits for it any more. If the store cannot be told, its time runs out."""
        with suppress(StoreError, LockLost):
            self._release(None)

    def _keep(self, grip: Grip) -> None:
        """Renew three times in each lifetime; once it cannot have lasted, say that it is lost."""
        seconds = self._ttl.total_seconds()
        while not self._released.wait(seconds / 3):
            asked = time.monotonic()
            try:
                renewed = self._locks().renew(grip, self._ttl)
            except StoreError:
                renewed = None
            if renewed:
                self._until = asked + seconds
            elif renewed is False or time.monotonic() >= self._until:
                self._lost.set()
                return

    def _release(self, error: BaseException | None) -> None:
        self._released.set()
        grip, self._grip = self._grip, None
        if grip is not None and not self._locks().release(grip) and error is None:
            raise LockLost(
                f"The lock {self._name!r} was lost before its block ended; another may have held it too."
            )
