"""A store's receipts, as a source sees them; a turn of a source as the reader makes it; hints that a test gives."""

from bisect import bisect_right
from pathlib import Path
from typing import Any, Protocol

from lateshift.clock import ManualClock
from lateshift.model.triggering.events import FileChange
from lateshift.model.triggering.trigger import known_by
from lateshift.triggers.source import Incoming, Read, Source

AT_ONCE = 500


class Kept:
    """See source.Receipts."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}
        self.asked: list[int] = []
        self.forgotten: list[str] = []
        self._order: list[str] = []
        self._stale = True

    def unseen(self, events: list[tuple[str, str]]) -> list[bool]:
        self.asked.append(len(events))
        return [self.marks.get(event) != mark for event, mark in events]

    def after(self, event: str, limit: int) -> list[str]:
        if self._stale:
            self._order, self._stale = sorted(self.marks), False
        start = bisect_right(self._order, event)
        return self._order[start : start + limit]

    def forget(self, events: list[str], *, before: str | None = None) -> int:
        assert before is None
        self.forgotten += events
        self._stale = True
        return sum(self.marks.pop(event, None) is not None for event in events)

    def take(self, incoming: list[Incoming]) -> list[Incoming]:
        """Those that make a job."""
        new = []
        for each in incoming:
            event = known_by(each.event)
            if self.marks.get(event) != each.mark:
                self.marks[event] = each.mark
                self._stale = True
                new.append(each)
        return new


class Turning:
    """Turns a source by hand."""

    def __init__(self, source: Source, kept: Kept | None = None, position: bytes | None = None) -> None:
        self.source = source
        self.kept = kept or Kept()
        self.position = position
        self.jobs: list[FileChange] = []
        self.last: Read = Read([])
        source.open(position, self.kept)

    def read(self, limit: int = AT_ONCE) -> list[str]:
        """One look; gives the paths that became jobs."""
        self.last = self.source.read(limit, 0.5)
        assert len(self.last.events) <= limit
        if self.last.position is not None:
            self.position = self.last.position
        new = self.kept.take(self.last.events)
        self.source.done(self.last.events)
        seen: list[Any] = [each.seen for each in new]
        self.jobs += seen
        return [each.path for each in seen]

    def quiet(self, limit: int = AT_ONCE) -> list[str]:
        """Look until there is nothing more to do at once."""
        paths: list[str] = []
        for _ in range(100_000):
            paths += self.read(limit)
            if not self.last.more:
                return paths
        raise AssertionError("it never comes to rest")


class Told:
    """Hints that a test gives."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.more = False
        self.deep: bool | None = None
        self.ended = False
        self.watches = 0

    def __call__(self, folder: str, *, deep: bool) -> "Told":
        self.deep = deep
        self.watches += 1
        return self

    def take(self) -> tuple[set[str], bool]:
        taken = self.paths, self.more
        self.paths, self.more = set(), False
        return taken

    def close(self) -> None: ...


class Watched(Protocol):
    """A trigger of files in the inbox, turned by hand."""

    def __call__(
        self,
        pattern: str = "*.csv",
        *,
        told: Told | None = None,
        after: Turning | None = None,
        renamed: bool = False,
    ) -> Turning: ...


def settled(turning: Turning, clock: ManualClock) -> list[str]:
    """What a scan finds, and what is whole a while later."""
    clock.move(seconds=31)
    first = turning.quiet()
    clock.move(seconds=3)
    return sorted(first + turning.quiet())


def put(path: Path, text: str = "x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)
