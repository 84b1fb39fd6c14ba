"""A form does something only if it is ours: sent from a page of this server, by the browser that was given it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from starlette.requests import Request

from lateshift.api.bounds import SIGN_IN_LIMIT, Bounds
from lateshift.api.problem import Refused
from lateshift.dashboard import answering
from lateshift.dashboard.forms import FIELDS_MOST
from lateshift.dashboard.rendering import HEADERS
from lateshift.dashboard.session import Cookies
from lateshift.model.access import Scope
from tests.api.asking import LOCAL, status_of
from tests.api.shop import Shop
from tests.dashboard.browsing import OWN, Browser
from tests.dashboard.test_signing_in import PLAIN


def test_a_form_does_what_the_api_does_and_the_next_page_says_so_once(browser: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look(f"/jobs/{job.id}")
    answer = browser.send(f"/jobs/{job.id}/cancel")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{job.id}")
    assert f"job {job.id}: cancelled." in browser.text
    assert job.view().state.label == "cancelled"
    assert f"job {job.id}: cancelled." not in browser.look(f"/jobs/{job.id}")
    line = browser.app.store.audit.list(limit=1)[0]
    assert (line.action, line.actor.startswith("token sign-in-link:browser-")) == ("cancel", True)


CROSS = [
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "same-site", "Origin": LOCAL},
    {"Sec-Fetch-Site": "none", "Origin": LOCAL},
    {"Sec-Fetch-Site": "", "Origin": LOCAL},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": ""},
    {"Origin": "http://[x"},
    {"Origin": f"x://{LOCAL.partition('://')[2]}"},
    {"Origin": f"https://{LOCAL.partition('://')[2]}"},
    {"Origin": f"{LOCAL}/"},
    {"Origin": LOCAL.partition("://")[2]},
    {"Origin": f"http://ann@{LOCAL.partition('://')[2]}"},
    {},
]


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_what_another_site_sends_is_refused_even_with_the_cookie_and_the_proof(
    browser: Browser, shop: Shop, headers: dict[str, str]
) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look(f"/jobs/{job.id}")
    [proof, *_] = [part.split('"')[0] for part in browser.page.text.split('name="proof" value="')[1:]]  # type: ignore[union-attr]
    for path in (f"/jobs/{job.id}/cancel", "/sign-out", "/sign-in"):
        answer = browser.ask("POST", path, data={"proof": proof}, headers=headers)
        assert answer.status_code == 403, path
    assert job.view().state.label == "ready"
    assert browser.ask("GET", "/").status_code == 200


@pytest.mark.parametrize("proof", ["", "0" * 64, "é", None])
def test_a_form_without_the_proof_of_this_sign_in_is_refused(
    browser: Browser, shop: Shop, proof: str | None
) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    form = {} if proof is None else {"proof": proof}
    answer = browser.ask("POST", f"/jobs/{job.id}/cancel", data={"x": "y"} | form, headers=OWN)
    assert answer.status_code == 403
    assert "of another sign-in" in answer.text
    assert job.view().state.label == "ready"


def test_a_browser_that_says_only_the_origin_is_believed(browser: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    browser.look(f"/jobs/{job.id}")
    [proof, *_] = [part.split('"')[0] for part in browser.page.text.split('name="proof" value="')[1:]]  # type: ignore[union-attr]
    answer = browser.ask("POST", f"/jobs/{job.id}/cancel", data={"proof": proof}, headers={"Origin": LOCAL})
    assert answer.status_code == 303


def test_a_form_for_another_scope_is_refused_and_has_no_button(stranger: Browser, shop: Shop) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    stranger.sign_in_as(Scope.READ)
    assert "Cancel" not in stranger.look(f"/jobs/{job.id}")
    assert stranger.send(f"/jobs/{job.id}/cancel").status_code == 403
    assert job.view().state.label == "ready"


def test_forms_are_bounded_and_of_one_kind(browser: Browser, shop: Shop) -> None:
    path = f"/jobs/{shop.thumbnail.enqueue('cat.png').id}/cancel"
    as_json = browser.ask("POST", path, json={}, headers=OWN)
    assert as_json.status_code == 415
    many = browser.ask("POST", path, data={f"f{n}": "" for n in range(FIELDS_MOST + 1)}, headers=OWN)
    assert many.status_code == 422
    large = browser.ask("POST", path, data={"x": "y" * 1_100_000}, headers=OWN)
    assert large.status_code == 413


@pytest.mark.parametrize("said", ["é", "ImEi.é", "ImEi.0"])
def test_what_the_last_action_said_counts_only_with_its_proof(browser: Browser, said: str) -> None:
    held = "; ".join(f"{each.name}={each.value}" for each in browser.client.cookies.jar)
    answer = browser.ask(
        "GET", "/", headers={"Cookie": f"{held}; lateshift-8642-said={said}".encode("latin-1")}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "path", ["/sign-in", "/sign-out", "/jobs/0190a5c0-0000-7000-8000-000000000000/cancel"]
)
def test_a_browser_that_goes_away_while_it_sends_is_no_fault(
    browser: Browser, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun = {"type": "http.request", "body": b"token=", "more_body": True}
    status = asyncio.run(sent(browser, path, [begun, {"type": "http.disconnect"}]))
    assert status == 400
    assert "fault" not in caplog.text


def test_a_form_that_comes_too_slowly_is_answered_at_the_deadline(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "BOUNDS", Bounds(deadline=timedelta(milliseconds=200)))
    assert (
        asyncio.run(sent(browser, "/sign-in", [{"type": "http.request", "body": b"t", "more_body": True}]))
        == 408
    )


async def sent(browser: Browser, path: str, messages: list[dict[str, Any]]) -> int:
    """The status of the answer to a form that arrives in these pieces, after which nothing comes any more."""
    cookies = "; ".join(f"{each.name}={each.value}" for each in browser.client.cookies.jar)
    headers = OWN | {
        "Host": "127.0.0.1:8642", "Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded", "Content-Length": "100",
    }  # fmt: skip
    return await status_of(browser.site.application, path, headers, messages)


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.path)
def test_every_page_forbids_what_it_does_not_need(browser: Browser, page: object) -> None:
    answer = browser.ask("GET", page.path)  # type: ignore[attr-defined]
    assert answer.status_code == 200
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert " style=" not in answer.text
    assert "<script>" not in answer.text
    assert " on" + "click=" not in answer.text


def test_what_is_not_there_is_a_page_that_says_so(browser: Browser) -> None:
    answer = browser.ask("GET", "/jobs/0190a5c0-0000-7000-8000-000000000000")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "There is no job" in answer.text


def test_a_file_is_asked_for_by_its_digest_and_may_be_kept(browser: Browser) -> None:
    page = browser.ask("GET", "/").text
    for address in {part.split('"')[0] for part in page.split('"/static/')[1:]}:
        answer = browser.ask("GET", f"/static/{address}")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert browser.ask("GET", "/static/lateshift.css").status_code == 404
    assert browser.ask("GET", "/static/..%2fpage.py").status_code == 404


def test_the_form_that_somebody_signs_in_with_is_small(stranger: Browser) -> None:
    form = {"token": "a" * SIGN_IN_LIMIT}
    assert stranger.ask("POST", "/sign-in", data=form, headers=OWN).status_code == 413


@pytest.mark.parametrize(("secure", "scheme"), [(False, "http"), (True, "https")])
def test_an_origin_is_ours_with_the_scheme_by_which_browsers_reach_us(secure: bool, scheme: str) -> None:
    """Behind a proxy that has TLS too: what is between it and us is no matter."""
    cookies = Cookies(secure=secure, port=8642)
    for given in ("http", "https", "HTTP", "x", ""):
        headers = [(b"host", b"jobs.example.com"), (b"origin", f"{given}://jobs.example.com".encode())]
        request = Request({"type": "http", "method": "POST", "headers": headers})
        if given == scheme:
            cookies.require_own_page(request)
            continue
        with pytest.raises(Refused):
            cookies.require_own_page(request)
