"""The menu has what the signed-in token may see, and no link leads to a page that it may not."""

import re

import pytest

from lateshift.dashboard.page import navigation
from lateshift.dashboard.pages.all import PAGES
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.api.shop import Shop
from tests.dashboard.browsing import Browser
from tests.dashboard.test_links import crawled

OF_SOME = ["Overview", "Jobs", "Dead letters", "Workflows", "Queues", "Schedules"]
OF_READ = [*OF_SOME[:4], "Pipelines", "Batches", *OF_SOME[4:], "Triggers", "Breakers", "Members"]


def menu(browser: Browser) -> list[str]:
    assert browser.page is not None
    nav = browser.page.text.partition("<nav")[2].partition("</nav>")[0]
    return re.findall(r">([^<]+)</a>", nav)


@pytest.mark.parametrize(
    ("scopes", "queues", "shown"),
    [
        ([Scope.READ], ("images", "mail"), OF_SOME),
        ([Scope.OPERATE], ("images.*",), OF_SOME),
        ([Scope.ADMIN], ("images",), OF_SOME),
        ([Scope.READ], (), OF_READ),
        ([Scope.ADMIN], (), [*OF_READ, "Tokens", "Audit"]),
    ],
)
def test_the_menu_has_what_the_token_may_see(
    stranger: Browser, scopes: list[Scope], queues: tuple[str, ...], shown: list[str]
) -> None:
    stranger.sign_in_as(*scopes, queues=queues)
    stranger.look("/")
    assert menu(stranger) == shown


def test_a_key_goes_to_the_same_page_whoever_looks() -> None:
    whole = {page.path: key for page, key in navigation(PAGES)}
    some = {page.path: key for page, key in navigation(PAGES, {"/tokens", "/queues"})}
    assert some == {path: whole[path] for path in ("/queues", "/tokens")}


@pytest.mark.parametrize("queues", [(), ("images", "mail", "orders")], ids=["all queues", "some queues"])
def test_no_link_leads_to_a_page_that_the_token_may_not_see(
    stranger: Browser, shop: Shop, kit: Kit, queues: tuple[str, ...]
) -> None:
    shop.send.enqueue("nobody")
    kit.app.batch([shop.thumbnail.call("cat.png"), shop.send.call("nobody")], name="both")
    shop.order.enqueue(1, "bad")
    shop.pay.enqueue()
    kit.drain()
    stranger.sign_in_as(Scope.READ, queues=queues)
    answered = crawled(stranger)
    assert len(answered) > 20
    assert {at: status for at, status in answered.items() if status != 200} == {}


def test_a_queue_is_asked_for_only_where_one_can_be_named(stranger: Browser) -> None:
    stranger.sign_in_as(Scope.READ, queues=("images",))
    for path in ("/jobs", "/dead-letters"):
        assert "Name one of them: images" in stranger.look(path)
    for path in ("/batches", "/triggers", "/breakers", "/members"):
        said = stranger.ask("GET", path)
        assert said.status_code == 403
        assert "it takes a token for all of them" in said.text
        assert "name one" not in said.text
    assert "name one of them in `queue`" in stranger.ask("GET", "/dead-letters/0123abcd").text


def test_naming_a_queue_keeps_what_was_looked_for(stranger: Browser) -> None:
    stranger.sign_in_as(Scope.READ, queues=("images",))
    stranger.look("/jobs?task=thumbnail")
    assert stranger.page is not None
    assert 'href="/jobs?task=thumbnail&amp;queue=images"' in stranger.page.text
