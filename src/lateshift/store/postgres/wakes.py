"""Wake-ups by NOTIFY, sent after the commit and not in it: a transaction that notifies holds a lock that all
notifying transactions wait for, and would hold it while the disk is written."""

import os
import select
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

import psycopg

from lateshift.errors import StoreError
from lateshift.model.job import Line
from lateshift.store import hints
from lateshift.store.forks import forks
from lateshift.store.hints import Coalesced, written
from lateshift.store.postgres.database import Connection, Database
from lateshift.store.postgres.enqueue import NOTIFY
from lateshift.store.postgres.on_loop import OnLoop

CHANNEL = "lateshift"
LOOK_SECONDS = 15.0
RECONNECT_SECONDS = 1.0


class NotifyWakes:
    """See contract.Wakes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = Coalesced(database.clock)
        self._stops: list[Callable[[], None]] = []

    def hint(self, lines: Iterable[Line]) -> None:
        lines = self._due.of(lines)
        if not lines:
            return

        def work(connection: Connection, again: bool) -> None:
            for line in lines:
                connection.execute(NOTIFY, (written(line),))

        with suppress(StoreError):  # a hint that is lost costs a poll; nobody waits for it
            self._database.run_once(work)

    async def hint_here(self, here: OnLoop, lines: Iterable[Line]) -> None:
        """The same on a loop."""
        for line in self._due.of(lines):
            await here.read(NOTIFY, (written(line),))

    def listen(self, heard: Callable[[Line], None]) -> Callable[[], None]:
        awake, waker = os.pipe()
        made_in = forks()
        thread = threading.Thread(target=self._read, args=(heard, awake), name="lateshift-wakes", daemon=True)
        thread.start()

        def stop() -> None:
            if stop in self._stops:
                self._stops.remove(stop)
                if forks() != made_in:  # in a forked child: the listener is the parent's
                    return
                os.write(waker, b"x")
                thread.join()
                os.close(awake)
                os.close(waker)

        self._stops.append(stop)
        return stop

    def _read(self, heard: Callable[[Line], None], awake: int) -> None:
        """Until `awake` can be read; a connection that breaks is made again."""
        while True:
            try:
                with self._database.connect() as connection:
                    with self._database.watched(connection):
                        connection.execute(f"LISTEN {CHANNEL}", prepare=False)
                    while True:
                        for notice in connection.notifies(timeout=0):
                            line = hints.read(notice.payload)
                            if line is not None:
                                heard(line)
                        readable = _readable([connection.fileno(), awake], LOOK_SECONDS)
                        if awake in readable:
                            return
                        if not readable:
                            with self._database.watched(connection):  # a half-open connection says so here
                                connection.execute("SELECT 1", prepare=False)
            except psycopg.Error:
                if _readable([awake], RECONNECT_SECONDS):
                    return

    def close(self) -> None:
        for stop in list(self._stops):
            stop()


def _readable(descriptors: list[int], seconds: float) -> set[int]:
    """Those that can be read within the time; not by select(), which knows no descriptor above 1023."""
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poller.poll(seconds * 1000)}
