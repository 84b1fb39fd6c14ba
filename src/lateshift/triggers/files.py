"""Files as a source of events: a scan from time to time is the truth, hints of the operating system come in between.

What is known of a file that a job was made of stands in the receipts; what is not whole yet, in a bounded number of candidates.
"""

import os
import stat
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import islice

import msgspec
from msgspec import Struct

from lateshift.clock import SYSTEM, Clock
from lateshift.model.triggering.sources import FileSource
from lateshift.model.triggering.trigger import is_whole, known_by
from lateshift.runtime.log import log
from lateshift.triggers.looking import is_gone, look, mark_of, seen_of
from lateshift.triggers.patterns import rooted
from lateshift.triggers.source import Incoming, Read, Receipts, SourceAway
from lateshift.triggers.walking import Found, Walk, leads_to
from lateshift.triggers.watching import Hints, Watch

CANDIDATES_MOST = 10_000  # files that wait until they are whole; the scan waits with them if there are more
ASKED_AT_ONCE = 1000  # receipts
LOOK = 0.5  # seconds between two looks at the hints, and for a folder that is not there yet
LEAST_PAUSE = 0.02  # seconds
SOON = 1.0  # seconds from one scan to the next that a hint asks for
WATCH_AGAIN = 600.0  # seconds until a watch that failed is tried again
WATCHING_WITHIN = 0.2  # seconds that the first scan waits for the watch, so that nothing falls between them

Identity = tuple[int, int]  # of a folder: its device and its inode


class Candidate(Struct):
    """A file that no job was made of: as it was at the first of two looks, and when that was."""

    mark: str
    since: float


class Standing(Struct):
    """What is kept: which folder it is that the receipts are of."""

    folder: Identity | None


class Files:
    """See source.Source."""

    keep: timedelta | None = None

    def __init__(
        self,
        where: FileSource,
        clock: Clock = SYSTEM,
        watch: Callable[..., Hints] | None = Watch,
    ) -> None:
        self.folder, self._pattern = rooted(where.pattern)
        self._settle = 0.0 if where.renamed else where.settle.total_seconds()
        self._every = where.every.total_seconds()
        self._monotonic = clock.monotonic
        self._watching = watch
        self._receipts: Receipts
        self._hints: Hints | None = None
        self._candidates: dict[str, Candidate] = {}  # the one seen first comes first
        self._walk: Walk | None = None
        self._scan_at = 0.0  # when the next one begins
        self._scanned_at = 0.0  # when the last one ended
        self._soon = False  # whether a hint asks for one before that
        self._watched_at = 0.0
        self._pruned: str | None = None  # up to which event receipts were looked through; None: not at it
        self._there: Identity | None = None  # the folder that is there now
        self._known: Identity | None = None  # the folder that the receipts are of
        self._to_store = False
        self._complained: list[str] = []
        self._told_missing = False
        self._missing = f"the folder {self.folder} does not exist yet; it is waited for"

    def open(self, position: bytes | None, receipts: Receipts) -> None:
        self._receipts = receipts
        self._scan_at = self._monotonic()
        if position is not None:
            try:
                self._known = msgspec.json.decode(position, type=Standing).folder
            except msgspec.MsgspecError:
                log.warning("what is stored of %s is not by a trigger of files: it begins anew", self.folder)

    def read(self, limit: int, wait: float) -> Read:
        until = self._monotonic() + wait
        if not self._arrive():
            return Read([], pause=timedelta(seconds=LOOK), waits=self._missing)
        self._hear()
        if self._walk is None and self._pruned is None:
            self._begin()
        self._scan(until)
        self._prune(until)
        events = self._whole(limit)
        return self._answer(events, full=len(events) >= limit)

    def done(self, events: list[Incoming]) -> None:
        """A file is not ours to acknowledge: its receipt says all."""

    def close(self) -> None:
        if self._walk is not None:
            self._walk.close()
        if self._hints is not None:
            self._hints.close()
        self._walk = self._hints = None

    # -- the folder itself ----------------------------------------------------------------------------------------

    def _arrive(self) -> bool:
        """Whether the folder is there. One that has been put in its place is watched and scanned anew."""
        there = self._identity()
        if there is None:
            if not self._told_missing:
                log.warning("%s", self._missing)
                self._told_missing = True
            self._leave()
            return False
        if there != self._there:
            self._leave()
            self._there, self._told_missing = there, False
            self._scan_at = self._monotonic()
            if self._known is None:
                self._known, self._to_store = there, True
            self._watch()
        return True

    def _leave(self) -> None:
        self.close()
        self._there = self._pruned = None
        self._candidates.clear()

    def _identity(self) -> Identity | None:
        try:
            found = os.stat(self.folder)  # noqa: PTH116
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SourceAway(f"the folder {self.folder} cannot be read: {error.strerror}") from error
        return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None

    def _watch(self) -> None:
        if self._hints is not None:
            self._hints.close()
            self._hints = None
        if self._watching is None:
            return
        self._watched_at = self._monotonic()
        try:
            self._hints = self._watching(self.folder, deep=self._pattern.deep)
        except ModuleNotFoundError:
            log.info(
                "watchfiles is not installed: %s is looked at every %g s only. pip install 'lateshift[files]'",
                self.folder, self._every,
            )  # fmt: skip
            self._watching = None
            return
        ready = getattr(self._hints, "ready", None)
        if ready is not None and ready.wait(WATCHING_WITHIN):
            self._hints.take()  # the scan that begins now is later than all of it

    # -- what changes ---------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        """Look at what the system told of, and forget at once what has gone."""
        if self._hints is None:
            return
        paths, more = self._hints.take()
        found: list[Found] = []
        gone: list[str] = []
        real = os.path.realpath(self.folder) if paths else self.folder
        for path in paths:
            if real != self.folder and path.startswith(real + "/"):  # some systems resolve links
                path = self.folder + path[len(real) :]
            file, folder = leads_to(self.folder, self._pattern, path)
            if not (file or folder):
                continue
            looked = look(path)
            if looked is None:
                if file and is_gone(path):
                    gone.append(path)
            elif file and stat.S_ISREG(looked.st_mode):
                found.append((path, looked))
            elif folder and stat.S_ISDIR(looked.st_mode):
                more = True  # what came with it is told by nobody
        if gone and self._is_ours():
            self._receipts.forget([known_by(path) for path in gone])
        room = CANDIDATES_MOST - len(self._candidates)
        self._consider(found[:room])
        if more or len(found) > room:
            self._soon = True

    def _begin(self) -> None:
        """A scan, if it is time."""
        now = self._monotonic()
        if now < (min(self._scan_at, self._scanned_at + SOON) if self._soon else self._scan_at):
            return
        self._soon = False
        if getattr(self._hints, "ended", False) and now >= self._watched_at + WATCH_AGAIN:
            self._watch()
        try:
            self._walk = Walk(self.folder, self._pattern)
        except (FileNotFoundError, NotADirectoryError):
            pass  # it went just now
        except OSError as error:
            raise SourceAway(f"the folder {self.folder} cannot be read: {error.strerror}") from error

    def _scan(self, until: float) -> None:
        """Go on with the scan while there is time, and room for what it finds."""
        while self._walk is not None and self._monotonic() < until:
            room = CANDIDATES_MOST - len(self._candidates)
            if room <= 0:
                return
            steps = list(islice(self._walk, min(room, ASKED_AT_ONCE)))
            self._consider(found for found in steps if found is not None)
            if not steps:
                self._end(self._walk)

    def _end(self, walk: Walk) -> None:
        self._walk = None
        self._scanned_at = self._monotonic()
        self._scan_at = self._scanned_at + self._every
        complaints = walk.passed_over()
        if complaints and complaints != self._complained:
            log.warning("passed over in %s: %s", self.folder, "; ".join(complaints))
        self._complained = complaints
        if self._known != self._there and walk.found:
            # Another folder has taken the place. An empty one may be where a file system is not mounted.
            self._known, self._to_store = self._there, True
        if self._is_ours():
            self._pruned = ""

    def _consider(self, found: Iterable[Found]) -> None:
        """Those that no job was made of become candidates."""
        new = [(path, mark_of(looked)) for path, looked in found if path not in self._candidates]
        now = self._monotonic()
        for place in range(0, len(new), ASKED_AT_ONCE):
            asked = new[place : place + ASKED_AT_ONCE]
            unseen = self._receipts.unseen([(known_by(path), mark) for path, mark in asked])
            for (path, mark), is_new in zip(asked, unseen, strict=True):
                if is_new:
                    self._candidates[path] = Candidate(mark, now)

    def _whole(self, limit: int) -> list[Incoming]:
        """Candidates that are as they were `settle` ago. Where there are many, those that are not are left to a later scan:
        what is written to all the time must not keep others out."""
        now = self._monotonic()
        crowded = len(self._candidates) >= CANDIDATES_MOST // 2
        events: list[Incoming] = []
        for path in self._due(now):
            if len(events) >= limit:
                break
            candidate = self._candidates.pop(path)
            looked = look(path)
            if looked is None or not stat.S_ISREG(looked.st_mode):
                continue
            mark = mark_of(looked)
            if mark == candidate.mark or self._settle == 0:
                events.append(Incoming(path, seen_of(path, looked, mark), mark))
            elif not crowded:
                self._candidates[path] = Candidate(mark, now)
        return events

    def _due(self, now: float) -> list[str]:
        due: list[str] = []
        for path, candidate in self._candidates.items():
            if candidate.since + self._settle > now:
                break
            due.append(path)
        return due

    # -- what has gone --------------------------------------------------------------------------------------------

    def _prune(self, until: float) -> None:
        """Forget files that are gone, so that they make a job if they come again."""
        while self._pruned is not None and self._monotonic() < until:
            page = self._receipts.after(self._pruned, ASKED_AT_ONCE)
            gone = [event for event in page if event.startswith("/") and is_whole(event) and is_gone(event)]
            if not self._is_ours():  # asked after the files: what was unmounted meanwhile has not gone
                self._pruned = None
                return
            if gone:
                self._receipts.forget(gone)
            self._pruned = page[-1] if len(page) == ASKED_AT_ONCE else None

    def _is_ours(self) -> bool:
        """Whether the folder is the one that the receipts are of."""
        return self._known is not None and self._identity() == self._known

    # -- the answer -----------------------------------------------------------------------------------------------

    def _answer(self, events: list[Incoming], *, full: bool) -> Read:
        now = self._monotonic()
        lag = len(self._candidates)
        at_work = self._pruned is not None or (self._walk is not None and lag < CANDIDATES_MOST)
        times = [self._every]
        if self._walk is None:
            times.append(self._scan_at - now)
        if self._hints is not None:
            times.append(LOOK)
        if self._candidates:
            times.append(next(iter(self._candidates.values())).since + self._settle - now)
        position = None
        if self._to_store:
            position, self._to_store = msgspec.json.encode(Standing(self._known)), False
        return Read(events, position, full or at_work, timedelta(seconds=max(min(times), LEAST_PAUSE)), lag)
