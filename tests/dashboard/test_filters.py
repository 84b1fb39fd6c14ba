"""A filter that is refused says why and keeps what was typed; nothing is listed that nobody asked for."""

import re
from html import unescape

import pytest

from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser

REFUSED = [
    ("/jobs?task=thumbnail&since=yesterday", {"task": "thumbnail", "since": "yesterday"}, "since"),
    ("/jobs?batch=7&queue=images", {"batch": "7", "queue": "images"}, "batch"),
    ("/jobs?id=xyz", {"id": "xyz"}, "no id"),
    ("/jobs?id=0123&task=thumbnail", {"id": "0123", "task": "thumbnail"}, "alone"),
    ("/dead-letters?like=zz&task=send", {"task": "send"}, "fingerprint"),
    ("/workflows?name=order&state=asleep", {"name": "order"}, "state"),
    ("/audit?actor=ann&limit=0", {"actor": "ann"}, "limit"),
    ("/queues?name=mail&colour=red", {"name": "mail"}, "colour"),
]


def fields(browser: Browser) -> dict[str, str]:
    """What stands in those of the filters."""
    assert browser.page is not None
    forms = "".join(re.findall(r'<form class="(?:act by-id|filters).*?</form>', browser.page.text, re.DOTALL))
    found = re.findall(r'<input id="(\w+)" name="\w+" value="([^"]*)"', forms)
    return {name: unescape(value) for name, value in found if value}


@pytest.mark.parametrize(
    ("path", "typed", "why"), REFUSED, ids=lambda each: each if isinstance(each, str) else ""
)
def test_a_filter_that_is_refused_keeps_what_was_typed(
    browser: Browser, shop: Shop, path: str, typed: dict[str, str], why: str
) -> None:
    shop.thumbnail.enqueue("cat.png")
    browser.page = browser.ask("GET", path)
    assert browser.page.status_code == 422
    assert fields(browser) == typed
    assert why in re.findall(r'role="alert">(.*?)</p>', browser.page.text, re.DOTALL)[0]
    assert "Nothing was looked for." in browser.text
    assert "<tbody>" not in browser.page.text


def test_what_was_chosen_of_a_list_is_kept_and_what_was_typed_is_text(browser: Browser) -> None:
    browser.page = browser.ask("GET", '/jobs?state=dead&since="><script>x</script>')
    assert browser.page.status_code == 422
    assert "<option selected>dead</option>" in browser.page.text
    assert fields(browser)["since"] == '"><script>x</script>'
    assert "<script>x" not in browser.page.text


def test_a_queue_of_others_is_refused_with_what_was_typed(stranger: Browser, shop: Shop, kit: Kit) -> None:
    job = shop.thumbnail.enqueue("cat.png")
    stranger.sign_in_as(Scope.READ, queues=("mail",))
    stranger.page = stranger.ask("GET", "/jobs?queue=images&tag=eu")
    assert stranger.page.status_code == 403
    assert fields(stranger) == {"queue": "images", "tag": "eu"}
    assert str(job.id) not in stranger.page.text


def test_a_page_that_is_refused_itself_is_refused_whatever_was_asked_there(browser: Browser) -> None:
    answer = browser.ask("GET", "/schedules/none?since=x&until=y")
    assert answer.status_code == 404
    assert "There is no schedule" in answer.text


def test_times_of_a_backfill_that_are_refused_stay_in_their_fields(browser: Browser, kit: Kit) -> None:
    kit.travel(seconds=1)
    browser.page = browser.ask("GET", "/schedules/news?since=2020-02-01T00:00&until=2020-01-01T00:00")
    assert browser.page.status_code == 422
    assert "from an earlier time to a later one" in browser.text
    assert 'value="2020-02-01T00:00"' in browser.page.text
    assert "Next ticks" in browser.text
