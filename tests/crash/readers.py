"""Readers of a trigger that are killed: one process after the other reads it by hand, and may die at a crash point.

A fork is a process like any other, and a hundred of them take seconds. Whoever makes them opens no store, and starts no thread.
"""

import importlib
import os
import signal
import traceback
from collections.abc import Callable
from datetime import timedelta

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.store import crashpoints
from lateshift.triggers.declaring import Declaring
from lateshift.triggers.reader import Reader

TERM = timedelta(seconds=15)  # after so long, the term of one that died is over
ROUNDS = 100  # in which everything is read
AT_REST = 2  # rounds in a row without anything


class Readers:
    def __init__(self, make_app: Callable[[ManualClock], Lateshift]) -> None:
        self._make_app = make_app
        self.started = 0
        self.killed = 0

    def read(self, crash: str = "") -> None:
        """Until nothing is left to read, or until it is killed."""
        self.started += 1
        pid = os.fork()
        if pid == 0:
            self._read_and_exit(crash)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            assert crash
            assert os.WTERMSIG(status) == signal.SIGKILL
            self.killed += 1
        else:
            assert os.WEXITSTATUS(status) == 0, "a reader failed"

    def _read_and_exit(self, crash: str) -> None:
        status = 1
        try:
            os.environ["LATESHIFT_CRASH"] = crash
            importlib.reload(crashpoints)  # it looks at the environment when it is imported
            clock = ManualClock()
            clock.offset = self.started * TERM
            self._read(self._make_app(clock), clock)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _read(self, app: Lateshift, clock: ManualClock) -> None:
        [trigger] = app.triggers.values()
        Declaring(app.store, app.name, lambda: [trigger.declared]).say()
        reader = Reader(app.store, trigger, new_member_id(), clock)
        quiet = 0
        for _ in range(ROUNDS):
            pause = reader.round()
            assert reader._term is not None, "another reads"
            view = app.store.triggers.get(trigger.name)
            assert view is not None
            assert view.error is None
            quiet = quiet + 1 if pause > timedelta(0) else 0
            if quiet == AT_REST:
                break
        assert quiet == AT_REST, "it never comes to rest"
        reader.resign()
        app.close()
