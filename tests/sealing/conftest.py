"""The clinic on each store, with one key."""

from collections.abc import Iterator

import pytest

from lateshift import Lateshift
from tests.sealing.clinic import DIGEST, OLD, clinic
from tests.walks.conftest import cli as cli


@pytest.fixture
def app(store_url: str) -> Iterator[Lateshift]:
    app = clinic(store_url, OLD, DIGEST)
    yield app
    app.close()
