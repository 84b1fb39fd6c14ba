"""Who asks the dashboard, as a cookie: those whom nobody knows, or not any more; those whose token is not for it; and who may."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import httpx

from lateshift.dashboard.session import SESSION, form_proof
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.dashboard.browsing import OWN, Browser

COOKIE = "lateshift-8642"
ELSEWHERE = ("cellar.*",)  # queues


class Callers:
    """The time that a sign-in lasts passes while the first of them waits."""

    def __init__(self, browser: Browser, kit: Kit) -> None:
        self._browser = browser
        self._app = kit.app
        self._old = self.signed_in("old", [Scope.ADMIN])
        kit.clock.move(seconds=SESSION.total_seconds())

    def signed_in(self, name: str, scopes: Sequence[Scope], queues: tuple[str, ...] = ()) -> str:
        """With a new token: the cookie. One that may not sign in is put there by hand."""
        text = token_of(self._app, name, list(scopes), queues)
        if set(scopes) == {Scope.ENQUEUE}:
            return text
        self._browser.client.cookies.clear()
        self._browser.sign_in(text)
        [cookie] = [each.value for each in self._browser.client.cookies.jar]
        self._browser.client.cookies.clear()
        assert cookie is not None
        return cookie

    def unknown(self) -> dict[str, str]:
        """Whoever has no sign-in that is good, though it is one for everything. Without a cookie it is empty."""
        real = self.signed_in("real", [Scope.ADMIN])
        gone = self.signed_in("gone", [Scope.ADMIN])
        token = self._app.store.tokens.named("gone")
        assert token is not None
        assert self._app.store.tokens.revoke(token.id, by="a test")
        return {
            "no cookie": "", "wrong": real[:-1] + ("A" if real[-1] != "A" else "B"), "short": real[:-1],
            "of nobody": "lsh_" + "A" * 64, "expired": self._old, "revoked": gone,
        }  # fmt: skip

    def ask(
        self, method: str, path: str, cookie: str, fields: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """`fields`: of a query."""
        return self._browser.ask(method, path, params=fields, headers=self._with(cookie))

    def send(
        self,
        path: str,
        cookie: str,
        fields: Mapping[str, str],
        *,
        method: str = "POST",
        proof: str | None = None,
        headers: Mapping[str, str] = OWN,
    ) -> httpx.Response:
        """A form, as a page of ours does for this cookie, but for what is said otherwise; an empty `proof` is left out."""
        proven = form_proof(cookie) if proof is None else proof
        form = dict(fields) | ({"proof": proven} if proven else {})
        sent = self._with(cookie) | dict(headers) | {"Content-Type": "application/x-www-form-urlencoded"}
        return self._browser.ask(method, path, content=urlencode(form), headers=sent)

    def _with(self, cookie: str) -> dict[str, str]:
        self._browser.client.cookies.clear()  # those that answers set
        return {"Cookie": f"{COOKIE}={cookie}"} if cookie else {}
