"""An app on each store, with a clock that tests move and a worker that they turn."""

from collections.abc import Iterator

import pytest

from lateshift import Lateshift
from lateshift.testing import Kit, testing
from tests.workflows.piping import Shop


@pytest.fixture
def app(store_url: str) -> Lateshift:
    return Lateshift("shop", store=store_url)


@pytest.fixture
def kit(app: Lateshift, store_url: str) -> Iterator[Kit]:
    with testing(app, store=store_url) as kit:
        yield kit


@pytest.fixture
def done() -> list[str]:
    """What bodies did, in their order."""
    return []


@pytest.fixture
def shop(app: Lateshift, done: list[str]) -> Shop:
    return Shop(app, done)
