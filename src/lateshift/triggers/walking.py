"""One pass over a tree of folders, a step at a time: neither the tree nor one folder is ever held in memory."""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from typing import TypeAlias

from lateshift.triggers.patterns import PathPattern, States

DEPTH_MOST = 100  # folders within folders; each is an open file while it is walked
NAMES_KEPT = 3  # of what was passed over, for the log

Found: TypeAlias = tuple[str, os.stat_result]


class PassedOver:
    """Names that a walk could not go into, counted, and the first few of them."""

    def __init__(self, why: str) -> None:
        self.why = why
        self.count = 0
        self.names: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.names) < NAMES_KEPT:
            self.names.append(name)

    def __str__(self) -> str:
        rest = self.count - len(self.names)
        return ", ".join(map(repr, self.names)) + (f" and {rest:,} more" if rest else "") + f": {self.why}"


class Walk:
    """Goes through the files that match, each once. Next gives None where an entry did not match, so that whoever asks can
    look at the clock."""

    def __init__(self, folder: str, pattern: PathPattern) -> None:
        """Raises OSError if the folder itself cannot be read."""
        self._pattern = pattern
        self._stack: list[tuple[Iterator[os.DirEntry[str]], States]] = []
        self.unreadable = PassedOver("cannot be read")
        self.unspeakable = PassedOver("names that are no UTF-8")
        self.too_deep = PassedOver(f"more than {DEPTH_MOST} folders deep")
        self.found = 0
        self._open(folder, pattern.start)
        self._steps = self._walk()

    def __iter__(self) -> Iterator[Found | None]:
        return self._steps

    def close(self) -> None:
        self._steps.close()
        while self._stack:
            _close(self._stack.pop()[0])

    def passed_over(self) -> list[str]:
        return [str(each) for each in (self.unreadable, self.unspeakable, self.too_deep) if each.count]

    def _open(self, folder: str, states: States) -> None:
        self._stack.append((os.scandir(folder), states))

    def _walk(self) -> Generator[Found | None, None, None]:
        while self._stack:
            entries, states = self._stack[-1]
            entry: os.DirEntry[str] | None
            try:
                entry = next(entries, None)
            except OSError as error:  # what came of this folder so far stands
                self.unreadable.add(str(error.filename or error))
                entry = None
            if entry is None:
                _close(entries)
                self._stack.pop()
            else:
                yield self._step(entry, states)

    def _step(self, entry: os.DirEntry[str], states: States) -> Found | None:
        name = entry.name
        try:
            if entry.is_dir():
                self._descend(entry, states)
            elif self._pattern.ends(states, name):
                looked = entry.stat()
                if stat.S_ISREG(looked.st_mode) and self._speakable(entry.path):
                    self.found += 1
                    return entry.path, looked
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):  # it went while we looked
                self.unreadable.add(entry.path)
        return None

    def _descend(self, entry: os.DirEntry[str], states: States) -> None:
        inner = self._pattern.into(states, entry.name, link=entry.is_symlink())
        if not inner or not self._speakable(entry.path):
            return
        if len(self._stack) >= DEPTH_MOST:
            self.too_deep.add(entry.path)
        else:
            self._open(entry.path, inner)

    def _speakable(self, path: str) -> bool:
        """Whether the store, and a job's arguments, can hold it."""
        if path.isascii():
            return True
        try:
            path.encode()
        except UnicodeEncodeError:
            self.unspeakable.add(path)
            return False
        return True


def leads_to(folder: str, pattern: PathPattern, path: str) -> tuple[bool, bool]:
    """Whether a walk of the folder would give this path if a file is there, and would go into it if a folder is."""
    if not path.startswith(folder.rstrip("/") + "/"):
        return False, False
    here = folder.rstrip("/")
    states = pattern.start
    *between, name = path[len(here) + 1 :].split("/")
    for each in between:
        here = f"{here}/{each}"
        states = pattern.into(states, each, link=os.path.islink(here))  # noqa: PTH114
    return pattern.ends(states, name), bool(pattern.into(states, name))


def _close(entries: Iterator[os.DirEntry[str]]) -> None:
    close = getattr(entries, "close", None)
    if close is not None:
        close()
