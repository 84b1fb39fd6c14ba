"""A browser without a screen, in this process: it keeps cookies, says where a form comes from, and follows where it is sent."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html import unescape
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from lateshift import Lateshift
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from tests.api.asking import LOCAL, token_of

OWN = {"Sec-Fetch-Site": "same-origin", "Origin": LOCAL}


class Browser:
    """`look` gives a page, `send` a form of the page that was looked at last, with its proof."""

    def __init__(self, app: Lateshift, site: Site, portal: BlockingPortal) -> None:
        self.app = app
        self.site = site
        self.page: httpx.Response | None = None
        self._portal = portal
        transport = httpx.ASGITransport(site.application, client=("127.0.0.1", 50000))
        self.client = httpx.AsyncClient(transport=transport, base_url=LOCAL)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request, followed nowhere."""
        return self._portal.call(partial(self.client.request, method, path, **more))

    def look(self, path: str) -> str:
        self.page = self.ask("GET", path)
        assert self.page.status_code == 200, self.page.text
        return self.text

    @property
    def text(self) -> str:
        """What stands on the page, without its tags; and without the name of the store, which has any digits in it."""
        assert self.page is not None
        whole = re.sub(r'<small class="store".*?</small>', "", self.page.text.replace("<wbr>", ""))
        return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", whole)))

    def send(self, path: str, form: Mapping[str, str] | None = None, **headers: str) -> httpx.Response:
        assert self.page is not None
        [proof, *_] = re.findall(r'name="proof" value="(\w+)"', self.page.text)
        answer = self.ask("POST", path, data={"proof": proof} | dict(form or {}), headers=OWN | headers)
        if answer.status_code == 303:
            self.page = self.ask("GET", answer.headers["location"])
        else:
            self.page = answer
        return answer

    def sign_in(self, token: str | None = None) -> None:
        """With a token, or by the link."""
        form = {"token": token} if token else {"code": self.site.sign_in_path().partition("=")[2]}
        answer = self.ask("POST", "/sign-in", data=form, headers=OWN)
        assert answer.status_code == 303, answer.text

    def sign_in_as(self, *scopes: Scope, queues: tuple[str, ...] = ()) -> str:
        """With a new token of these scopes, which is given."""
        name = f"t{len(self.app.store.tokens.list(1000))}"
        text = token_of(self.app, name, list(scopes), queues)
        self.client.cookies.clear()
        self.sign_in(text)
        return text


@contextmanager
def browsing(app: Lateshift) -> Iterator[Browser]:
    with start_blocking_portal() as portal:
        yield Browser(app, Site(app), portal)
