"""Readers of a folder that are killed: one process after the other reads it by hand, and dies at a crash point.

A fork is a process like any other, and a hundred of them take seconds. This one opens no store, and starts no thread. It writes
the files, and prints which versions of them each must become one job: `python -m tests.crash.file_reader FOLDER POINT KILLS`.
"""

import importlib
import json
import os
import random
import signal
import sys
from datetime import timedelta
from pathlib import Path

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.ids import new_member_id
from lateshift.model.triggering.events import FileChange
from lateshift.store import crashpoints
from lateshift.triggers.declaring import Declaring
from lateshift.triggers.looking import mark_of
from lateshift.triggers.reader import STAND_BY, Reader

TERM = timedelta(seconds=15)  # after so long, the dead one's term is over
ROUNDS = 50  # in which everything is read
NEW, CLEAN_EVERY = 3, 5


def make_app(folder: str, clock: ManualClock) -> Lateshift:
    app = Lateshift("files", clock=clock)

    @app.on_file(f"{folder}/**/*.csv", renamed=True)
    def load(file: FileChange) -> None: ...

    return app


def read(folder: str, offset: timedelta) -> None:
    """Until nothing is left to read."""
    clock = ManualClock()
    clock.offset = offset
    app = make_app(folder, clock)
    [trigger] = app.triggers.values()
    Declaring(app.store, app.name, lambda: [trigger.declared]).say()
    reader = Reader(app.store, trigger, new_member_id(), clock)
    quiet = 0
    for _ in range(ROUNDS):
        pause = reader.round()
        assert pause != STAND_BY, "another reads"
        quiet = quiet + 1 if pause > timedelta(0) else 0
        if quiet == 2:
            break
    assert quiet == 2, "it never comes to rest"
    reader.resign()
    app.close()


def in_a_process(folder: str, offset: timedelta, crash: str) -> bool:
    """Whether it was killed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.environ["LATESHIFT_CRASH"] = crash
            importlib.reload(crashpoints)  # it looks at the environment when it is imported
            read(folder, offset)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, "a reader failed"
    return False


class Writing:
    """Files as they come, change, go and come again. A version counts once it must become a job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.versions: list[tuple[str, str]] = []
        self._number = 0

    def new(self) -> None:
        for _ in range(NEW):
            self._number += 1
            self.put(self.folder / f"{self._number % 7}" / f"{self._number}.csv")

    def change(self) -> None:
        """Some of those that were read, for sure."""
        there = [path for path in sorted({Path(path) for path, _ in self.versions}) if path.exists()]
        changed, gone, replaced = random.sample(there, 3)
        self.put(changed)
        gone.unlink()
        replaced.unlink()
        self.put(replaced)

    def put(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text("x" * random.randrange(100))
        part.rename(path)
        version = str(path), mark_of(path.stat())
        assert version not in self.versions
        self.versions.append(version)


def main() -> None:
    folder, point, kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    writing = Writing(folder)
    offset = timedelta(0)
    killed = 0
    while killed < kills:
        writing.new()
        offset += TERM
        killed += in_a_process(str(folder), offset, point)
        if killed % CLEAN_EVERY == 0:
            offset += TERM
            assert not in_a_process(str(folder), offset, "")
            writing.change()
        assert offset < 3 * kills * TERM, "they are not killed"
    offset += TERM
    assert not in_a_process(str(folder), offset, "")
    print(json.dumps({"killed": killed, "versions": writing.versions}))


if __name__ == "__main__":
    main()
