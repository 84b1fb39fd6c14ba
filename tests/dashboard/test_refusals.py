"""Every page and every form with every kind of sign-in that is not good enough, made of the pages themselves: all are refused, and
nothing is shown or done."""

from dataclasses import replace

import httpx
import pytest

from lateshift.api.problem import Refused
from lateshift.api.route import Asked, Done, Reach, Route
from lateshift.api.routes.all import ROUTE_OF
from lateshift.dashboard.page import Action, Page
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.session import form_proof
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.api.test_refusals import OTHERS
from tests.dashboard.attic import ATTIC, HEIRLOOM, Attic, kept
from tests.dashboard.browsing import OWN, Browser
from tests.dashboard.callers import COOKIE, ELSEWHERE, Callers
from tests.dashboard.filled import FORMS, SENT, SHOWN, Form, sent, shown


@pytest.fixture
def callers(stranger: Browser, kit: Kit) -> Callers:
    return Callers(stranger, kit)


@pytest.fixture
def attic(callers: Callers, kit: Kit) -> Attic:
    """Of now, when the sign-in of long ago has ended."""
    return Attic(kit)


def shows_nothing(answer: httpx.Response) -> bool:
    return HEIRLOOM not in answer.text


def led_to_sign_in(answer: httpx.Response) -> bool:
    to = answer.headers.get("location", "").partition("?")[0]
    return (answer.status_code, to, answer.content) == (303, "/sign-in", b"")


def test_every_page_and_every_form_is_among_those_that_are_tried() -> None:
    assert SHOWN.keys() == {page.path for page in PAGES}
    assert SENT.keys() == {form.path for form in FORMS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_who_may_not_is_shown_no_page_and_who_may_is(page: Page, callers: Callers, attic: Attic) -> None:
    filled = shown(page, attic)
    path = filled.path(page.path)
    assert isinstance(page.scope, Scope)
    for kind, cookie in callers.unknown().items():
        assert led_to_sign_in(callers.ask("GET", path, cookie, filled.fields)), kind
    for scope in OTHERS[page.scope]:
        answer = callers.ask("GET", path, callers.signed_in(f"is-{scope}", [scope]), filled.fields)
        assert (answer.status_code, shows_nothing(answer)) == (403, True), scope
    elsewhere = callers.signed_in("elsewhere", [page.scope], ELSEWHERE)
    answer = callers.ask("GET", path, elsewhere, filled.fields)
    assert shows_nothing(answer)
    if page.reach is Reach.OWN:
        assert (answer.status_code, ATTIC in answer.text) == (200, False)
    else:
        assert answer.status_code == 403
    assert shows_nothing(callers.ask("GET", path, elsewhere))  # who names no queue is asked which
    may = callers.signed_in("may", [page.scope], () if page.reach is Reach.ALL else (ATTIC,))
    answer = callers.ask("GET", path, may, filled.fields)
    assert answer.status_code == 200
    assert HEIRLOOM in answer.text or ATTIC in answer.text


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.path)
def test_who_may_not_does_nothing_by_a_form_and_who_may_does(
    form: Form, callers: Callers, attic: Attic
) -> None:
    route = form.action.route
    filled = sent(form, attic)
    path = filled.path(form.path)
    assert isinstance(route.scope, Scope)
    own = [route.scope, *([route.besides] if filled.besides and route.besides else [])]
    unknown = callers.unknown()
    others = {str(scope): callers.signed_in(f"is-{scope}", [scope]) for scope in OTHERS[route.scope]}
    if filled.besides:
        others["without the second"] = callers.signed_in("alone", own[:1])
    others["all that is not enough"] = callers.signed_in("most", OTHERS[route.scope])
    others["elsewhere"] = callers.signed_in("elsewhere", own, ELSEWHERE)
    may = callers.signed_in("may", own, () if route.reach is Reach.ALL else (ATTIC,))
    before = kept(attic.store)
    for kind, cookie in unknown.items():
        assert led_to_sign_in(callers.send(path, cookie, filled.fields)), kind
    for kind, cookie in others.items():
        assert callers.send(path, cookie, filled.fields).status_code == 403, kind
    assert kept(attic.store) == before
    done = callers.send(path, may, filled.fields)
    assert done.status_code == (303 if form.action.shows is None else 200), done.text
    assert (kept(attic.store) == before) is form.only_shows


def test_a_form_that_is_refused_shows_its_page_to_nobody_who_may_not_see_it(
    stranger: Browser, attic: Attic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(asked: Asked) -> Done:
        """Takes nothing."""
        raise Refused(422, "body-invalid", "There is nothing to take.")

    route = Route(
        method="POST", path="/v1/x", handler=handler, gives=Done, scope=Scope.ENQUEUE, reach=Reach.OWN
    )
    monkeypatch.setitem(ROUTE_OF, handler, route)
    [members] = [page for page in PAGES if page.path == "/members"]
    others = [page for page in PAGES if page is not members]
    site = Site(attic.app, pages=[*others, replace(members, actions={"x": Action(handler)})])
    sender = Browser(attic.app, site, stranger._portal)
    shown(members, attic)
    for scopes, queues in (([Scope.ENQUEUE, Scope.READ], ELSEWHERE), ([Scope.ENQUEUE], ())):
        cookie = token_of(attic.app, f"sender-{len(queues)}", scopes, queues)
        headers = OWN | {"Cookie": f"{COOKIE}={cookie}"}
        answer = sender.ask("POST", "/members/x", data={"proof": form_proof(cookie)}, headers=headers)
        assert (answer.status_code, shows_nothing(answer)) == (422, True)
        assert "There is nothing to take." in answer.text
