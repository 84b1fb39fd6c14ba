"""A shop and its API on each store, with a clock that tests move and a worker that they turn."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import Lateshift
from lateshift.api.application import make_api
from lateshift.api.bounds import Bounds
from lateshift.testing import Kit, testing
from tests.api.asking import Web, asking
from tests.api.shop import Shop


@pytest.fixture
def app(store_url: str) -> Lateshift:
    return Lateshift("shop", store=store_url)


@pytest.fixture
def shop(app: Lateshift) -> Shop:
    return Shop(app)


@pytest.fixture
def kit(app: Lateshift, shop: Shop, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


@pytest.fixture
def web(kit: Kit) -> Iterator[Web]:
    with asking(kit.app, make_api(kit.app, bounds=Bounds(stream=timedelta(seconds=0.3)))) as web:
        yield web
