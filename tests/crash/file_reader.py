"""Writes files, and lets processes read them that are killed: `python -m tests.crash.file_reader FOLDER POINT KILLS`. Prints
which versions of the files must each become one job."""

import json
import random
import sys
from functools import partial
from pathlib import Path

from lateshift import Lateshift
from lateshift.clock import ManualClock
from lateshift.model.triggering.events import FileChange
from lateshift.triggers.looking import mark_of
from tests.crash.readers import Readers

NEW, CLEAN_EVERY = 3, 5


def make_app(folder: str, clock: ManualClock) -> Lateshift:
    app = Lateshift("files", clock=clock)

    @app.on_file(f"{folder}/**/*.csv", renamed=True)
    def load(file: FileChange) -> None: ...

    return app


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
    readers = Readers(partial(make_app, str(folder)))
    while readers.killed < kills:
        writing.new()
        readers.read(point)
        if readers.killed % CLEAN_EVERY == 0:
            readers.read()
            writing.change()
        assert readers.started < 3 * kills, "they are not killed"
    readers.read()
    print(json.dumps({"killed": readers.killed, "versions": writing.versions}))


if __name__ == "__main__":
    main()
