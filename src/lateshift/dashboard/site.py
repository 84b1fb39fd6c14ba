"""The application that `lateshift serve` runs: the API, and the pages beside it behind the same door."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from lateshift.api.application import LOOPBACK, behind_guard, doorkeeper_of, rate_of, served_routes
from lateshift.api.bounds import BOUNDS, Bounds
from lateshift.api.guard import Network
from lateshift.app.app import Lateshift
from lateshift.dashboard.answering import Pages
from lateshift.dashboard.files import give_file
from lateshift.dashboard.page import Page
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.session import Cookies
from lateshift.dashboard.signing_in import SignIn


class Site:
    """`application`: for a server. `sign_in_path`: of a link that is good once."""

    def __init__(
        self,
        app: Lateshift,
        *,
        hosts: Collection[str] = LOOPBACK,
        peers: Sequence[Network] = (),
        secure: bool = False,
        port: int = 8642,
        pages: Sequence[Page] = PAGES,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper = doorkeeper_of(app, bounds, peers)
        self._sign_in = SignIn(app, doorkeeper)
        answering = Pages(app, doorkeeper, self._sign_in, Cookies(secure=secure, port=port), pages)
        self.application: ASGIApp = behind_guard(
            [
                *served_routes(app, doorkeeper, bounds=bounds),
                *answering.routes(),
                StarletteRoute("/static/{name}", give_file, methods=["GET"]),
            ],
            hosts=hosts, peers=peers, rate=rate_of(app, bounds.address_rate), missing=answering.missing,
        )  # fmt: skip

    @asynccontextmanager
    async def at_home(self) -> AsyncIterator[None]:
        """While the running loop is the one that serves this, and no other does."""
        async with self._doorkeeper.finding_here(), self._app.client.enqueuing_here():
            yield

    @property
    def link_is_good(self) -> bool:
        return self._sign_in.waits

    def sign_in_path(self) -> str:
        return f"/sign-in?code={self._sign_in.new_code()}"
