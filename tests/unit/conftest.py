"""An inbox, and triggers of the files in it, on a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lateshift.clock import ManualClock
from lateshift.model.triggering.sources import FileSource
from lateshift.triggers.files import Files
from tests.unit.receiving import Told, Turning, Watched


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


@pytest.fixture
def watched(clock: ManualClock, inbox: Path) -> Iterator[Watched]:
    opened: list[Files] = []

    def watch(
        pattern: str = "*.csv",
        *,
        told: Told | None = None,
        after: Turning | None = None,
        renamed: bool = False,
    ) -> Turning:
        source = Files(FileSource(pattern=f"{inbox}/{pattern}", renamed=renamed), clock, told)
        opened.append(source)
        return Turning(source, after.kept, after.position) if after else Turning(source)

    yield watch
    for source in opened:
        source.close()
