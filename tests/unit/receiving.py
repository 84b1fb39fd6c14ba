"""A store's receipts, as a source sees them, and a turn of a source as the reader makes it."""

from bisect import bisect_right
from pathlib import Path
from typing import Any

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


def put(path: Path, text: str = "x") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)
