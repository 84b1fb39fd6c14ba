"""Who sees a page: whoever has the link that the server printed, once; whoever has a token, until it is revoked."""

import re
from datetime import datetime, timedelta
from html import unescape
from urllib.parse import urlencode

import httpx
import pytest

from lateshift.api.bounds import FAILURES_OF_TOKEN, SIGN_IN_EVERY, SIGN_INS_AT_ONCE
from lateshift.dashboard.pages.all import PAGES
from lateshift.dashboard.session import SAFE, SESSION
from lateshift.dashboard.site import Site
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.asking import LOCAL, token_of
from tests.api.shop import Shop
from tests.dashboard.browsing import OWN, Browser, browsing

PLAIN = [page for page in PAGES if "{" not in page.path]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_nobody_sees_a_page_without_signing_in(stranger: Browser, page: object) -> None:
    path = path_of(page)
    answer = stranger.ask("GET", path)
    to = "/sign-in" if path == "/" else f"/sign-in?{urlencode({'next': path})}"
    assert (answer.status_code, answer.headers["location"]) == (303, to)
    assert answer.content == b""


def test_signing_in_leads_to_where_one_was_going(stranger: Browser) -> None:
    """Also after a token that was wrong, and with all that was asked for there."""
    going = "/schedules/a/b%20c%3Fd%25?since=2020-01-01T00%3A00&until=%C3%BC"
    door = stranger.ask("GET", going).headers["location"]
    stranger.look(door)
    [kept] = re.findall(r'name="next" value="([^"]*)"', stranger.ask("GET", door).text)
    assert unescape(kept) == going
    wrong = stranger.ask("POST", "/sign-in", data={"token": "lsh_", "next": going}, headers=OWN)
    assert f'value="{kept}"' in wrong.text
    text = token_of(stranger.app, "ann", [Scope.READ])
    answer = stranger.ask("POST", "/sign-in", data={"token": text, "next": going}, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, going)


@pytest.mark.parametrize(("site", "said"), [("cross-site", True), ("same-site", True), ("none", False), ("same-origin", False), (None, False)])  # fmt: skip
def test_only_who_comes_by_a_link_of_another_site_is_asked_whether_they_are_signed_in(
    stranger: Browser, site: str | None, said: bool
) -> None:
    """With such a link browsers send no cookies. Who types an address, and a first visit, come from nowhere."""
    answer = stranger.ask("GET", "/sign-in?next=/jobs", headers={"Sec-Fetch-Site": site} if site else {})
    assert ("link from elsewhere" in answer.text) is said
    assert ('<a href="/jobs">' in answer.text) is said


def test_who_guesses_by_cookie_has_to_wait_as_who_guesses_by_header(stranger: Browser) -> None:
    real = token_of(stranger.app, "real", [Scope.READ])
    stranger.sign_in(real)
    [name] = stranger.client.cookies

    def asked(text: str) -> int:
        stranger.client.cookies.set(name, text)
        return stranger.ask("GET", "/jobs").status_code

    for n in range(FAILURES_OF_TOKEN):
        assert asked(real[:-3] + f"{n:03}") == 303
    assert asked(real) == 429
    assert stranger.ask("GET", "/sign-in").status_code == 200


ELSEWHERE = [
    "https://evil.example/jobs", "//evil.example/jobs", "///evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example",
    "/\n//evil.example", "javascript:alert(1)", "http:/jobs", "jobs", "@evil.example", "/v1/jobs", "/static/x", "/sign-out",
    "//[", "/" + "a" * 3000, "/jobs\\@evil.example", "data:text/html,x", "/%2F/evil.example", "", "?", "#",
    "/queues/..%2f..%2f%2fevil.example", "/queues/a%2fb", "/queues/%2e%2e", "/schedules/../..//evil.example", "/schedules/%2e%2e/a", "/pipelines/a%2f.%2fb",
]  # fmt: skip


@pytest.mark.parametrize("to", ELSEWHERE)
def test_signing_in_leads_to_no_place_but_a_page_of_this_server(stranger: Browser, to: str) -> None:
    code = stranger.site.sign_in_path().partition("=")[2]
    assert 'name="next" value=""' in stranger.ask("GET", f"/sign-in?{urlencode({'next': to})}").text
    answer = stranger.ask("POST", "/sign-in", data={"code": code, "next": to}, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_a_form_that_was_sent_too_late_is_not_sent_again_by_signing_in(stranger: Browser) -> None:
    answer = stranger.ask("POST", "/queues/images/pause", headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


@pytest.mark.parametrize("cookie", ["", "lsh_", "lsh_" + "A" * 64, "x" * 5000, "lsh_…"])
def test_a_cookie_that_is_no_token_of_ours_is_nobodys(stranger: Browser, cookie: str) -> None:
    answer = stranger.ask("GET", "/", headers={"Cookie": f"lateshift-8642={cookie}".encode()})
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def path_of(page: object) -> str:
    path: str = page.path  # type: ignore[attr-defined]
    id = "0190a5c0-0000-7000-8000-000000000000"
    return path.replace("{id}", id).replace("{name:path}", "x").replace("{name}", "x")


def test_the_link_is_good_once_and_looking_at_it_does_not_use_it_up(stranger: Browser) -> None:
    link = stranger.site.sign_in_path()
    assert "once" in stranger.look(link)
    stranger.look(link)
    code = link.partition("=")[2]
    assert stranger.ask("POST", "/sign-in", data={"code": code}, headers=OWN).status_code == 303
    assert stranger.ask("GET", "/").status_code == 200
    again = stranger.ask("POST", "/sign-in", data={"code": code}, headers=OWN)
    assert again.status_code == 401
    assert "This link was used" in again.text


def test_a_link_that_is_used_up_has_no_button_and_says_what_to_do(stranger: Browser) -> None:
    link = stranger.site.sign_in_path()
    code = link.partition("=")[2]
    assert stranger.ask("POST", "/sign-in", data={"code": code}, headers=OWN).status_code == 303
    again = stranger.ask("GET", link)  # the browser that is signed in
    assert (again.status_code, again.headers["location"]) == (303, "/")
    stranger.client.cookies.clear()
    other = stranger.ask("GET", link)
    assert other.status_code == 401
    assert 'name="code"' not in other.text
    assert 'name="token"' in other.text
    assert "This link was used" in other.text
    assert "lateshift tokens create me --scope admin" in other.text
    assert "start the server again" in other.text


@pytest.mark.parametrize("typed", ["hello", "lsh_", "lsh_" + "Q" * 63, "Bearer lsh_" + "Q" * 64])
def test_what_is_no_token_is_told_in_the_words_of_a_form(stranger: Browser, typed: str) -> None:
    answer = stranger.ask("POST", "/sign-in", data={"token": typed}, headers=OWN)
    assert answer.status_code == 401
    assert "This is no token. A token begins with lsh_" in answer.text
    assert "Authorization" not in answer.text


def test_a_wrong_code_does_not_use_up_the_right_one(stranger: Browser) -> None:
    code = stranger.site.sign_in_path().partition("=")[2]
    assert stranger.ask("POST", "/sign-in", data={"code": "wrong"}, headers=OWN).status_code == 401
    assert stranger.ask("POST", "/sign-in", data={"code": code}, headers=OWN).status_code == 303


def test_a_later_link_ends_the_earlier_one(stranger: Browser) -> None:
    first = stranger.site.sign_in_path().partition("=")[2]
    stranger.site.sign_in_path()
    assert stranger.ask("POST", "/sign-in", data={"code": first}, headers=OWN).status_code == 401


def test_a_wrong_token_is_refused_and_not_said_back(stranger: Browser) -> None:
    answer = stranger.ask("POST", "/sign-in", data={"token": "lsh_" + "Q" * 64}, headers=OWN)
    assert answer.status_code == 401
    assert "Q" * 64 not in answer.text
    assert "set-cookie" not in answer.headers


def test_the_page_that_a_used_link_leads_to_is_the_one_that_was_asked_for(stranger: Browser) -> None:
    """Who is signed in is led on by a link that is used up."""
    stranger.sign_in()
    for asked, led in (("/queues/..%2f..%2f%2fevil.example", "/"), ("/queues/images", "/queues/images")):
        answer = stranger.ask("GET", f"/sign-in?{urlencode({'code': 'zz', 'next': asked})}")
        assert (answer.status_code, answer.headers["location"]) == (303, led)


def test_one_token_signs_in_a_few_at_a_time(stranger: Browser, kit: Kit) -> None:
    """Each time leaves a token and lines of the audit. A browser of the token counts as the token, another token by itself."""
    ann, bob = (token_of(stranger.app, name, [Scope.READ]) for name in ("ann", "bob"))

    def signs_in(text: str) -> httpx.Response:
        return stranger.ask("POST", "/sign-in", data={"token": text}, headers=OWN)

    def made() -> int:
        return len(stranger.app.store.tokens.list(1_000, sign_ins=True))

    stranger.sign_in(ann)
    [own] = [cookie.value for cookie in stranger.client.cookies.jar]
    for number in range(1, SIGN_INS_AT_ONCE):
        assert signs_in(own or "" if number % 2 else ann).status_code == 303
    before, lines = made(), len(stranger.app.store.audit.list(limit=1_000))
    for text in (ann, own or ""):
        late = signs_in(text)
        every = int(SIGN_IN_EVERY.total_seconds())
        assert (late.status_code, late.headers["retry-after"], "set-cookie" in late.headers) == (
            429,
            str(every),
            False,
        )
        assert "signed in too often" in late.text
    assert (made(), len(stranger.app.store.audit.list(limit=1_000))) == (before, lines)
    assert signs_in(bob).status_code == 303
    stranger.sign_in()  # by the link, which is good once in any case
    kit.clock.move(seconds=SIGN_IN_EVERY.total_seconds())
    assert signs_in(ann).status_code == 303
    assert signs_in(ann).status_code == 429


def test_signing_in_gives_the_browser_a_token_of_its_own(stranger: Browser) -> None:
    text = token_of(stranger.app, "ann", [Scope.READ], ("images",))
    stranger.sign_in(text)
    [held] = stranger.client.cookies.jar
    assert held.value != text
    own = next(each for each in stranger.app.store.tokens.list(10, sign_ins=True) if each.parent is not None)
    parent = stranger.app.store.tokens.named("ann")
    assert parent is not None
    assert (own.parent, own.scopes, own.queues) == (parent.id, parent.scopes, parent.queues)
    assert stranger.app.store.audit.list(limit=1)[0].action == "sign in"


def test_revoking_the_token_ends_every_sign_in_with_it_at_once(stranger: Browser) -> None:
    stranger.sign_in(token_of(stranger.app, "ann", [Scope.READ]))
    assert stranger.ask("GET", "/").status_code == 200
    token = stranger.app.store.tokens.named("ann")
    assert token is not None
    stranger.app.store.tokens.revoke(token.id, by="a test")
    assert stranger.ask("GET", "/").status_code == 303


def test_a_sign_in_made_from_a_sign_in_ends_with_the_token_too(stranger: Browser) -> None:
    stranger.sign_in(token_of(stranger.app, "ann", [Scope.READ]))
    [first] = [cookie.value for cookie in stranger.client.cookies.jar]
    stranger.client.cookies.clear()
    stranger.sign_in(first)
    token = stranger.app.store.tokens.named("ann")
    assert token is not None
    stranger.app.store.tokens.revoke(token.id, by="a test")
    assert stranger.ask("GET", "/").status_code == 303


def test_a_sign_in_ends_after_its_time_and_never_outlives_its_token(stranger: Browser, kit: Kit) -> None:
    stranger.sign_in(token_of(stranger.app, "ann", [Scope.READ], lives=timedelta(hours=1)))
    kit.clock.move(minutes=61)
    assert stranger.ask("GET", "/").status_code == 303
    stranger.sign_in()
    kit.clock.move(seconds=SESSION.total_seconds() - 1)
    assert stranger.ask("GET", "/").status_code == 200
    kit.clock.move(seconds=2)
    assert stranger.ask("GET", "/").status_code == 303


def test_signing_out_makes_the_cookie_good_for_nothing(browser: Browser) -> None:
    [held] = [cookie.value for cookie in browser.client.cookies.jar]
    browser.look("/")
    browser.send("/sign-out")
    assert not list(browser.client.cookies.jar)
    answer = browser.ask("GET", "/", headers={"Cookie": f"lateshift-8642={held}"})
    assert answer.status_code == 303


def test_a_token_to_which_no_page_is_shown_is_not_signed_in_and_told_so(stranger: Browser) -> None:
    text = token_of(stranger.app, "ci", [Scope.ENQUEUE])
    answer = stranger.ask("POST", "/sign-in", data={"token": text}, headers=OWN)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert "This token has the scopes enqueue, and every page asks for read." in answer.text
    assert stranger.app.store.tokens.list(10, sign_ins=True) == []


def test_a_page_for_another_scope_or_another_queue_is_refused(stranger: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    assert str(job.id) not in stranger.ask("GET", "/jobs").text
    assert stranger.ask("GET", "/jobs?queue=images").status_code == 403
    assert stranger.ask("GET", "/jobs?queue=mail").status_code == 200
    assert stranger.ask("GET", f"/jobs/{job.id}").status_code == 403


def test_the_cookie_is_kept_from_scripts_and_other_sites(kit: Kit) -> None:
    for secure, name in ((True, SAFE), (False, "lateshift-8642")):
        with browsing(kit.app) as browser:
            browser.site = Site(kit.app, secure=secure)
            browser.client = httpx.AsyncClient(
                transport=httpx.ASGITransport(browser.site.application), base_url=LOCAL
            )
            code = browser.site.sign_in_path().partition("=")[2]
            answer = browser.ask("POST", "/sign-in", data={"code": code}, headers=OWN)
            parts = answer.headers["set-cookie"].split("; ")
            assert parts[0].startswith(f"{name}=lsh_")
            assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(parts)
            assert ("Secure" in parts) is secure
            assert not any(part.startswith("Domain") for part in parts)


def test_signing_in_with_a_token_and_what_its_browsers_ask_for_are_uses_of_it(
    stranger: Browser, kit: Kit
) -> None:
    def used() -> datetime:
        [token] = kit.app.store.tokens.list(10, sign_ins=False)
        assert token.last_used_at is not None
        return token.last_used_at

    stranger.sign_in_as(Scope.READ)
    signed_in = used()
    kit.clock.move(minutes=2)
    stranger.look("/jobs")
    assert used() - signed_in >= timedelta(minutes=2)
