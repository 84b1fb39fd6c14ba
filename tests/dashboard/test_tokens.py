"""Tokens and the audit on their pages, on both stores."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from lateshift.api.bounds import PAGE
from lateshift.api.problem import Refused
from lateshift.dashboard.page import Form
from lateshift.dashboard.typed import UNITS, seconds_in, words_in
from lateshift.model.access import SIGN_IN_LINK, Scope, new_token
from lateshift.testing import Kit
from tests.api.asking import token_of
from tests.dashboard.browsing import OWN, Browser, browsing
from tests.dashboard.test_workflows import html

FORM = {"name": "ann", "scopes": "read", "queues": "mail images.*", "expires": "2", "expires_unit": "days"}


def test_a_token_is_made_shown_once_and_kept_nowhere(browser: Browser) -> None:
    browser.look("/tokens")
    made = browser.send("/tokens/create", FORM)
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    [text] = re.findall(r"lsh_[\w-]{64}", made.text)
    [token] = [each for each in browser.app.store.tokens.list(10) if each.name == "ann"]
    assert (token.scopes, token.queues) == ((Scope.READ,), ("mail", "images.*"))
    assert token.expires_at is not None
    assert round((token.expires_at - token.created_at).total_seconds()) == 2 * UNITS["days"]
    assert "ann" in browser.look("/tokens")
    assert text not in html(browser)
    with browsing(browser.app) as other:
        other.sign_in(text)
        assert other.ask("GET", "/tokens").status_code == 403


def test_a_form_that_is_refused_keeps_what_was_typed(browser: Browser) -> None:
    browser.look("/tokens")
    assert browser.send("/tokens/create", FORM | {"expires": "soon"}).status_code == 422
    assert "a number, and one of minutes, hours, days" in browser.text
    page = html(browser)
    assert 'value="ann"' in page
    assert 'value="mail images.*"' in page
    assert re.search(r'value="read" checked', page)
    assert browser.send("/tokens/create", FORM | {"scopes": ""}).status_code == 422
    assert "Nothing chosen. Choose what it may do, at least one of these." in browser.text
    assert "Body invalid" not in browser.text
    assert browser.send("/tokens/create", FORM | {"name": "a b"}).status_code == 422
    browser.send("/tokens/create", FORM)
    browser.look("/tokens")
    assert browser.send("/tokens/create", FORM).status_code == 409


def test_browsers_that_signed_in_stand_apart_and_go_with_their_token(browser: Browser) -> None:
    text = token_of(browser.app, "bob", [Scope.READ])
    with browsing(browser.app) as other:
        other.sign_in(text)
        page = browser.look("/tokens")
        tokens, _, browsers = page.partition("Browsers that signed in")
        assert "bob" in tokens
        assert "bob:browser-" not in tokens
        assert "bob:browser-" in browsers
        assert browsers.count("this browser") == 1
        [bob] = [each for each in browser.app.store.tokens.list(10) if each.name == "bob"]
        answer = browser.send(f"/tokens/{bob.id}/revoke")
        assert answer.headers["location"] == "/tokens"
        assert "revoked" in browser.text
        assert other.ask("GET", "/").headers["location"] == "/sign-in"


def test_tokens_are_paged_and_browsers_have_pages_of_their_own(browser: Browser) -> None:
    store, now = browser.app.store, browser.app.store.clock.now()
    for number in range(PAGE + 5):
        token_of(browser.app, f"made-{number}", [Scope.READ])
        token, _ = new_token(
            f"x:browser-{number}",
            ["read"],
            [],
            at=now,
            by=SIGN_IN_LINK,
            expires_at=now + timedelta(minutes=1),
        )
        store.tokens.create(token)
    first = browser.look("/tokens")
    assert first.count("made-") == PAGE
    assert 0 < first.count("x:browser-") < PAGE  # this browser's ends last
    [more] = re.findall(r'rel="next" href="([^"]+)"', html(browser))
    rest = browser.look(more.replace("&amp;", "&"))
    assert rest.count("made-") == 5
    assert "browser-" not in rest
    browsers = browser.look("/tokens?sign_ins=true")
    assert "made-" not in browsers
    [more] = re.findall(r'rel="next" href="([^"]+)"', html(browser))
    assert (
        browsers.count("x:browser-") + browser.look(more.replace("&amp;", "&")).count("x:browser-")
        == PAGE + 5
    )


def test_only_who_may_do_all_sees_tokens_and_the_audit(stranger: Browser) -> None:
    stranger.sign_in_as(Scope.OPERATE)
    assert stranger.ask("GET", "/tokens").status_code == 403
    assert stranger.ask("GET", "/audit").status_code == 403
    stranger.sign_in_as(Scope.ADMIN, queues=("mail",))
    assert stranger.ask("GET", "/audit").status_code == 403


def test_the_audit_is_filtered_and_paged(browser: Browser) -> None:
    for number in range(PAGE + 5):
        browser.app.store.audit.record("test", f"thing {number} <b>", by="ann")
    text = browser.look("/audit?actor=ann&subject=&action=")
    assert text.count("thing") == PAGE
    assert "<b>" not in html(browser).partition("<tbody>")[2]
    [more] = re.findall(r'rel="next" href="([^"]+)"', html(browser))
    assert browser.look(more.replace("&amp;", "&")).count("thing") == 5
    assert "Nothing fits this." in browser.look("/audit?actor=nobody")
    assert "thing 3 <b>" in browser.look("/audit?subject=thing+3+%3Cb%3E")
    assert browser.ask("GET", "/audit?acter=ann").status_code == 422


@pytest.mark.parametrize(
    ("form", "seconds"), [({}, None), ({"e": "1.5", "e_unit": "hours"}, 5400.0), ({"e": " ", "e_unit": "x"}, None)]
)  # fmt: skip
def test_a_length_of_time_is_a_number_with_its_unit(form: Form, seconds: float | None) -> None:
    assert seconds_in(form, "e") == seconds


@pytest.mark.parametrize("form", [{"e": "1", "e_unit": "years"}, {"e": "x", "e_unit": "days"}, {"e": "1"}])
def test_any_other_length_is_refused(form: Form) -> None:
    with pytest.raises(Refused):
        seconds_in(form, "e")


def test_words_are_parted_by_spaces_commas_and_lines() -> None:
    assert words_in({"q": " a,b\n c  "}, "q") == ["a", "b", "c"]
    assert words_in({}, "q") == []


def test_a_form_of_a_browser_that_is_signed_out_while_it_comes_does_nothing(
    browser: Browser, kit: Kit
) -> None:
    store = browser.app.store
    browser.look("/tokens")
    assert browser.page is not None
    [proof, *_] = re.findall(r'name="proof" value="(\w+)"', browser.page.text)
    sent = urlencode(FORM | {"proof": proof}).encode()

    async def late() -> AsyncIterator[bytes]:
        yield sent[:1]
        [own] = store.tokens.list(1, sign_ins=True)
        await asyncio.to_thread(store.tokens.revoke, own.id, by="ann")
        kit.clock.move(seconds=1)
        yield sent[1:]

    headers = OWN | {"Content-Type": "application/x-www-form-urlencoded"}
    answer = browser.ask("POST", "/tokens/create", content=late(), headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert store.tokens.named("ann") is None
