"""The clinic on each store, with one key."""

from collections.abc import Iterator

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking
from tests.sealing.clinic import DIGEST, OLD, clinic
from tests.walks.conftest import cli as cli


@pytest.fixture
def app(store_url: str) -> Iterator[Lateshift]:
    app = clinic(store_url, OLD, DIGEST)
    yield app
    app.close()


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


@pytest.fixture
def web(kit: Kit) -> Iterator[Web]:
    with asking(kit.app, make_api(kit.app)) as web:
        yield web
