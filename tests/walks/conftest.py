"""An app on each store, for whole lives of jobs in one process."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lateshift import Lateshift
from lateshift.store.open import open_store
from tests.walks.commands import Cli


@pytest.fixture
def cli(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store_url: str
) -> Cli:
    """The command line, in a folder of its own, on each store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LATESHIFT_STORE", store_url)
    store = open_store(store_url)
    store.ready()
    store.close()
    return Cli(capsys)


@pytest.fixture
def app(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("test", store=store_url)
    app.settings = replace(
        app.settings, stop_time=timedelta(milliseconds=200), unknown_delay=timedelta(milliseconds=50)
    )
    yield app
    app.close()
