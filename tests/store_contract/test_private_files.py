"""What a store writes to the disk is its owner's alone, whatever the umask."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lateshift.clock import ManualClock
from lateshift.store.contract import Store
from lateshift.store.open import open_store
from tests.store_contract.driving import added, file_of, make_job


@pytest.fixture(autouse=True)
def open_handed() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_and_what_lies_beside_it_are_the_owners(sqlite_url: str, clock: ManualClock) -> None:
    store = open_store(sqlite_url, clock)
    store.ready()
    added(store, make_job())
    stop = store.wakes.listen(lambda line: None)
    file = file_of(sqlite_url)
    wake = file.with_name("jobs.db-wake")
    modes = {path.name: mode(path) for path in file.parent.glob("jobs.db*")}
    [pipe] = wake.iterdir()

    assert modes == {"jobs.db": 0o600, "jobs.db-wal": 0o600, "jobs.db-shm": 0o600, "jobs.db-wake": 0o700}
    assert mode(pipe) == 0o600
    stop()
    store.close()


def test_the_mode_of_a_file_that_is_there_is_left_alone(sqlite_url: str, clock: ManualClock) -> None:
    file = file_of(sqlite_url)
    file.touch()
    file.chmod(0o640)
    store = open_store(sqlite_url, clock)
    store.ready()

    assert mode(file) == 0o640
    store.close()


def test_a_backup_is_the_owners(store: Store, tmp_path: Path) -> None:
    if shutil.which("pg_dump") is None and store.url.startswith("postgresql"):
        pytest.fail("pg_dump is not on the PATH")
    store.upkeep.backup(tmp_path / "copy")

    assert mode(tmp_path / "copy") == 0o600
