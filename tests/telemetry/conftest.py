"""An app on each store, with a worker that tests turn; loggers that let INFO through, as in a worker process."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from lateshift import Lateshift
from lateshift.store.open import open_store
from lateshift.testing import Kit, testing
from tests.walks.commands import Cli


@pytest.fixture
def app(store_url: str) -> Iterator[Lateshift]:
    app = Lateshift("shop", store=store_url)
    yield app
    app.close()  # also after a failure: what is left open is another test's warning


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A program's own logger."""
    logger = logging.getLogger("shop.orders")
    logger.setLevel("INFO")
    yield logger
    logger.setLevel(logging.NOTSET)


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
