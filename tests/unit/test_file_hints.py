"""What the system tells of is looked at between two scans: turned by hand, with hints that the test gives."""

from datetime import timedelta
from pathlib import Path

import pytest

from lateshift.clock import ManualClock
from lateshift.model.triggering.sources import FileSource
from lateshift.triggers import files
from lateshift.triggers.files import Files
from tests.unit.receiving import Told, Turning, Watched, put, settled


def test_a_hint_is_looked_at_without_a_scan(watched: Watched, clock: ManualClock, inbox: Path) -> None:
    told = Told()
    turning = watched(told=told)
    turning.quiet()
    assert told.deep is False
    assert turning.last.pause <= timedelta(seconds=0.5)
    path = put(inbox / "a.csv")
    told.paths = {path, put(inbox / "b.txt"), str(inbox), "/elsewhere.csv"}
    assert turning.quiet() == []
    clock.move(seconds=2.5)
    assert turning.quiet() == [path]
    Path(path).rename(inbox.parent / "away")
    told.paths = {path}
    assert turning.quiet() == []
    assert turning.kept.forgotten == [path]
    (inbox.parent / "away").rename(path)
    told.paths = {path}
    assert turning.quiet() == []
    clock.move(seconds=2.5)
    assert turning.quiet() == [path]


@pytest.mark.parametrize("by", ["a folder", "too many"])
def test_a_hint_that_does_not_say_all_asks_for_a_scan(
    watched: Watched, clock: ManualClock, inbox: Path, by: str
) -> None:
    told = Told()
    turning = watched("**/*.csv", told=told)
    turning.quiet()
    assert told.deep is True
    path = put(inbox / "folder" / "a.csv")
    if by == "a folder":
        told.paths = {str(inbox / "folder")}
    else:
        told.more = True
    clock.move(seconds=1.5)
    assert turning.quiet() == []
    clock.move(seconds=2.5)
    assert turning.quiet() == [path]


def test_more_hints_than_there_is_room_for_ask_for_a_scan(
    watched: Watched, clock: ManualClock, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CANDIDATES_MOST", 4)
    told = Told()
    turning = watched(told=told)
    turning.quiet()
    paths = {put(inbox / f"{number}.csv") for number in range(20)}
    told.paths = set(paths)
    found: set[str] = set()
    for _ in range(20):
        clock.move(seconds=2.5)
        found |= set(turning.quiet())
    assert found == paths


def test_a_watch_that_ended_is_tried_again_after_a_while(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    told = Told()
    turning = watched(told=told)
    turning.quiet()
    told.ended = True
    for minutes, watches in ((1, 1), (10, 2), (1, 2), (10, 3)):
        clock.move(minutes=minutes)
        turning.quiet()
        assert told.watches == watches


def test_without_watchfiles_there_are_scans(
    clock: ManualClock, inbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(folder: str, *, deep: bool) -> Told:
        raise ModuleNotFoundError("No module named 'watchfiles'", name="watchfiles")

    caplog.set_level("INFO")
    path = put(inbox / "a.csv")
    turning = Turning(Files(FileSource(pattern=f"{inbox}/*"), clock, missing))
    assert settled(turning, clock) == [path]
    assert "pip install 'lateshift[files]'" in caplog.text
