"""Hints by watchfiles, of real files: they come soon, are bounded, and whoever watches ends."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from watchfiles import _rust_notify

import lateshift
from lateshift.model.triggering.sources import FileSource
from lateshift.triggers import watching
from lateshift.triggers.files import Files
from lateshift.triggers.watching import Watch
from tests.unit.receiving import Turning, put

HOURS = timedelta(hours=5)
PATIENCE = 20.0  # seconds; how soon is asserted where it is promised


def until(condition: Callable[[], bool]) -> float:
    """Gives how long it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() < start + PATIENCE
        time.sleep(0.01)
    return time.monotonic() - start


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    watch = Watch(str(tmp_path), deep=True)
    assert watch.ready.wait(PATIENCE)
    watch.take()
    yield watch
    watch.close()


def test_what_changes_is_told(watch: Watch, tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv")
    heard: set[str] = set()

    def hear() -> bool:
        heard.update(watch.take()[0])
        return path in heard

    until(hear)
    assert watch.take()[1] is False


def test_more_than_can_be_kept_is_told_as_such(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "HINTS_KEPT", 5)
    for number in range(50):
        put(tmp_path / f"{number}.csv")
    until(lambda: watch._more)
    paths, more = watch.take()
    assert len(paths) <= 5
    assert more


def test_closing_ends_the_thread(watch: Watch) -> None:
    watch.close()
    assert watch.ended


def test_a_program_that_forgets_to_close_it_ends_all_the_same(tmp_path: Path) -> None:
    program = (
        "import sys; from lateshift.triggers.watching import Watch; "
        "watch = Watch(sys.argv[1], deep=True); assert watch.ready.wait(20)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(lateshift.__file__).parents[1])}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_cannot_be_watched_is_left_to_scans(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(str(tmp_path / "missing"), deep=True)
    until(lambda: watch.ended)
    assert "found by scans only" in caplog.text
    assert watch.take() == (set(), True)  # one scan more, for what nobody told of
    assert watch.take() == (set(), False)
    watch.close()


def test_a_folder_below_that_may_not_be_watched_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _rust_notify.RustNotify

    def refusing(*given: Any) -> _rust_notify.RustNotify:
        if not given[-1]:
            raise PermissionError(13, "Permission denied")
        return real(*given)

    monkeypatch.setattr(_rust_notify, "RustNotify", refusing)
    watch = Watch(str(tmp_path), deep=True)
    try:
        assert watch.ready.wait(PATIENCE)
        path = put(tmp_path / "a.csv")
        until(lambda: path in watch.take()[0])
    finally:
        watch.close()


@pytest.mark.parametrize("pattern", ["*.csv", "**/*.csv"])
def test_a_new_file_is_seen_within_about_a_second(tmp_path: Path, pattern: str) -> None:
    """Though the next scan is hours away."""
    source = Files(FileSource(pattern=f"{tmp_path}/{pattern}", renamed=True, every=HOURS))
    turning = Turning(source)
    try:
        assert turning.quiet() == []
        path = put(tmp_path / "a.csv") if pattern == "*.csv" else put(tmp_path / "new" / "folder" / "a.csv")
        took = until(lambda: path in turning.quiet())
        assert took < (
            2 if pattern == "*.csv" else 4
        )  # a new folder is scanned, a second after the last scan
        (Path(path)).unlink()
        until(lambda: turning.quiet() == [] and path in turning.kept.forgotten)
    finally:
        source.close()


def test_a_folder_in_the_place_of_another_is_watched_too(tmp_path: Path) -> None:
    folder = tmp_path / "inbox"
    source = Files(FileSource(pattern=f"{folder}/*.csv", renamed=True, every=HOURS))
    turning = Turning(source)
    try:
        assert turning.quiet() == []
        for number in range(2):
            folder.mkdir()
            assert turning.quiet() == []
            path = put(folder / f"{number}.csv")
            until(lambda path=path: path in turning.quiet())  # type: ignore[misc]
            folder.rename(tmp_path / f"away{number}")
            assert turning.quiet() == []
    finally:
        source.close()


def test_a_name_that_is_no_utf8_does_not_end_the_scans(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")).write_text("x")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    source = Files(FileSource(pattern=f"{tmp_path}/*.csv", renamed=True, every=timedelta(seconds=0.1)))
    turning = Turning(source)
    try:
        assert turning.quiet() == []
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.csv")).write_text("x")
        path = put(tmp_path / "a.csv")
        until(lambda: path in turning.quiet())
    finally:
        source.close()
