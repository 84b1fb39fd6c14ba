"""A shop and its API on each store, with a clock that tests move and a worker that they turn."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift import NO_RETRY, Flow, Lateshift, Permanent
from lateshift.api.application import make_api
from lateshift.api.bounds import Bounds
from lateshift.testing import Kit, testing
from tests.api.asking import SENDS, Web, asking, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser, browsing


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


@pytest.fixture
def browser(kit: Kit) -> Iterator[Browser]:
    """Who is not signed in."""
    with browsing(kit.app) as browser:
        yield browser


@pytest.fixture
def held(kit: Kit, shop: Shop) -> str:
    """A run in the queue orders, held by its second step, which is a job of the queue mail."""
    run = shop.order.enqueue(1, "task")
    kit.drain()
    return str(run.id)


@pytest.fixture
def letter(kit: Kit) -> str:
    """A run in the queue orders that waits, whose only step is undone by a task of the queue mail, which fails."""

    @kit.app.task(queue="mail", retry=NO_RETRY)
    def recall(result: str) -> None:
        raise Permanent("nobody can")

    @kit.app.workflow(queue="orders")
    async def letter(flow: Flow) -> None:
        await flow.step(write, undo=recall)
        await flow.wait_for("sent")

    def write() -> str:
        return "written"

    run = letter.enqueue()
    kit.drain()
    return str(run.id)


@pytest.fixture
def some(web: Web) -> str:
    """A token that sends on what is in the queue orders, and in no other."""
    return token_of(web.app, "some", SENDS, ("orders",))
