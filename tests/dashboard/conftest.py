"""The shop of the API's tests, and its dashboard."""

from collections.abc import Iterator

import pytest

from lateshift.testing import Kit
from tests.api.conftest import app, kit, shop
from tests.dashboard.browsing import Browser, browsing

__all__ = ["app", "kit", "shop"]


@pytest.fixture
def stranger(kit: Kit) -> Iterator[Browser]:
    """Who is not signed in."""
    with browsing(kit.app) as browser:
        yield browser


@pytest.fixture
def browser(stranger: Browser) -> Browser:
    """Who is signed in by the link, and may do all."""
    stranger.sign_in()
    return stranger
