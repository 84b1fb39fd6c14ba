"""When a file becomes a job: turned by hand, on a clock that the test moves."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from lateshift.clock import ManualClock
from lateshift.errors import TriggerInvalid
from lateshift.model.triggering.sources import FileSource
from lateshift.model.triggering.trigger import known_by
from lateshift.triggers.files import Files
from lateshift.triggers.source import SourceAway
from tests.unit.receiving import Kept, Turning, Watched, put, settled


def test_a_new_file_is_a_job_once_it_has_not_changed_for_a_while(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    path = put(inbox / "a.csv", "hello")
    turning = watched()
    assert turning.quiet() == []
    assert timedelta(seconds=1) < turning.last.pause <= timedelta(seconds=2)
    clock.move(seconds=1.5)
    assert turning.quiet() == []
    clock.move(seconds=1)
    assert turning.quiet() == [path]
    [change] = turning.jobs
    looked = Path(path).stat()
    assert change.size == 5
    assert change.etag == f"5-{looked.st_mtime_ns}-{looked.st_ino}"
    assert abs(change.modified.timestamp() - looked.st_mtime) < 0.001
    assert settled(turning, clock) == []


def test_a_file_that_is_still_written_to_waits(watched: Watched, clock: ManualClock, inbox: Path) -> None:
    path = put(inbox / "a.csv", "1")
    turning = watched()
    turning.quiet()
    for size in range(2, 6):
        clock.move(seconds=2.5)
        put(inbox / "a.csv", "1" * size)
        assert turning.quiet() == []
    clock.move(seconds=2.5)
    assert turning.quiet() == [path]
    assert [change.size for change in turning.jobs] == [5]


def test_a_file_that_comes_by_a_rename_is_taken_at_once(watched: Watched, inbox: Path) -> None:
    turning = watched(renamed=True)
    put(inbox / "a.part", "whole")
    (inbox / "a.part").rename(inbox / "a.csv")
    assert turning.quiet() == [str(inbox / "a.csv")]


def test_a_changed_file_is_another_job(watched: Watched, clock: ManualClock, inbox: Path) -> None:
    path = put(inbox / "a.csv", "one")
    turning = watched()
    assert settled(turning, clock) == [path]
    put(inbox / "a.csv", "other")
    assert settled(turning, clock) == [path]
    os.utime(path, ns=(1, 1))
    assert settled(turning, clock) == [path]
    assert len({change.etag for change in turning.jobs}) == 3


def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time_is_another_job(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    path = put(inbox / "a.csv", "one")
    os.utime(path, ns=(1, 1))
    turning = watched()
    assert settled(turning, clock) == [path]
    os.utime(put(inbox / "b.part", "two"), ns=(1, 1))
    (inbox / "b.part").rename(path)
    assert settled(turning, clock) == [path]


def test_a_file_that_went_and_comes_again_as_it_was_is_another_job(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    path = Path(put(inbox / "a.csv"))
    other = put(inbox / "b.csv")
    turning = watched()
    assert settled(turning, clock) == [str(path), other]
    path.rename(inbox.parent / "away")
    assert settled(turning, clock) == []
    assert list(turning.kept.marks) == [other]
    (inbox.parent / "away").rename(path)  # the same inode, size and time
    assert settled(turning, clock) == [str(path)]


def test_a_file_that_goes_before_it_is_whole_is_nothing(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    path = Path(put(inbox / "a.csv"))
    turning = watched()
    turning.quiet()
    path.unlink()
    assert settled(turning, clock) == []
    assert turning.kept.marks == {}
    assert turning.last.lag == 0


def test_how_many_wait_until_they_are_whole_is_told(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    put(inbox / "a.csv")
    turning = watched()
    turning.read()
    assert turning.last.lag == 1
    clock.move(seconds=3)
    turning.read()
    assert turning.last.lag == 0


def test_another_reader_goes_on_with_what_is_kept(watched: Watched, clock: ManualClock, inbox: Path) -> None:
    first, second = put(inbox / "a.csv"), put(inbox / "b.csv")
    turning = watched()
    assert settled(turning, clock) == [first, second]
    turning.source.close()
    put(inbox / "b.csv", "changed")
    assert settled(watched(after=turning), clock) == [second]


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("*", ["a.csv", "b.txt"]),
        ("*.csv", ["a.csv"]),
        ("a.csv", ["a.csv"]),
        ("[ab].??[!x]", ["a.csv", "b.txt"]),
        ("**/*.csv", ["a.csv", "deep/c.csv", "deep/er/d.csv"]),
        ("**/**", ["a.csv", "b.txt", "deep/c.csv", "deep/er/d.csv"]),
        ("*/*.csv", ["deep/c.csv"]),
        ("deep/**/*.csv", ["deep/c.csv", "deep/er/d.csv"]),
        ("**/er/*", ["deep/er/d.csv"]),
        ("**/deep/**/er/**/d.csv", ["deep/er/d.csv"]),
        (".*.csv", [".hidden.csv"]),
        (".private/*.csv", [".private/e.csv"]),
        ("**/.private/**/*.csv", [".private/e.csv"]),
        ("*.CSV", []),
    ],
)
def test_what_a_pattern_matches(
    watched: Watched, clock: ManualClock, inbox: Path, pattern: str, matching: list[str]
) -> None:
    for name in ("a.csv", "b.txt", "deep/c.csv", "deep/er/d.csv", ".hidden.csv", ".private/e.csv"):
        put(inbox / name)
    (inbox / "folder.csv").mkdir()
    os.mkfifo(inbox / "pipe.csv")
    assert settled(watched(pattern), clock) == [str(inbox / name) for name in sorted(matching)]


@pytest.mark.parametrize("pattern", ["", "inbox/", "*/../x", "inbox/*/"])
def test_what_is_no_pattern_of_files_is_refused(pattern: str) -> None:
    with pytest.raises(TriggerInvalid, match=r"names a folder|may stand before"):
        Files(FileSource(pattern=pattern))


def test_patterns_begin_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/houses/somebody")
    folders = [
        Files(FileSource(pattern=pattern)).folder
        for pattern in ("inbox/*", "*", "../x/*", "~/inbox/*/*", "/*.csv", "/a/b.csv")
    ]
    assert folders == [
        f"{tmp_path}/inbox", str(tmp_path), f"{tmp_path.parent}/x", "/houses/somebody/inbox", "/", "/a",
    ]  # fmt: skip


def test_links_are_followed_where_they_are_named_and_make_no_circles(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    put(inbox / "a.csv")
    outside = put(inbox.parent / "outside" / "b.csv")
    (inbox / "circle").symlink_to(inbox)
    (inbox / "out").symlink_to(inbox.parent / "outside")
    (inbox / "file.csv").symlink_to(outside)
    (inbox / "broken.csv").symlink_to("nowhere")
    assert settled(watched("**/*.csv"), clock) == [str(inbox / "a.csv"), str(inbox / "file.csv")]
    assert settled(watched("out/*.csv"), clock) == [str(inbox / "out" / "b.csv")]
    found = settled(watched("*/**/*.csv"), clock)
    assert found == [str(inbox / name) for name in ("circle/a.csv", "circle/file.csv", "out/b.csv")]


def test_a_folder_that_is_not_there_yet_is_waited_for(
    watched: Watched, clock: ManualClock, inbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.rmdir()
    turning = watched()
    assert turning.read() == turning.read() == []
    assert turning.last.pause <= timedelta(seconds=1)
    assert turning.last.waits == f"the folder {inbox} does not exist yet; it is waited for"
    assert [record.message for record in caplog.records] == [turning.last.waits]
    path = put(inbox / "a.csv")
    assert settled(turning, clock) == [path]
    assert turning.last.waits is None


def test_nothing_is_forgotten_while_the_folder_is_away(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    """As when a file system is not mounted: first nothing is there, then an empty folder, then all of it again."""
    path = put(inbox / "a.csv")
    turning = watched()
    assert settled(turning, clock) == [path]
    inbox.rename(inbox.parent / "away")
    assert settled(turning, clock) == []
    inbox.mkdir()
    assert settled(turning, clock) == []
    turning.source.close()
    turning = watched(after=turning)
    assert settled(turning, clock) == []
    inbox.rmdir()
    (inbox.parent / "away").rename(inbox)
    assert settled(turning, clock) == []
    assert turning.kept.forgotten == []


def test_another_folder_in_its_place_is_taken_for_it_once_files_are_in_it(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    turning = watched()
    gone = put(inbox / "a.csv")
    assert settled(turning, clock) == [gone]
    inbox.rename(inbox.parent / "away")
    new = put(inbox / "b.csv")
    assert settled(turning, clock) == [new]
    assert list(turning.kept.marks) == [new]


def refuse(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """As for somebody who is not root."""

    def refusing(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path) in folders:
            raise PermissionError(13, "Permission denied", str(path))
        return os.scandir(path)

    monkeypatch.setattr("lateshift.triggers.walking.os", SimpleNamespace(scandir=refusing))


def test_a_folder_that_cannot_be_read_is_told_to_operators(
    watched: Watched, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, inbox)
    with pytest.raises(SourceAway, match=rf"the folder {inbox} cannot be read: Permission denied"):
        watched().read()


def test_a_folder_below_that_cannot_be_read_stops_nothing_else(
    watched: Watched, clock: ManualClock, inbox: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    locked, path = put(inbox / "locked" / "a.csv"), put(inbox / "open" / "b.csv")
    turning = watched("**/*.csv")
    assert settled(turning, clock) == [locked, path]
    refuse(monkeypatch, inbox / "locked")
    new = put(inbox / "open" / "c.csv")
    assert settled(turning, clock) == [new]
    assert settled(turning, clock) == []
    assert [record.message for record in caplog.records] == [
        f"passed over in {inbox}: {str(inbox / 'locked')!r}: cannot be read"
    ]
    assert turning.kept.forgotten == []


def test_names_that_are_no_utf8_are_passed_over(
    watched: Watched, clock: ManualClock, inbox: Path, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        Path(os.fsdecode(os.fsencode(inbox) + b"/\xff.csv")).write_text("x")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    path = put(inbox / "ünïcödé.csv")
    turning = watched()
    assert settled(turning, clock) == [path]
    assert settled(turning, clock) == []
    [record] = caplog.records
    assert "names that are no UTF-8" in record.message


def test_a_path_that_is_too_long_to_be_known_by_makes_one_job_for_each_version(
    watched: Watched, clock: ManualClock, inbox: Path
) -> None:
    folder = inbox.joinpath(*["long" * 50] * 6)
    path = put(folder / "a.csv")
    turning = watched("**/*.csv")
    assert settled(turning, clock) == [path]
    assert settled(turning, clock) == []
    put(folder / "a.csv", "changed")
    assert settled(turning, clock) == [path]
    Path(path).unlink()
    assert settled(turning, clock) == []
    assert list(turning.kept.marks) == [known_by(path)]  # nobody knows whose it is


def test_folders_that_are_too_deep_are_passed_over(
    watched: Watched, clock: ManualClock, inbox: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr("lateshift.triggers.walking.DEPTH_MOST", 3)
    path = put(inbox / "1" / "2" / "a.csv")
    put(inbox / "1" / "2" / "3" / "b.csv")
    assert settled(watched("**/*.csv"), clock) == [path]
    assert "folders deep" in caplog.text


def test_what_a_trigger_of_another_kind_left_is_not_taken_for_files(
    watched: Watched, clock: ManualClock
) -> None:
    turning = watched()
    turning.kept.marks = {"a message": "1"}
    assert settled(turning, clock) == []
    assert turning.kept.forgotten == []


def test_a_position_of_something_else_is_begun_anew(clock: ManualClock, inbox: Path) -> None:
    path = put(inbox / "a.csv")
    turning = Turning(Files(FileSource(pattern=f"{inbox}/*"), clock, None), Kept(), b"no position of files")
    assert settled(turning, clock) == [path]
