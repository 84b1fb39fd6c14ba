"""More files than memory should hold: a scan goes on in bounded steps, bounded memory and bounded time."""

import gc
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lateshift.clock import ManualClock
from lateshift.model.triggering.sources import FileSource
from lateshift.triggers import files
from lateshift.triggers.files import ASKED_AT_ONCE, CANDIDATES_MOST, Files
from tests.unit.receiving import AT_ONCE, Kept, Turning, put

MANY = 80_000  # held in memory, they would take more than twice what is allowed
REAL = 20_000


class Entry:
    """A file that is nowhere."""

    def __init__(self, folder: str, number: int) -> None:
        self.name = f"{number}.csv"
        self.path = f"{folder}/{self.name}"
        self.number = number

    def is_dir(self) -> bool:
        return False

    def stat(self) -> os.stat_result:
        return looked(self.number)


def looked(number: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG, number, 1, 1, 0, 0, 5, 0, 0, 0), {"st_mtime_ns": 7})


class Counted(Kept):
    """Receipts of which all but the last hundred are there, without holding them."""

    def __init__(self, folder: str, count: int) -> None:
        super().__init__()
        self._folder = folder
        self._count = count

    def unseen(self, events: list[tuple[str, str]]) -> list[bool]:
        self.asked.append(len(events))
        return [int(Path(event).stem) >= self._count - 100 and event not in self.marks for event, _ in events]

    def after(self, event: str, limit: int) -> list[str]:
        start = int(Path(event).stem) + 1 if event else 0
        return [f"{self._folder}/{number:07}.csv" for number in range(start, min(start + limit, self._count))]


def test_files_without_number_are_looked_through_in_bounded_memory(
    clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path)

    def scandir(path: str) -> Iterator[Entry]:
        return (Entry(folder, number) for number in range(MANY))

    def look(path: str) -> os.stat_result:
        return looked(int(Path(path).stem))

    monkeypatch.setattr("lateshift.triggers.walking.os", SimpleNamespace(scandir=scandir))
    monkeypatch.setattr("lateshift.triggers.looking.os", SimpleNamespace(stat=look))
    source = FileSource(pattern=f"{folder}/*.csv")
    Turning(
        Files(source, clock, None), Counted(folder, MANY)
    ).quiet()  # what is imported and made once is no matter here
    turning = Turning(Files(source, clock, None), Counted(folder, MANY))
    gc.collect()
    tracemalloc.start()
    try:
        found = turning.quiet()
        clock.move(seconds=3)
        found += turning.quiet()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(set(found)) == len(found) == 100
    assert max(turning.kept.asked) <= ASKED_AT_ONCE
    assert sum(turning.kept.asked) == MANY
    assert peak < 12 * 1024 * 1024  # 4 as a rule; threads that other tests left count too
    assert turning.kept.forgotten == []


def test_a_backlog_is_taken_piece_by_piece_and_each_file_once(clock: ManualClock, tmp_path: Path) -> None:
    for number in range(REAL):
        (tmp_path / f"{number}.csv").touch()
    turning = Turning(Files(FileSource(pattern=f"{tmp_path}/*.csv"), clock, None))
    found: list[str] = []
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20):
        found += turning.quiet()
        if not turning.source._candidates:  # type: ignore[attr-defined]
            break
        assert len(turning.source._candidates) <= CANDIDATES_MOST  # type: ignore[attr-defined]
        clock.move(seconds=2.5)
    held = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert len(found) == REAL
    assert len(set(found)) == REAL
    assert max(turning.kept.asked) <= ASKED_AT_ONCE
    assert held < 60 * 1024 * 1024  # the test's own receipts and jobs are most of it
    for number in range(0, REAL, 2):
        (tmp_path / f"{number}.csv").unlink()
    clock.move(seconds=31)
    assert turning.quiet() == []
    assert len(turning.kept.forgotten) == len(turning.kept.marks) == REAL // 2


def test_a_look_takes_no_longer_than_it_may(clock: ManualClock, tmp_path: Path) -> None:
    """However many files there are: the scan goes on in the next look, where it stood."""
    for number in range(3000):
        (tmp_path / f"{number}.csv").touch()

    class Slow(Kept):
        def unseen(self, events: list[tuple[str, str]]) -> list[bool]:
            clock.move(seconds=0.3)
            return super().unseen(events)

    turning = Turning(Files(FileSource(pattern=f"{tmp_path}/*.csv"), clock, None), Slow())
    turning.read()
    assert turning.last.more
    assert turning.kept.asked == [ASKED_AT_ONCE, ASKED_AT_ONCE]
    turning.read()
    assert sum(turning.kept.asked) == 3000


def test_no_more_than_was_asked_for_comes_at_once(clock: ManualClock, tmp_path: Path) -> None:
    for number in range(AT_ONCE + 1):
        put(tmp_path / f"{number}.csv")
    turning = Turning(Files(FileSource(pattern=f"{tmp_path}/*.csv"), clock, None))
    turning.quiet()
    clock.move(seconds=3)
    assert len(turning.read()) == AT_ONCE
    assert turning.last.more
    assert turning.last.lag == 1
    assert len(turning.read()) == 1
    assert not turning.last.more


def test_files_that_are_always_written_to_do_not_keep_others_out(
    clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CANDIDATES_MOST", 10)
    noisy = [tmp_path / f"noisy{number}.csv" for number in range(30)]
    quiet = {put(tmp_path / f"quiet{number}.csv") for number in range(10)}
    turning = Turning(Files(FileSource(pattern=f"{tmp_path}/*.csv"), clock, None))
    found: set[str] = set()
    for turn in range(60):
        for path in noisy:
            path.write_text("x" * turn)
        found |= set(turning.quiet())
        clock.move(seconds=3)
    assert found >= quiet
    assert not found & {str(path) for path in noisy}
