"""What the server has beside the API and its pages: signing in, signing out, and files. No route of it is forgotten, and none is a
way in for whoever has no good token."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lateshift.api.application import with_document
from lateshift.api.routes.all import ROUTES
from lateshift.dashboard.files import address_of
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.session import form_proof
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.dashboard.attic import kept
from tests.dashboard.browsing import OWN, Browser
from tests.dashboard.callers import Callers
from tests.dashboard.filled import FORMS
from tests.dashboard.test_forms import CROSS
from tests.dashboard.test_refusals import led_to_sign_in

# Tried here; all others where the tests are made of the routes, or of the pages.
DOORS = {("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out"), ("GET", "/static/{name}")}


def routes_of(site: Site) -> Iterator[tuple[str, str]]:
    """Methods and paths, as the application itself has them, whichever way leads there."""
    shortcut = site.application._inner  # type: ignore[attr-defined]
    for route in shortcut._otherwise.routes:
        for method in route.methods - {"HEAD"}:
            yield method, route.path


def test_every_route_of_the_server_is_one_that_is_tried(kit: Kit) -> None:
    served = list(routes_of(Site(kit.app)))
    of_api = {(route.method, route.path) for route in with_document(ROUTES)}
    of_pages = {("GET", page.path) for page in PAGES} | {("POST", form.path) for form in FORMS}
    assert set(served) == of_api | of_pages | DOORS
    assert len(served) == len(set(served))


@pytest.fixture
def callers(stranger: Browser, kit: Kit) -> Callers:
    return Callers(stranger, kit)


def test_nobody_signs_in_with_a_token_that_is_not_good(callers: Callers, stranger: Browser, kit: Kit) -> None:
    lives = timedelta(minutes=1)
    tokens = callers.unknown() | {
        "a token that is revoked": token_of(kit.app, "ended", [Scope.ADMIN], revoked=True),
        "a token that is expired": token_of(kit.app, "aged", [Scope.ADMIN], lives=lives),
    }
    kit.clock.move(seconds=lives.total_seconds())
    before = kept(kit.app.store)
    for kind, token in tokens.items():
        answer = stranger.ask("POST", "/sign-in", data={"token": token}, headers=OWN)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False), kind
        assert not token or token not in answer.text
    assert kept(kit.app.store) == before


def test_who_signed_out_does_not_sign_in_with_the_cookie_that_was(
    callers: Callers, stranger: Browser
) -> None:
    cookie = callers.signed_in("ann", [Scope.READ])
    assert callers.send("/sign-out", cookie, {}).status_code == 303
    answer = stranger.ask("POST", "/sign-in", data={"token": cookie}, headers=OWN)
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)
    assert "revoked" in answer.text
    assert led_to_sign_in(callers.ask("GET", "/", cookie))


def test_another_site_signs_nobody_in(stranger: Browser, kit: Kit) -> None:
    """Not even with a token that is good: they would look at somebody else's."""
    token = token_of(kit.app, "ann", [Scope.ADMIN])
    before = kept(kit.app.store)
    for headers in CROSS:
        answer = stranger.ask("POST", "/sign-in", data={"token": token}, headers=headers)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), headers
    for method, data in (("GET", None), ("HEAD", None), ("PUT", {"token": token})):
        answer = stranger.ask(method, "/sign-in", params={"token": token}, data=data, headers=OWN)
        assert (answer.status_code in (200, 405), "set-cookie" in answer.headers) == (True, False)
    assert kept(kit.app.store) == before


def test_nobody_is_signed_out_by_anybody_else(callers: Callers, kit: Kit) -> None:
    ann, bob = (callers.signed_in(name, [Scope.ADMIN]) for name in ("ann", "bob"))
    unknown = callers.unknown()
    before = kept(kit.app.store)
    for proof in ("", "0" * 64, form_proof(bob), form_proof("")):
        assert callers.send("/sign-out", ann, {}, proof=proof).status_code == 403
    for headers in CROSS:
        assert callers.send("/sign-out", ann, {}, headers=headers).status_code == 403
    for kind in ("no cookie", "wrong", "short", "of nobody"):
        assert callers.send("/sign-out", unknown[kind], {}).status_code == 401, kind
    assert callers.ask("GET", "/sign-out", ann, {"proof": form_proof(ann)}).status_code == 405
    assert kept(kit.app.store) == before
    assert callers.send("/sign-out", ann, {}).status_code == 303
    assert led_to_sign_in(callers.ask("GET", "/", ann))
    assert callers.ask("GET", "/", bob).status_code == 200


def test_anybody_is_given_the_files_of_the_pages_and_no_other(stranger: Browser) -> None:
    assert stranger.ask("GET", address_of("lateshift.css")).status_code == 200
    for name in (
        "lateshift.css",
        "..%2fsite.py",
        "%2e%2e/site.py",
        "..%5csite.py",
        "%2fetc%2fpasswd",
        "x%00",
        "",
    ):
        answer = stranger.ask("GET", f"/static/{name}")
        assert answer.status_code == 404, name
