"""The orders of examples/orders on each store, with real remote services on the loopback."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from examples.orders import agents
from examples.orders.remote import Remote, serving
from tests.walks.orders.desk import Desk, shared


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    """They answer as fast as this machine lets them, and are waited for."""
    monkeypatch.setattr(agents, "ONE_CALL", timedelta(seconds=10))
    with serving() as remote:
        monkeypatch.setenv("ORDERS_REMOTE", remote.url)
        yield remote


@pytest.fixture
def desk(store_url: str, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Workers that the test turns, by a clock that it moves; an operator's commands work beside them."""
    monkeypatch.setenv("LATESHIFT_STORE", shared(store_url))
    with Desk(shared(store_url), remote) as desk:
        yield desk


@pytest.fixture
def impatient(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is waited for longer than a tenth of a second: what hangs costs a test no more."""
    monkeypatch.setattr(agents, "ONE_CALL", timedelta(seconds=0.1))
